"""run_sentence_vectors.py on texts of the sample, and on pairs of them with numbers."""

from soak_cases import corpora

PROGRAM = "run_sentence_vectors.py"


def draw(case, length, do_lower_case):
    """Draws files and flags of the task; returns a dict of flag to value."""
    rng = case.rng
    texts = corpora.draw_texts(case, rng.randint(8, 40), do_lower_case)
    if case.some(0.5):
        # White space at the ends is no part of a text, and a break in it would end the line.
        lines = [" ".join(text.replace("\0", "").split()) for text in texts]
        name = "train.txt"
        (case.inputs / name).write_text("\n".join(lines) + "\n", encoding="utf-8")
    else:
        name = "train.jsonl"
        corpora.write_json_lines(case.inputs / name, [{"text": text} for text in texts])
    pairs = [
        dict(zip(("text", "text_pair"), corpora.draw_texts(case, 2, do_lower_case), strict=True))
        | {"label": rng.randint(0, 5)}
        for _ in range(rng.randint(3, 12))
    ]
    corpora.write_json_lines(case.inputs / "dev.jsonl", pairs)
    return {
        "train_file": f"../inputs/{name}",
        "eval_file": "../inputs/dev.jsonl",
        "predict_file": "../inputs/dev.jsonl",
        "max_seq_length": length,
        "predict_batch_size": rng.randint(1, 9),
        "bucket_by_length": case.some(0.7),
        "pooling": rng.choice(("cls", "mean")),
        "temperature": rng.choice((0.05, 1.0)),
        # A text needs others to differ from.
        "train_batch_size": rng.randint(2, 8),
        "gradient_accumulation_steps": 1,
    }


def check(case, folder, flags, results):
    """See `classification.check`."""
    rows = corpora.read_json_lines(case.inputs / "dev.jsonl")
    lines = corpora.read_json_lines(folder / "predictions.jsonl")
    told = [(line["text"], line["text_pair"], line["label"]) for line in lines]
    wanted = [(row["text"].strip(), row["text_pair"].strip(), float(row["label"])) for row in rows]
    case.law("predictions are in the input's order", told == wanted, lines)
    for line in lines:
        case.law("a similarity is a cosine", abs(line["similarity"]) <= 1 + 1e-5, line)
    if results:
        has_both = {"spearman", "pearson"} <= results.keys()
        case.law("both correlations are told", has_both, results)
