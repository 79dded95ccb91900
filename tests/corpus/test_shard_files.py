"""One shard: its file as TensorFlow reads it, its summary, and the files after a failure."""

import json
import os
import resource
import types

import google_crc32c
import pytest
import tensorflow as tf

from nezha_tf.corpus.settings import Settings
from nezha_tf.corpus.shard_files import (
    parts_of_sets,
    read_summary,
    shard_names,
    summary_name,
)
from nezha_tf.corpus.shard_maker import ShardMaker
from nezha_tf.corpus.shard_writer import ShardJob, make_shard
from nezha_tf.corpus.statistics import Stopwatch
from nezha_tf.util.errors import UserError

STATISTICS = {"instances": 3, "unknown_characters": {}}


class Echo:
    """Makes a record of each sentence, as often as requested."""

    statistics = types.SimpleNamespace(to_dict=lambda: STATISTICS)
    clock = Stopwatch()

    def make(self, documents, repetitions):
        for number, sentences in documents:
            for sentence in sentences * repetitions:
                yield f"{number} {sentence}".encode()


def make(path, *texts, repetitions=1, **settings):
    documents = [(7 + place, text) for place, text in enumerate(texts)]
    job = ShardJob(str(path), documents, repetitions)
    return make_shard(Settings(vocab_file="", **settings), Echo(), job, {"random_seed": 1})


def records_of(path):
    return [record.numpy().decode() for record in tf.data.TFRecordDataset(str(path))]


def test_tensorflow_reads_the_file_and_the_record_says_what_is_in_it(tmp_path):
    path = tmp_path / "a" / "train.tfrecord"
    long = "长" * 3000
    record = make(path, "一。\n二。".encode(), f"{long}\r\n".encode(), repetitions=300)
    assert records_of(path) == ["7 一。", "7 二。"] * 300 + [f"8 {long}"] * 300
    data = path.read_bytes()
    assert record == {
        "format": "nezha_tf pretraining shard 1",
        "first_document": 7,
        "documents": 2,
        "records": 900,
        "bytes": len(data),
        "crc32c": f"{google_crc32c.value(data):08x}",
        "statistics": STATISTICS,
        "anomalies": {},
        "identity": {"random_seed": 1},
    }
    assert (
        read_summary(str(path))
        == record
        == json.loads((tmp_path / "a/train.tfrecord.json").read_text())
    )
    assert len(os.listdir(tmp_path / "a")) == 2
    (tmp_path / "a/train.tfrecord.json").write_text('{"format":')
    assert read_summary(str(path)) is None


def test_pairs_of_one_word_are_told(tmp_path):
    vocabulary = tmp_path / "vocab.txt"
    vocabulary.write_text("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n好\n坏\n")
    settings = Settings(vocab_file=str(vocabulary), pair="sop", masking="none")
    maker = ShardMaker(settings)
    job = ShardJob(str(tmp_path / "train.tfrecord"), [(0, "好".encode()), (1, b"a")], 1)
    with pytest.raises(UserError, match="no example: there is no text of two words in its 2 doc"):
        make_shard(settings, maker, job, {})
    assert os.listdir(tmp_path) == ["vocab.txt"]
    job = ShardJob(job.path, [(0, "好 坏".encode())], 1)
    assert make_shard(settings, maker, job, {})["records"]


@pytest.mark.parametrize(
    "name, share, advice",
    [
        ("train-00001-of-00002.tfrecord", 0.0, "pass a smaller --num_output_shards"),
        ("train-00001-of-00002.tfrecord", 0.5, "pass a smaller --num_output_shards"),
        ("train.tfrecord", 0.0, "add text"),
        ("eval.tfrecord", 0.5, "add text, or pass another --eval_share"),
    ],
)
def test_the_advice_for_an_empty_shard_helps(tmp_path, name, share, advice):
    """Fewer shards do not help where there is one."""
    with pytest.raises(UserError, match=f"in its 1 document; {advice}$"):
        make(tmp_path / name, b"\xff", on_invalid="skip", eval_share=share)


def test_remote_files_are_written_alike(tmp_path):
    make(tmp_path / "a.tfrecord", "一。".encode())
    make(f"file://{tmp_path}/b.tfrecord", "一。".encode())
    assert (tmp_path / "a.tfrecord").read_bytes() == (tmp_path / "b.tfrecord").read_bytes()
    assert read_summary(f"file://{tmp_path}/b.tfrecord") == read_summary(f"{tmp_path}/a.tfrecord")


def test_nothing_is_left_of_a_shard_that_fails(tmp_path):
    with pytest.raises(UserError, match=r"train\.tfrecord would hold no example"):
        make(tmp_path / "train.tfrecord", b"\xff", on_invalid="skip")
    text = b"\n".join([b"a" * 900] * 9000)
    old = resource.getrlimit(resource.RLIMIT_FSIZE)
    for limit in (1_000_000, 100):  # the second leaves no space for the summary
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, old[1]))
        try:
            with pytest.raises(UserError, match=r"cannot write .*train\.tfrecord: File too large"):
                make(tmp_path / "train.tfrecord", text if limit > 100 else b"a")
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, old)
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match="cannot write"):
        make(tmp_path / "file" / "train.tfrecord", b"a")
    assert os.listdir(tmp_path) == ["file"]


def test_a_file_under_its_name_always_has_its_record(tmp_path, monkeypatch):
    path = str(tmp_path / "train.tfrecord")
    replace, order = os.replace, []

    def noting(source, target):
        assert target == summary_name(path) or os.path.exists(summary_name(path))
        order.append(target)
        replace(source, target)

    monkeypatch.setattr(os, "replace", noting)
    make(path, b"a")
    assert order == [summary_name(path), path]


def test_sorted_names_are_in_the_order_of_the_shards():
    """`--input_file=train*` is sorted, and streams of text need that order."""
    assert shard_names("a/train.tfrecord", 1) == ["a/train.tfrecord"]
    assert shard_names("a/train.tfrecord", 12)[11] == "a/train-00011-of-00012.tfrecord"
    for count in (12, 100_000, 100_001):
        names = shard_names("a/train.tfrecord", count)
        assert names == sorted(names) and len(set(names)) == count
        assert names[0] == f"a/train-{'0' * (5 + (count > 100_000))}-of-{count:05d}.tfrecord"


def test_parts_of_sets_are_told():
    whole, part = shard_names("a/eval.tfrecord", 2), shard_names("a/train-1.tfrecord", 8)[:3]
    assert parts_of_sets([*whole, "a/b.tfrecord", "a/c-of-00004"], "input_file") == []
    (told,) = parts_of_sets([*whole, *part], "input_file")
    assert "--input_file has only 3 of the 8 files a/train-1-*-of-00008.tfrecord;" in told
    # With a number of 100,000 all names have a digit more.
    assert parts_of_sets(shard_names("a/train.tfrecord", 100_001), "input_file") == []
