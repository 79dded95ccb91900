"""Records of a shard: complete, reproducible, and in agreement with the statistics."""

import collections

import numpy as np
import pytest
import tensorflow as tf
from conftest import RESOURCES

from nezha_tf.corpus.settings import Settings
from nezha_tf.corpus.shard_maker import ShardMaker
from nezha_tf.data import schema
from nezha_tf.data.corpus import read_documents

LENGTHS = schema.Lengths(48, 7)


@pytest.fixture(scope="module")
def documents():
    return list(enumerate(read_documents(str(RESOURCES / "sample_corpus.txt"))))


def settings(**changes):
    values = {"vocab_file": str(RESOURCES / "vocab.txt"), "segmenter": "rjieba", **changes}
    return Settings(max_seq_length=48, max_predictions_per_seq=7, **values)


def parse(records):
    return {
        name: values.numpy()
        for name, values in tf.io.parse_example(records, schema.parsing_spec(LENGTHS)).items()
    }


@pytest.mark.parametrize("pair", ["nsp", "none"])
def test_the_same_documents_give_the_same_bytes(documents, pair):
    first, second = documents[:15], documents[15:40]
    maker = ShardMaker(settings(pair=pair))
    expected = list(maker.make(first, 2))
    statistics = maker.statistics.to_dict()
    other = ShardMaker(settings(pair=pair))
    list(other.make(second, 1))  # earlier shards do not matter
    assert list(other.make(first, 2)) == expected
    assert other.statistics.to_dict() == statistics
    assert list(ShardMaker(settings(pair=pair, random_seed=1)).make(first, 2)) != expected
    again = [(number + 1, lines) for number, lines in first]
    assert list(maker.make(again, 2)) != expected


def test_repetitions_differ_and_what_is_first_stays(documents):
    """A document's instances depend on its number and the repetition."""
    maker = ShardMaker(settings())
    once, twice = (list(maker.make(documents[:10], count)) for count in (1, 2))
    assert len(set(twice)) == len(twice)
    assert set(once) < set(twice)


def test_records_are_shuffled(documents):
    maker = ShardMaker(settings(pair="nsp", masking="token"))
    batch = parse(list(maker.make(documents, 1)))
    tokens = maker._reader.read(documents)
    place_of = collections.defaultdict(list)
    for place, (a, b) in enumerate(zip(tokens.ids, tokens.ids[1:], strict=False)):
        place_of[int(a), int(b)].append(place)
    places = [place_of.get((int(row[1]), int(row[2])), [0, 0]) for row in batch["input_ids"]]
    alone = np.array([found[0] for found in places if len(found) == 1])
    assert len(alone) > 50 and abs(np.corrcoef(alone, np.arange(len(alone)))[0, 1]) < 0.3


def test_a_shard_without_text_gives_nothing():
    maker = ShardMaker(settings(pair="none"))
    assert list(maker.make([(0, ["\u200b"])], 3)) == []
    assert list(maker.make([], 3)) == []
    assert len(maker.statistics.rows()) > 5


def parse_unmasked(records):
    spec = schema.parsing_spec(LENGTHS, schema.UNMASKED_FEATURES)
    return {name: v.numpy() for name, v in tf.io.parse_example(records, spec).items()}


@pytest.mark.parametrize("pair", ["nsp", "none"])
def test_unmasked_records_are_the_masked_ones_with_the_tokens_put_back(documents, pair):
    """They are in the same order, because masking does not affect it."""
    masked = parse(list(ShardMaker(settings(pair=pair)).make(documents, 1)))
    maker = ShardMaker(settings(pair=pair, masking="none"))
    records = list(maker.make(documents, 1))
    limits = schema.Limits(20_000, 2)
    assert {
        schema.fault_of(record, LENGTHS, limits, schema.UNMASKED_FEATURES) for record in records
    } == {None}
    batch = parse_unmasked(records)
    ids = masked["input_ids"].copy()
    row, slot = masked["masked_lm_weights"].nonzero()
    places = masked["masked_lm_positions"][row, slot]
    ids[row, places] = masked["masked_lm_ids"][row, slot]
    assert (batch["input_ids"] == ids).all()
    for name in ("input_mask", "segment_ids", "next_sentence_labels"):
        assert (batch[name] == masked[name]).all()
    # With --masking=none whole words are marked, and no special token or padding.
    chosen = np.zeros(ids.shape, bool)
    chosen[row, places] = True
    starts = batch["word_starts"].astype(bool)
    inside = (batch["input_mask"] > 0) & (ids > 102) & ~starts
    parted = inside[:, 1:] & (chosen[:, 1:] != chosen[:, :-1])
    assert inside.sum() > 1000 and not parted.any()
    assert not (starts & ((ids <= 102) | (batch["input_mask"] == 0))).any()
    statistics = dict(maker.statistics.rows(pair))
    assert "masked characters" not in statistics and maker.statistics.tokens > 0
