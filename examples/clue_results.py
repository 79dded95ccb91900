"""What the runs of examples/clue.py came to: a table of figures, and the files for CLUE's site."""

import collections
import json
import os
import re
import zipfile

from clue_tasks import CHOICES, data_sets, is_few, predictions_file, test_file

from nezha_tf.data.lines import BadRows
from nezha_tf.data.squad import read_questions
from nezha_tf.tasks.classification.data import read_part
from nezha_tf.util import console, files
from nezha_tf.util.errors import UserError


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
    few = [task.name for task, data, _ in done if is_few(task, data)]
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
    found, lines, has_test = {}, [], False
    for task, data, run_dir in done:
        test = test_file(data)
        if not task.submission or is_few(task, data):
            continue
        has_test |= test is not None
        version = "10" if test and test.endswith("1.0.json") else "11"
        name = f"{task.submission.format(version)}_predict.json"
        try:
            found[name] = submitted(task, test, run_dir, flags.c3_format)
        except UserError as error:
            lines.append(f"{task.name}: not in submit.zip, {error}")
    path = os.path.join(flags.output_dir, "submit.zip")
    if not found:
        lack = (
            "nothing to pack" if has_test else "no test set of CLUE (test.json, test1.1.json ...)"
        )
        old = f"; {path} is of an earlier run" if os.path.exists(path) else ""
        return "\n".join([*lines, f"{lack}: no submit.zip{old}"])
    with files.whole_file(path) as temporary:
        with zipfile.ZipFile(temporary, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, text in found.items():
                archive.writestr(name, text)
    return "\n".join([*lines, f"{path}: {', '.join(found)}"])


def submitted(task, test, run_dir, c3_format):
    """Returns the text of a task's file for the site.

    It has a line {"id", "label"} for each example. That of ChID is {blank: number}, that of
    CMRC2018 {question: answer}. The site compares the lines of a file with its own in their order
    (README of CLUE's submissions), so one that lacks a line would be wrong from there on.

    Args:
      task: `Task`.
      test: path of the test set, or None.
      run_dir: the folder of the task's run.
      c3_format: "lines" or "list".

    Raises:
      UserError: there are no predictions, or not one for each row of the test set.
    """
    if test is None:
        raise UserError("its folder has no test set")
    path = predictions_file(task, run_dir)
    try:
        with open(path, encoding="utf-8") as file:
            text = file.read()
        rows = _answers(text) if task.name == "cmrc2018" else _rows(text)
        num_asked = _num_asked(task, test)
    except FileNotFoundError as error:
        raise UserError(f"there is no {path}") from error
    except (UserError, ValueError) as error:
        raise UserError(f"{path} or {test} is damaged: {error}") from error
    if len(rows) != num_asked:
        raise UserError(
            f"{len(rows):,} predictions for the {num_asked:,} rows of {test}; mend its bad rows"
        )
    if task.name == "cmrc2018":
        return text
    ids, labels = _ids(rows), [row["prediction"] for row in rows]
    for name, count in collections.Counter(ids).items():
        if count > 1:
            raise UserError(f"{count} rows of {test} have the id {name}; the site has one of each")
    if task.name == "chid":
        return json.dumps(dict(zip(ids, labels, strict=True)), indent=2) + "\n"
    if task.name == "c3" and c3_format == "list":
        return json.dumps(labels) + "\n"
    pairs = zip(ids, labels, strict=True)
    return "".join(json.dumps({"id": name, "label": label}) + "\n" for name, label in pairs)


def _answers(text):
    """Returns the object of CMRC2018's predictions; raises ValueError if it is none."""
    found = json.loads(text)
    if not isinstance(found, dict):
        raise ValueError("not an object {question: answer}")
    return found


def _rows(text):
    """Returns the objects of JSON lines with predictions; raises ValueError if one is damaged."""
    rows = [json.loads(line) for line in text.split("\n") if line]
    for number, row in enumerate(rows, start=1):
        if not isinstance(row, dict) or "prediction" not in row:
            raise ValueError(f"line {number} has no prediction")
    return rows


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


def _ids(rows):
    """Returns the ids of rows as the test set has them; if one has none, the rows' numbers."""
    names = [row.get("id") for row in rows]
    return list(range(len(rows))) if None in names else list(map(_number, names))


def _number(name):
    """Returns the number for a text that is one as JSON writes it, or else the text."""
    return int(name) if re.fullmatch(r"0|-?[1-9]\d{0,17}", str(name), re.ASCII) else name
