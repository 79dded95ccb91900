"""Mixtures of the table's objectives: through the reader, their model, and unknown objectives."""

import keras
import pytest
from records import LIMITS, encode, write, write_numbers

from nezha_tf.data import schema
from nezha_tf.data.reader import ExampleReader
from nezha_tf.objectives import table
from nezha_tf.objectives.bert import Bidirectional
from nezha_tf.objectives.mixture import ObjectiveMixture
from nezha_tf.objectives.objective import ExampleSettings
from nezha_tf.util.errors import UserError

UNILM = "bidirectional:2,seq2seq:2,left_to_right:1,right_to_left:1"


@pytest.fixture
def paths(tmp_path):
    return write_numbers(tmp_path, 40, 30)


def seen(batches, count):
    """Returns the first ids and the segment ids of the examples of some batches."""
    return [
        (int(ids[0]), int(segments[0]))
        for batch in batches.take(count)
        for ids, segments in zip(batch["input_ids"], batch["segment_ids"], strict=True)
    ]


@pytest.fixture
def reader(paths):
    lengths = schema.Lengths(8, 2)
    transforms = ObjectiveMixture.from_text(UNILM).transforms(ExampleSettings(lengths))
    return ExampleReader(paths, lengths, LIMITS, transforms=transforms)


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
        ("seq2seq:0", "'0' is not a number above 0"),
        ("seq2seq:x", "'x' is not a number"),
        ("seq2seq,seq2seq", "twice"),
        (",", "names no objective"),
    ],
)
def test_mixtures_that_do_not_exist(text, fault):
    with pytest.raises(UserError, match=fault):
        ObjectiveMixture.from_text(text)


def test_a_mixture_has_the_model_that_has_what_each_needs(monkeypatch):
    """It is the class that is a subclass of all others; without such a class there is an error."""

    class Small(keras.Model):
        pass

    class Large(Small):
        pass

    class Other(keras.Model):
        pass

    for name, kind in (("small", Small), ("large", Large), ("other", Other)):
        objective = Bidirectional()
        objective.model = kind
        monkeypatch.setitem(table.OBJECTIVES, name, objective)
    assert ObjectiveMixture.from_text("small,large").model is Large
    assert ObjectiveMixture.from_text("large,small").model is Large
    with pytest.raises(UserError, match=r"--objectives=large,other: no model fits .*Large, Other"):
        _ = ObjectiveMixture.from_text("large,other").model
