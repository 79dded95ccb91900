"""Exports: in a process without this code, they answer the same as the programs."""

import json
import subprocess
import sys

import numpy as np
from conftest import REPOSITORY

from soak_cases import (
    choices,
    classification,
    comprehension,
    corpora,
    finetuning,
    pretraining,
    tagging,
    writing,
)
from soak_cases.case import TIME_LIMIT
from soak_cases.data import as_flags

PROGRAM = "tools/export_saved_model.py"
CLEAN_PROCESS = REPOSITORY / "tests" / "export" / "clean_process.py"
NEAR = 1e-4


def run(case):
    """Trains, exports, and compares both on random texts."""
    kind = case.rng.choice((classification, tagging, comprehension, choices, writing, pretraining))
    if kind is pretraining:
        check_pretrained(case)
        return
    fixed = {"predictions_format": "jsonl"} if kind in (classification, tagging, choices) else {}
    if kind is writing:  # the seeds of samples differ there
        fixed = {"decoding": "beam", "beam_size": 3, "num_return_sequences": 2}
    flags = finetuning.train(case, kind, "float32", **fixed)
    flags |= {"do_train": False, "do_eval": False}
    compare = {
        classification: compare_classes,
        tagging: compare_entities,
        comprehension: compare_answers,
        choices: compare_choices,
        writing: compare_texts,
    }
    compare[kind](case, flags)


def export(case, *flags):
    """Exports the run in the folder `whole`."""
    arguments = ("--model_folder=../whole/run", "--output_dir=export", *flags)
    case.works(PROGRAM, *arguments, where="exported")


def ask(case, **inputs):
    """Returns what the export answers in a fresh process, dict of name to array."""
    question = json.dumps([str(case.folder / "exported" / "export"), "serving_default", inputs])
    result = subprocess.run(
        [sys.executable, "-I", str(CLEAN_PROCESS)],
        input=question + "\n",
        capture_output=True,
        text=True,
        timeout=TIME_LIMIT,
    )
    case.require("an export answers", result.returncode == 0, result.stderr[-500:])
    return {name: np.array(values) for name, values in json.loads(result.stdout).items()}


def predict(case, program, flags, name):
    """Predicts a file of the inputs with the run in the folder `whole`; returns its folder."""
    arguments = {**flags, "predict_file": f"../inputs/{name}"}
    case.works(program, *as_flags(arguments), where="whole")
    return case.folder / "whole" / "run"


def near(one, other):
    return np.allclose(np.array(one, float), np.array(other, float), rtol=NEAR, atol=NEAR)


def compare_classes(case, flags):
    is_pair = "text_pair_column" in flags
    texts = corpora.draw_texts(case, 6, flags["do_lower_case"])
    others = corpora.draw_texts(case, 6, flags["do_lower_case"])
    rows = [
        {"text": text, **({"other": other} if is_pair else {})}
        for text, other in zip(texts, others, strict=True)
    ]
    corpora.write_json_lines(case.inputs / "texts.jsonl", rows)
    folder = predict(case, classification.PROGRAM, flags, "texts.jsonl")
    found = corpora.read_json_lines(folder / "predictions.jsonl")
    export(case)
    answered = ask(case, text=texts, **({"text_pair": others} if is_pair else {}))
    if flags["label_type"] == "regression":
        ours, theirs = [row["prediction"] for row in found], answered["value"]
    else:
        ours = [list(row["probabilities"].values()) for row in found]
        theirs = answered["probabilities"]
    told = f"{texts}: {ours} and {theirs}"
    case.law("an export answers as the program does", near(ours, theirs), told)


def compare_entities(case, flags):
    texts = corpora.draw_texts(case, 6, flags["do_lower_case"], longest=150)
    corpora.write_json_lines(case.inputs / "texts.jsonl", [{"text": text} for text in texts])
    folder = predict(case, tagging.PROGRAM, flags, "texts.jsonl")
    found = corpora.read_json_lines(folder / "predictions.jsonl")
    export(case)
    answered = ask(case, text=texts)
    for row, program in enumerate(found):
        count = int(answered["num_entities"][row])
        names = ("start", "end", "label")
        theirs = [tuple(answered[name][row][i] for name in names) for i in range(count)]
        ours = [tuple(entity[name] for name in names) for entity in program["entities"]]
        same = [(int(a), int(b), str(c)) for a, b, c in theirs] == ours
        told = f"{program['text']!r}: {ours} and {theirs}"
        if case.law("an export answers as the program does", same, told) and ours:
            shares = [entity["probability"] for entity in program["entities"]]
            close = near(shares, answered["probability"][row][:count])
            case.law("an export has the program's numbers", close, told)


def compare_choices(case, flags):
    folder = predict(case, choices.PROGRAM, flags, "dev.jsonl")
    lines = corpora.read_json_lines(folder / "predictions.jsonl")
    rows = corpora.read_json_lines(case.inputs / "dev.jsonl")
    export(case)
    width = max(len(row["choices"]) for row in rows)
    given = {"context": [row["context"] for row in rows]}
    given["choices"] = [[*r["choices"], *[""] * (width - len(r["choices"]))] for r in rows]
    if flags["question_column"]:
        given["question"] = [row["question"] for row in rows]
    answered = ask(case, **given)
    for row, line in enumerate(lines):
        shares, theirs = line["probabilities"], answered["probabilities"][row]
        told = f"{rows[row]}: {shares} and {theirs}"
        case.law("an export has the program's numbers", near(shares, theirs[: len(shares)]), told)
        best = sorted(shares)[-2:]
        if best[1] - best[0] > NEAR:
            same = answered["index"][row] == line["prediction"]
            case.law("an export answers as the program does", same, told)


def compare_answers(case, flags):
    name = "dev.json"
    folder = predict(case, comprehension.PROGRAM, flags, name)
    data = json.loads((case.inputs / name).read_text(encoding="utf-8"))["data"]
    asked = [(p["context"], e["question"]) for a in data for p in a["paragraphs"] for e in p["qas"]]
    lines = corpora.read_json_lines(folder / "nbest_predictions.jsonl")
    export(case)
    contexts, questions = zip(*asked, strict=True)
    answered = ask(case, question=list(questions), passage=list(contexts))
    for row, line in enumerate(lines):
        best = next(c for c in line["nbest"] if c["text"] == line["prediction"])
        score = best["start_logit"] + best["end_logit"]
        told = f"{questions[row]!r}: {best} and { {n: v[row] for n, v in answered.items()} }"
        # If two are equally good, either may be the best.
        close = near(score, answered["score"][row])
        case.law("an export has the program's numbers", close, told)
        rivals = [c for c in line["nbest"] if c is not best]
        margin = min((abs(score - c["start_logit"] - c["end_logit"]) for c in rivals), default=1)
        if margin > NEAR:
            same = answered["answer"][row] == best["text"]
            case.law("an export answers as the program does", same, told)


def compare_texts(case, flags):
    texts = corpora.draw_texts(case, 5, flags["do_lower_case"])
    corpora.write_json_lines(case.inputs / "texts.jsonl", [{"src": text} for text in texts])
    folder = predict(case, writing.PROGRAM, flags, "texts.jsonl")
    found = corpora.read_json_lines(folder / "predictions.jsonl")
    export(case)
    answered = ask(case, text=texts)
    for row, line in enumerate(found):
        # The texts may differ, because words are looked up in the source.
        told = f"{texts[row]!r}: {line} and {answered['scores'][row]} {answered['texts'][row]}"
        scores = [hypothesis["score"] for hypothesis in line.get("hypotheses", [line])]
        close = near(scores, answered["scores"][row][: len(scores)])
        case.law("an export has the program's numbers", close, told)


def check_pretrained(case):
    """Compares the vectors of a pretrained model, or its tokens for blanks."""
    flags = pretraining.draw_run(case, precision="float32", ema_decay=0.0, do_eval=False)
    case.works(pretraining.PROGRAM, *as_flags(flags), where="whole")
    model = (
        "--bert_config_file=run/bert_config.json",
        "--vocab_file=run/vocab.txt",
        f"--init_checkpoint=run/model.ckpt-{flags['num_train_steps']}",
        f"--do_lower_case={flags['do_lower_case']}",
    )
    if case.some(0.5):
        model = ("--model_folder=run",)
    texts = corpora.draw_texts(case, 6, flags["do_lower_case"], longest=40)
    texts = [" ".join(text.replace("\0", "").split()) for text in texts]
    if case.some(0.5):
        compare_vectors(case, flags, model, texts)
    else:
        compare_blanks(case, flags, model, texts)


def compare_vectors(case, flags, model, texts):
    (case.inputs / "texts.txt").write_text("".join(f"{t}\n" for t in texts), encoding="utf-8")
    pooling = case.rng.choice(("mean", "max", "cls", "pooler"))
    case.works(
        "tools/extract_features.py",
        *model,
        "--input_file=../inputs/texts.txt",
        "--output_file=vectors.npy",
        f"--pooling={pooling}",
        f"--max_seq_length={flags['max_seq_length']}",
        where="whole",
    )
    export(case, "--task=features")
    ours, theirs = np.load(case.folder / "whole" / "vectors.npy"), ask(case, text=texts)[pooling]
    told = f"{pooling} of {texts}: {np.abs(ours - theirs).max()} apart"
    case.law("an export has the program's numbers", near(ours, theirs), told)


def compare_blanks(case, flags, model, texts):
    most = flags["max_seq_length"] - 3  # with [CLS], [SEP] and the blank
    texts = [t for t in texts if len(corpora.ids_of(t, flags["do_lower_case"])) <= most]
    texts = [t[: len(t) // 2] + "[MASK]" + t[len(t) // 2 :] for t in [*texts, "好"]]
    (case.inputs / "texts.txt").write_text("".join(f"{t}\n" for t in texts), encoding="utf-8")
    shown = case.works(
        "tools/fill_mask.py", *model, "--input_file=../inputs/texts.txt", "--top_k=5", where="whole"
    )
    lines = [line for line in shown.stdout.split("\n") if line.endswith("%")]
    ours = np.array([float(line.split()[-1].rstrip("%")) / 100 for line in lines]).reshape(-1, 5)
    export(case)
    theirs = ask(case, text=texts)["probabilities"][:, 0, :5]
    close = ours.shape == theirs.shape and near(ours, theirs)
    case.law("an export has the program's numbers", close, f"{texts}: {ours} and {theirs}")
