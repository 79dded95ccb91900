"""run_seq2seq.py on pairs of texts of the sample, with each method of search."""

import math
import re

from soak_cases import corpora

PROGRAM = "run_seq2seq.py"
CHINESE = re.compile("[\u4e00-\u9fff]")


def draw(case, length, do_lower_case):
    """Draws files and flags of the task; returns a dict of flag to value."""
    rng = case.rng
    for part, count in (("train", rng.randint(4, 20)), ("dev", rng.randint(1, 8))):
        rows = []
        for _ in range(count):
            source, target = corpora.draw_texts(case, 2, do_lower_case)
            rows.append({"src": source, "tgt": target})
        corpora.write_json_lines(case.inputs / f"{part}.jsonl", rows)
    decoding = rng.choice(("beam", "greedy", "sample"))
    flags = {
        "train_file": "../inputs/train.jsonl",
        "eval_file": "../inputs/dev.jsonl",
        "predict_file": "../inputs/dev.jsonl",
        "max_source_length": length,
        "max_target_length": rng.randint(4, 16),
        "truncate_source": rng.choice(("tail", "head")),
        "target_prediction": rng.choice(("masked", "shift")),
        "label_smoothing": rng.choice((0.0, 0.1)),
        "predict_batch_size": rng.randint(1, 5),
        "decoding": decoding,
        "beam_size": rng.randint(1, 4),
        "length_penalty": rng.choice((0.7, 0.0, 1.5)),
        "min_target_length": rng.randint(1, 4),
        "repetition_penalty": rng.choice((1.0, 1.0, 1.3)),
        "no_repeat_ngram_size": rng.choice((0, 0, 1, 2)),
    }
    most = {"beam": flags["beam_size"], "greedy": 1, "sample": 3}[decoding]
    flags["num_return_sequences"] = rng.randint(1, most)
    if decoding == "sample":
        flags |= {"temperature": rng.choice((1.0, 0.3)), "top_k": rng.choice((0, 5))}
        flags["top_p"] = rng.choice((1.0, 0.8))
    return flags


def check(case, folder, flags, results):
    """See `classification.check`."""
    wanted = corpora.read_json_lines(case.inputs / "dev.jsonl")
    found = corpora.read_json_lines(folder / "predictions.jsonl")
    told = [{name: row[name] for name in ("src", "tgt")} for row in found]
    if not case.law(
        "predictions are in the input's order", told == wanted, f"{told}, not {wanted}"
    ):
        return
    for row in found:
        alone = {"text": row["prediction"], "score": row["score"], "log_prob": row["score"]}
        _check_hypotheses(case, row.get("hypotheses", [alone]), flags)
    if results:
        right = [_bare(row["prediction"]) == _bare(row["tgt"]) for row in found]
        near = abs(sum(right) / len(right) - results["exact_match"]) < 1e-6
        case.law("results are those of the predictions", near, results)


def _check_hypotheses(case, hypotheses, flags):
    most = flags["num_return_sequences"]
    case.law("there are as many texts as wanted", 0 < len(hypotheses) <= most, hypotheses)
    scores = [hypothesis["score"] for hypothesis in hypotheses]
    case.law("texts are in the order of their scores", scores == sorted(scores)[::-1], hypotheses)
    shares = [v for h in hypotheses for v in (h["score"], h["log_prob"])]
    finite = all(math.isfinite(value) and value <= 1e-6 for value in shares)
    case.law("scores are of probabilities", finite, hypotheses)
    # In other scripts a token may have several characters, and a word other tokens than expected.
    lengths = [len(CHINESE.findall(hypothesis["text"])) for hypothesis in hypotheses]
    short = max(lengths) <= flags["max_target_length"]
    case.law("texts are no longer than --max_target_length", short, hypotheses)


def _bare(text):
    return "".join(text.lower().split())
