"""The law of files that programs read back: what is not as written is one line, and is kept."""

import copy
import json
import types

import laws
import pytest
from conftest import RESOURCES
from hypothesis import example, given
from hypothesis import strategies as st

from nezha_tf import NezhaConfig
from nezha_tf.ablation import results
from nezha_tf.ablation.jobs import Runner
from nezha_tf.checkpoints import adapters, run_folder
from nezha_tf.checkpoints.run_checkpoints import BestMetric, RunCheckpoints
from nezha_tf.corpus import inspection, provenance, record_check, shard_files
from nezha_tf.corpus.output_set import OutputSet
from nezha_tf.corpus.settings import InspectionSettings
from nezha_tf.corpus.statistics import Statistics
from nezha_tf.tasks.finetuning import sweep
from nezha_tf.training import flag_history, log
from nezha_tf.util.errors import UserError

IDENTITY = {"pair": "nsp", "do_lower_case": True, "max_seq_length": 128, "masking": "token"}
IDENTITY |= {"masked_lm_prob": 0.15, "max_predictions_per_seq": 20, "vocab_file": "sha256 0"}
SHARD = {"documents": 1, "records": 0, "bytes": 0, "crc32c": "00000000"}
FLAGS = {**IDENTITY, "vocab_file": str(RESOURCES / "vocab.txt"), "user_dict": ""}
ENTRY = {"flags": FLAGS, "identity": IDENTITY, "vocab_size": 9, "inputs": [], "totals": {}}
SUMMARY = {"format": "nezha_tf pretraining shard 1", **SHARD, "identity": IDENTITY}
SUMMARY |= {"statistics": Statistics().to_dict() | {"unknown_characters": {"龘": 2}}}
SUMMARY |= {"anomalies": {"controls": 1}, "first_document": 0}
TASK = {"task": "classification", "do_lower_case": True, "max_seq_length": 9}
TASK |= {"uses_averages": False, "labels": ["a", "b"], "label_type": "single", "is_pair": False}
RUN = {"program": "toy", "flags": ["--a=1"], "files": {"x": "00"}, "made": "1"}
RUN |= {"made_from": {"start": "2"}, "is_done": True}


def start_again(folder):
    history = flag_history.FlagHistory(str(folder), 5)
    flag_history.note_of(history.take({"seed": 3}, NezhaConfig(vocab_size=9)))
    flag_history.changes_in(str(folder))
    flag_history.last_flags(str(folder))
    history.write()


def best(folder):
    """What a run, and what opens its folder, do with the best checkpoint's note."""
    RunCheckpoints(str(folder), {}, best_metric=None).chosen()
    checkpoints = RunCheckpoints(str(folder), {}, best_metric=BestMetric("f1", True))
    checkpoints.go_back(3, [])
    checkpoints.has_stalled(9, 2)


def metrics(folder):
    entries = run_folder.read_metrics(str(folder))
    assert all(entry["step"] + sum(map(float, entry.values())) is not None for entry in entries)
    log._drop_later_entries(str(folder / "metrics.jsonl"), 2)


def look(folder):
    """What making data, training and inspecting do with what is beside examples."""
    path = str(folder / "a.tfrecord")
    provenance.provenance_of([path], dynamic_masking=None, pair="nsp")
    provenance.counts_of([path])
    inspection._vocab_file(path, shard_files.shards_in(str(folder / "manifest.json")))
    record_check.check_files([path])
    record_check.check(InspectionSettings(input_file=path))
    shard_files.write_entry(path, ENTRY | {"shards": [{"file": "a.tfrecord", **SHARD}]})
    shard_files.write_entry(path, None)


def go_on(folder):
    """What making data does with finished shards."""
    path = str(folder / "a.tfrecord")
    provenance.provenance_of([path], dynamic_masking=None)
    made = OutputSet("training", path, None, 1, 1)
    made.add_finished(IDENTITY)
    made.statistics.rows()


def sweep_member(folder):
    settings = types.SimpleNamespace()
    sweep.flags_of, kept = lambda settings: {"seed": 1}, sweep.flags_of
    try:
        found = sweep._finished(str(folder), settings, "f1")
    finally:
        sweep.flags_of = kept
    assert found is None or found["eval f1"] + 1


def ablation(folder):
    job = types.SimpleNamespace(name="job", program="toy", flags=["--a=1"])
    Runner(str(folder), 1).is_done(job)


# File, its content (of JSON lines a list of lines), and what reads it.
FILES = {
    "flags_history.jsonl": (
        [
            {"step": 0, "flags": {"--seed": "1", "bert_config.json vocab_size": "9"}},
            {"step": 3, "changed": {"--seed": ["1", "2"], "--plot": [None, "true"]}},
        ],
        start_again,
    ),
    "metrics.jsonl": ([{"step": 1, "loss": 0.5}, {"step": 3, "eval_f1": 1.0}], metrics),
    "best_checkpoint.json": ({"global_step": 4, "f1": 0.5}, best),
    "manifest.json": (
        {
            "format": "nezha_tf pretraining data 1",
            "data_sets": {"a.tfrecord": ENTRY | {"shards": [{"file": "a.tfrecord", **SHARD}]}},
        },
        look,
    ),
    "a.tfrecord.json": (SUMMARY, go_on),
    "task.json": (TASK, lambda folder: run_folder.read_task(str(folder))),
    "sweep.json": (
        {"best": {"learning_rate": 2e-5, "seed": 1, "folder": "x"}},
        lambda folder: run_folder.best_sweep_member(str(folder)),
    ),
    "run_results.json": ({"flags": {"seed": 1}, "results": {"eval f1": 0.5}}, sweep_member),
    "job.json": (RUN, ablation),
    "adapters.json": (
        {"base": "mini", "fingerprint": "00", "rank": 8, "alpha": 16.0},
        lambda folder: adapters.read(str(folder)),
    ),
    "eval_results.json": (
        {"f1": 0.5, "global_step": 4},
        lambda folder: results._numbers(str(folder / "eval_results.json"), ["f1"]),
    ),
}
ODD = st.sampled_from(
    [10**400, -1, 2**70, 1e308, 1e-320, float("nan"), float("inf"), -0.0, "\ud800", "a\0", "../x"]
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3) | ODD,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3) | ODD.map(str), inner)
    ),
    max_leaves=4,
)


@st.composite
def damaged(draw, content):
    """Returns a text in which any part of a JSON value is another one, or is missing."""
    content = copy.deepcopy(content)
    holder, key = [content], 0
    while holder[key] and isinstance(holder[key], (dict, list)) and draw(st.integers(0, 4)):
        holder = holder[key]
        key = draw(
            st.sampled_from(list(holder) if isinstance(holder, dict) else range(len(holder)))
        )
    if isinstance(holder, dict) and draw(st.booleans()):
        del holder[key]
        if draw(st.booleans()):
            holder[draw(st.text(max_size=3))] = draw(VALUES)
    elif holder[key] is content:
        return text_of(draw(VALUES))
    else:
        holder[key] = draw(VALUES)
    return text_of(content)


def text_of(content):
    if isinstance(content, list):
        return "".join(json.dumps(line) + "\n" for line in content)
    return json.dumps(content)


@pytest.mark.parametrize("name", FILES)
@laws.examples(30)
@given(data=st.data())
@example(data=None)
def test_a_file_that_is_not_as_written_is_one_line_and_is_kept(tmp_path_factory, name, data):
    content, read = FILES[name]
    if data is None:  # it is read as it was written
        read(folder_with(tmp_path_factory, name, text_of(content)))
        texts = ["[" * 100_000, "", "\x00", "1" * 5000, "{", text_of(content)[:-3] + "\n}"]
    else:
        texts = [data.draw(damaged(content))]
    for text in texts:
        folder = folder_with(tmp_path_factory, name, text)
        try:
            read(folder)
        except UserError as error:
            assert str(folder) in str(error) and "\n" not in str(error), error
            assert (folder / name).read_text(encoding="utf-8") == text


def folder_with(tmp_path_factory, name, text):
    folder = tmp_path_factory.mktemp("run")
    (folder / "a.tfrecord").touch()
    (folder / "start.json").write_text('{"made": "2"}', encoding="utf-8")
    (folder / name).write_text(text, encoding="utf-8")
    return folder
