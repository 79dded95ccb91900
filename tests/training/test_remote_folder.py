"""A run on a remote store is the run in a local folder; TensorFlow's memory is the store here."""

import dataclasses
import json

import numpy as np
import pytest
import tensorflow as tf
from commands import PRETRAINING, settings_of
from conftest import RESOURCES

import nezha_tf
from nezha_tf.checkpoints.run_checkpoints import RunCheckpoints
from nezha_tf.checkpoints.run_folder import read_metrics
from nezha_tf.serving.export import export_folder
from nezha_tf.tasks.pretraining.settings import PretrainingSettings
from nezha_tf.tasks.pretraining.task import Pretraining
from nezha_tf.training import run as training_run
from nezha_tf.util import storage
from nezha_tf.util.errors import UserError

FLAGS = (
    *PRETRAINING,
    "--do_eval",
    "--eval_file=eval.tfrecord",
    "--max_eval_steps=1",
    "--num_train_steps=4",
    "--save_checkpoints_steps=2",
    f"--vocab_file={RESOURCES / 'vocab.txt'}",
)
# What the clock or the name of the folder changes.
RATES = (
    "examples_per_second",
    "tokens_per_second",
    "model_tflops_per_second",
    "model_flop_utilisation",
)
DIFFERENT = ("README.md", "flags_history.jsonl", "metrics.jsonl", "run.flags", "summaries")


def train(folder, output_dir):
    """Trains in a folder; it goes on if the folder has a run."""
    settings = settings_of(PretrainingSettings, *FLAGS)
    paths = ("bert_config_file", "input_file", "eval_file")
    here = {name: str(folder / getattr(settings, name)) for name in paths}
    training_run.run(dataclasses.replace(settings, **here, output_dir=output_dir), Pretraining)


def contents(folder):
    """Returns {name: bytes} of the files that two runs must have alike."""
    names = set(storage.listdir(folder)) - set(DIFFERENT)
    found = {}
    for name in names:
        with storage.open_binary(f"{folder}/{name}", "rb") as file:
            found[name] = file.read()
    return found


def metrics(folder):
    return [
        {name: value for name, value in entry.items() if name not in RATES}
        for entry in read_metrics(folder)
    ]


@pytest.fixture(scope="module")
def folders(prepared, tmp_path_factory):
    """The same run in a local folder and on a remote store."""
    both = str(tmp_path_factory.mktemp("runs") / "local"), "ram://bucket/runs/remote"
    for output_dir in both:
        train(prepared, output_dir)
    return both


def test_files_and_metrics_are_those_of_a_local_run(folders):
    local, remote = folders
    assert set(storage.listdir(local)) == {name.rstrip("/") for name in storage.listdir(remote)}
    assert contents(local) == contents(remote)
    assert metrics(local) and metrics(local) == metrics(remote)
    assert RunCheckpoints(remote, {}).steps() == [2, 4]


def test_a_run_that_was_killed_goes_on(folders, prepared):
    local, remote = folders
    last = RunCheckpoints(remote, {}).path(4)
    storage.remove(f"{last}.index")  # the newest is half there, as after a kill
    storage.replace(f"{last}.data-00000-of-00001", f"{last}.7.tmp")
    train(prepared, remote)
    assert contents(local) == contents(remote)
    assert metrics(local) == metrics(remote)
    changes = f"{remote}/flags_history.jsonl"
    with storage.open_text(changes) as file:
        assert len([json.loads(line) for line in file]) == 1  # no flag has changed


def test_a_model_is_loaded_from_there(folders):
    (_, local), (_, remote) = map(nezha_tf.load, folders)
    for ours, theirs in zip(local.weights, remote.weights, strict=True):
        np.testing.assert_array_equal(ours, theirs, ours.path)


def test_what_a_remote_store_cannot_do_is_one_line(folders):
    with pytest.raises(UserError, match="not on this machine; name a folder here"):
        export_folder(folders[0], "ram://bucket/export")
    with tf.io.gfile.GFile("ram://bucket/file", "w") as file:
        file.write("text")
    with pytest.raises(UserError, match="is a file, not a folder"):
        nezha_tf.util.files.require_folder("ram://bucket/file", "output_dir")
    with pytest.raises(UserError, match="not there; check the path"):
        nezha_tf.load("ram://bucket/nothing")
