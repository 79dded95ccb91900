"""examples/clue.py: the programs that it runs, its table, and the files for CLUE's site."""

import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import zipfile
from types import SimpleNamespace

import pytest
from commands import flags_of
from conftest import REPOSITORY
from examples_programs import program
from terminals import heeds_hangups
from waiting import ended, wait_until

from nezha_tf.errors import Terminated, UserError
from nezha_tf.tasks.finetuning import part_files

clue, results, tasks = map(program, ("clue", "clue_results", "clue_tasks"))
TASKS = {task.name: task for task in clue.TASKS}


def write(path, *rows):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


ENVIRONMENT = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
PAIR = {"sentence1": "甲", "sentence2": "乙"}
SPANS = {"span1_text": "甲", "span1_index": 0, "span2_text": "乙", "span2_index": 1}
MARKS = [f"#idiom{number:06}#" for number in (1, 2)]
# A row of each task's file, for `add_files`.
ROWS = {
    **{name: {**PAIR, "label": "0"} for name in ("afqmc", "bustm")},
    **{name: {**PAIR, "label": "neutral"} for name in ("cmnli", "ocnli")},
    "tnews": {"sentence": "甲", "label": "100"},
    "iflytek": {"sentence": "甲", "label": "0"},
    "wsc": {"text": "甲乙", "target": SPANS, "label": "true"},
    "csl": {"abst": "甲", "keyword": ["乙"], "label": "0"},
    "chid": {"content": MARKS, "candidates": ["甲", "乙"]},
}


def add_files(folder, name, train="train.json"):
    """Writes the files of training and development of a task."""
    for file in (train, train.replace("train", "dev").replace("50k.", "")):
        write(folder / file, ROWS[name])


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


@pytest.mark.parametrize("name", sorted(set(TASKS) - {"cmrc2018", "ocnli"}))
def test_the_newest_test_set_is_predicted(tmp_path, name):
    """test1.0.json is the old one; a test1.1.json is the new one where there is one."""
    choices = tasks.data_sets(TASKS[name])[name].file_choices("predict")
    for file in ("test1.0.json", "test.json", "test1.1.json"):
        (tmp_path / file).touch()
        assert clue.test_file(str(tmp_path)) == str(tmp_path / file)
        assert part_files.found_in(str(tmp_path), choices) == [str(tmp_path / file)]


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
        preexec_fn=heeds_hangups,
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
    lines = [line.split() for line in results.table(done).splitlines()[1:]]
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
        results.table(done)


def test_few_examples_have_no_published_figures_and_no_submission(given_flags):
    """CLUE's figures and site are for other data than FewCLUE's, which have the same tasks."""
    flags, data, out = given_flags
    done = []
    for name, train in (
        *(("afqmc", "train.json"), ("tnews", "train.json"), ("csl", "train_few_all.json")),
        *(("chid", "train_0.json"), ("ocnli", "train.50k.json")),
    ):
        write(data / name / train)
        write(data / name / "test.json", ROWS[name])
        write(out / name / "eval_results.json", {"accuracy": 0.5})
        write(out / name / "predictions.jsonl", {"prediction": "0"})
        done.append(clue.Done(TASKS[name], str(data / name), str(out / name)))
    # The programs read CLUE's file where both are.
    write(data / "ocnli" / "train_few_all.json")
    *lines, last = results.table(done).splitlines()[1:]
    assert [line.split() for line in lines] == [
        ["afqmc", "accuracy", "50.00", "74.63", "74.60"],
        ["tnews", "accuracy", "50.00", "57.13", "58.08"],
        ["csl", "accuracy", "50.00"],
        ["chid", "accuracy", "50.00"],
        ["ocnli", "accuracy", "50.00", "75.22", "76.92"],
        ["mean", "of", "3", "tasks", "50.00", "68.99", "69.87"],
    ]
    assert last.startswith("csl, chid: FewCLUE's data") and "submit.zip" in last
    results.write_submission(done, flags)
    with zipfile.ZipFile(out / "submit.zip") as archive:
        names = [f"{name}_predict.json" for name in ("afqmc", "tnews11", "ocnli_50k")]
        assert archive.namelist() == names
    assert "no submit.zip" in results.write_submission(done[2:4], flags)


def submission(given_flags, tests, predicted):
    """Writes test sets and predictions; returns (list of `Done`, the lines on submit.zip)."""
    flags, data, out = given_flags
    done = []
    for name, (test, *rows) in tests.items():
        write(data / name / test, *rows)
        done.append(clue.Done(TASKS[name], str(data / name), str(out / name)))
    for name, rows in predicted.items():
        file = "predictions.json" if name == "cmrc2018" else "predictions.jsonl"
        write(out / name / file, *rows)
    return done, results.write_submission(done, flags)


def in_zip(out):
    with zipfile.ZipFile(out / "submit.zip") as archive:
        return {name: archive.read(name).decode() for name in archive.namelist()}


C3 = [["甲"], [{"question": "何？", "choice": ["乙", "丙", "丁"]}] * 2, "1"]
CMRC = {"data": [{"paragraphs": [{"context": "甲", "qas": [{"id": "q", "question": "何？"}]}]}]}


def test_the_files_for_the_site(given_flags):
    flags, _, out = given_flags
    tests = {
        "tnews": ("test1.0.json", {"id": 7, "sentence": "甲"}),
        "ocnli": ("test.json", PAIR, PAIR),
        "wsc": ("test1.1.json", {"id": 0, "text": "甲乙", "target": SPANS}),
        "chid": ("test1.1.json", {**ROWS["chid"], "content": [" ".join(MARKS)]}),
        "c3": ("test1.1.json", [C3]),
        "cmrc2018": ("test.json", CMRC),
        "bustm": ("test.json", PAIR),
    }
    predicted = {
        "tnews": [{"id": "7", "prediction": "115"}],
        # A text in the predictions may have what other languages take for the end of a line.
        "ocnli": [{"text": "\u2028", "prediction": "neutral"}, {"prediction": "entailment"}],
        "wsc": [{"id": "0", "prediction": "true"}],
        "chid": [{"id": mark, "prediction": 3 - 3 * at} for at, mark in enumerate(MARKS)],
        "c3": [{"id": "0", "prediction": 2}, {"id": "1", "prediction": 1}],
        "cmrc2018": [{"q": "答案"}],
    }
    done, line = submission(given_flags, tests, predicted)
    found = in_zip(out)
    assert line == f"{out}/submit.zip: {', '.join(found)}"
    assert json.loads(found.pop("chid11_predict.json")) == {MARKS[0]: 3, MARKS[1]: 0}
    assert json.loads(found.pop("cmrc2018_predict.json")) == {"q": "答案"}
    assert found == {
        "tnews10_predict.json": '{"id": 7, "label": "115"}\n',
        "ocnli_50k_predict.json": (
            '{"id": 0, "label": "neutral"}\n{"id": 1, "label": "entailment"}\n'
        ),
        "cluewsc11_predict.json": '{"id": 0, "label": "true"}\n',
        "c311_predict.json": '{"id": 0, "label": 2}\n{"id": 1, "label": 1}\n',
    }
    flags.c3_format = "list"
    results.write_submission([each for each in done if each.task.name == "c3"], flags)
    assert in_zip(out) == {"c311_predict.json": "[2, 1]\n"}
    without = [each for each in done if each.task.name == "bustm"]
    assert "no submit.zip" in results.write_submission(without, flags)


def test_what_is_not_in_the_submission_is_told(given_flags):
    """The site compares line by line, so a file without a line is wrong from there on."""
    tests = {
        "afqmc": ("test.json", PAIR, PAIR),
        "tnews": ("test.json", {"sentence": "甲"}, {"sentence": ""}, {"sentence": "乙"}),
        "csl": ("none.json",),
        "cmrc2018": ("test.json", CMRC),
        "chid": ("test.json", ROWS["chid"]),
        "c3": ("test.json", [[["甲"]], C3]),
    }
    row = {"prediction": "0"}
    predicted = {"afqmc": [row] * 2, "tnews": [row] * 2, "cmrc2018": [{}], "chid": [row]}
    _, told = submission(given_flags, tests, {**predicted, "c3": [row] * 2})
    data, out = given_flags[1:]
    assert list(in_zip(out)) == ["afqmc_predict.json"]

    def unlike(name, found, asked):
        return (
            f"{name}: not in submit.zip, {found} predictions for the {asked} rows of "
            f"{data}/{name}/test.json; mend its bad rows"
        )

    assert told.splitlines() == [
        unlike("tnews", 2, 3),
        "csl: not in submit.zip, its folder has no test set",
        unlike("cmrc2018", 0, 1),
        unlike("chid", 1, 2),
        unlike("c3", 2, 3),
        f"{out}/submit.zip: afqmc_predict.json",
    ]
    (out / "cmrc2018" / "predictions.json").write_text("{")
    _, told = submission(given_flags, {"cmrc2018": tests["cmrc2018"]}, {})
    assert f"{out}/cmrc2018/predictions.json or {data}/cmrc2018/test.json is damaged: " in told
    (out / "afqmc" / "predictions.jsonl").unlink()
    _, told = submission(given_flags, {"afqmc": tests["afqmc"]}, {})
    assert told == (
        f"afqmc: not in submit.zip, there is no {out}/afqmc/predictions.jsonl\n"
        f"nothing to pack: no submit.zip; {out}/submit.zip is of an earlier run"
    )
    twice = {"id": 7, **PAIR}
    for rows, why in (
        (["{", row], "is damaged: Expecting"),
        (['{"id": 3}', row], "is damaged: line 1 has no prediction"),
        ([{"id": "7", **row}] * 2, "2 rows of .* have the id 7"),
    ):
        text = "".join(f"{each if isinstance(each, str) else json.dumps(each)}\n" for each in rows)
        (out / "afqmc" / "predictions.jsonl").write_text(text)
        _, told = submission(given_flags, {"afqmc": ("test.json", twice, twice)}, {})
        assert re.match(f"afqmc: not in submit.zip, .*{why}", told), told


@pytest.mark.parametrize(
    "given, there",
    (
        (["7", "8"], [7, 8]),
        (["-1", "0"], [-1, 0]),
        (["007", "+1"], ["007", "+1"]),
        (["甲", "²"], ["甲", "²"]),
        # A row without an id: numbers, of which none is another row's id.
        (["1", None], [0, 1]),
    ),
)
def test_ids_are_as_the_test_set_has_them(given_flags, given, there):
    rows = [{"id": name, "prediction": "0"} for name in given]
    submission(given_flags, {"afqmc": ("test.json", PAIR, PAIR)}, {"afqmc": rows})
    lines = in_zip(given_flags[2])["afqmc_predict.json"].splitlines()
    assert [json.loads(line)["id"] for line in lines] == there


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
