"""The whole reading comprehension task: a toy task that is learnt, and mistakes."""

import dataclasses
import json
import random

import numpy as np
import pytest
from commands import QUICK_CONFIG
from helpers import assert_is_a_model

from nezha_tf.checkpoints.name_table import tf1_names
from nezha_tf.checkpoints.tf1 import write_tensors
from nezha_tf.modeling.finetuning import NezhaForQuestionAnswering
from nezha_tf.tasks.reading_comprehension.settings import ReadingComprehensionSettings
from nezha_tf.tasks.reading_comprehension.task import ReadingComprehension
from nezha_tf.training import start
from nezha_tf.training.run import run
from nezha_tf.util.errors import UserError

FIRSTS, LASTS, FILLERS = "甲乙丙丁", "子丑寅卯", "天地玄黄宇宙洪荒"
CONFIG = {
    **QUICK_CONFIG,
    "vocab_size": 21,
    "hidden_size": 32,
    "intermediate_size": 64,
    # With 0.02, such a small model needs thousands of steps to learn where to look.
    "initializer_range": 0.2,
}


def paragraph(rng, number):
    """Returns a passage with three of the pairs; the text inside a pair is the answer."""
    pairs = rng.sample(list(zip(FIRSTS, LASTS, strict=True)), 4)
    fillers = [rng.choices(FILLERS, k=rng.randint(0, 3)) for _ in range(6)]
    words = ["".join((a, *fillers.pop()[:2], b)) for a, b in pairs[:3]]
    parts = [part for word in words for part in (word, "".join(fillers.pop()))]
    context = (" " if number % 2 else "").join(parts)
    questions = []
    for rank in (0, 1, 3) if number % 3 == 0 else (0, 1):
        answers = [{"text": word, "answer_start": context.find(word)} for word in words[rank:][:1]]
        entry = {"id": f"{number}-{rank}", "question": "".join(pairs[rank])}
        questions.append({**entry, "answers": answers, "is_impossible": not answers})
    return {"context": context, "qas": questions}


def write(path, paragraphs):
    data = {"data": [{"paragraphs": [paragraph]} for paragraph in paragraphs]}
    path.write_text(json.dumps(data, ensure_ascii=False), encoding="utf-8")


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pairs")
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    (folder / "vocab.txt").write_text("\n".join([*special, *FIRSTS, *LASTS, *FILLERS]))
    (folder / "config.json").write_text(json.dumps(CONFIG))
    rng = random.Random(4)
    paragraphs = [paragraph(rng, number) for number in range(150)]
    write(folder / "train.json", paragraphs)
    write(folder / "dev.json", rng.sample(paragraphs, 60))
    return folder


@pytest.fixture
def settings(data, tmp_path):
    paths = {"vocab_file": "vocab.txt", "bert_config_file": "config.json"}
    paths |= {"train_file": "train.json", "eval_file": "dev.json", "predict_file": "dev.json"}
    return ReadingComprehensionSettings(
        **{flag: str(data / name) for flag, name in paths.items()},
        output_dir=str(tmp_path),
        version_2_with_negative=True,
        do_eval=True,
        do_predict=True,
        jit_compile=False,
    )


# Passages in several windows.
SHORT = {"max_query_length": 2, "max_seq_length": 16, "doc_stride": 6}


def test_a_checkpoint_without_a_pooler_is_evaluated(settings, tmp_path, capsys):
    """Hugging Face's models of this task have no pooler; the head must be there."""
    path = str(tmp_path / "published" / "model.ckpt")
    changes = {"do_predict": False, "init_checkpoint": path, "max_eval_steps": 1, **SHORT}
    settings = dataclasses.replace(settings, **changes)
    model = ReadingComprehension(settings).make_model("float32")
    weights = {name: v.value for name, v in tf1_names(model).items() if "/pooler/" not in name}
    write_tensors(path, weights)
    run(settings, ReadingComprehension)
    output = capsys.readouterr().out
    assert "missing there, so random: bert/pooler/dense/kernel, bert/pooler/dense/bias" in output
    assert 0 <= json.loads((tmp_path / "eval_results.json").read_text())["f1"] < 50

    weights.pop("cls/squad/output_weights")
    write_tensors(path, weights)
    with pytest.raises(UserError, match="lacks cls/squad/output_weights"):
        start.load(model, path, ("bert/pooler/",), settings)


def test_answers_are_learnt(settings, data, tmp_path, capsys):
    """To the characters of the passage."""
    changes = {"do_train": True, "learning_rate": 5e-3, "num_train_epochs": 5.0}
    changes |= {"train_batch_size": 16, "save_checkpoints_steps": 100}
    changes |= {"max_answer_length": 4, "n_best_size": 3, **SHORT}
    run(dataclasses.replace(settings, **changes), ReadingComprehension)
    results = json.loads((tmp_path / "eval_results.json").read_text())
    assert results["em"] > 95 and results["f1"] >= results["em"], results
    assert results["no_answer_accuracy"] > 80 and results["has_answer_em"] > 95
    assert f"{tmp_path}/eval_predictions.json" in capsys.readouterr().out

    paragraphs = [a["paragraphs"][0] for a in json.loads((data / "dev.json").read_text())["data"]]
    questions = [(entry, p["context"]) for p in paragraphs for entry in p["qas"]]
    texts = json.loads((tmp_path / "predictions.json").read_text())
    assert texts == json.loads((tmp_path / "eval_predictions.json").read_text())
    assert list(texts) == [entry["id"] for entry, _ in questions]
    lines = (tmp_path / "nbest_predictions.jsonl").read_text().splitlines()
    right = 0
    for line, (entry, context) in zip(map(json.loads, lines), questions, strict=True):
        assert line["id"] == entry["id"] and line["prediction"] == texts[entry["id"]]
        right += line["prediction"] == (entry["answers"][0]["text"] if entry["answers"] else "")
        assert len(line["nbest"]) <= 4 and "" in [c["text"] for c in line["nbest"]]
        for candidate in ({**line, "text": line["prediction"]}, *line["nbest"]):
            if candidate["start"] is not None:
                assert context[candidate["start"] : candidate["end"]] == candidate["text"]
        assert (line["null_score_diff"] > 0) == (line["prediction"] == "")
    assert results["em"] == pytest.approx(100 * right / len(questions))
    written = {"task": "reading_comprehension", "version_2_with_negative": True, "n_best_size": 3}
    step, vocab_file = results["global_step"], data / "vocab.txt"
    assert_is_a_model(tmp_path, NezhaForQuestionAnswering, step, vocab_file, **written)


def outputs_of(windows):
    """Returns logits for no answer in each window, except the second token of the last ones."""
    logits = [np.array([1, 0, 0, 2, *[0] * (len(ids) - 4)]) for ids in windows.arrays["input_ids"]]
    return {"start_logits": logits, "end_logits": logits}


def test_tables_of_candidates_and_parts_of_an_evaluation(settings, tmp_path):
    changes = {"predictions_format": "tsv", "n_best_size": 2, **SHORT}
    task = ReadingComprehension(dataclasses.replace(settings, **changes))
    outputs = outputs_of(task.examples["predict"])
    task.write_predictions(outputs)
    assert set(task.measure("predict", outputs)) > {"f1", "em", "average", "no_answer_accuracy"}
    header, *rows = (tmp_path / "nbest_predictions.tsv").read_text().splitlines()
    names = header.split("\t")
    assert names[:6] == ["id", "rank", "text", "start", "end", "probability"]
    examples = task.examples["predict"].examples
    ids = [example.question.id for example in examples]
    rows = [dict(zip(names, row.split("\t"), strict=True)) for row in rows]
    assert [row["id"] for row in rows if row["rank"] == "1"] == ids
    contexts = {example.question.id: example.passage.text for example in examples}
    for row in rows:
        if row["text"]:
            text = contexts[row["id"]][int(row["start"]) : int(row["end"])]
            assert " ".join(text.split()) == row["text"]
    # As with --max_eval_steps: the questions of the first windows.
    few = {name: values[:7] for name, values in outputs.items()}
    task.measure("eval", few)
    (line,) = task.report(few)
    assert line.endswith("eval_predictions.json")
    texts = json.loads((tmp_path / "eval_predictions.json").read_text())
    assert 0 < len(texts) <= 7 and list(texts) == ids[: len(texts)]


def test_mistakes_are_one_line(settings, tmp_path):
    good = paragraph(random.Random(1), 1)
    answer = {"text": "nowhere", "answer_start": 0}
    bad = {"context": "天地", "qas": [{"id": "Q", "question": "甲", "answers": [answer]}]}
    write(tmp_path / "bad.json", [bad, good])
    bad_file = str(tmp_path / "bad.json")
    (tmp_path / "one.json").write_text(json.dumps({**CONFIG, "type_vocab_size": 1}))
    for changes, message in (
        ({"eval_file": None}, "--eval_file is needed"),
        ({"predict_file": "none.json"}, "--predict_file: no file matches"),
        ({"eval_file": bad_file}, "bad.json, question Q: the answer 'nowhere' is not in its"),
        ({"version_2_with_negative": False}, "only run_mrc --version_2_with_negative"),
        ({"max_seq_length": 67}, "--max_seq_length=67 leaves no room for a passage"),
        ({"bert_config_file": str(tmp_path / "one.json")}, "questions need type_vocab_size 2 in"),
    ):
        with pytest.raises(UserError) as error:
            ReadingComprehension(dataclasses.replace(settings, **changes))
        assert message in str(error.value) and len(str(error.value).splitlines()) == 1
    task = ReadingComprehension(
        dataclasses.replace(settings, eval_file=bad_file, skip_bad_rows=True)
    )
    assert len(task.examples["eval"].examples) == 2
    assert "; bad rows skipped: 1 (the first: " in task.notes[-2]
    # It is answered nevertheless, and nothing is measured with an answer that is in no passage.
    task = ReadingComprehension(dataclasses.replace(settings, predict_file=bad_file))
    assert "answers that are not in their passages: 1" in task.notes[-1]
    assert task.measure("predict", outputs_of(task.examples["predict"])) == {}


def test_real_data_are_read(settings, shared_data):
    path = str(shared_data / "cmrc2018" / "dev.json")
    task = ReadingComprehension(
        dataclasses.replace(settings, eval_file=path, version_2_with_negative=False)
    )
    examples = task.examples["eval"].examples
    assert len(examples) == 533
    assert "533 questions on 128 passages" in task.notes[0]
    assert "answers that are not in their passages: 8" in task.notes[0]
    # Read from the tokens of the target, the answers get the highest possible scores.
    for example in examples:
        answer = example.question.answers[0]
        end = answer.start + len(answer.text)
        tokens = example.passage.tokens_of(answer.start, end)
        start, end = example.passage.characters_of(*tokens)
        assert answer.text.strip() in example.question.context[start:end]


def test_numbers_stay_numbers_and_answers_are_searched(settings, tmp_path):
    rows = [
        {"id": n, "context": f"{FIRSTS}天{LASTS}天", "question": "甲", "answers": {"text": [word]}}
        for n, word in ((7, "天"), (8, "子丑"))
    ]
    (tmp_path / "rows.jsonl").write_text("\n\n".join(map(json.dumps, rows)))
    changes = {"do_eval": False, "predict_file": str(tmp_path / "rows.jsonl")}
    task = ReadingComprehension(dataclasses.replace(settings, **changes))
    (note,) = [note for note in task.notes if "rows.jsonl" in note]
    assert "; answers without a place, taken at the first in their passages: 2" in note
    # [CLS] question [SEP] take three places; the passage has four characters before the answer.
    assert task.examples["predict"].arrays["start_positions"].tolist() == [7, 8]
    task.write_predictions(outputs_of(task.examples["predict"]))
    lines = (tmp_path / "nbest_predictions.jsonl").read_text().splitlines()
    assert [json.loads(line)["id"] for line in lines] == [7, 8]
    assert list(json.loads((tmp_path / "predictions.json").read_text())) == ["7", "8"]
