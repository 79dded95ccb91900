"""run_classifier.py on texts or pairs of the sample, with labels by some rule."""

import csv
import io
import json
import math

import numpy as np

from soak_cases import corpora

PROGRAM = "run_classifier.py"
LABELS = ("好", "坏", "2", "B-c")
FORMATS = ("jsonl", "tsv", "csv")
# A word of each class for the head of masked LM, in one token or in two.
WORDS = (("好", "坏", "大", "小"), ("很好", "不好", "好大", "好小"))


def draw(case, length, do_lower_case):
    """Draws files and flags of the task; returns a dict of flag to value."""
    rng = case.rng
    kind, form = rng.choice(("single", "multi", "regression")), rng.choice(FORMATS)
    is_pair = case.some(0.4)
    labels = LABELS[: rng.randint(2, 4)]
    for part, count in (("train", rng.randint(8, 30)), ("dev", rng.randint(1, 12))):
        rows = []
        for number in range(count):
            texts = _texts(case, 1 + is_pair, do_lower_case, form)
            label = _label(rng, kind, labels, number)
            rows.append(dict(zip(("text", "other"), texts, strict=False)) | {"label": label})
        _write(case.inputs / f"{part}.{form}", rows, form)
    flags = {
        "task_name": "custom",
        "label_type": kind,
        "train_file": f"../inputs/train.{form}",
        "eval_file": f"../inputs/dev.{form}",
        "predict_file": f"../inputs/dev.{form}",
        "max_seq_length": length,
        "predict_batch_size": rng.randint(1, 9),
        "predictions_format": rng.choice(("jsonl", "tsv")),
        "bucket_by_length": case.some(0.7),
    }
    if is_pair:
        flags["text_pair_column"] = "other"
    if kind != "regression":
        flags["labels"] = ",".join(labels)
        flags["label_smoothing"] = rng.choice((0.0, 0.1))
        flags["r_drop_alpha"] = rng.choice((0.0, 0.0, 1.0))
    if kind == "single" and case.some(0.3):
        words = rng.choice(WORDS)[: len(labels)]
        blank = "[MASK]" * len(words[0])
        other = "，{text_pair}" if is_pair else ""
        flags["pattern"] = rng.choice((f"{{text}}{blank}{other}", f"真{blank}：{{text}}{other}"))
        flags["label_words"] = ",".join(words)
    return flags


def _texts(case, count, do_lower_case, form):
    """Draws texts that a file of this format can contain."""
    texts = corpora.draw_texts(case, count, do_lower_case)
    if form == "jsonl":
        return texts
    # White space separates columns and rows there, and Python's csv does not read zeros.
    return [" ".join(text.replace("\0", "").split()) for text in texts]


def _label(rng, kind, labels, number):
    if kind == "regression":
        return round(rng.uniform(-3, 3), 3)
    if kind == "multi":
        return [label for label in labels if rng.random() < 0.4] or [labels[0]]
    return labels[number % len(labels)]


def _write(path, rows, form):
    if form == "jsonl":
        corpora.write_json_lines(path, rows)
        return
    rows = [{n: ",".join(v) if isinstance(v, list) else v for n, v in row.items()} for row in rows]
    if form == "tsv":
        lines = [rows[0], *(row.values() for row in rows)]
        text = "".join("\t".join(map(str, line)) + "\n" for line in lines)
    else:
        file = io.StringIO()
        table = csv.DictWriter(file, list(rows[0]))
        table.writeheader()
        table.writerows(rows)
        text = file.getvalue()
    path.write_text(text, encoding="utf-8", newline="")


def read_predictions(folder, flags):
    """Returns the predictions as dicts, in the form of the JSON lines."""
    if flags["predictions_format"] == "jsonl":
        return corpora.read_json_lines(folder / "predictions.jsonl")
    text = (folder / "predictions.tsv").read_text(encoding="utf-8")
    names, *rows = [line.split("\t") for line in text.split("\n")[:-1]]
    found = []
    for row in rows:
        cells = dict(zip(names, row, strict=True))
        shares = {n: float(v) for n, v in cells.items() if n.startswith("probabilities/")}
        cells["probabilities"] = {n.removeprefix("probabilities/"): v for n, v in shares.items()}
        if flags["label_type"] == "multi":
            cells["prediction"] = json.loads(cells["prediction"])
        found.append(cells)
    return found


def check(case, folder, flags, results):
    """Holds the predictions to the file that they are of, and to the results if these are given.

    Args:
      case: the `Case`.
      folder: of the run.
      flags: of the run.
      results: dict of what an evaluation of the same file measured, or None.
    """
    wanted = read_rows(case.inputs / flags["predict_file"].split("/")[-1], flags["label_type"])
    found = read_predictions(folder, flags)
    texts = [[_flat(row[n]) for n in ("text", "other") if n in row] for row in wanted]
    told = [[_flat(row[n]) for n in ("text", "text_pair") if n in row] for row in found]
    if not case.law("predictions are in the input's order", told == texts, f"{told}, not {texts}"):
        return
    for row in found:
        _check_row(case, row, flags)
    if results:
        _check_results(case, found, wanted, flags["label_type"], results)


def read_rows(path, kind):
    """Returns the rows of a file that `draw` wrote."""
    if path.suffix == ".jsonl":
        return corpora.read_json_lines(path)
    with open(path, encoding="utf-8", newline="") as file:
        options = {"delimiter": "\t", "quoting": csv.QUOTE_NONE} if path.suffix == ".tsv" else {}
        rows = list(csv.DictReader(file, **options))
    for row in rows:
        if kind == "multi":
            row["label"] = row["label"].split(",")
    return rows


def _flat(text):
    return " ".join(text.split())


def _check_row(case, row, flags):
    kind = flags["label_type"]
    if kind == "regression":
        case.law("numbers are finite", math.isfinite(float(row["prediction"])), row)
        return
    shares = row["probabilities"]
    case.law("each class has a probability", list(shares) == flags["labels"].split(","), row)
    case.law("probabilities are from 0 to 1", all(0 <= v <= 1 for v in shares.values()), row)
    if kind == "single":
        case.law("probabilities sum to 1", abs(sum(shares.values()) - 1) < 1e-4, row)
        likeliest = shares[row["prediction"]] == max(shares.values())
        case.law("the likeliest class is predicted", likeliest, row)
        return
    # Written values are rounded.
    certain = {name: share for name, share in shares.items() if abs(share - 0.5) > 1e-5}
    right = all((share > 0.5) == (name in row["prediction"]) for name, share in certain.items())
    case.law("the likely classes are predicted", right, row)


def _check_results(case, found, wanted, kind, results):
    pairs = [(row["prediction"], other["label"]) for row, other in zip(found, wanted, strict=True)]
    if kind == "regression":
        error = np.mean([(float(one) - float(other)) ** 2 for one, other in pairs])
        near = abs(error - results["mean_squared_error"]) <= 1e-3 * (1e-3 + error)
        case.law("results are those of the predictions", near, f"{error}: {results}")
        return
    name = {"single": "accuracy", "multi": "exact_match"}[kind]
    share = np.mean([_as_set(one) == _as_set(other) for one, other in pairs])
    near = abs(share - results[name]) < 1e-6
    case.law("results are those of the predictions", near, f"{share}: {results}")


def _as_set(labels):
    return set(labels) if isinstance(labels, list) else {labels}
