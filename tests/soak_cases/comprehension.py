"""run_mrc.py on passages of the sample; question and answer are parts of the text."""

import json

from soak_cases import corpora

PROGRAM = "run_mrc.py"


def draw(case, length, do_lower_case):
    """Draws files and flags of the task; returns a dict of flag to value."""
    rng = case.rng
    has_impossible = case.some(0.4)
    for part, count in (("train", rng.randint(2, 6)), ("dev", rng.randint(1, 4))):
        paragraphs = [
            _paragraph(case, f"{part}{n}", has_impossible, do_lower_case) for n in range(count)
        ]
        data = {"data": [{"paragraphs": paragraphs}]}
        path = case.inputs / f"{part}.json"
        path.write_text(json.dumps(data, ensure_ascii=False), encoding="utf-8")
    most_of_query = rng.randint(1, length // 2)
    flags = {
        "train_file": "../inputs/train.json",
        "eval_file": "../inputs/dev.json",
        "predict_file": "../inputs/dev.json",
        "max_seq_length": length,
        "max_query_length": most_of_query,
        "doc_stride": rng.randint(1, length - most_of_query - 3),
        "max_answer_length": rng.randint(1, 30),
        "n_best_size": rng.randint(1, 20),
        "version_2_with_negative": has_impossible,
        "metric": rng.choice(("cmrc", "squad")),
        "predict_batch_size": rng.randint(1, 9),
        "bucket_by_length": case.some(0.7),
        "label_smoothing": rng.choice((0.0, 0.1)),
        "r_drop_alpha": rng.choice((0.0, 0.0, 1.0)),
    }
    if has_impossible:
        flags["null_score_diff_threshold"] = rng.choice((0.0, -5.0, 5.0))
    return flags


def _paragraph(case, name, has_impossible, do_lower_case):
    parts = corpora.draw_texts(case, case.rng.randint(1, 5), do_lower_case)
    context, questions = case.rng.choice(("", " ", "\n")).join(parts), []
    for number in range(case.rng.randint(1, 3)):
        [question] = corpora.draw_texts(case, 1, do_lower_case)
        entry = {"id": f"{name}-{number}", "question": question, "answers": []}
        if has_impossible:
            entry["is_impossible"] = case.some(0.4)
        if not entry.get("is_impossible"):
            answers = [_answer(case, context, do_lower_case) for _ in range(case.rng.randint(1, 2))]
            entry["answers"] = answers
        questions.append(entry)
    return {"context": context, "qas": questions}


def _answer(case, context, do_lower_case):
    while True:
        start = case.rng.randrange(len(context))
        text = context[start : start + case.rng.randint(1, 12)].strip()
        if corpora.ids_of(text, do_lower_case):
            return {"text": text, "answer_start": context.index(text)}


def check(case, folder, flags, results):
    """See `classification.check`."""
    data = json.loads((case.inputs / "dev.json").read_text(encoding="utf-8"))["data"]
    asked = [(p["context"], entry) for a in data for p in a["paragraphs"] for entry in p["qas"]]
    texts = json.loads((folder / "predictions.json").read_text(encoding="utf-8"))
    lines = corpora.read_json_lines(folder / "nbest_predictions.jsonl")
    ids = [entry["id"] for _, entry in asked]
    in_order = list(texts) == ids and [line["id"] for line in lines] == ids
    if not case.law("predictions are in the input's order", in_order, f"{list(texts)}, not {ids}"):
        return
    for line, (context, _) in zip(lines, asked, strict=True):
        same = line["prediction"] == texts[line["id"]]
        case.law("both files have the same answers", same, line)
        _check_line(case, line, context, flags)
    if not results:
        return
    evaluated = json.loads((folder / "eval_predictions.json").read_text(encoding="utf-8"))
    case.law("evaluation and prediction answer alike", evaluated == texts, f"{evaluated}, {texts}")
    right = sum(_is_right(texts[entry["id"]], entry) for _, entry in asked)
    # The metrics ignore case and punctuation, so they may count more as right.
    least = 100 * right / len(asked) - 1e-6
    case.law("results are those of the predictions", least <= results["em"] <= 100, results)
    case.law("F1 is a share", 0 <= results["f1"] <= 100, results)


def _check_line(case, line, context, flags):
    found = line["nbest"]
    most = flags["n_best_size"] + 2 * flags["version_2_with_negative"]
    case.law("there are --n_best_size answers at most", 0 < len(found) <= most, line)
    total = sum(candidate["probability"] for candidate in found)
    case.law("probabilities sum to 1", abs(total - 1) < 1e-4, line)
    texts = [candidate["text"] for candidate in found]
    case.law("answers differ", len(set(texts)) == len(texts), line)
    case.law("the answer is one of the best", line["prediction"] in texts, line)
    for candidate in (line, *found):
        text = candidate.get("text", candidate.get("prediction"))
        if candidate["start"] is None:
            is_none = text == "" and flags["version_2_with_negative"]
            case.law("no answer only where there may be none", is_none, line)
            continue
        stretch = context[candidate["start"] : candidate["end"]]
        case.law("an answer is its stretch of the passage", text == stretch, line)
        case.law("probabilities are from 0 to 1", 0 <= candidate["probability"] <= 1, line)


def _is_right(text, entry):
    return text in [answer["text"] for answer in entry["answers"]] if entry["answers"] else not text
