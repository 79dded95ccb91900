"""What tells the workers of a run apart: flags, and the files that they see."""

import dataclasses
import shutil

import laws
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nezha_tf.tasks.pretraining.settings import PretrainingSettings
from nezha_tf.training import workers

NAMES = st.sampled_from(["train-0.tfrecord", "train-1.tfrecord", "train.txt", "model.ckpt-1.index"])
FILES = st.dictionaries(NAMES, st.binary(max_size=40), max_size=4)


@pytest.fixture
def seen(tmp_path):
    """Returns a function of {name: contents} and a pattern: what a worker says of its files."""
    number = 0

    def said(files, pattern="*"):
        nonlocal number
        number += 1
        folder = tmp_path / str(number)
        folder.mkdir()
        for name, contents in files.items():
            (folder / name).write_bytes(contents)
        settings = PretrainingSettings(input_file=str(folder / pattern))
        return workers.compared_values(settings)["input_file"]

    return said


@laws.examples(30)
@given(one=FILES, other=FILES)
def test_files_are_alike_if_names_and_bytes_are(seen, one, other):
    assert (seen(one) == seen(other)) == (one == other)


def test_the_end_of_a_long_file_counts(seen):
    long = bytes(3 * workers._END)
    assert seen({"a": long}) == seen({"a": long})
    assert seen({"a": long}) != seen({"a": long[:-1] + b"x"})
    assert seen({"a": long}) != seen({"a": long + b"\0"})


def test_of_many_files_all_names_count(seen):
    files = {f"{number:03}": b"" for number in range(100)}
    fewer = {name: files[name] for name in files if name != "057"}
    assert seen(files) != seen(fewer)


def test_a_folder_a_checkpoint_and_what_is_not_there(seen):
    files = {"model.ckpt-1.index": b"i", "model.ckpt-1.data-00000-of-00001": b"d"}
    assert seen(files, "") == seen(files, "*")
    assert seen(files, "model.ckpt-1") == seen(files, "model.ckpt-1.*")
    assert seen(files, "other") != seen(files, "*")


def test_weights_of_files_count(tmp_path):
    for name in ("news.tfrecord", "books.tfrecord"):
        (tmp_path / name).touch()

    def said(*patterns):
        settings = PretrainingSettings(input_file=",".join(f"{tmp_path}/{p}" for p in patterns))
        return workers.compared_values(settings)["input_file"]

    values = [("news*:3", "books*:1"), ("news*:1", "books*:3"), ("books*:3", "news*:2")]
    values += [("news*", "books*")]
    found = [said(*each) for each in values]
    assert all(each not in found[:number] for number, each in enumerate(found))
    assert found[0] == said("news*:3.0", "books*:1")


def test_every_other_flag_counts_but_for_a_workers_own():
    settings = PretrainingSettings(output_dir="a")
    assert workers.compared_values(settings) == workers.compared_values(
        dataclasses.replace(settings, output_dir="b")
    )
    for name, value in {"seed": 8, "learning_rate": 2e-5, "objectives": ("causal",)}.items():
        changed = dataclasses.replace(settings, **{name: value})
        assert workers.compared_values(settings) != workers.compared_values(changed), name


def test_weights_are_those_that_the_run_would_load(tmp_path):
    for name in ("one", "other"):
        folder = tmp_path / name
        folder.mkdir()
        for part in ("index", "data-00000-of-00001"):
            (folder / f"bert_model.ckpt.{part}").write_bytes(part.encode())
        (folder / f"{name}.log").touch()
    said = [
        workers.compared_values(PretrainingSettings(init_checkpoint=str(tmp_path / name)))
        for name in ("one", "other")
    ]
    assert said[0] == said[1]
    shutil.rmtree(tmp_path / "other")
    missing = workers.compared_values(PretrainingSettings(init_checkpoint=str(tmp_path / "other")))
    assert missing != said[0]
