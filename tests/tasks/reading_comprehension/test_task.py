"""The whole reading comprehension task: a toy task that is learnt, and mistakes."""

import dataclasses
import json
import random

import numpy as np
import pytest
from commands import settings_of
from helpers import assert_is_a_model

from nezha_tf.checkpoints.name_table import tf1_names
from nezha_tf.checkpoints.tf1 import write_tensors
from nezha_tf.modeling.finetuning import NezhaForQuestionAnswering
from nezha_tf.tasks.reading_comprehension.settings import ReadingComprehensionSettings
from nezha_tf.tasks.reading_comprehension.task import ReadingComprehension
from nezha_tf.training.run import run as run_task
from nezha_tf.util.errors import UserError

FIRSTS, LASTS, FILLERS = "甲乙丙丁", "子丑寅卯", "天地玄黄宇宙洪荒"
CONFIG = {
    "vocab_size": 21,
    "hidden_size": 32,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "intermediate_size": 64,
    "type_vocab_size": 2,
    "use_relative_position": True,
    "hidden_dropout_prob": 0.0,
    "attention_probs_dropout_prob": 0.0,
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


STANDARD = (
    *("--train_file=train.json", "--eval_file=dev.json", "--predict_file=dev.json"),
    *("--vocab_file=vocab.txt", "--bert_config_file=config.json", "--nojit_compile"),
    *("--max_query_length=2", "--max_seq_length=16", "--doc_stride=6", "--max_answer_length=4"),
    *("--version_2_with_negative", "--num_train_epochs=5"),
    *("--train_batch_size=16", "--save_checkpoints_steps=100", "--n_best_size=3"),
)


def test_a_checkpoint_without_a_pooler_is_evaluated(data, tmp_path, monkeypatch, capsys):
    """Hugging Face's models of this task have no pooler."""
    monkeypatch.chdir(data)
    settings = dataclasses.replace(
        settings_of(ReadingComprehensionSettings, *STANDARD),
        output_dir=str(tmp_path),
        do_eval=True,
        init_checkpoint="published/model.ckpt",
    )
    weights = tf1_names(ReadingComprehension(settings).make_model("float32"))
    assert weights.pop("bert/pooler/dense/kernel") is not None
    assert weights.pop("bert/pooler/dense/bias") is not None
    write_tensors("published/model.ckpt", {name: v.value for name, v in weights.items()})
    run_task(settings, ReadingComprehension)
    said = capsys.readouterr().out
    assert "missing there, so random: bert/pooler/dense/kernel, bert/pooler/dense/bias" in said
    assert 0 <= json.loads((tmp_path / "eval_results.json").read_text())["f1"] < 50

    weights.pop("cls/squad/output_weights")
    write_tensors("published/model.ckpt", {name: v.value for name, v in weights.items()})
    with pytest.raises(UserError, match="lacks cls/squad/output_weights"):
        run_task(settings, ReadingComprehension)


def test_answers_are_learnt(data, tmp_path, monkeypatch, capsys):
    """From the flags to the characters of the passage."""
    monkeypatch.chdir(data)
    modes = ("--do_train", "--do_eval", "--do_predict", f"--output_dir={tmp_path}")
    settings = settings_of(ReadingComprehensionSettings, *modes, *STANDARD)
    run_task(dataclasses.replace(settings, learning_rate=5e-3), ReadingComprehension)
    results = json.loads((tmp_path / "eval_results.json").read_text())
    assert results["em"] > 95 and results["f1"] >= results["em"], results
    assert results["no_answer_accuracy"] > 80 and results["has_answer_em"] > 95
    assert f"{tmp_path}/eval_predictions.json" in capsys.readouterr().out

    questions, contexts = [], []
    for article in json.loads((data / "dev.json").read_text())["data"]:
        for entry in article["paragraphs"][0]["qas"]:
            questions.append(entry)
            contexts.append(article["paragraphs"][0]["context"])
    texts = json.loads((tmp_path / "predictions.json").read_text())
    assert texts == json.loads((tmp_path / "eval_predictions.json").read_text())
    assert list(texts) == [entry["id"] for entry in questions]
    lines = (tmp_path / "nbest_predictions.jsonl").read_text().splitlines()
    right = 0
    for line, entry, context in zip(map(json.loads, lines), questions, contexts, strict=True):
        assert line["id"] == entry["id"] and line["prediction"] == texts[entry["id"]]
        wanted = entry["answers"][0]["text"] if entry["answers"] else ""
        right += line["prediction"] == wanted
        assert len(line["nbest"]) <= 4 and "" in [c["text"] for c in line["nbest"]]
        for candidate in (line, *line["nbest"]):
            if candidate["start"] is not None:
                text = context[candidate["start"] : candidate["end"]]
                assert text == candidate.get("text", candidate.get("prediction"))
        assert sum(c["probability"] for c in line["nbest"]) == pytest.approx(1)
        assert (line["null_score_diff"] > 0) == (line["prediction"] == "")
    assert results["em"] == pytest.approx(100 * right / len(questions))
    settings = {"task": "reading_comprehension", "version_2_with_negative": True, "n_best_size": 3}
    step, vocab_file = results["global_step"], data / "vocab.txt"
    assert_is_a_model(tmp_path, NezhaForQuestionAnswering, step, vocab_file, **settings)


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
    )


def outputs_of(windows):
    """Returns logits for no answer in each window, except the second token of the last ones."""
    logits = [np.array([1, 0, 0, 2, *[0] * (len(ids) - 4)]) for ids in windows.arrays["input_ids"]]
    return {"start_logits": logits, "end_logits": logits}


def test_tables_of_candidates_and_parts_of_an_evaluation(settings, data, tmp_path):
    changes = {"predictions_format": "tsv", "n_best_size": 2}
    changes |= {"max_seq_length": 16, "max_query_length": 2, "doc_stride": 6}
    task = ReadingComprehension(dataclasses.replace(settings, **changes))
    outputs = outputs_of(task.examples["predict"])
    measured = task.write_predictions(outputs)
    assert set(measured) > {"f1", "em", "average", "no_answer_accuracy"}
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
    task.measure(few)
    (line,) = task.report(few)
    assert line.endswith("eval_predictions.json")
    texts = json.loads((tmp_path / "eval_predictions.json").read_text())
    assert 0 < len(texts) <= 7 and list(texts) == ids[: len(texts)]


def test_mistakes_are_one_line(settings, data, tmp_path):
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
        ({"version_2_with_negative": False}, "only run_mrc.py --version_2_with_negative"),
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
    assert task.write_predictions(outputs_of(task.examples["predict"])) == {}


def test_real_data_are_read(settings, shared_data):
    path = str(shared_data / "cmrc2018" / "dev.json")
    task = ReadingComprehension(
        dataclasses.replace(settings, eval_file=path, version_2_with_negative=False)
    )
    examples = task.examples["eval"].examples
    assert len(examples) == 533
    assert "533 questions on 128 passages" in task.notes[1]
    assert "answers that are not in their passages: 8" in task.notes[1]
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
