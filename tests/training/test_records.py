"""Classes of --record: what they are told of runs, and that they never decide about one."""

import json
import os
import re
import signal
import sys
import types
from typing import ClassVar

import numpy as np
import pages
import pytest
import tensorflow as tf
import toy_task
from toy_finetuning import settings_in
from toy_task import ToyTask

from nezha_tf.checkpoints.run_folder import read_metrics
from nezha_tf.tasks.finetuning import sweep
from nezha_tf.training import devices
from nezha_tf.training.records import Record, made
from nezha_tf.util.errors import Terminated, UserError


class Told:
    """A record without the base; `calls` has what all its objects were told."""

    calls: ClassVar[list] = []

    def start(self, folder, flags, step):
        self.folder = folder
        self.calls.append((folder, "start", flags, step))

    def scalars(self, step, values):
        self.calls.append((self.folder, "scalars", step, values))

    def end(self, results, error):
        self.calls.append((self.folder, "end", results, error))


class Stopping(Record):
    """Stops the run after its first entry, as a scheduler does."""

    def scalars(self, step, values):
        os.kill(os.getpid(), signal.SIGTERM)


class Failing(Told):
    """Fails in one method, and notes its calls."""

    calls: ClassVar[list] = []
    method = None

    def __getattribute__(self, name):
        if name == Failing.method:
            self.calls.append((None, name))
            raise OSError("the server\nis away")
        return super().__getattribute__(name)


class NotMade(Record):
    def __init__(self):
        raise RuntimeError("no room")


class NotInstalled(Record):
    def __init__(self):
        raise UserError("it needs a library")


NO_CLASS = Record()


@pytest.fixture(autouse=True)
def module(monkeypatch):
    """Makes this file the importable module `mine`, and forgets what was told."""
    monkeypatch.setitem(sys.modules, "mine", types.SimpleNamespace(**globals()))
    Told.calls.clear()
    Failing.calls.clear()


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("toy")
    toy_task.write_files(folder)
    return folder


def run(data, out, *records, **changes):
    changes = {"do_predict": False, "log_steps": 2, "save_checkpoints_steps": 3, **changes}
    names = tuple(f"mine:{record.__name__}" for record in records)
    sweep.run(settings_in(data, out, record=names, **changes), ToyTask)


@pytest.fixture(scope="module")
def alone(data, tmp_path_factory):
    """The folder of a run of 6 steps without a record."""
    out = tmp_path_factory.mktemp("alone")
    run(data, out, num_train_epochs=2.0)
    return out


def of(method, folder=None):
    return [call[2:] for call in Told.calls if call[1] == method and folder in (None, call[0])]


def test_what_a_run_tells(data, tmp_path):
    run(data, tmp_path, Told, num_train_epochs=2.0)  # 6 steps
    ((flags, step),) = of("start")
    assert step == 0 and Told.calls[0][:2] == (str(tmp_path), "start")
    assert flags["learning_rate"] == 0.01 and flags["max_seq_length"] == 16
    assert flags["do_eval"] is True and "output_dir" not in flags and None not in flags.values()
    # The log holds the same entries.
    told = [{"step": step, **values} for step, values in of("scalars")]
    assert told == read_metrics(str(tmp_path))
    assert [e["step"] for e in told if "eval_loss" in e] == [3, 6]
    assert [e["step"] for e in told if "loss" in e] == [2, 3, 4, 6]
    ((results, error),) = of("end")
    assert error is None and Told.calls[-1][1] == "end"
    for name, value in json.loads((tmp_path / "eval_results.json").read_text()).items():
        assert results[f"eval {name}"] == value


def test_a_run_that_goes_on_says_from_which_step(data, tmp_path):
    run(data, tmp_path, Told, num_train_epochs=2.0)
    Told.calls.clear()
    run(data, tmp_path, Told, num_train_epochs=3.0)
    ((_, step),) = of("start")
    assert step == 6 and {step for step, _ in of("scalars")} == {8, 9}
    Told.calls.clear()
    run(data, tmp_path, Told, do_train=False, do_predict=True)
    assert [call[1] for call in Told.calls] == ["start", "end"]
    assert of("start")[0][1] is None
    assert {"eval accuracy", "predict accuracy"} <= of("end")[0][0].keys()


def test_the_record_of_the_page(data, tmp_path, monkeypatch):
    """Both languages show the same."""
    codes = []
    for language in pages.LANGUAGES:
        text = pages.read(f"docs/{language}/extending.md")
        shown = text[text.index("`my_records.py`") :]
        codes.append(re.search(r"```python\n(.*?)```", shown, re.DOTALL)[1])
    assert codes[0] == codes[1]
    module = types.ModuleType("my_records")
    exec(codes[0], vars(module))
    monkeypatch.setitem(sys.modules, "my_records", module)
    settings = settings_in(data, tmp_path, record=("my_records:Evaluations",), do_predict=False)
    sweep.run(settings, ToyTask)
    first, *told, last = (tmp_path / "evaluations.txt").read_text().splitlines()
    assert first == "from step 0 with learning rate 0.01" and last == "ended well"
    entries = [entry for entry in read_metrics(str(tmp_path)) if "eval_loss" in entry]
    assert told == [f"{entry['step']} {entry['eval_loss']}" for entry in entries] != []


def test_the_end_after_an_error(data, tmp_path):
    with pytest.raises(UserError, match="diverged"):
        run(data, tmp_path, Told, divergence_factor=1e-9, divergence_patience=1)
    ((results, error),) = of("end")
    assert results == {} and isinstance(error, UserError) and "diverged" in str(error)


def test_the_end_after_a_signal(data, tmp_path):
    with pytest.raises(Terminated):
        run(data, tmp_path, Told, Stopping)
    ((results, error),) = of("end")
    assert results == {} and isinstance(error, Terminated)
    Told.calls.clear()
    run(data, tmp_path, Told)
    assert of("start")[0][1] == 3 and of("end")[0][1] is None


def test_members_of_a_sweep_have_a_record_each(data, tmp_path):
    run(data, tmp_path, Told, learning_rate=("0.01", "0.02"), num_train_epochs=1.0, do_predict=True)
    folders = [str(tmp_path / f"lr_{rate}" / "seed_12345") for rate in (0.01, 0.02)]
    assert list(dict.fromkeys(call[0] for call in Told.calls)) == folders
    for folder, rate in zip(folders, (0.01, 0.02), strict=True):
        assert of("start", folder)[0][0]["learning_rate"] == rate
        assert of("scalars", folder) and of("end", folder)[0][1] is None
    # The best one predicts once more, for the sweep's folder.
    assert [step for _, step in of("start")] == [0, 0, None]
    assert of("end")[2][0].keys() == {"predict accuracy"}


@pytest.mark.parametrize("method, calls", (("start", 1), ("scalars", 3), ("end", 8)))
def test_an_error_of_a_record_is_a_line(data, alone, tmp_path, monkeypatch, capsys, method, calls):
    capsys.readouterr()
    monkeypatch.setattr(Failing, "method", method)
    run(data, tmp_path / "run", Failing, num_train_epochs=2.0)
    lines = [line for line in capsys.readouterr().out.splitlines() if "warning: --record" in line]
    assert lines == [
        f"warning: --record=mine:Failing failed in {method}: OSError: the server; the run goes on "
        "without it"
    ]
    assert len(Failing.calls) == calls
    assert Failing.calls[-1][1] == ("start" if method == "start" else "end")
    one, other = (
        tf.train.load_checkpoint(str(path / "model.ckpt-6")) for path in (alone, tmp_path / "run")
    )
    for name in one.get_variable_to_shape_map():
        np.testing.assert_array_equal(one.get_tensor(name), other.get_tensor(name))


def test_only_the_chief_makes_records(data, tmp_path, monkeypatch):
    run(data, tmp_path, num_train_epochs=1.0)
    monkeypatch.setattr(devices, "is_chief", lambda strategy: False)
    run(data, tmp_path, Told, num_train_epochs=2.0)
    assert Told.calls == []


@pytest.mark.parametrize(
    "name, message",
    [
        ("mine", "--record=mine must be MODULE:CLASS, such as nezha_tf"),
        (":Told", "--record=:Told must be MODULE:CLASS"),
        ("no_such:Told", "cannot be imported: ModuleNotFoundError: No module named 'no_such'; its"),
        ("mine:Other", "--record=mine:Other cannot be imported: AttributeError: .*Other"),
        (".mine:Told", "cannot be imported: TypeError"),
        ("collections:Counter", "is a class without start and scalars and end; see nezha_tf"),
        ("mine:NO_CLASS", "--record=mine:NO_CLASS is no class; see"),
        ("mine:NotMade", "--record=mine:NotMade cannot be made: RuntimeError: no room"),
        ("mine:NotInstalled", "^it needs a library$"),
    ],
)
def test_mistakes_are_one_line(data, tmp_path, name, message):
    with pytest.raises(UserError, match=message) as found:
        sweep.run(settings_in(data, tmp_path / "run", record=(name,)), ToyTask)
    assert "\n" not in str(found.value) and not (tmp_path / "run").exists()


def test_made_records_are_objects_of_their_own():
    one, other = made(["mine:Told", "mine:Told"])
    one.start("a", {}, 0)
    other.start("b", {}, 0)
    one.scalars(1, {})
    assert [call[0] for call in Told.calls] == ["a", "b", "a"]
