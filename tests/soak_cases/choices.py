"""run_multiple_choice.py on questions and blanks made from sentences of the sample."""

import json

from soak_cases import corpora

PROGRAM = "run_multiple_choice.py"
BLANK = "#idiom#"


def draw(case, length, do_lower_case):
    """Draws files and flags of the task; returns a dict of flag to value."""
    rng = case.rng
    has_blanks, by_index = case.some(0.5), case.some(0.5)
    for part, count in (("train", rng.randint(4, 20)), ("dev", rng.randint(1, 9))):
        rows = [_row(case, has_blanks, by_index, do_lower_case) for _ in range(count)]
        text = "".join(json.dumps(row, ensure_ascii=case.some(0.3)) + "\n" for row in rows)
        (case.inputs / f"{part}.jsonl").write_text(text, encoding="utf-8")
    return {
        "task_name": "custom",
        "train_file": "../inputs/train.jsonl",
        "eval_file": "../inputs/dev.jsonl",
        "predict_file": "../inputs/dev.jsonl",
        "question_column": "" if has_blanks else "question",
        "answer_type": "index" if by_index else "text",
        "max_seq_length": length,
        "predict_batch_size": rng.randint(1, 9),
        "bucket_by_length": case.some(0.7),
        "label_smoothing": rng.choice((0.0, 0.1)),
        "r_drop_alpha": rng.choice((0.0, 0.0, 1.0)),
    }


def _row(case, has_blanks, by_index, do_lower_case):
    rng = case.rng
    [context, question, *choices] = (
        text.strip() for text in corpora.draw_texts(case, rng.randint(4, 7), do_lower_case)
    )
    choices = list(dict.fromkeys(choices))
    choices += ["甲", "乙"][: max(0, 2 - len(choices))]
    if has_blanks:
        place = rng.randint(0, len(context))
        context = context[:place] + BLANK + context[place:]
    answer = rng.randrange(len(choices))
    return {
        "context": context,
        "question": question,
        "choices": choices,
        "answer": answer if by_index else choices[answer],
    }


def check(case, folder, flags, results):
    """See `classification.check`."""
    rows = corpora.read_json_lines(case.inputs / "dev.jsonl")
    lines = corpora.read_json_lines(folder / "predictions.jsonl")
    in_order = [line["id"] for line in lines] == [str(line) for line in range(1, len(rows) + 1)]
    if not case.law("predictions are in the input's order", in_order, lines):
        return
    right = 0
    for line, row in zip(lines, rows, strict=True):
        shares, chosen = line["probabilities"], line["prediction"]
        case.law("each choice has a probability", len(shares) == len(row["choices"]), line)
        case.law("probabilities sum to 1", abs(sum(shares) - 1) < 1e-4, line)
        case.law("the prediction is the likeliest", shares[chosen] >= max(shares) - 1e-6, line)
        case.law("the choice is that of the row", line["choice"] == row["choices"][chosen], line)
        right += row["answer"] in (chosen, line["choice"])
    if results:
        share = right / len(rows)
        same = abs(results["accuracy"] - share) < 1e-6
        case.law("results are those of the predictions", same, f"{results}, {share}")
