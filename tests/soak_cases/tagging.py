"""run_ner.py on sentences of the sample, with entities anywhere."""

from soak_cases import corpora

PROGRAM = "run_ner.py"
LABELS = ("PER", "LOC", "机构")
SCHEMES = {"BIO": "BIII", "BIOES": "BIES", "BMES": "BMES"}  # begins, continues, ends, single


def draw(case, length, do_lower_case):
    """Draws files and flags of the task; returns a dict of flag to value."""
    rng = case.rng
    form, scheme = rng.choice(("jsonl", "txt")), rng.choice(list(SCHEMES))
    labels = LABELS[: rng.randint(1, 3)]
    for part, count in (("train", rng.randint(4, 20)), ("dev", rng.randint(1, 10))):
        rows = [_sentence(case, labels, do_lower_case) for _ in range(count)]
        if part == "train":  # this part determines the labels
            text = "他在北京的公司"
            rows.append(
                {"text": text, "entities": [_entity(n, n + 1, L) for n, L in enumerate(labels)]}
            )
        if form == "jsonl" or part == "dev":
            corpora.write_json_lines(case.inputs / f"{part}.jsonl", rows)
        else:
            text = "".join(_tagged(row, scheme) for row in rows)
            (case.inputs / f"{part}.txt").write_text(text, encoding="utf-8", newline="")
    flags = {
        "train_file": f"../inputs/train.{form}",
        "eval_file": "../inputs/dev.jsonl",
        "predict_file": "../inputs/dev.jsonl",
        "max_seq_length": length,
        "scheme": rng.choice(("auto", scheme)),
        "crf": case.some(0.5),
        "predict_batch_size": rng.randint(1, 9),
        "bucket_by_length": case.some(0.7),
    }
    if case.some(0.5):
        flags["window_stride"] = rng.randint(1, length - 2)
    if not flags["crf"]:
        flags["label_smoothing"] = rng.choice((0.0, 0.1))
        flags["r_drop_alpha"] = rng.choice((0.0, 0.0, 1.0))
    return flags


def _sentence(case, labels, do_lower_case):
    # A file with one character per line cannot contain line ends.
    [text] = corpora.draw_texts(case, 1, do_lower_case, longest=120)
    text = " ".join(text.split())
    entities, end = [], 0
    while end < len(text) and len(entities) < 4:
        start = end + case.rng.randint(0, 10)
        end = start + case.rng.randint(1, 5)
        if end <= len(text) and text[start:end].strip() == text[start:end]:
            entities.append(_entity(start, end, case.rng.choice(labels)))
    return {"text": text, "entities": entities}


def _entity(start, end, label):
    return {"start": start, "end": end, "label": label}


def _tagged(row, scheme):
    tags = ["O"] * len(row["text"])
    begins, inside, ends, alone = SCHEMES[scheme]
    for entity in row["entities"]:
        start, end = entity["start"], entity["end"]
        letters = [begins, *inside * (end - start - 2), ends] if end - start > 1 else alone
        if scheme == "BIO" and end - start == 1:
            letters = begins
        tags[start:end] = [f"{letter}-{entity['label']}" for letter in letters]
    return "".join(f"{char} {tag}\n" for char, tag in zip(row["text"], tags, strict=True)) + "\n"


def check(case, folder, flags, results):
    """See `classification.check`."""
    wanted = corpora.read_json_lines(case.inputs / "dev.jsonl")
    found = corpora.read_json_lines(folder / "predictions.jsonl")
    texts, told = ([row["text"] for row in rows] for rows in (wanted, found))
    if not case.law("predictions are in the input's order", told == texts, f"{told}, not {texts}"):
        return
    for row in found:
        _check_row(case, row)
    if results:
        _check_results(case, found, wanted, results)


def _check_row(case, row):
    end = 0
    for entity in row["entities"]:
        inside = end <= entity["start"] < entity["end"] <= len(row["text"])
        case.law("entities are in the text and apart", inside, row)
        end = entity["end"]
        stretch = row["text"][entity["start"] : end]
        case.law("an entity is its stretch of the text", entity["text"] == stretch, row)
        case.law("labels are those of training", entity["label"] in LABELS, row)
        if "probability" in entity:
            case.law("probabilities are from 0 to 1", 0 <= entity["probability"] <= 1, row)


def _check_results(case, found, wanted, results):
    ours, theirs = (
        {
            (n, e["start"], e["end"], e["label"])
            for n, row in enumerate(rows)
            for e in row["entities"]
        }
        for rows in (found, wanted)
    )
    right = len(ours & theirs)
    measured = {
        "precision": right / max(1, len(ours)),
        "recall": right / max(1, len(theirs)),
        "f1": 2 * right / max(1, len(ours) + len(theirs)),
    }
    near = all(abs(value - results[name]) < 1e-6 for name, value in measured.items())
    case.law("results are those of the predictions", near, f"{measured}: {results}")
