"""Fine-tunes a model on the tasks of CLUE: a table of development figures, and submit.zip.

python examples/clue.py --model_folder=MODEL --clue_data=DATA --output_dir=out/clue [FLAG...]

DATA has a folder for each task, with the files of CLUE's archives: afqmc_public, tnews_public,
iflytek_public, cmnli_public, ocnli_public, cluewsc2020_public, csl_public, cmrc2018_public,
chid_public and c3_public; also without _public, and with FewCLUE's names. A task whose files are
not there is left out, and so is one that is done already. One that fails does not stop the others.
Further flags go to all programs: --num_seeds=3, --learning_rate=2e-5,3e-5,
--precision=mixed_float16. Another model or other flags need another --output_dir.
"""

import argparse
import json
import os
import pathlib
import signal
import subprocess
import sys
import zipfile
from typing import NamedTuple

try:
    from nezha_tf import console, endings, files, inputs
    from nezha_tf.data.bad_rows import BadRows
    from nezha_tf.data.squad import read_questions
    from nezha_tf.errors import STATUS_TERMINATED, Terminated, UserError
    from nezha_tf.tasks.classification import data_sets as of_classes
    from nezha_tf.tasks.classification.examples import read_part
    from nezha_tf.tasks.finetuning import part_files
    from nezha_tf.tasks.multiple_choice import data_sets as of_choices
except ImportError as error:
    sys.exit(f"{error}; install the project first: pip install -e .")

# A test set may be there later than the run, and its batches do not change the training.
_PREDICTING = ("--do_predict", "--predict_file=", "--predict_batch_size=")
# Submissions are made of the predictions' JSON lines.
_FORMAT = "--predictions_format"
# The statuses of a program that was asked to end, or interrupted.
_INTERRUPTED, _INTERRUPT = 130, "SIGINT"
_ASKED_TO_END = (STATUS_TERMINATED, _INTERRUPTED, -signal.SIGTERM, -signal.SIGHUP, -signal.SIGINT)
# What names a task's flag file in the clone.
_FLAG_FILE = "--flagfile=configs/clue_"
# The clone, as the working directory sees it.
_CLONE = os.path.relpath(pathlib.Path(__file__).resolve().parent.parent)
# The training files of CLUE, and those of FewCLUE, which the programs read if they are alone.
_TRAINING = ("train.json", "train.50k.json", "train.jsonl")
_FEW = ("train_few_all.json", "train_0.json")
_TESTS = ("test1.1.json", "test1.0.json", "test.json")


class Task(NamedTuple):
    """A task of CLUE.

    Attributes:
      name: its name, which is also in configs/clue_NAME.flags.
      folders: the possible names of its folder, with and without _public.
      program: what trains it.
      submission: the name of its file for the site, without _predict.json; {} stands for 10 or 11,
        the version of the test set.
      metrics: {metric of the program: (BERT-base, RoBERTa-wwm-ext)}: development figures of
        PaddleNLP's baseline for CLUE, in percent. The first metric counts in the mean.
      are_percent: whether the program's results are in percent.
    """

    name: str
    folders: tuple[str, ...]
    program: str
    submission: str | None
    metrics: dict
    are_percent: bool = False


def _accuracy(*figures):
    return {"accuracy": figures}


_CLASSES, _CHOICES = "run_classifier.py", "run_multiple_choice.py"
TASKS = (
    Task("afqmc", ("afqmc",), _CLASSES, "afqmc", _accuracy(74.63, 74.60)),
    Task("tnews", ("tnews",), _CLASSES, "tnews{}", _accuracy(57.13, 58.08)),
    Task("iflytek", ("iflytek",), _CLASSES, "iflytek", _accuracy(61.29, 61.23)),
    Task("cmnli", ("cmnli",), _CLASSES, "cmnli", _accuracy(80.97, 81.11)),
    Task("ocnli", ("ocnli",), _CLASSES, "ocnli_50k", _accuracy(75.22, 76.92)),
    Task("wsc", ("cluewsc2020", "cluewsc", "wsc"), _CLASSES, "cluewsc{}", _accuracy(81.91, 88.49)),
    Task("csl", ("csl",), _CLASSES, "csl", _accuracy(81.90, 80.77)),
    Task(
        "cmrc2018",
        ("cmrc2018",),
        "run_mrc.py",
        "cmrc2018",
        {"em": (65.30, 68.39), "f1": (86.53, 88.50)},
        are_percent=True,
    ),
    Task("chid", ("chid",), _CHOICES, "chid{}", _accuracy(82.01, 83.43)),
    Task("c3", ("c3",), _CHOICES, "c3{}", _accuracy(65.38, 68.03)),
    # Of FewCLUE alone.
    Task("bustm", ("bustm",), _CLASSES, None, _accuracy()),
)


class Done(NamedTuple):
    """A task that was run, the folder of its data, and that of its run."""

    task: Task
    data: str
    run_dir: str


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--model_folder", required=True, help="The folder of the model.")
    parser.add_argument("--clue_data", required=True, help="The folder of the tasks' folders.")
    parser.add_argument("--output_dir", required=True, help="Where runs and results are written.")
    parser.add_argument(
        "--c3_format",
        default="lines",
        choices=["lines", "list"],
        help="Predictions of C3: lines with id and label, as PaddleNLP writes them, or a list of "
        "labels, as CLUE's program does.",
    )
    # Abbreviations could be flags of the programs.
    parser.allow_abbrev = False
    flags, further = parser.parse_known_args()
    try:
        inputs.check({"init_checkpoint": flags.model_folder})
        done, failures = run_all(flags, further)
        if done:
            text = table(done)
            print(text)
            files.write_text(os.path.join(flags.output_dir, "results.txt"), text + "\n")
            print(write_submission(done, flags))
        if failures:
            told = ", ".join(failures)
            raise UserError(f"{console.plural(len(failures), 'task')} failed: {told}")
    except (UserError, OSError) as error:
        sys.exit(f"clue.py: error: {error}")
    except Terminated as end:
        print(end, file=sys.stderr)
        sys.exit(STATUS_TERMINATED)
    except KeyboardInterrupt:
        print("interrupted; the same command goes on", file=sys.stderr)
        sys.exit(_INTERRUPTED)


def run_all(flags, further):
    """Runs all tasks whose data are there.

    Args:
      flags: an object with the flags of this program.
      further: list of flags for all programs.

    Returns:
      (list of `Done`, list of the names of the tasks that failed, which is told on stderr).

    Raises:
      UserError: there is no task, or submissions cannot be made of the predictions' format.
      Terminated: a program was asked to end; so the others are not started.
    """
    _check_format(further)
    done, failures = [], []
    for task in TASKS:
        data, lack = data_of(task, flags.clue_data)
        if lack:
            print(f"{task.name}: left out, {lack}")
            continue
        run_dir = os.path.join(flags.output_dir, task.name)
        program_flags = [*flags_of(task, data, flags.model_folder, run_dir), *further]
        try:
            run_once(task, run_dir, program_flags)
            figures_of(task, run_dir)
        except UserError as error:
            print(f"{task.name}: error: {error}", file=sys.stderr, flush=True)
            failures.append(task.name)
        else:
            done.append(Done(task, data, run_dir))
    if not done and not failures:
        raise UserError(
            f"{flags.clue_data} has no folder of a task with its files, such as "
            f"{TASKS[0].folders[0]} with train.json and dev.json"
        )
    return done, failures


def _check_format(further):
    for flag in further:
        name, _, value = flag.lstrip("-").partition("=")
        if name == _FORMAT.lstrip("-") and value != "jsonl":
            raise UserError(f"{flag}: submit.zip is made of JSON lines; leave it out")


def data_of(task, root):
    """Returns (the folder of a task's data or None, what is not there or "")."""
    names = [name + end for name in task.folders for end in ("_public", "")]
    paths = [path for name in names if os.path.isdir(path := os.path.join(root, name))]
    lack = f"{root} has no {' or '.join(task.folders)}"
    for path in paths:
        lacking = [
            part_files.told(choices)
            for choices in _file_choices(task)
            if not part_files.found_in(path, choices)
        ]
        if not lacking:
            return path, ""
        lack = f"{path} has no {', and no '.join(lacking)}"
    return None, lack


def _file_choices(task):
    """Returns the possible files of training and of evaluation; see `part_files`."""
    if task.name == "cmrc2018":
        return (("train.json",),), (("dev.json",),)
    data_set = _data_sets(task)[task.name]
    return data_set.file_choices("train"), data_set.file_choices("eval")


def _data_sets(task):
    return (of_classes if task.program == _CLASSES else of_choices).DATA_SETS


def test_file(data):
    """Returns the path of the test set in a task's folder, or None."""
    return _first_in(data, _TESTS)


def is_few(data):
    """Whether a task's folder has FewCLUE's data; CLUE's figures and site are not for them."""
    return bool(_first_in(data, _FEW)) and not _first_in(data, _TRAINING)


def _first_in(folder, names):
    paths = [os.path.join(folder, name) for name in names]
    return next((path for path in paths if os.path.exists(path)), None)


def flags_of(task, data, model_folder, run_dir):
    """Returns the flags of a task's program, a list."""
    found = [
        f"{_FLAG_FILE}{task.name}.flags",
        f"--init_checkpoint={model_folder}",
        f"--output_dir={run_dir}",
    ]
    if task.name == "cmrc2018":
        parts = (("train_file", "train.json"), ("eval_file", "dev.json"))
        found += [f"--{flag}={os.path.join(data, name)}" for flag, name in parts]
    else:
        found.append(f"--data_dir={data}")
    if task.submission and test_file(data):
        found += ["--do_predict", f"--predict_file={test_file(data)}"]
    return found


def _in_clone(name):
    return os.path.normpath(os.path.join(_CLONE, name))


def _located(flag):
    """Returns a flag with the flag file as the working directory sees it."""
    if not flag.startswith(_FLAG_FILE):
        return flag
    name, _, path = flag.partition("=")
    return f"{name}={_in_clone(path)}"


def run_once(task, run_dir, program_flags):
    """Runs a task's program unless it has ended before with these flags.

    The flags are noted before the program starts: a run that was killed goes on with them only.

    Raises:
      UserError: the folder has a run with other flags, or the program failed.
      Terminated: the program was asked to end.
    """
    note = os.path.join(run_dir, "clue.json")
    before = files.read_object(note)
    now = {"flags": program_flags, "is_done": True}
    if before == now:
        print(f"{task.name}: done before")
        return
    if before and has_checkpoint(run_dir):
        require_same(run_dir, before.get("flags", []), program_flags)
    print(f"{task.name}: {task.program} {' '.join(program_flags)}", flush=True)
    files.write_text(note, json.dumps({**now, "is_done": False}) + "\n")
    found = [_located(flag) for flag in program_flags]
    status = run_program([sys.executable, _in_clone(task.program), *found])
    if status in _ASKED_TO_END:
        raise Terminated(f"{task.name}: {task.program} was stopped; the same command goes on")
    if status:
        raise UserError(f"{task.program} ended with status {status}")
    files.write_text(note, json.dumps(now) + "\n")


def run_program(command):
    """Returns the status of a program.

    The program is in a session of its own. So the terminal's interrupt, like the signals of
    `endings`, comes to this process alone, which asks the program to end and waits until it has
    saved. After a second interrupt it does not wait.

    Raises:
      Terminated, KeyboardInterrupt: this process was asked to end; the program has ended.
    """
    asked, running = [], []

    def end(name):
        asked.append(name)
        for process in running:
            process.terminate()

    def interrupt(number, frame):
        if _INTERRUPT in asked:
            for process in running:
                process.kill()
        else:
            end(_INTERRUPT)

    with endings.asked(end):
        before = signal.signal(signal.SIGINT, interrupt)
        try:
            running.append(subprocess.Popen(command, start_new_session=True))
            if asked:  # while it was being started
                running[0].terminate()
            status = running[0].wait()
        finally:
            signal.signal(signal.SIGINT, before)
    if _INTERRUPT in asked:
        raise KeyboardInterrupt
    if asked:
        raise Terminated(f"stopped by {asked[0]}; the same command goes on")
    return status


def has_checkpoint(run_dir):
    """Whether a program would go on from a checkpoint in the folder of one or several runs."""
    return any(pathlib.Path(run_dir).rglob("model.ckpt-*.index"))


def require_same(run_dir, before, now):
    """Raises a `UserError` if a run was made with other flags, lists, that change its training."""
    then, here = (
        [flag for flag in flags if flag not in others and not flag.startswith(_PREDICTING)]
        for flags, others in ((before, now), (now, before))
    )
    if then or here:
        told = [" ".join(flags) or "not given" for flags in (then, here)]
        raise UserError(
            f"{run_dir} has a run with other flags, which would go on with its old weights (then "
            f"{told[0]}, now {told[1]}); pass another --output_dir, or delete that folder"
        )


def figures_of(task, run_dir):
    """Returns {metric: (mean, standard deviation, number of runs)} of the best rate.

    The figures are in percent, on the development set.

    Raises:
      UserError: the run's files lack a metric.
    """
    sweep = files.read_object(os.path.join(run_dir, "sweep.json"))
    if sweep:
        rate = sweep["best"]["learning_rate"]
        (best,) = [found for found in sweep["rates"] if found["learning_rate"] == rate]
        count = sum(outcome["learning_rate"] == rate for outcome in sweep["runs"])
        means, deviations = (
            {name.removeprefix("eval "): value for name, value in best[key].items()}
            for key in ("mean", "standard_deviation")
        )
    else:
        count = 1
        means = files.read_object(os.path.join(run_dir, "eval_results.json")) or {}
        deviations = {}
    lacking = [name for name in task.metrics if name not in means]
    if lacking:
        raise UserError(f"{run_dir} has no result {lacking[0]}; delete the folder and run again")
    scale = 1 if task.are_percent else 100
    return {
        name: (scale * means[name], scale * (deviations.get(name) or 0.0), count)
        for name in task.metrics
    }


def table(done):
    """Returns the development figures beside published ones, as text.

    Args:
      done: list of `Done`.
    """
    rows, first = [], []
    few = [task.name for task, data, _ in done if is_few(data)]
    for task, _, run_dir in done:
        for number, (name, found) in enumerate(figures_of(task, run_dir).items()):
            mean, deviation, count = found
            published = () if task.name in few else task.metrics[name]
            if number == 0 and published:
                first.append((mean, *published))
            told = f"{mean:6.2f}" + (f" ± {deviation:.2f} ({count})" if count > 1 else "")
            cells = [told.ljust(18), *(f"{figure:6.2f}".rjust(9) for figure in published)]
            rows.append((f"{task.name} {name}", "  ".join(cells).rstrip()))
    if first:
        means = [sum(column) / len(first) for column in zip(*first, strict=True)]
        cells = [f"{means[0]:6.2f}".ljust(18), *(f"{mean:6.2f}".rjust(9) for mean in means[1:])]
        rows.append((f"mean of {console.plural(len(first), 'task')}", "  ".join(cells)))
    title = (
        "development sets, percent: this model, then BERT-base and RoBERTa-wwm-ext as published "
        "with PaddleNLP's baseline"
    )
    lines = [console.table(title, rows)]
    if few:
        lines.append(
            f"{', '.join(few)}: FewCLUE's data, so without CLUE's figures, and not in submit.zip"
        )
    return "\n".join(lines)


def write_submission(done, flags):
    """Writes the predictions for the test sets as submit.zip; returns lines on it."""
    found, lines = {}, []
    for task, data, run_dir in done:
        test = test_file(data)
        if not task.submission or is_few(data):
            continue
        version = "10" if test and test.endswith("1.0.json") else "11"
        name = f"{task.submission.format(version)}_predict.json"
        lack = why_not_submitted(task, test, run_dir)
        if lack:
            lines.append(f"{task.name}: not in submit.zip, {lack}")
        else:
            found[name] = predictions(task, run_dir, flags.c3_format)
    if not found:
        lines.append("no test set of CLUE (test.json, test1.0.json or test1.1.json): no submit.zip")
        return "\n".join(lines)
    path = os.path.join(flags.output_dir, "submit.zip")
    with files.whole_file(path) as temporary:
        with zipfile.ZipFile(temporary, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, text in found.items():
                archive.writestr(name, text)
    return "\n".join([*lines, f"{path}: {', '.join(found)}"])


def why_not_submitted(task, test, run_dir):
    """Returns why a task's predictions cannot be submitted, or "".

    The site compares the lines of a file with its own in their order (README of CLUE's
    submissions), so one that lacks a line would be wrong from there on.

    Args:
      task: `Task`.
      test: path of the test set, or None.
      run_dir: the folder of the task's run.
    """
    if test is None:
        return "its folder has no test set"
    path = _predictions_file(task, run_dir)
    try:
        with open(path, encoding="utf-8") as file:
            num_found = len(json.load(file)) if task.name == "cmrc2018" else sum(1 for _ in file)
        num_asked = _num_asked(task, test)
    except FileNotFoundError:
        return f"there is no {path}"
    except (UserError, ValueError) as error:
        return f"{path} or {test} is damaged: {error}"
    if num_found != num_asked:
        return f"{num_found:,} predictions for the {num_asked:,} rows of {test}; mend its bad rows"
    return ""


def _num_asked(task, test):
    """Returns the number of rows of a test set, bad ones among them."""
    bad_rows = BadRows(skip=True)
    if task.name == "cmrc2018":
        found = read_questions([test], needs_answers=False, bad_rows=bad_rows)
    elif task.program == _CHOICES:
        found = _data_sets(task)[task.name].read(test, False, bad_rows)
    else:
        part = read_part(_data_sets(task)[task.name], "predict", [test], skip_bad_rows=True)
        found, bad_rows = part.texts, part.bad_rows
    return len(found) + bad_rows.count


def _predictions_file(task, run_dir):
    name = "predictions.json" if task.name == "cmrc2018" else "predictions.jsonl"
    return os.path.join(run_dir, name)


def predictions(task, run_dir, c3_format):
    """Returns the text of a task's file for the site.

    It has a line {"id", "label"} for each example. That of ChID is {blank: number}, that of
    CMRC2018 {question: answer}.
    """
    with open(_predictions_file(task, run_dir), encoding="utf-8") as file:
        text = file.read()
    if task.name == "cmrc2018":
        return text
    rows = [json.loads(line) for line in text.split("\n") if line]
    if task.name == "chid":
        return json.dumps({row["id"]: row["prediction"] for row in rows}, indent=2) + "\n"
    if task.name == "c3" and c3_format == "list":
        return json.dumps([row["prediction"] for row in rows]) + "\n"
    return "".join(
        json.dumps({"id": _number(row.get("id", number)), "label": row["prediction"]}) + "\n"
        for number, row in enumerate(rows)
    )


def _number(name):
    """Returns an id as the test set has it: a number, or a text that is none."""
    return int(name) if str(name).isdecimal() else name


if __name__ == "__main__":
    main()
