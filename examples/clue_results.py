"""What the runs of examples/clue.py came to: a table of figures, and the files for CLUE's site."""

import json
import os
import zipfile

from clue_tasks import CHOICES, data_sets, is_few, test_file

from nezha_tf import console, files
from nezha_tf.data.bad_rows import BadRows
from nezha_tf.data.squad import read_questions
from nezha_tf.errors import UserError
from nezha_tf.tasks.classification.examples import read_part


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
    elif task.program == CHOICES:
        found = data_sets(task)[task.name].read(test, False, bad_rows)
    else:
        part = read_part(data_sets(task)[task.name], "predict", [test], skip_bad_rows=True)
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
