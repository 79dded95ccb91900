"""The sentences of examples: the original's, ALBERT's and RoBERTa's rules."""

import json
import random

import classic
import numpy as np
import pytest
from conftest import RESOURCES

from nezha_tf import FullTokenizer, Vocabulary
from nezha_tf.corpus.layout import Layout
from nezha_tf.corpus.packing import PairPacker, pack_full_sentences, truncated
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
    layout = Layout(vocabulary, length, of_pairs=True)
    instances = []
    for _ in range(figures["dupe_factor"]):
        for index in range(len(documents)):
            for ranges, label in packer.pack(index, rng):
                rows = layout.rows(tokens, *np.array(ranges).T, np.array([2]))
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


def document_at(tokens, place):
    for index, (_, first, last) in enumerate(tokens.documents):
        if tokens.bounds[first] <= place < tokens.bounds[last]:
            return index
    raise AssertionError(place)


def test_pairs_come_from_where_the_label_says():
    documents = classic.random_documents(random.Random(1))
    tokens, instances = pack(documents, "nsp")
    for index, ((a, a_end), (b, b_end)), label in instances:
        assert a < a_end and b < b_end and a_end - a + b_end - b <= 37
        assert document_at(tokens, a) == document_at(tokens, a_end - 1) == index
        assert document_at(tokens, b) == document_at(tokens, b_end - 1)
        assert (document_at(tokens, b) != index) == label
        assert label or a_end <= b
    assert 0.4 < np.mean([label for _, _, label in instances]) < 0.7


def test_each_sentence_is_used_in_each_pass():
    """Sentences that do not fit are cut, but none is skipped because of a random one."""
    documents = classic.random_documents(random.Random(2), longest=4)
    tokens, instances = pack(documents, "nsp", length=90, repetitions=1, short=0.0)
    used = np.zeros(len(tokens.ids), int)
    for _, ((a, a_end), (b, b_end)), label in instances:
        used[a:a_end] += 1
        used[b:b_end] += not label
    cut = sum(a_end - a + b_end - b == 87 for _, ((a, a_end), (b, b_end)), _ in instances)
    assert used.max() == 1 and (used == 0).sum() <= 4 * cut


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


def test_sentence_order_has_neighbours_in_either_order():
    rng = random.Random(3)
    documents = classic.random_documents(rng)
    count = sum(len(sentence) for document in documents for sentence in document)
    starts = [rng.random() < 0.6 for _ in range(count)]
    tokens, instances = pack(documents, "sop", starts=starts)
    inside = 0
    for index, (a, b), label in instances:
        first, second = (b, a) if label else (a, b)
        assert document_at(tokens, first[0]) == document_at(tokens, second[1] - 1) == index
        assert first[0] < first[1] <= second[0] < second[1]
        if sum(end - start for start, end in (a, b)) < 37:  # nothing was cut
            assert first[1] == second[0]
            if second[0] not in tokens.bounds:
                inside += 1
                assert tokens.word_starts[second[0]]
    assert inside > 10
    assert np.mean([label for *_, label in instances]) == pytest.approx(0.5, abs=0.1)


def test_a_sentence_of_one_word_has_no_order():
    _, instances = pack([[[5, 6, 7]], [[8], [9]]], "sop", starts=[True, False, False, True, True])
    assert {index for index, _, _ in instances} == {1}


def test_full_sentences_hold_everything_once_in_order():
    documents = classic.random_documents(random.Random(4), count=60, longest=50)
    tokens = classic.shard_tokens(documents)
    order = random.Random(5).sample(range(60), 60)
    instances = list(pack_full_sentences(tokens, 40, order))
    expected = [token for index in order for sentence in documents[index] for token in sentence]
    ranges = [found for instance, _ in instances for found in instance]
    assert [token for start, end in ranges for token in tokens.ids[start:end]] == expected
    assert all(document_at(tokens, start) == document_at(tokens, end - 1) for start, end in ranges)
    for (instance, label), (following, _) in zip(instances, [*instances[1:], ((), 0)], strict=True):
        assert label == 0
        used = 1 + sum(end - start + 1 for start, end in instance)
        assert used <= 40
        for start, end in instance:  # only a sentence that is longer than an example is cut
            for place in {start, end} - set(tokens.bounds):
                sentence = np.searchsorted(tokens.bounds, place)
                assert tokens.bounds[sentence] - tokens.bounds[sentence - 1] > 38
        if following and following[0][0] in tokens.bounds:  # and the next one did not fit
            following_end = tokens.bounds[tokens.bounds.index(following[0][0]) + 1]
            separator = following[0][0] != instance[-1][1]
            room = 40 - used - separator + (not separator) - 1
            assert following_end - following[0][0] > room


def test_truncation_shortens_the_longer_and_keeps_order():
    rng = random.Random(3)
    for _ in range(500):
        first, second = (7, 7 + rng.randint(1, 40)), (100, 100 + rng.randint(1, 40))
        limit = rng.randint(2, 50)
        sizes = [first[1] - first[0], second[1] - second[0]]
        found = truncated(first, second, limit, rng)
        while sum(sizes) > limit:
            sizes[0 if sizes[0] > sizes[1] else 1] -= 1
        assert [end - start for start, end in found] == sizes
        for (start, end), (full_start, full_end) in zip(found, (first, second), strict=True):
            assert full_start <= start < end <= full_end


def test_rows_hold_what_the_ranges_say():
    vocabulary = Vocabulary.from_file(RESOURCES / "vocab.txt")
    rng = random.Random(6)
    documents = classic.random_documents(rng)
    tokens = classic.shard_tokens(documents)
    tokens = tokens._replace(word_starts=np.array([rng.random() < 0.5 for _ in tokens.ids]))
    for pair, of_pairs in (("nsp", True), ("none", False)):
        if of_pairs:
            packer = PairPacker(tokens, pair, 40, 0.1, 0.5)
            instances = [i for n in range(30) for i in packer.pack(n, rng)]
        else:
            instances = list(pack_full_sentences(tokens, 40, range(30)))
        counts = np.array([len(ranges) for ranges, _ in instances])
        starts, ends = np.array([found for ranges, _ in instances for found in ranges]).T
        rows = Layout(vocabulary, 40, of_pairs).rows(tokens, starts, ends, counts)
        for number, (ranges, _) in enumerate(instances):
            ids, segments, text, begins = [vocabulary.cls_id], [0], [False], [False]
            for place, (start, end) in enumerate(ranges):
                ids += [*tokens.ids[start:end], vocabulary.sep_id]
                segments += [place * of_pairs] * (end - start + 1)
                text += [True] * (end - start) + [False]
                begins += [True, *tokens.word_starts[start + 1 : end], False]
            padding = [0] * (40 - len(ids))
            assert rows.lengths[number] == len(ids)
            for found, expected in (
                (rows.ids, ids),
                (rows.segment_ids, segments),
                (rows.is_text, text),
                (rows.word_starts, begins),
            ):
                assert found[number].tolist() == expected + padding
