"""examples/clue.py: the programs that it runs, its table, and the files for CLUE's site."""

import json
import subprocess
import sys
import zipfile
from types import SimpleNamespace

import pytest
from commands import flags_of
from conftest import REPOSITORY
from examples_programs import program

from nezha_tf.errors import UserError

clue = program("clue")
TASKS = {task.name: task for task in clue.TASKS}


def write(path, *rows):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


@pytest.fixture
def given_flags(tmp_path):
    """The flags of the program, and the folders of data and results."""
    data, out = tmp_path / "data", tmp_path / "out"
    data.mkdir()
    names = {"clue_data": data, "output_dir": out, "model_folder": tmp_path, "c3_format": "lines"}
    return SimpleNamespace(**{name: str(value) for name, value in names.items()}), data, out


@pytest.mark.parametrize("task", clue.TASKS, ids=lambda task: task.name)
def test_its_program_takes_the_flags_of_a_task(tmp_path, task):
    (tmp_path / "test1.1.json").touch()
    found = flags_of(task.program, *clue.flags_of(task, str(tmp_path), "model", "run"))
    assert found["do_train"] and found["do_eval"]
    assert found["do_predict"] == (task.submission is not None)
    assert found.get("task_name", task.name) == task.name
    assert found["init_checkpoint"] == "model" and found["output_dir"] == "run"


def test_what_is_there_is_run_and_what_is_done_is_not_done_again(
    given_flags, tmp_path, monkeypatch, capsys
):
    flags, data, _ = given_flags
    (data / "csl_public").mkdir()
    (data / "cluewsc").mkdir()
    write(data / "cluewsc" / "test1.0.json")
    commands = []

    def run(command):
        commands.append(command[1:])
        return subprocess.CompletedProcess(command, 0)

    monkeypatch.setattr(subprocess, "run", run)
    done = clue.run_all(flags, ["--num_seeds=2"])
    assert [each.task.name for each in done] == ["wsc", "csl"]
    assert [command[0] for command in commands] == ["run_classifier.py"] * 2
    assert f"--predict_file={data}/cluewsc/test1.0.json" in commands[0]
    assert all(command[-1] == "--num_seeds=2" for command in commands)
    assert "afqmc: left out" in capsys.readouterr().out
    assert clue.run_all(flags, ["--num_seeds=2"]) == done and len(commands) == 2
    clue.run_all(flags, ["--num_seeds=3"])
    assert len(commands) == 4

    monkeypatch.setattr(subprocess, "run", lambda command: subprocess.CompletedProcess(command, 3))
    with pytest.raises(UserError, match=r"wsc: run_classifier\.py ended with status 3"):
        clue.run_all(flags, [])
    flags.clue_data = str(tmp_path)
    with pytest.raises(UserError, match="no folder of a task, such as afqmc"):
        clue.run_all(flags, [])


def test_a_run_is_not_gone_on_with_under_other_flags(given_flags, monkeypatch, capsys):
    flags, data, out = given_flags
    (data / "csl").mkdir()
    statuses, commands = [1, -15, 0, 0], []

    def run(command):
        commands.append(command[1:])
        if len(commands) > 1:  # the first one ends before it has saved anything
            (out / "csl" / "lr_2e-05").mkdir(parents=True, exist_ok=True)
            (out / "csl" / "lr_2e-05" / "model.ckpt-2.index").touch()
        return subprocess.CompletedProcess(command, statuses.pop(0))

    def refused(further, message):
        with pytest.raises(UserError, match=message) as error:
            clue.run_all(flags, further)
        assert "\n" not in str(error.value)

    monkeypatch.setattr(subprocess, "run", run)
    refused(["--learning_rate=fast"], "ended with status 1")
    refused(["--num_seeds=2"], "ended with status -15")
    first, flags.model_folder = flags.model_folder, "other"
    told = f"{out}/csl .*then --init_checkpoint={first}, now --init_checkpoint=other.*--output_dir"
    refused(["--num_seeds=2"], told)
    flags.model_folder = first
    refused(["--num_seeds=2", "--seed=3"], "then not given, now --seed=3")
    assert len(commands) == 2
    # It was killed: the same flags go on. When it has ended, it is not done again.
    done = clue.run_all(flags, ["--num_seeds=2"])
    assert clue.run_all(flags, ["--num_seeds=2"]) == done and len(commands) == 3
    assert "csl: done before\n" in capsys.readouterr().out
    flags.model_folder = "other"
    refused(["--num_seeds=2"], told)
    # A test set that comes later changes nothing in the training.
    flags.model_folder = first
    write(data / "csl" / "test.json")
    clue.run_all(flags, ["--num_seeds=2"])
    assert len(commands) == 4 and "--do_predict" in commands[3]


def test_the_table(given_flags):
    _, _, out = given_flags
    names = ("afqmc", "cmrc2018", "bustm")
    done = [clue.Done(TASKS[name], "", str(out / name)) for name in names]
    write(out / "cmrc2018" / "eval_results.json", {"f1": 50.0, "em": 25.0, "loss": 1.0})
    write(out / "bustm" / "eval_results.json", {"accuracy": 0.75})
    rates = [
        {
            "learning_rate": rate,
            "mean": {"eval accuracy": mean},
            "standard_deviation": {"eval accuracy": 0.0123},
        }
        for rate, mean in ((1e-5, 0.6), (2e-5, 0.7))
    ]
    runs = [{"learning_rate": rate} for rate in (1e-5, 1e-5, 1e-5, 2e-5, 2e-5, 2e-5)]
    write(
        out / "afqmc" / "sweep.json",
        {"best": {"learning_rate": 2e-5}, "rates": rates, "runs": runs},
    )
    lines = [line.split() for line in clue.table(done).splitlines()[1:]]
    assert lines == [
        ["afqmc", "accuracy", "70.00", "±", "1.23", "(3)", "74.63", "74.60"],
        ["cmrc2018", "em", "25.00", "65.30", "68.39"],
        ["cmrc2018", "f1", "50.00", "86.53", "88.50"],
        ["bustm", "accuracy", "75.00"],
        # Over the tasks that have published figures; of CMRC2018 the exact match.
        ["mean", "of", "2", "tasks", "47.50", "69.97", "71.50"],
    ]
    (out / "bustm" / "eval_results.json").unlink()
    with pytest.raises(UserError, match="bustm has no result accuracy; delete the folder"):
        clue.table(done)


def test_few_examples_have_no_published_figures_and_no_submission(given_flags):
    """CLUE's figures and site are for other data than FewCLUE's, which have the same tasks."""
    flags, data, out = given_flags
    done = []
    for name, train in (
        *(("afqmc", "train.json"), ("tnews", "train.json"), ("csl", "train_few_all.json")),
        *(("chid", "train_0.json"), ("ocnli", "train.50k.json")),
    ):
        write(data / name / train)
        write(data / name / "test.json")
        write(out / name / "eval_results.json", {"accuracy": 0.5})
        write(out / name / "predictions.jsonl")
        done.append(clue.Done(TASKS[name], str(data / name), str(out / name)))
    # The programs read CLUE's file where both are.
    write(data / "ocnli" / "train_few_all.json")
    *lines, last = clue.table(done).splitlines()[1:]
    assert [line.split() for line in lines] == [
        ["afqmc", "accuracy", "50.00", "74.63", "74.60"],
        ["tnews", "accuracy", "50.00", "57.13", "58.08"],
        ["csl", "accuracy", "50.00"],
        ["chid", "accuracy", "50.00"],
        ["ocnli", "accuracy", "50.00", "75.22", "76.92"],
        ["mean", "of", "3", "tasks", "50.00", "68.99", "69.87"],
    ]
    assert last.startswith("csl, chid: FewCLUE's data") and "submit.zip" in last
    clue.write_submission(done, flags)
    with zipfile.ZipFile(out / "submit.zip") as archive:
        names = [f"{name}_predict.json" for name in ("afqmc", "tnews11", "ocnli_50k")]
        assert archive.namelist() == names
    assert "no submit.zip" in clue.write_submission(done[2:4], flags)


def test_the_files_for_the_site(given_flags):
    flags, data, out = given_flags
    done = []
    for name, test in (
        *(("tnews", "test1.0.json"), ("ocnli", "test.json"), ("wsc", "test1.1.json")),
        *(("chid", "test1.1.json"), ("c3", "test1.1.json"), ("cmrc2018", "test.json")),
        *(("csl", "none.json"), ("bustm", "test.json")),
    ):
        write(data / name / test)
        done.append(clue.Done(TASKS[name], str(data / name), str(out / name)))
    rows = {
        "tnews": [{"id": "7", "prediction": "115"}],
        "ocnli": [{"prediction": "neutral"}, {"prediction": "entailment"}],
        "wsc": [{"id": "0", "prediction": "true"}],
        "chid": [
            {"id": "#idiom000001#", "prediction": 3},
            {"id": "#idiom000002#", "prediction": 0},
        ],
        "c3": [{"id": "0", "prediction": 2}, {"id": "1", "prediction": 1}],
    }
    for name, lines in rows.items():
        write(out / name / "predictions.jsonl", *lines)
    write(out / "cmrc2018" / "predictions.json", {"q": "答案"})
    line = clue.write_submission(done, flags)
    with zipfile.ZipFile(out / "submit.zip") as archive:
        found = {name: archive.read(name).decode() for name in archive.namelist()}
    assert all(name in line for name in found)
    assert json.loads(found.pop("chid11_predict.json")) == {"#idiom000001#": 3, "#idiom000002#": 0}
    assert json.loads(found.pop("cmrc2018_predict.json")) == {"q": "答案"}
    assert found == {
        "tnews10_predict.json": '{"id": 7, "label": "115"}\n',
        "ocnli_50k_predict.json": (
            '{"id": 0, "label": "neutral"}\n{"id": 1, "label": "entailment"}\n'
        ),
        "cluewsc11_predict.json": '{"id": 0, "label": "true"}\n',
        "c311_predict.json": '{"id": 0, "label": 2}\n{"id": 1, "label": 1}\n',
    }
    assert clue.predictions(TASKS["c3"], str(out / "c3"), "list") == "[2, 1]\n"
    without = [each for each in done if each.task.name in ("csl", "bustm")]
    assert "no submit.zip" in clue.write_submission(without, flags)


def test_a_mistake_is_one_line(tmp_path):
    command = [sys.executable, "examples/clue.py", "--model_folder=m", f"--clue_data={tmp_path}"]
    command.append(f"--output_dir={tmp_path}/out")
    result = subprocess.run(command, capture_output=True, text=True, cwd=REPOSITORY)
    assert result.returncode == 1 and result.stderr.count("\n") == 1
    assert "has no folder of a task, such as afqmc" in result.stderr
