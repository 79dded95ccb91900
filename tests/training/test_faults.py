"""Damaged data in a running training: it is named and refused, or skipped and counted."""

import json
import struct

import pytest
import tensorflow as tf
from commands import assert_one_line, run_pretraining, start_pretraining
from waiting import ended, wait_until


def records(path):
    return [record.numpy() for record in tf.data.TFRecordDataset(str(path))]


def write(path, contents):
    with tf.io.TFRecordWriter(str(path)) as writer:
        for content in contents:
            writer.write(content)


def damage(path, number):
    """Flips a bit of a record, numbered from 1; a frame is length, CRC, record, CRC."""
    data, offset = bytearray(path.read_bytes()), 0
    for _ in range(number - 1):
        offset += struct.unpack_from("<Q", data, offset)[0] + 16
    data[offset + 12 + 30] ^= 1
    path.write_bytes(data)


@pytest.mark.processes
def test_corrupt_records_stop_the_run_or_are_counted(folder):
    damage(folder / "train.tfrecord", 7)
    damage(folder / "train.tfrecord", 90)
    steps = ("--num_train_steps=30", "--save_checkpoints_steps=10")
    result = run_pretraining(folder, *steps)
    assert_one_line(result, "train.tfrecord, record 7", "--skip_corrupt_records=2")
    result = run_pretraining(folder, *steps, "--skip_corrupt_records=1")
    assert_one_line(result, "corrupt records found: 2")
    result = run_pretraining(folder, *steps, "--skip_corrupt_records=2")
    assert result.returncode == 0, result.stderr
    assert "skipped: train.tfrecord, record 7; train.tfrecord, record 90" in result.stdout
    lines = (folder / "run" / "metrics.jsonl").read_text().splitlines()
    assert [json.loads(line)["step"] for line in lines] == list(range(1, 31))
    assert json.loads(lines[-1])["corrupt_records"] == 2
    # The same as if the two records had never been there.
    clean = [r for number, r in enumerate(whole_records(folder), start=1) if number not in (7, 90)]
    write(folder / "clean.tfrecord", clean)
    result = run_pretraining(folder, *steps, "--input_file=clean.tfrecord", "--output_dir=clean")
    assert result.returncode == 0, result.stderr
    expected = (folder / "clean" / "metrics.jsonl").read_text().splitlines()
    assert [json.loads(line)["loss"] for line in lines] == [json.loads(e)["loss"] for e in expected]


def whole_records(folder):
    """Returns the records without the damage."""
    for number in (7, 90):
        damage(folder / "train.tfrecord", number)  # flips the bit back
    return records(folder / "train.tfrecord")


@pytest.mark.processes
def test_a_foreign_record_is_named(folder):
    good = records(folder / "train.tfrecord")[:20]
    foreign = tf.train.Example.FromString(good[0])
    foreign.features.feature["input_ids"].int64_list.value[3] = 9200
    cases = {foreign.SerializeToString(): "input_ids", b"\xff\xfe": "not a tf.train.Example"}
    for record, message in cases.items():
        write(folder / "train.tfrecord", [*good, record, *good])
        result = run_pretraining(folder, "--num_train_steps=30", "--skip_corrupt_records=9")
        assert_one_line(result, "train.tfrecord, record 21", message)


@pytest.mark.processes
def test_a_file_that_vanishes_between_epochs_is_named(folder):
    steps = ("--num_train_steps=1000000", "--save_checkpoints_steps=5")
    files = "--input_file=train.tfrecord,eval.tfrecord"
    process = start_pretraining(folder, *steps, files)
    wait_until(lambda: list(folder.glob("run/model.ckpt-*.index")), process)
    (folder / "eval.tfrecord").unlink()
    result = ended(process)
    assert_one_line(result, "eval.tfrecord")
    assert list(folder.glob("run/model.ckpt-*.index"))
