"""UniLM's mixture: examples cast one by one in plain Python, and the shares of what is drawn."""

import numpy as np
import pytest
import tensorflow as tf
from records import LIMITS, encode, write, write_numbers

from nezha_tf.config import SEGMENT_IDS
from nezha_tf.data import schema
from nezha_tf.data.objective_mixture import OBJECTIVES, ObjectiveMixture
from nezha_tf.data.reader import ExampleReader
from nezha_tf.errors import UserError

CLS, SEP, MASK = 101, 102, 103
UNILM = "bidirectional:2,seq2seq:2,left_to_right:1,right_to_left:1"
LENGTH, PREDICTIONS = 24, 5


def random_examples(rng, count):
    """Pairs as lists: (pieces with [MASK], segment ids, {position: piece}, label)."""
    for _ in range(count):
        sizes = rng.integers(1, 11, 2)
        first, second = (list(rng.integers(200, 300, size)) for size in sizes)
        if rng.random() < 0.1:
            second = []  # a single text, as other programs write them
        pieces = [CLS, *first, SEP, *second, *[SEP] * bool(second)]
        segments = [0] * (len(first) + 2) + [1] * (len(pieces) - len(first) - 2)
        places = [place for place, piece in enumerate(pieces) if piece >= 200]
        chosen = sorted(rng.permutation(places)[:PREDICTIONS])
        labels = {int(place): int(pieces[place]) for place in chosen}
        for place in chosen:
            pieces[place] = MASK
        yield pieces, segments, labels, int(rng.random() < 0.5)


def padded(examples):
    """The examples as a batch of the reader."""
    fill = {name: [] for name in (feature.name for feature in schema.FEATURES)}
    for pieces, segments, labels, label in examples:
        rest, missing = LENGTH - len(pieces), PREDICTIONS - len(labels)
        fill["input_ids"].append(pieces + [0] * rest)
        fill["input_mask"].append([1] * len(pieces) + [0] * rest)
        fill["segment_ids"].append(segments + [0] * rest)
        fill["masked_lm_positions"].append([*labels, *[0] * missing])
        fill["masked_lm_ids"].append([*labels.values(), *[0] * missing])
        fill["masked_lm_weights"].append([1.0] * len(labels) + [0.0] * missing)
        fill["next_sentence_labels"].append([label])
    return {name: tf.constant(values) for name, values in fill.items()}


def cast_by_hand(example, objective):
    """The example cast, piece by piece, with each piece's label carried along."""
    pieces, segments, labels, label = example
    marked = [(piece, labels.get(place)) for place, piece in enumerate(pieces)]
    first = [pair for pair, segment in zip(marked, segments, strict=True) if segment == 0]
    second = [pair for pair, segment in zip(marked, segments, strict=True) if segment == 1]
    separator = (SEP, None)
    if objective != "bidirectional" and (label or not second):
        second = []
        if objective == "seq2seq":
            half = len(first[1:-1]) // 2
            text = first[1:-1]
            first = [first[0], *text[:half], separator]
            second = [*text[half:], separator]
    elif objective in ("left_to_right", "right_to_left"):
        first, second = first[:-1] + second, []
    ids = SEGMENT_IDS[objective]
    whole = first + second
    return (
        [piece for piece, _ in whole],
        [ids[0]] * len(first) + [ids[1]] * len(second),
        {place: label for place, (_, label) in enumerate(whole) if label is not None},
    )


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_examples_are_cast_as_by_hand(objective):
    examples = list(random_examples(np.random.default_rng(5), 300))
    batch = ObjectiveMixture({objective: 1.0})(padded(examples), tf.range(300), 0)
    batch = {name: values.numpy() for name, values in batch.items()}
    for row, example in enumerate(examples):
        pieces, segments, labels = cast_by_hand(example, objective)
        count = len(pieces)
        assert list(batch["input_ids"][row]) == pieces + [0] * (LENGTH - count)
        assert list(batch["segment_ids"][row]) == segments + [0] * (LENGTH - count)
        assert list(batch["input_mask"][row]) == [1] * count + [0] * (LENGTH - count)
        counts = batch["masked_lm_weights"][row] > 0
        found = zip(
            batch["masked_lm_positions"][row][counts],
            batch["masked_lm_ids"][row][counts],
            strict=True,
        )
        assert dict(found) == labels
        assert not batch["masked_lm_positions"][row][~counts].any()
        assert batch["next_sentence_labels"][row] == example[3]


def test_shares_are_those_asked_for():
    mixture = ObjectiveMixture.from_text(UNILM)
    count = 60_000
    drawn = np.bincount(mixture.draw(tf.range(count, dtype=tf.int64), 7), minlength=4)
    expected = count * np.array([2, 2, 1, 1]) / 6
    # 16.27: chi-square of 3 degrees of freedom is beyond it in one case of a thousand.
    assert ((drawn - expected) ** 2 / expected).sum() < 16.27
    pairs = mixture.draw(tf.range(count, dtype=tf.int64), 8) == mixture.draw(
        tf.range(count, dtype=tf.int64), 7
    )
    # Another seed agrees as often as chance has it: 2/3 of 1/3 and 1/3 of 1/6.
    assert np.mean(pairs) == pytest.approx(5 / 18, abs=0.01)


@pytest.fixture
def paths(tmp_path):
    return write_numbers(tmp_path, 40, 30)


def seen(batches, count):
    """The first ids and segment ids of the examples of some batches."""
    return [
        (int(ids[0]), int(segments[0]))
        for batch in batches.take(count)
        for ids, segments in zip(batch["input_ids"], batch["segment_ids"], strict=True)
    ]


@pytest.fixture
def reader(paths):
    lengths = schema.Lengths(8, 2)
    return ExampleReader(paths, lengths, LIMITS, mixture=ObjectiveMixture.from_text(UNILM))


def test_a_resumed_run_draws_as_an_uninterrupted_one(reader):
    whole = seen(reader.training_batches(4, 3), 40)
    assert len({segment for _, segment in whole}) == 4
    assert seen(reader.training_batches(4, 3, skip_batches=23), 17) == whole[23 * 4 :]
    # Not the same in each epoch.
    assert sorted(whole[:70]) != sorted(whole[70:140])


def test_the_number_of_workers_changes_nothing(reader):
    whole = seen(reader.training_batches(4, 3), 10)
    parts = [seen(reader.training_batches(2, 3, num_shards=2, shard=n), 10) for n in (0, 1)]
    by_step = [part[2 * step : 2 * step + 2] for step in range(10) for part in parts]
    assert [example for part in by_step for example in part] == whole


def test_workers_with_files_of_their_own_draw_for_themselves(reader):
    parts = [
        seen(reader.training_batches(1, 3, num_shards=2, shard=n, by="file"), 30) for n in (0, 1)
    ]
    assert [segment for _, segment in parts[0]] != [segment for _, segment in parts[1]]


def test_each_evaluation_is_the_same(reader):
    first, second = (seen(reader.evaluation_batches(4, 100), 100) for _ in range(2))
    assert first == second and len(first) == 70
    assert seen(reader.evaluation_batches(7, 100), 100) == first


def test_examples_with_other_segments_than_a_pairs_are_refused(tmp_path):
    path = write(tmp_path / "other.tfrecord", [encode(1, segment_ids=[4] * 8)])
    with pytest.raises(UserError, match="segment_ids holds 4"):
        ExampleReader([path], schema.Lengths(8, 2), LIMITS)


@pytest.mark.parametrize(
    "text, fault",
    [
        ("seq2sec:1", "is 'seq2seq' meant"),
        ("xyz", "they are bidirectional"),
        ("seq2seq:0", "'0' is no number above 0"),
        ("seq2seq:x", "'x' is no number"),
        ("seq2seq,seq2seq", "twice"),
        (",", "names no objective"),
    ],
)
def test_mixtures_that_do_not_exist(text, fault):
    with pytest.raises(UserError, match=fault):
        ObjectiveMixture.from_text(text)
