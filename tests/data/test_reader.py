"""Batches against plain Python: shards, epochs, resumption, and damaged files.

A file is a list of numbers: the first id of each record is its number.
"""

import functools
import os
import shutil

import numpy as np
import pytest
import tensorflow as tf
from records import LIMITS, encode, flip, frame_start, write, write_numbers

from nezha_tf.data import damage, record_stream, schema
from nezha_tf.data import reader as reader_module
from nezha_tf.data.framing import masked_crc
from nezha_tf.data.reader import ExampleReader
from nezha_tf.util.errors import UserError

LENGTHS = schema.Lengths(8, 2)


def cut(path, record, byte):
    with open(path, "r+b") as file:
        file.truncate(frame_start(path, record) + byte)


def reader_of(paths, max_corrupt_records=0):
    return ExampleReader(paths, LENGTHS, LIMITS, max_corrupt_records)


def numbers(batches):
    return [batch["input_ids"].numpy()[:, 0].tolist() for batch in batches]


def flat(batches):
    return [number for batch in numbers(batches) for number in batch]


def guarded(reader, count, batch_size=4, seed=1, skip_batches=0):
    """Returns the numbers of the first batches of guarded iteration."""
    make = functools.partial(reader.training_batches, batch_size, seed)
    iterator = reader.guarded(make, skip_batches)
    return numbers(next(iterator) for _ in range(count))


@pytest.fixture
def paths(tmp_path):
    return write_numbers(tmp_path, 23, 40, 1, 17, 30, 9, 28, 11, 33, 25)  # 217 records


@pytest.fixture
def small_buffer(monkeypatch):
    """With a small buffer, damage is met in the middle of an epoch."""
    monkeypatch.setattr(record_stream, "SHUFFLE_BUFFER", 20)


# Epochs.


def test_each_epoch_is_another_permutation_of_all_records(paths):
    """Batches run across the borders of epochs: 217 records in batches of 10."""
    seen = flat(reader_of(paths).training_batches(10, seed=3).take(87))[: 4 * 217]
    everything = sorted(flat(reader_of(paths).evaluation_batches(50, 100)))
    assert len(everything) == len(set(everything)) == 217
    epochs = [seen[start : start + 217] for start in range(0, len(seen), 217)]
    assert all(sorted(epoch) == everything for epoch in epochs)
    assert len({tuple(epoch) for epoch in epochs}) == 4


def test_a_resumed_run_reads_no_file_whose_number_of_records_is_known(paths, monkeypatch):
    """The batches are those of a run that has counted them; whoever may skip damage counts."""
    counted, survey = [], damage.survey
    monkeypatch.setattr(damage, "survey", lambda asked: counted.append(asked) or survey(asked))
    counts = {path: len(flat(reader_of([path]).evaluation_batches(1, 99))) for path in paths}

    def resumed(counts, most=0, **shards):
        reader = ExampleReader(paths, LENGTHS, LIMITS, most, counts=lambda: counts)
        return numbers(reader.training_batches(7, 3, skip_batches=40, **shards).take(20))

    for shards in ({}, {"num_shards": 2, "shard": 0, "by": "file"}):
        counted.clear()
        known = resumed(counts, **shards)
        assert not counted
        assert known == resumed(dict(list(counts.items())[1:]), **shards)
        mine = paths[::2] if "by" in shards else paths
        assert sorted(counted) == sorted(mine)
    assert resumed(counts, most=1) == resumed(counts) and counted[2:]


def test_of_many_known_files_only_a_few_are_opened_at_the_start(tmp_path, paths, monkeypatch):
    many = [str(tmp_path / f"copy_{number}.tfrecord") for number in range(100)]
    for path in many:
        os.link(paths[0], path)
    opened, read_frames = [], reader_module.read_frames
    monkeypatch.setattr(
        reader_module, "read_frames", lambda path: opened.append(path) or read_frames(path)
    )
    for known, count in ((many, 15), ((), 100), (many[:60], 55), (many[:1], 100)):
        opened.clear()
        ExampleReader(many, LENGTHS, LIMITS, known=known)
        assert len(opened) == count == len(set(opened)) and opened == sorted(opened, key=many.index)
        assert set(many) - set(known) <= set(opened) and many[0] in opened


def test_the_order_depends_on_the_seed_alone(paths):
    orders = set()
    for seed in (0, 2**32 - 1):
        order = numbers(reader_of(paths).training_batches(8, seed).take(30))
        tf.random.set_seed(5)
        assert numbers(reader_of(paths).training_batches(8, seed).take(30)) == order
        orders.add(str(order))
    assert len(orders) == 2


# 217 records: in batches of 7, the first epoch ends with batch 31; in batches of 10, within one.
@pytest.mark.parametrize("size, skip", ((7, 30), (7, 32), (10, 22)))
def test_a_resumed_run_gets_the_batches_of_an_uninterrupted_one(paths, size, skip, small_buffer):
    whole = numbers(reader_of(paths).training_batches(size, 5).take(skip + 35))
    assert numbers(reader_of(paths).training_batches(size, 5, skip).take(35)) == whole[skip:]


def test_skipping_many_epochs_does_not_read_them(paths):
    """Reading 2 ** 40 batches would never end."""
    assert len(numbers(reader_of(paths).training_batches(7, 5, 2**40).take(2))) == 2


# Shards.


def test_element_shards_are_the_parts_of_the_whole_batches(paths):
    skip = 4
    whole = numbers(reader_of(paths).training_batches(12, 5, skip).take(50))
    shards = [
        numbers(reader_of(paths).training_batches(4, 5, skip, num_shards=3, shard=s).take(50))
        for s in range(3)
    ]
    for k, batch in enumerate(whole):
        assert shards[0][k] + shards[1][k] + shards[2][k] == batch


def test_a_worker_parses_its_own_records_only(tmp_path):
    """A foreign record stops only the shard that it belongs to."""
    path = write(tmp_path / "a", [encode(n) for n in range(39)] + [encode(39, input_ids=[30_000])])
    reader, failed = reader_of([path]), 0
    for shard in range(4):
        try:
            flat(reader.training_batches(5, 1, num_shards=4, shard=shard).take(2))
        except tf.errors.InvalidArgumentError:
            failed += 1
    assert failed == 1


def test_file_shards_read_files_of_their_own(paths):
    for shard in range(3):
        reader = reader_of(paths)
        own = sorted(flat(reader_of(paths[shard::3]).evaluation_batches(100, 100)))
        make = functools.partial(reader.training_batches, num_shards=3, shard=shard, by="file")
        seen = flat(make(1, 5).take(3 * len(own)))
        for epoch in range(3):
            assert sorted(seen[epoch * len(own) : (epoch + 1) * len(own)]) == own
        assert flat(make(1, 5, skip_batches=50).take(70)) == seen[50:120]


def test_more_workers_than_files(paths):
    with pytest.raises(UserError, match=r"2 files .* 3 workers.*--input_sharding=element"):
        reader_of(paths[:2]).training_batches(4, 1, num_shards=3, shard=0, by="file")


def test_distributed_batches(paths):
    """Replicas take batches of one pipeline in turn, inside a tf.function."""
    strategy = tf.distribute.OneDeviceStrategy("CPU:0")
    reader = reader_of(paths)
    expected = numbers(reader.training_batches(4, 1).take(6))
    iterator = iter(
        strategy.distribute_datasets_from_function(lambda _: reader.training_batches(4, 1))
    )

    @tf.function
    def three_steps():
        seen = tf.TensorArray(tf.int32, 3)
        for step in tf.range(3):
            seen = seen.write(step, next(iterator)["input_ids"][:, 0])
        return seen.stack()

    assert np.concatenate([three_steps(), three_steps()]).tolist() == expected


# Damage.


def damage_some(paths):
    """Damages records in all ways; returns the numbers of the undamaged ones."""
    flip(paths[0], 5, byte=30)  # data
    flip(paths[0], 6, byte=30)  # and the next record
    flip(paths[1], 40, byte=14)  # the last record of a file
    flip(paths[3], 1, byte=14)  # the first
    flip(paths[4], 21, byte=2)  # length: 10 records are lost
    flip(paths[6], 18, byte=9)  # CRC of the length: 11 records are lost
    cut(paths[8], 33, byte=50)  # data of the last record cut
    cut(paths[9], 25, byte=5)  # header of the last record cut
    lost = {1004, 1005, 2039, 4000, *range(5020, 5030), *range(7017, 7028), 9032, 10024}
    sizes = (23, 40, 1, 17, 30, 9, 28, 11, 33, 25)
    return [
        1000 * n + k
        for n, size in enumerate(sizes, start=1)
        for k in range(size)
        if 1000 * n + k not in lost
    ]


def test_all_undamaged_records_are_read(paths, capsys):
    left = damage_some(paths)
    reader = reader_of(paths, max_corrupt_records=8)
    make = functools.partial(reader.evaluation_batches, 6, 10**6)
    assert flat(reader.guarded(make)) == left
    assert reader.corrupt_records == 8
    told = capsys.readouterr().err
    assert len(told.splitlines()) == 2  # in the first records, and the others together
    assert f"{paths[3]}, record 1" in told and f"{paths[1]}, record 40" in told
    assert f"{paths[0]}, record 5; {paths[0]}, record 6" in told and "2 more" in told
    assert flat(reader.guarded(make)) == left and reader.corrupt_records == 8
    assert capsys.readouterr().err == ""


def test_the_order_is_as_if_damaged_records_had_not_been_there(paths, tmp_path, small_buffer):
    left = damage_some(paths)
    clean = [
        write(tmp_path / f"clean{n}", [encode(k) for k in left if k // 1000 == n])
        for n in range(1, 11)
    ]
    expected = numbers(reader_of(clean).training_batches(4, 1).take(200))
    found_midway = reader_of(paths, 8)
    assert guarded(found_midway, 200) == expected
    assert found_midway.corrupt_records == 8
    for skip in (1, 130):
        assert guarded(reader_of(paths, 8), 50, skip_batches=skip) == expected[skip : skip + 50]
    assert guarded(found_midway, 50, skip_batches=47) == expected[47:97]


@pytest.mark.parametrize("record, byte", ((2, 30), (26, 3)))
def test_damage_is_met_in_the_middle_of_an_epoch(tmp_path, small_buffer, record, byte):
    """Batches that were delivered before are neither repeated nor left out."""
    paths = write_numbers(tmp_path, *[40] * 9)
    flip(paths[4], record, byte)
    reader = reader_of(paths, 1)
    batches, met = iter(reader.training_batches(4, 1)), []
    with pytest.raises(tf.errors.DataLossError):
        for batch in batches:
            met += numbers([batch])
    known = reader_of(paths, 1)
    known.training_batches(4, 1, skip_batches=1)
    expected = numbers(known.training_batches(4, 1).take(150))
    assert met == expected[: len(met)] and (len(met) > 0 or record == 2)
    assert guarded(reader, 150) == expected
    shards = [
        numbers(reader_of(paths, 1).training_batches(2, 1, num_shards=2, shard=s).take(150))
        for s in range(2)
    ]
    assert [a + b for a, b in zip(*shards, strict=True)] == expected


def test_the_caller_may_iterate_himself(paths, small_buffer):
    left = damage_some(paths)
    reader, seen = reader_of(paths, 8), []
    iterator = iter(reader.training_batches(4, 1))
    take = tf.function(lambda: next(iterator))
    while len(seen) < 150:
        try:
            seen += numbers([take()])
        except tf.errors.OpError as error:
            assert reader.explain(error).startswith("corrupt records skipped: ")
            iterator = iter(reader.training_batches(4, 1, skip_batches=len(seen)))
            take = tf.function(lambda iterator=iterator: next(iterator))
    assert seen == guarded(reader_of(paths, 8), 150)
    assert sorted(number for batch in seen for number in batch)[:: len(seen)][0] in left


def read_through(paths, max_corrupt_records=0):
    reader = reader_of(paths, max_corrupt_records)
    return flat(reader.guarded(functools.partial(reader.evaluation_batches, 8, 10**6)))


def assert_one_line(error, *parts):
    assert "\n" not in str(error.value)
    for part in parts:
        assert part in str(error.value), error.value


def test_damage_is_an_error_unless_it_may_be_passed_over(paths, capsys):
    start, size = frame_start(paths[1], 17), os.path.getsize(paths[1])
    flip(paths[1], 17, byte=9)
    with pytest.raises(UserError) as error:
        read_through(paths)
    place = f"{paths[1]}, record 17: truncated, damaged or not a TFRecord"
    assert_one_line(error, place, "make the file again", "--skip_corrupt_records=1")
    with pytest.raises(UserError, match="record 17: truncated"):
        guarded(reader_of(paths), 60)
    with pytest.raises(UserError, match="record 17: truncated"):
        reader_of(paths).training_batches(4, 1, skip_batches=1)
    read_through(paths, 1)
    assert f"{paths[1]}, record 17 and the rest ({size - start:,} bytes)" in capsys.readouterr().err
    flip(paths[0], 5, byte=30)
    with pytest.raises(UserError) as error:
        read_through(paths, 1)
    assert_one_line(error, f"{paths[0]}, record 5: ", "corrupt records found: 2")


def test_a_length_that_no_file_has_is_met_before_the_first_batch(paths, capsys):
    """TensorFlow would make room for the record, and its process would end."""
    header = (2**50).to_bytes(8, "little")
    with open(paths[1], "ab") as file:
        file.write(header + masked_crc(header).to_bytes(4, "little") + bytes(40))
    with pytest.raises(UserError) as error:
        reader_of(paths)
    assert_one_line(error, f"{paths[1]}, record ", "damaged", "--skip_corrupt_records=1")
    reader = reader_of(paths, max_corrupt_records=1)
    assert "and the rest (52 bytes)" in capsys.readouterr().err
    batches = reader.evaluation_batches(7, 10**6)
    assert len(flat(batches)) == 217 and reader.corrupt_records == 1
    survey = [damage.survey(path).records for path in paths[:2]]
    assert survey == [23, 40]


def test_a_file_without_a_record_is_no_matter_of_passing_over(tmp_path):
    text = tmp_path / "text.tfrecord"
    text.write_text("这不是记录" * 20, encoding="utf-8")
    for may_be_damaged in (0, 1):
        with pytest.raises(UserError, match=r"text\.tfrecord is not a TFRecord file, or has no"):
            reader_of([str(text)], may_be_damaged)
    text.write_bytes(b"")
    with pytest.raises(UserError, match="has no record"):
        reader_of([str(text)])


def test_a_file_that_vanishes_is_named(paths):
    reader = reader_of(paths)
    batches = reader.guarded(functools.partial(reader.training_batches, 4, 1))
    next(batches)
    shutil.move(paths[5], paths[5] + ".gone")
    with pytest.raises(UserError) as error:
        for _ in range(300):
            next(batches)
    assert_one_line(error, f"cannot read {paths[5]}", "No such file")
    with pytest.raises(UserError, match=r"cannot read .*6\.tfrecord"):
        reader.training_batches(4, 1, skip_batches=1)
    with pytest.raises(UserError, match=r"cannot read .*6\.tfrecord"):
        reader_of(paths)


def test_what_the_files_do_not_account_for_is_raised_again(paths):
    reader = reader_of(paths)
    size = tf.Variable(2)

    @tf.function
    def step():
        tf.debugging.assert_equal(size, 3)

    with pytest.raises(tf.errors.InvalidArgumentError) as raised:
        step()
    with pytest.raises(tf.errors.InvalidArgumentError) as again:
        reader.explain(raised.value)
    assert again.value is raised.value


# Records that do not fit.


def test_a_record_that_does_not_fit_is_told():
    for fault, changes in (
        ("masked_lm_ids holds 30000, outside 0..19999", {"masked_lm_ids": [3, 30_000]}),
        ("input_ids holds -1, outside 0..19999", {"input_ids": [-1] * 8}),
        ("input_mask has 9 values, not 8; is --max_seq_length=9", {"input_mask": [1] * 9}),
        ("masked_lm_weights has 1 values, not 2; is --max_p", {"masked_lm_weights": [1]}),
        ("input_ids has no whole numbers", {"input_ids": []}),
    ):
        assert schema.fault_of(encode(7, **changes), LENGTHS, LIMITS).startswith(fault)


@pytest.mark.parametrize(
    "record, fault, number",
    (
        (encode(7, input_ids=[20_000] * 8), "input_ids holds 20000, outside 0..19999", 300),
        (b"no example", "it is not a tf.train.Example", 1),
        (b"\xff\xfe", "it is not a tf.train.Example", 598),
        (b"", "it lacks the feature input_ids", 598),
    ),
)
def test_records_that_do_not_fit_are_named_and_never_passed_over(tmp_path, record, fault, number):
    records = [encode(n) for n in range(1, 601)]
    records[number - 1] = record
    path = write(tmp_path / "odd.tfrecord", records)
    flip(path, 20, byte=30)
    flip(path, 500, byte=30)
    with pytest.raises(UserError) as error:
        read_through([*write_numbers(tmp_path, 5), path], max_corrupt_records=2)
    assert_one_line(error, f"odd.tfrecord, record {number}: {fault}")


def test_lengths_and_limits_of_another_model_are_refused(paths):
    for lengths, limits, message in (
        (schema.Lengths(16, 2), LIMITS, r"8 values, not 16; is --max_seq_length=8 meant"),
        (schema.Lengths(8, 3), LIMITS, r"2 values, not 3; is --max_predictions_per_seq=2"),
        (LENGTHS, schema.Limits(900, 2), r"record 1: input_ids holds 1000, outside 0\.\.899"),
        (LENGTHS, schema.Limits(20_000, 1), r"segment_ids holds 1, outside 0\.\.0"),
    ):
        with pytest.raises(UserError, match=message):
            ExampleReader(paths, lengths, limits)


def test_transforms_that_do_not_fit_are_a_mistake_of_ours(paths):
    class Reads:
        reads, gives, at_once = schema.UNMASKED_FEATURES, schema.FEATURES, 1

    with pytest.raises(
        ValueError, match=r"Reads reads \['word_starts'\], which nothing before it gives"
    ):
        ExampleReader(paths, LENGTHS, LIMITS, transforms=[Reads()])
