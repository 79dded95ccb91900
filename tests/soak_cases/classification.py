"""run_classifier.py on texts or pairs of the sample, with labels by some rule."""

import math

import numpy as np

from soak_cases import corpora

PROGRAM = "run_classifier.py"
LABELS = ("好", "坏", "2", "B-c")
# A word of each class for the head of masked LM, in one token or in two.
WORDS = (("好", "坏", "大", "小"), ("很好", "不好", "好大", "好小"))


def draw(case, length, do_lower_case):
    """Draws files and flags of the task; returns a dict of flag to value."""
    rng = case.rng
    kind = rng.choice(("single", "multi", "regression"))
    is_pair = case.some(0.4)
    labels = LABELS[: rng.randint(2, 4)]
    for part, count in (("train", rng.randint(8, 30)), ("dev", rng.randint(1, 12))):
        rows = []
        for number in range(count):
            texts = corpora.draw_texts(case, 1 + is_pair, do_lower_case)
            label = _label(rng, kind, labels, number)
            rows.append(dict(zip(("text", "other"), texts, strict=False)) | {"label": label})
        corpora.write_json_lines(case.inputs / f"{part}.jsonl", rows)
    flags = {
        "task_name": "custom",
        "label_type": kind,
        "train_file": "../inputs/train.jsonl",
        "eval_file": "../inputs/dev.jsonl",
        "predict_file": "../inputs/dev.jsonl",
        "max_seq_length": length,
        "predict_batch_size": rng.randint(1, 9),
        "bucket_by_length": case.some(0.7),
    }
    if flags["bucket_by_length"]:
        flags["batch_by_tokens"] = case.some(0.3)
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


def _label(rng, kind, labels, number):
    if kind == "regression":
        return round(rng.uniform(-3, 3), 3)
    if kind == "multi":
        return [label for label in labels if rng.random() < 0.4] or [labels[0]]
    return labels[number % len(labels)]


def check(case, folder, flags, results):
    """Holds the predictions to the file that they are of, and to the results if these are given.

    Args:
      case: the `Case`.
      folder: of the run.
      flags: of the run.
      results: dict of what an evaluation of the same file measured, or None.
    """
    wanted = corpora.read_json_lines(case.inputs / "dev.jsonl")
    found = corpora.read_json_lines(folder / "predictions.jsonl")
    texts = [[_flat(row[n]) for n in ("text", "other") if n in row] for row in wanted]
    told = [[_flat(row[n]) for n in ("text", "text_pair") if n in row] for row in found]
    if not case.law("predictions are in the input's order", told == texts, f"{told}, not {texts}"):
        return
    for row in found:
        _check_row(case, row, flags)
    if results:
        _check_results(case, found, wanted, flags["label_type"], results)


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
