"""Masking in the graph: as on arrays, with exact probabilities, and in a mixture by the reader."""

import laws
import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st
from masked_rows import (
    EXACT_CASES,
    any_policies,
    any_shares,
    any_texts,
    as_masked,
    assert_chosen_as_expected,
    assert_rows_are_masked,
    batch_of,
    exact_case,
    keys_of,
    make_rows,
)
from records import LIMITS, encode, encode_values, write

from nezha_tf import Vocabulary
from nezha_tf.data import schema
from nezha_tf.data.reader import ExampleReader
from nezha_tf.objectives.array_masking import ArrayMasking
from nezha_tf.objectives.dynamic_masking import DynamicMasking
from nezha_tf.objectives.mixture import ObjectiveMixture
from nezha_tf.objectives.objective import ExampleSettings
from nezha_tf.objectives.policies import POLICIES
from nezha_tf.util.errors import UserError

LENGTH = 24
CLS, SEP = 101, 102


@laws.examples(25)
@given(
    any_texts(LENGTH),
    any_policies(),
    any_shares(),
    st.just(LENGTH) | st.integers(1, 9),
    st.integers(0, 2**32),
)
def test_rows_are_masked_as_on_arrays(vocabulary, rows, policy, share, most, seed):
    """The same keys give the same masks. It runs eagerly, to save the tracing of graphs."""
    rows = make_rows(rows[0], vocabulary, LENGTH, rows[1])
    keys = keys_of(len(rows.ids), seed)
    masking = DynamicMasking(vocabulary, policy, schema.Lengths(LENGTH, most), share)
    batch = batch_of(rows)
    found = masking.mask(batch, keys)
    masked = as_masked(found)
    assert_rows_are_masked(rows, masked, policy, share, most)
    expected = ArrayMasking(vocabulary, policy, schema.Lengths(LENGTH, most), share)(rows, keys)
    for value, other in zip(masked, expected, strict=True):
        np.testing.assert_array_equal(value, other)
    for name in ("input_mask", "segment_ids", "next_sentence_labels"):
        assert found[name] is batch[name]


@pytest.mark.parametrize("policy, sizes, budget", EXACT_CASES[::2])  # units, runs
def test_choices_have_their_exact_probabilities(vocabulary, policy, sizes, budget):
    rows, share, expected = exact_case(vocabulary, policy, sizes, budget, LENGTH)
    masking = DynamicMasking(vocabulary, policy, schema.Lengths(LENGTH, budget), share)
    masking.mask = tf.function(masking.mask, autograph=False)
    masked = masking(batch_of(rows), tf.range(60_000, dtype=tf.int64), 6)
    assert_chosen_as_expected(masked["masked_lm_positions"].numpy(), expected)


# Through the reader: tokens 1 and 2 of a record encode its number.


def record(number, features=schema.UNMASKED_FEATURES, **changes):
    tokens = [300 + number // 100, 400 + number % 100, *range(600, 618)]
    values = {
        "input_ids": [CLS, *tokens[:9], SEP, *tokens[9:], SEP, 0],
        "input_mask": [1] * 23 + [0],
        "segment_ids": [0] * 11 + [1] * 12 + [0],
        "word_starts": [0, *[1, 1, 1, 0, 1, 0, 0, 1, 1], 0, *[1, 0] * 5, 1, 0, 0],
        "next_sentence_labels": [number % 2],
        **changes,
    }
    return encode_values(values, features)


LENGTHS = schema.Lengths(LENGTH, 5)
UNILM = "bidirectional:2,seq2seq:2,left_to_right:1,right_to_left:1"


@pytest.fixture(scope="module")
def paths(tmp_path_factory, vocabulary):
    assert (vocabulary.cls_id, vocabulary.sep_id) == (CLS, SEP)
    folder = tmp_path_factory.mktemp("records")
    sizes = (40, 30)
    return [
        write(folder / f"{n}.tfrecord", [record(100 * n + k) for k in range(size)])
        for n, size in enumerate(sizes)
    ]


@pytest.fixture
def reader_for(paths, vocabulary):
    """Returns a function of objectives that returns a reader of masked examples."""

    def make(objectives):
        masking = DynamicMasking(vocabulary, POLICIES["ngram"], LENGTHS, 0.2)
        masking.at_once = 12  # several batches at a time, as for batches of usual sizes
        mixture = ObjectiveMixture.from_text(objectives)
        return reader_of(paths, *mixture.transforms(ExampleSettings(LENGTHS, vocabulary, masking)))

    return make


@pytest.fixture
def reader(reader_for):
    return reader_for(UNILM)


def reader_of(paths, *transforms):
    return ExampleReader(paths, LENGTHS, LIMITS, 0, schema.UNMASKED_FEATURES, transforms)


def restored(batch, row):
    """Returns the tokens of an example before masking."""
    ids = batch["input_ids"][row].numpy().copy()
    count = int(batch["masked_lm_weights"][row].numpy().sum())
    ids[batch["masked_lm_positions"][row, :count]] = batch["masked_lm_ids"][row, :count]
    return ids.tolist()


def number_of(ids):
    return 100 * (ids[1] - 300) + ids[2] - 400


def seen(batches, count):
    """Returns (number, segment, predicted places, tokens) of the examples of some batches."""
    examples = []
    for batch in batches.take(count):
        for row in range(len(batch["input_ids"])):
            places = tuple(batch["masked_lm_positions"][row].numpy().tolist())
            tokens = tuple(batch["input_ids"][row].numpy().tolist())
            segment = int(batch["segment_ids"][row, 0])
            examples.append((number_of(restored(batch, row)), segment, places, tokens))
    return examples


def test_batches_are_those_of_the_masked_schema(reader_for):
    batch = next(iter(reader_for("bidirectional").training_batches(4, 1)))
    for feature in schema.FEATURES:
        assert batch[feature.name].shape == (4, LENGTHS.of(feature)), feature.name
        is_float = feature.dtype is np.float32
        assert batch[feature.name].dtype == (tf.float32 if is_float else tf.int32)
    assert len(batch) == len(schema.FEATURES)
    for row in range(4):
        ids = restored(batch, row)
        original = tf.train.Example.FromString(record(number_of(ids))).features.feature
        for name in ("input_mask", "segment_ids", "next_sentence_labels"):
            assert batch[name][row].numpy().tolist() == original[name].int64_list.value
        assert ids == original["input_ids"].int64_list.value


def test_epochs_differ_and_a_restart_does_not(reader):
    whole = seen(reader.training_batches(4, 3), 70)  # four epochs
    assert {segment for _, segment, _, _ in whole} == {0, 2, 3, 4}
    epochs = [whole[n : n + 70] for n in range(0, 280, 70)]
    assert all(len({number for number, *_ in epoch}) == 70 for epoch in epochs)
    assert len(set(whole)) > 0.95 * 280
    for skip in (1, 22, 50):
        assert seen(reader.training_batches(4, 3, skip_batches=skip), 9) == whole[4 * skip :][:36]
    assert seen(reader.training_batches(4, 4), 5) != whole[:20]


def test_the_number_of_workers_changes_nothing(reader):
    whole = seen(reader.training_batches(6, 3), 10)
    parts = [seen(reader.training_batches(2, 3, num_shards=3, shard=n), 10) for n in range(3)]
    by_step = [part[2 * step : 2 * step + 2] for step in range(10) for part in parts]
    assert [example for part in by_step for example in part] == whole
    of_files = [
        seen(reader.training_batches(2, 3, num_shards=2, shard=n, by="file"), 15) for n in (0, 1)
    ]
    assert [drawn[1:3] for drawn in of_files[0]] != [drawn[1:3] for drawn in of_files[1]]


def test_each_evaluation_is_the_same(reader):
    first, second = (seen(reader.evaluation_batches(4, 100), 100) for _ in range(2))
    assert first == second and len(first) == 70
    assert seen(reader.evaluation_batches(9, 100), 100) == first
    assert seen(reader.evaluation_batches(4, 100, skip_batches=3), 100) == first[12:]


def test_records_of_the_other_kind_and_vocabulary_are_refused(tmp_path, paths, vocabulary):
    masking = DynamicMasking(vocabulary, POLICIES["span"], LENGTHS, 0.15)
    with pytest.raises(UserError, match=r"record 1: it is not masked; pass --dynamic_masking"):
        ExampleReader(paths, LENGTHS, LIMITS)
    masked = write(tmp_path / "masked.tfrecord", [encode(7)])
    with pytest.raises(UserError, match=r"record 1: it is masked already; remove --dynamic_mask"):
        reader_of([masked], masking)
    other = Vocabulary(["[PAD]", "[UNK]", "x", "[CLS]", "[SEP]", "[MASK]"])
    masking = DynamicMasking(other, POLICIES["span"], LENGTHS, 0.15)
    with pytest.raises(UserError, match=r"ids 101 and 102, but \[CLS\] and"):
        reader_of(paths, masking)
    path = write(tmp_path / "other.tfrecord", [encode(1, segment_ids=[4] * 8)])
    with pytest.raises(UserError, match="segment_ids holds 4"):
        ExampleReader([path], schema.Lengths(8, 2), LIMITS)
