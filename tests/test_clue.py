"""examples/clue.py: the programs that it runs, and what is run again."""

import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys

import pytest
from clue_files import ROWS, TASKS, add_files, clue, flags_in, in_zip, results, tasks, write
from commands import flags_of
from conftest import REPOSITORY
from waiting import ended, wait_until

from nezha_tf.tasks.finetuning import data_sets
from nezha_tf.util.errors import Terminated, UserError

pytestmark = pytest.mark.processes

ENVIRONMENT = {**os.environ, "PYTHONPATH": str(REPOSITORY)}


@pytest.fixture
def given_flags(tmp_path):
    return flags_in(tmp_path)


@pytest.mark.parametrize("task", clue.TASKS, ids=lambda task: task.name)
def test_its_program_takes_the_flags_of_a_task(tmp_path, task):
    (tmp_path / "test1.1.json").touch()
    found = flags_of(task.program, *clue.flags_of(task, str(tmp_path), "model", "run"))
    assert found["do_train"] and found["do_eval"]
    assert found["do_predict"] == (task.submission is not None)
    assert found.get("task_name", task.name) == task.name
    assert found["init_checkpoint"] == "model" and found["output_dir"] == "run"


@pytest.mark.parametrize("name", sorted(set(TASKS) - {"cmrc2018", "ocnli"}))
def test_the_newest_test_set_is_predicted(tmp_path, name):
    """test1.0.json is the old one; a test1.1.json is the new one where there is one."""
    choices = tasks.data_sets(TASKS[name])[name].files["predict"]
    for file in ("test1.0.json", "test.json", "test1.1.json"):
        (tmp_path / file).touch()
        assert clue.test_file(str(tmp_path)) == str(tmp_path / file)
        assert data_sets.found_in(str(tmp_path), choices) == [str(tmp_path / file)]


def test_another_working_directory_is_no_obstacle(tmp_path):
    """The real program parses the flags of the clone's files, of which one names another."""
    add_files(tmp_path / "data" / "csl", "csl")
    command = [sys.executable, str(REPOSITORY / "examples" / "clue.py"), "--model_folder=mini"]
    command += ["--clue_data=data", "--output_dir=out", "--only_check_args"]
    result = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=ENVIRONMENT)
    told = "csl: error: out/csl has no result accuracy; delete the folder and run again"
    assert result.stderr.splitlines() == [told, "clue.py: error: 1 task failed: csl"]


def ended_well(command):
    """Leaves what the end of a program leaves; returns its status."""
    flags = dict(flag.split("=", 1) for flag in command if "=" in flag)
    folder = pathlib.Path(flags["--output_dir"])
    write(folder / "eval_results.json", {"accuracy": 0.5})
    if "--do_predict" in command:
        rows = pathlib.Path(flags["--predict_file"]).read_text().splitlines()
        found = [{"id": json.loads(row).get("id"), "prediction": "0"} for row in rows]
        write(folder / "predictions.jsonl", *found)
    return 0


def test_what_is_there_is_run_and_what_is_done_is_not_done_again(
    given_flags, tmp_path, monkeypatch, capsys
):
    flags, data, _ = given_flags
    add_files(data / "csl_public", "csl")
    add_files(data / "cluewsc", "wsc", "train_few_all.json")
    write(data / "cluewsc" / "test1.0.json")
    commands = []

    def run(command):
        commands.append(command[1:])
        return ended_well(command)

    monkeypatch.setattr(clue, "run_program", run)
    done, failures = clue.run_all(flags, ["--num_seeds=2"])
    assert [each.task.name for each in done] == ["wsc", "csl"] and not failures
    assert [command[0] for command in commands] == ["run_classifier.py"] * 2
    assert f"--predict_file={data}/cluewsc/test1.0.json" in commands[0]
    assert all(command[-1] == "--num_seeds=2" for command in commands)
    assert "afqmc: left out" in capsys.readouterr().out
    assert clue.run_all(flags, ["--num_seeds=2"]) == (done, []) and len(commands) == 2
    clue.run_all(flags, ["--num_seeds=3"])
    assert len(commands) == 4
    flags.clue_data = str(tmp_path)
    with pytest.raises(UserError, match="no folder of a task with its files, such as afqmc"):
        clue.run_all(flags, [])


def test_a_task_that_fails_does_not_stop_the_others(given_flags, monkeypatch, capsys):
    flags, data, out = given_flags
    for folder, name in (("cluewsc", "wsc"), ("csl", "csl"), ("bustm", "bustm")):
        add_files(data / folder, name)

    def run(command):
        if f"--output_dir={out}/wsc" in command:
            return 3
        # CSL ends with status 0 and leaves nothing.
        return 0 if f"--output_dir={out}/csl" in command else ended_well(command)

    monkeypatch.setattr(clue, "run_program", run)
    done, failures = clue.run_all(flags, [])
    assert [each.task.name for each in done] == ["bustm"] and failures == ["wsc", "csl"]
    assert capsys.readouterr().err.splitlines() == [
        "wsc: error: run_classifier.py ended with status 3",
        f"csl: error: {out}/csl has no result accuracy; delete the folder and run again",
    ]
    # One that is asked to end does: whoever asked does not want the next one either.
    statuses = [75, 130, -15, -1, -2]
    monkeypatch.setattr(clue, "run_program", lambda command: statuses.pop())
    while statuses:
        with pytest.raises(Terminated, match=r"wsc: run_classifier\.py was stopped"):
            clue.run_all(flags, [])


# It tells that it has begun, and saves before it ends, which takes a while.
PROGRAM = """
import pathlib, signal, sys, time
def save(*_):
    pathlib.Path("saving").touch()
    time.sleep(1)
    pathlib.Path("saved").touch()
    sys.exit(75)
signal.signal(signal.SIGTERM, save)
pathlib.Path("begun").touch()
time.sleep(100)
"""


@pytest.fixture
def started(tmp_path):
    """clue.py with `PROGRAM` in a clone that is not the working directory, once it has begun."""
    clone = tmp_path / "clone"
    (clone / "examples").mkdir(parents=True)
    for path in (REPOSITORY / "examples").glob("clue*.py"):
        shutil.copy(path, clone / "examples")
    (clone / "configs").symlink_to(REPOSITORY / "configs")
    (clone / "run_classifier.py").write_text(PROGRAM)
    add_files(tmp_path / "data" / "csl", "csl")
    (tmp_path / "model").mkdir()
    command = [sys.executable, str(clone / "examples" / "clue.py"), "--model_folder=model"]
    process = subprocess.Popen(
        [*command, "--clue_data=data", "--output_dir=out"],
        cwd=tmp_path,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env=ENVIRONMENT,
    )
    wait_until((tmp_path / "begun").exists, process)
    return process


@pytest.mark.parametrize("number", (signal.SIGINT, signal.SIGTERM, signal.SIGHUP))
def test_a_program_saves_when_the_runs_are_asked_to_end(tmp_path, started, number):
    """As the terminal does, the whole group is told, and once more while the program saves."""
    os.killpg(started.pid, number)
    if number != signal.SIGINT:
        os.killpg(started.pid, number)
    result = ended(started)
    assert result.returncode == (130 if number == signal.SIGINT else 75), result
    assert result.stderr.count("\n") == 1 and "the same command goes on" in result.stderr
    assert (tmp_path / "saved").exists()


def test_a_second_interrupt_does_not_wait(tmp_path, started):
    os.killpg(started.pid, signal.SIGINT)
    wait_until((tmp_path / "saving").exists, started)
    os.killpg(started.pid, signal.SIGINT)
    result = ended(started)
    assert result.returncode == 130 and result.stderr.count("\n") == 1, result
    assert not (tmp_path / "saved").exists()


def test_a_task_without_its_files_is_left_out(given_flags, monkeypatch, capsys):
    flags, data, _ = given_flags
    add_files(data / "csl", "csl")
    # The folder that has the files is taken, not the first one.
    (data / "csl_public").mkdir()
    (data / "afqmc").mkdir()
    write(data / "tnews" / "train.json", ROWS["tnews"])
    write(data / "cmrc2018_public" / "dev.json")
    for path in ("c3-d-train", "c3-m-train", "d-dev", "m-dev"):
        write(data / "c3" / f"{path}.json")
    # Half of it would be compared with the figures of all.
    write(data / "c3_public" / "d-train.json")
    write(data / "c3_public" / "m-dev.json")
    write(data / "chid" / "dev.json")
    monkeypatch.setattr(clue, "run_program", ended_well)
    done, failures = clue.run_all(flags, [])
    assert [(each.task.name, each.data) for each in done] == [
        ("csl", str(data / "csl")),
        ("c3", str(data / "c3")),
    ]
    assert not failures
    told = capsys.readouterr().out.splitlines()
    lines = dict(line.split(": left out, ") for line in told if ": left out, " in line)
    train, dev = (
        f"{part}.json or {part}_few_all.json or {part}_0.json" for part in ("train", "dev")
    )
    assert lines["afqmc"] == f"{data}/afqmc has no {train}, and no {dev}"
    assert lines["tnews"] == f"{data}/tnews has no {dev}"
    assert lines["iflytek"] == f"{data} has no iflytek"
    (data / "c3" / "c3-m-train.json").unlink()
    clue.run_all(flags, [])
    told = f"c3: left out, {data}/c3 has no c3-m-train.json\n"
    assert told in capsys.readouterr().out


def test_a_run_is_not_gone_on_with_under_other_flags(given_flags, monkeypatch, capsys):
    flags, data, out = given_flags
    add_files(data / "csl", "csl")
    statuses, commands = [1, -15, 0, 0], []

    def run(command):
        commands.append(command[1:])
        if len(commands) > 1:  # the first one ends before it has saved anything
            (out / "csl" / "lr_2e-05").mkdir(parents=True, exist_ok=True)
            (out / "csl" / "lr_2e-05" / "model.ckpt-2.index").touch()
        return statuses.pop(0) or ended_well(command)

    def refused(further, message):
        assert clue.run_all(flags, further)[1] == ["csl"]
        (line,) = capsys.readouterr().err.splitlines()
        assert re.search(message, line)

    monkeypatch.setattr(clue, "run_program", run)
    refused(["--learning_rate=fast"], "ended with status 1")
    with pytest.raises(Terminated):
        clue.run_all(flags, ["--num_seeds=2"])
    first, flags.model_folder = flags.model_folder, "other"
    told = f"{out}/csl .*then --init_checkpoint={first}, now --init_checkpoint=other.*--output_dir"
    refused(["--num_seeds=2"], told)
    flags.model_folder = first
    refused(["--num_seeds=2", "--seed=3"], "then not given, now --seed=3")
    assert len(commands) == 2
    # It was killed: the same flags go on. When it has ended, it is not done again.
    done = clue.run_all(flags, ["--num_seeds=2"])
    # Another working directory is no other flag.
    monkeypatch.setattr(clue, "_CLONE", str(REPOSITORY))
    assert clue.run_all(flags, ["--num_seeds=2"]) == done and len(commands) == 3
    assert clue.run_all(flags, ["--num_seeds", "2"]) == done and len(commands) == 3
    assert "csl: done before\n" in capsys.readouterr().out
    flags.model_folder = "other"
    refused(["--num_seeds=2"], told)
    # A test set that comes later, and the batches of predictions, change nothing in the training.
    flags.model_folder = first
    write(data / "csl" / "test.json")
    clue.run_all(flags, ["--num_seeds=2", "--predict_batch_size=4"])
    assert len(commands) == 4 and "--do_predict" in commands[3]
    assert "--task_name=csl" in commands[3] and "--do_train" in commands[3]
    # A folder whose note is lost is that of another run.
    (out / "csl" / "clue.json").unlink()
    refused(["--num_seeds=2"], r"has a run with other flags.*\(then not given, now --flagfile")


def test_other_files_are_other_runs_or_other_predictions(given_flags, monkeypatch, capsys):
    flags, data, out = given_flags
    add_files(data / "csl", "csl")
    rows = [{**ROWS["csl"], "id": number} for number in (1, 2)]
    write(data / "csl" / "test1.0.json", rows[0])
    commands = []

    def run(command):
        commands.append(command)
        status = ended_well(command)
        (out / "csl" / "model.ckpt-1.index").touch()
        return status

    def submitted():
        done, failures = clue.run_all(flags, [])
        assert not failures
        results.write_submission(done, flags)
        return in_zip(out)["csl_predict.json"].splitlines()

    monkeypatch.setattr(clue, "run_program", run)
    assert submitted() == submitted() == ['{"id": 1, "label": "0"}'] and len(commands) == 1
    # Version 1.1 comes, is mended, and its predictions are lost: each time it is predicted.
    for number, test in enumerate((rows[1:], rows, rows), start=2):
        write(data / "csl" / "test.json", *test)
        if number == 4:
            (out / "csl" / "predictions.jsonl").unlink()
        assert [json.loads(line)["id"] for line in submitted()] == [row["id"] for row in test]
        assert len(commands) == number
    write(data / "csl" / "dev.json", ROWS["csl"], ROWS["csl"])
    assert clue.run_all(flags, [])[1] == ["csl"] and len(commands) == 4
    told = f"csl: error: {out}/csl has a run on another content of {data}/csl/dev.json; pass ano"
    assert told in capsys.readouterr().err


@pytest.mark.parametrize("flag", ("--predictions_format=tsv", "-predictions_format=tsv"))
def test_predictions_in_columns_are_refused_before_anything_runs(given_flags, flag):
    with pytest.raises(UserError, match=rf"^{flag}: submit\.zip is made of JSON lines"):
        clue.run_all(given_flags[0], [flag])


def test_a_mistake_is_one_line(tmp_path):
    command = [sys.executable, "examples/clue.py", f"--clue_data={tmp_path}"]
    command.append(f"--output_dir={tmp_path}/out")
    for model, message in (
        ("mini", "has no folder of a task with its files, such as afqmc"),
        (tmp_path / "none", f"no checkpoint at {tmp_path}/none"),
    ):
        given = [*command, f"--model_folder={model}"]
        result = subprocess.run(given, capture_output=True, text=True, cwd=REPOSITORY)
        assert result.returncode == 1 and result.stderr.count("\n") == 1
        assert message in result.stderr
