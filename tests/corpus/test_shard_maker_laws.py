"""Property tests of a shard's records: any text and settings, against a line-by-line tokenizer."""

import collections
import dataclasses
import functools

import laws
import numpy as np
import pytest
import tensorflow as tf
from conftest import RESOURCES
from hypothesis import given
from hypothesis import strategies as st

from nezha_tf import FullTokenizer, Vocabulary
from nezha_tf.corpus import shard_maker, tokens
from nezha_tf.corpus.packing import PAIRS, SINGLE
from nezha_tf.corpus.settings import Settings
from nezha_tf.corpus.shard_maker import ShardMaker
from nezha_tf.corpus.statistics import Statistics
from nezha_tf.data import schema
from nezha_tf.objectives.policies import POLICIES, UNMASKED

VOCAB_FILE = str(RESOURCES / "vocab.txt")
VOCABULARY = Vocabulary.from_file(VOCAB_FILE)
TOKENIZER = FullTokenizer(vocabulary=VOCABULARY)
# Characters that are tokens by themselves, Chinese and others; inside a word they need not be.
OWN = [token for token in VOCABULARY.tokens if len(token) == 1 and TOKENIZER.tokenize(token)]
UNKNOWN = ["龘", "\U00020000"]  # Chinese, and not in the vocabulary
SPACE = [" ", "\u3000", "\u200b"]  # the tokenizer drops the last one
WORDS = ["数据中心", "北京", "我们今天去北京。", "hello", "2024", "Tokenizer"]
PREDICTIONS = 4


@pytest.fixture(scope="module")
def dictionary(tmp_path_factory):
    path = tmp_path_factory.mktemp("words") / "words.txt"
    path.write_text("数据中心\n", encoding="utf-8")
    return str(path)


@functools.cache  # making it takes longer than using it
def maker_of(settings):
    return ShardMaker(settings)


def lines():
    part = st.sampled_from(OWN) | st.sampled_from(WORDS + SPACE + UNKNOWN)
    return st.lists(part, max_size=12).map("".join)


@st.composite
def corpora(draw):
    """Draws documents with rising numbers, some of them without tokens."""
    documents = draw(st.lists(st.lists(lines(), max_size=4), max_size=5))
    numbers = draw(st.lists(st.integers(0, 10**6), min_size=5, max_size=5, unique=True))
    return list(zip(sorted(numbers), documents, strict=False))


def tokens_of(line):
    return VOCABULARY.ids_of(TOKENIZER.tokenize(line))


def starts_of(line):
    return [token.start for token in TOKENIZER.tokenize_with_offsets(line)]


def parsed(records, features, length):
    """Returns arrays of the records, and their tokens before masking."""
    lengths = schema.Lengths(length, PREDICTIONS)
    limits = schema.Limits(len(VOCABULARY), 2)
    for record in records:
        assert schema.fault_of(record, lengths, limits, features) is None
    found = tf.io.parse_example(records, schema.parsing_spec(lengths, features))
    batch = {name: values.numpy() for name, values in found.items()}
    ids = batch["input_ids"].copy()
    if schema.FEATURES[3] in features:
        row, slot = batch["masked_lm_weights"].nonzero()
        ids[row, batch["masked_lm_positions"][row, slot]] = batch["masked_lm_ids"][row, slot]
    return batch, ids


def texts_of(row):
    """Returns the texts between the special tokens of a row, as strings."""
    assert row[0] == VOCABULARY.cls_id and row[-1] == VOCABULARY.sep_id
    text = "".join(map(chr, row[1:-1])).replace(chr(VOCABULARY.cls_id), "")
    return text.split(chr(VOCABULARY.sep_id))


def expected_statistics(documents, batch, ids, room):
    """Counts a text and its records one after another."""
    sentences = [[found for line in text if (found := tokens_of(line))] for _, text in documents]
    flat = [sentence for document in sentences for sentence in document]
    lines = [line for _, text in documents for line in text]
    characters = "".join(lines)
    is_used = batch["input_mask"] > 0
    found = Statistics(
        documents=sum(map(bool, sentences)),
        sentences=len(flat),
        characters=len(characters),
        text_tokens=sum(map(len, flat)),
        unknown_characters=collections.Counter(c for c in characters if c in UNKNOWN),
        token_characters=sum(
            len(line) - starts[0] for line in lines if (starts := starts_of(line))
        ),
        long_sentences=sum(len(sentence) > room for sentence in flat),
        instances=len(ids),
        texts=int(batch.get("text_ids", np.ones((len(ids), 1))).max(axis=1).sum()),
        label_1=int(batch["next_sentence_labels"].sum()),
        tokens=int((is_used & ~np.isin(ids, [VOCABULARY.cls_id, VOCABULARY.sep_id])).sum()),
        length=int(is_used.sum()),
        capacity=ids.size,
    )
    for row, slot in np.argwhere(batch.get("masked_lm_weights", np.zeros((0, 0)))):
        token = batch["input_ids"][row, batch["masked_lm_positions"][row, slot]]
        found.masked += int(token == VOCABULARY.mask_id)
        found.kept += int(token == batch["masked_lm_ids"][row, slot] != VOCABULARY.mask_id)
    found.replaced = int((batch.get("masked_lm_weights", np.zeros(0)) > 0).sum())
    found.replaced -= found.masked + found.kept
    return found


def assert_segments_are_neighbours(row, pair, label, documents):
    """Both come from one document, one before the other, except for a random B."""
    first, second = row[::-1] if pair == "sop" and label else row
    assert (pair == "nsp" and label) or any(
        second in document[document.find(first) + len(first) :]
        for document in documents
        if first in document
    )


@laws.examples(35)
@given(
    corpora(),
    st.sampled_from(PAIRS),
    st.sampled_from([*POLICIES, UNMASKED]),
    st.sampled_from([5, 7, 33]),
    st.integers(1, 3),
)
def test_records_hold_the_text_and_statistics_count_them(
    dictionary, monkeypatch, documents, pair, masking, length, repetitions
):
    monkeypatch.setattr(tokens, "CHARACTERS_AT_ONCE", 8)  # several parts of a text
    monkeypatch.setattr(shard_maker, "ROWS_AT_ONCE", 3)
    settings = Settings(
        VOCAB_FILE,
        max_seq_length=length,
        max_predictions_per_seq=PREDICTIONS,
        masking=masking,
        pair=pair,
        segmenter="rjieba",
        user_dict=dictionary,
    )
    maker = maker_of(settings)
    records = list(maker.make(documents, repetitions))
    has_text = any(tokens_of(line) for _, text in documents for line in text)
    if not records:  # a single word gives no pair with either label
        assert not has_text or pair == "sop"
        assert maker.statistics.used_characters == 0
        return
    assert has_text
    features = schema.FEATURES if masking != UNMASKED else schema.UNMASKED_FEATURES
    features += (schema.TEXT_IDS,) * (pair == "packed")
    batch, ids = parsed(records, features, length)
    room = length - (2 if pair in SINGLE else 3)
    expected = expected_statistics(documents, batch, ids, room)
    used, most = maker.statistics.used_characters, expected.token_characters
    assert used == most if pair in SINGLE else 0 < used <= most
    assert dataclasses.replace(maker.statistics, used_characters=0) == expected
    assert Statistics.from_dict(maker.statistics.to_dict()) == maker.statistics
    whole = ["".join(chr(p) for line in text for p in tokens_of(line)) for _, text in documents]
    used = batch["input_mask"].sum(axis=1)
    assert (batch["input_mask"] == (np.arange(length) < used[:, None])).all()
    assert not ids[batch["input_mask"] == 0].any()
    rows = [texts_of(row[:size].tolist()) for row, size in zip(ids, used, strict=True)]
    assert all(text and any(text in document for document in whole) for row in rows for text in row)
    if pair == "packed":
        # Its texts are those of the rows that the numbers say, each with its own [CLS] and [SEP].
        for row, numbers, texts in zip(ids, batch["text_ids"], rows, strict=True):
            for number, text in enumerate(texts, 1):
                own = [VOCABULARY.cls_id, *map(ord, text), VOCABULARY.sep_id]
                assert row[numbers == number].tolist() == own
            assert numbers.max() == len(texts)
            assert all(any(text in document for document in whole) for text in texts)
        found = "".join(sorted(text for row in rows for text in row))
        assert collections.Counter(found) == collections.Counter("".join(whole) * repetitions)
    elif pair in SINGLE:
        found, expected = (
            "".join(text for row in rows for text in row),
            "".join(whole) * repetitions,
        )
        assert collections.Counter(found) == collections.Counter(expected)
        assert found == expected or pair != "stream"
    else:
        for row, label in zip(rows, batch["next_sentence_labels"][:, 0], strict=True):
            assert_segments_are_neighbours(row, pair, label, whole)
