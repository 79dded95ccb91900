"""The sentences of examples: the original's, ALBERT's and RoBERTa's rules."""

import json
import random

import classic
import numpy as np
import pytest

from nezha_tf import FullTokenizer, Vocabulary
from nezha_tf.corpus.packing import PairPacker, pack_rows
from nezha_tf.data.corpus import read_documents
from nezha_tf.objectives.policies import budgets


def test_instances_are_those_of_the_original(shared_golden):
    """With the original's generator, packing and a simple masking give exactly its instances."""
    figures = json.loads((shared_golden / "pretraining_data.json").read_text(encoding="utf-8"))
    vocabulary = Vocabulary.from_file(shared_golden / "vocab.txt")
    length, rng = figures["max_seq_length"], random.Random(figures["random_seed"])
    limits = budgets(length, figures["masked_lm_prob"], figures["max_predictions_per_seq"])
    tokenizer = FullTokenizer(vocabulary=vocabulary)
    documents = [
        [vocabulary.ids_of(tokenizer.tokenize(line)) for line in lines]
        for lines in read_documents(str(shared_golden / "sample_text.txt"))
    ]
    rng.shuffle(documents)
    tokens = classic.shard_tokens(documents)
    packer = PairPacker(tokens, "nsp", length, figures["short_seq_prob"], 0.5)
    instances = []
    for _ in range(figures["dupe_factor"]):
        for index in range(len(documents)):
            for ranges, label in packer.pack(index, rng):
                starts, ends = np.array(ranges).T
                rows = pack_rows(tokens, starts, ends, np.array([2]), vocabulary, length, True)
                size = int(rows.lengths[0])
                ids, segment_ids = rows.ids[0, :size].tolist(), rows.segment_ids[0, :size].tolist()
                masked = classic.mask_tokens(ids, rows.is_text[0], limits[size], vocabulary, rng)
                instances.append((segment_ids, bool(label), *masked))
    rng.shuffle(instances)
    assert len(instances) == len(figures["instances"]) == 16
    for (segment_ids, is_random_next, ids, places, labels), expected in zip(
        instances, figures["instances"], strict=True
    ):
        assert expected == {
            "tokens": vocabulary.tokens_of(ids),
            "segment_ids": segment_ids,
            "is_random_next": is_random_next,
            "masked_lm_positions": places,
            "masked_lm_labels": vocabulary.tokens_of(labels),
        }


def pack(documents, pair, length=40, repetitions=3, short=0.1, share=0.5, starts=None):
    """Returns (tokens, list of (document, ranges, label))."""
    tokens = classic.shard_tokens(documents, starts)
    packer = PairPacker(tokens, pair, length, short, share)
    rng = random.Random(5)
    return tokens, [
        (index, ranges, label)
        for _ in range(repetitions)
        for index in range(len(documents))
        for ranges, label in packer.pack(index, rng)
    ]


@pytest.mark.parametrize("pair", ["nsp", "sop"])
@pytest.mark.parametrize("share", [0.0, 0.25, 1.0])
def test_share_of_label_1(pair, share):
    documents = [[[200 + n] * 6 for n in range(40)] for _ in range(20)]
    _, instances = pack(documents, pair, 35, repetitions=10, short=0.0, share=share)
    # A little more: a document may end in a single sentence, which leaves no choice.
    assert np.mean([label for _, _, label in instances]) == pytest.approx(share, abs=0.04)


def test_short_examples_have_their_share():
    documents = [[[200 + n] * 5 for n in range(100)] for _ in range(300)]
    _, instances = pack(documents, "nsp", 63, repetitions=1, short=0.3, share=0.0)
    longest = {index: 0 for index in range(300)}
    for index, ranges, _ in instances:
        longest[index] = max(longest[index], sum(end - start for start, end in ranges))
    # Targets are uniform over 2 to 60; those above 55 count as full too.
    assert np.mean(np.array(list(longest.values())) < 60) == pytest.approx(0.3 * 54 / 59, abs=0.08)
