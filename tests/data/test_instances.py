"""Instances and masks: the TF1 original's, and properties of ours."""

import collections
import json
import random

import pytest
from conftest import RESOURCES

from nezha_tf import FullTokenizer, Vocabulary
from nezha_tf.data.corpus import read_documents
from nezha_tf.data.instances import InstanceMaker, Sentence, truncate_pair
from nezha_tf.data.masking import Masking


def make_instances(path, vocabulary, masking, rng, **settings):
    tokenizer = FullTokenizer(vocabulary=vocabulary)
    documents = []
    for lines in read_documents(str(path)):
        ids = [vocabulary.ids_of(tokenizer.tokenize(line)) for line in lines]
        documents.append([Sentence(sentence, [True] * len(sentence)) for sentence in ids])
    maker = InstanceMaker(
        masking,
        vocabulary.cls_id,
        vocabulary.sep_id,
        settings["max_seq_length"],
        settings["short_seq_prob"],
    )
    return maker.make(documents, settings["dupe_factor"], rng)


def test_token_masking_gives_the_instances_of_the_original(shared_golden):
    figures = json.loads((shared_golden / "pretraining_data.json").read_text(encoding="utf-8"))
    vocabulary = Vocabulary.from_file(shared_golden / "vocab.txt")
    masking = Masking(
        vocabulary, "token", figures["masked_lm_prob"], figures["max_predictions_per_seq"]
    )
    rng = random.Random(figures["random_seed"])
    found = make_instances(shared_golden / "sample_text.txt", vocabulary, masking, rng, **figures)
    assert len(found) == len(figures["instances"]) == 16
    for instance, expected in zip(found, figures["instances"], strict=True):
        assert expected == {
            "tokens": vocabulary.pieces_of(instance.input_ids),
            "segment_ids": instance.segment_ids,
            "is_random_next": instance.is_random_next,
            "masked_lm_positions": instance.masked_lm_positions,
            "masked_lm_labels": vocabulary.pieces_of(instance.masked_lm_ids),
        }


@pytest.fixture(scope="module")
def vocabulary():
    return Vocabulary.from_file(RESOURCES / "vocab.txt")


def random_sequence(vocabulary, rng):
    """[CLS] A [SEP] B [SEP] with words of one to five pieces; all ids are distinct."""
    first, second = rng.randint(1, 60), rng.randint(1, 60)
    ids = rng.sample(range(200, len(vocabulary)), first + second)
    ids = [vocabulary.cls_id, *ids[:first], vocabulary.sep_id, *ids[first:], vocabulary.sep_id]
    return ids, [rng.random() < 0.4 for _ in ids]


def words_of(ids, word_starts, vocabulary):
    special = (vocabulary.cls_id, vocabulary.sep_id)
    words, fresh = [], True
    for position, piece in enumerate(ids):
        if piece in special:
            fresh = True
        elif fresh or word_starts[position]:
            words.append({position})
            fresh = False
        else:
            words[-1].add(position)
    return words


@pytest.mark.parametrize("policy", ("whole_word", "ngram", "token"))
def test_masking_properties(vocabulary, policy):
    rng = random.Random(1)
    masking = Masking(vocabulary, policy, 0.15, 20)
    kinds = collections.Counter()
    for _ in range(3000):
        ids, starts = random_sequence(vocabulary, rng)
        output, positions, labels = masking(ids, starts, rng)
        assert positions == sorted(set(positions))
        assert labels == [ids[position] for position in positions]
        assert len(positions) <= min(20, max(1, round(len(ids) * 0.15)))
        assert all(ids[p] not in (vocabulary.cls_id, vocabulary.sep_id) for p in positions)
        for position in set(range(len(ids))) - set(positions):
            assert output[position] == ids[position]
        for position in positions:
            found = output[position]
            kinds["mask" if found == vocabulary.mask_id else found == ids[position]] += 1
        if policy != "token":
            for word in words_of(ids, starts, vocabulary):
                assert word <= set(positions) or word.isdisjoint(positions)
    total = kinds.total()
    assert kinds["mask"] / total == pytest.approx(0.8, abs=0.01)
    assert kinds[True] / total == pytest.approx(0.1, abs=0.01)
    assert kinds[False] / total == pytest.approx(0.1, abs=0.01)


def test_ngram_masks_one_anchor_in_five_as_a_run(vocabulary):
    """With a budget that only the first anchor can meet, its run is all that is masked."""
    rng = random.Random(2)
    sizes = collections.Counter()
    ids = [vocabulary.cls_id, *range(200, 300), vocabulary.sep_id]
    masking = Masking(vocabulary, "ngram", 0.03, 3)
    for _ in range(4000):
        sizes[first_run(masking, ids, rng)] += 1
    assert sizes[1] / 4000 == pytest.approx(0.8, abs=0.04)
    assert sizes[2] / sizes[3] == pytest.approx(1.0, abs=0.25)


def first_run(masking, ids, rng):
    """The length of the masked run at the first anchor, which a copy of the generator tells.

    Now and then a later anchor lies beside it and makes the run look longer by one or two.
    """
    copy = random.Random()
    copy.setstate(rng.getstate())
    order = list(range(len(ids) - 2))
    copy.shuffle(order)
    _, positions, _ = masking(ids, [True] * len(ids), rng)
    position, length = order[0] + 1, 0
    while position + length in positions:
        length += 1
    return length


def test_truncation_shortens_the_longer_and_keeps_order():
    rng = random.Random(3)
    for _ in range(500):
        first, second = list(range(rng.randint(1, 40))), list(range(rng.randint(1, 40)))
        limit = rng.randint(2, 50)
        short_first, short_second = truncate_pair(first, second, limit, rng)
        assert len(short_first) + len(short_second) == min(limit, len(first) + len(second))
        for short, full in ((short_first, first), (short_second, second)):
            assert short and short == full[full.index(short[0]) : full.index(short[-1]) + 1]


def test_a_cut_word_keeps_the_part_that_is_left(vocabulary):
    """A segment that begins inside a word begins a unit there, apart from the one before."""
    ids = [vocabulary.cls_id, 500, 501, vocabulary.sep_id, 502, 503, 504, vocabulary.sep_id]
    starts = [True, False, False, True, False, False, True, True]
    seen = set()
    rng = random.Random(4)
    for _ in range(200):
        _, positions, _ = Masking(vocabulary, "whole_word", 0.3, 2)(ids, starts, rng)
        seen.add(tuple(positions))
    assert seen == {(1, 2), (4, 5), (6,)}


def test_pairs_come_from_where_the_label_says(vocabulary):
    """Each document has ids of its own, in order, so that a segment tells where it is from."""
    documents = [
        [
            Sentence(list(range(start := 200 + 200 * d + 8 * s, start + 8)), [True] * 8)
            for s in range(12)
        ]
        for d in range(20)
    ]
    maker = InstanceMaker(
        lambda ids, starts, rng: (ids, [], []), vocabulary.cls_id, vocabulary.sep_id, 40, 0.1
    )
    instances = maker.make(documents, 3, random.Random(5))
    for instance in instances:
        assert len(instance.input_ids) <= 40
        middle = instance.segment_ids.index(1)
        first, second = instance.input_ids[1 : middle - 1], instance.input_ids[middle:-1]
        same_document = (first[0] - 200) // 200 == (second[0] - 200) // 200
        assert same_document != instance.is_random_next
        for segment in (first, second):
            assert segment == list(range(segment[0], segment[0] + len(segment)))
        if same_document:
            assert first[-1] < second[0]
    share = sum(instance.is_random_next for instance in instances) / len(instances)
    assert 0.4 < share < 0.7


@pytest.mark.parametrize("share", [0.0, 0.25, 1.0])
def test_share_of_pairs_that_do_not_belong_together(vocabulary, share):
    documents = [[Sentence([200 + n] * 6, [True] * 6) for n in range(40)] for _ in range(20)]
    maker = InstanceMaker(
        lambda ids, starts, rng: (ids, [1], [0]),
        vocabulary.cls_id,
        vocabulary.sep_id,
        max_seq_length=35,
        short_seq_prob=0.0,
        random_next_prob=share,
    )
    instances = maker.make(documents, 10, random.Random(4))
    found = sum(instance.is_random_next for instance in instances) / len(instances)
    # A little more of them: a document may end in a single sentence, which leaves no choice.
    assert found == pytest.approx(share, abs=0.04)
