"""The whole task of multiple choice: toy tasks that are learnt, predictions, and bad input."""

import json
import random

import numpy as np
import pytest
import tensorflow as tf
from commands import QUICK_CONFIG, run
from helpers import assert_is_a_model, rows_of, write_model_files, write_rows

from nezha_tf.checkpoints.folder import open_folder
from nezha_tf.data.in_memory import ArrayReader
from nezha_tf.modeling.finetuning import NezhaForMultipleChoice
from nezha_tf.tasks.finetuning.evaluation import predict
from nezha_tf.tasks.multiple_choice.loss import MultipleChoiceLoss
from nezha_tf.tasks.multiple_choice.settings import MultipleChoiceSettings
from nezha_tf.tasks.multiple_choice.task import MultipleChoiceTask
from nezha_tf.training.run import run as start
from nezha_tf.training.step import perturbation_along
from nezha_tf.util.errors import UserError

CHARACTERS = "甲乙丙丁戊己何"
TOKENS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "[unused1]", *CHARACTERS]
CONFIG = {**QUICK_CONFIG, "vocab_size": len(TOKENS)}
LENGTH = 24


def make_question(draw, count):
    """A question with up to four choices; the right one has 甲 in it."""
    wrong = draw.sample(["乙丙", "乙", "丙", "丁"], count - 1)
    answer = draw.choice(["甲", "乙甲", "甲丙"])
    choices = draw.sample([answer, *wrong], count)
    return "".join(draw.choices("戊己", k=draw.randint(2, 30))), choices, answer


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """A folder with a configuration, and questions as C3 has them."""
    folder = tmp_path_factory.mktemp("choices")
    write_model_files(folder, TOKENS, CONFIG)
    draw = random.Random(0)
    for part, count in (("train", 400), ("dev", 60)):
        for genre in "md":
            texts = []
            for _ in range(count // 2):
                context, choices, answer = make_question(draw, draw.choice([2, 3, 4]))
                entry = {"question": "何", "choice": choices, "answer": answer}
                texts.append([[context], [entry], "1"])
            (folder / f"c3-{genre}-{part}.json").write_text(json.dumps(texts))
    return folder


@pytest.fixture
def settings(data, tmp_path):
    """Returns a function of changes that returns the settings of a short run."""
    common = {
        "task_name": "c3",
        "data_dir": str(data),
        "vocab_file": str(data / "vocab.txt"),
        "bert_config_file": str(data / "config.json"),
        "output_dir": str(tmp_path / "run"),
        "max_seq_length": LENGTH,
        "learning_rate": 1e-2,
        "num_train_epochs": 3.0,
        "train_batch_size": 16,
        "save_checkpoints_steps": 1000,  # once, at the end
        "jit_compile": False,
    }
    return lambda **changes: MultipleChoiceSettings(**{**common, **changes})


@pytest.mark.processes
def test_questions_are_learnt_from_the_command(data, tmp_path):
    flags = (
        *("--task_name=c3", "--data_dir=.", "--vocab_file=vocab.txt", "--num_train_epochs=2"),
        *("--bert_config_file=config.json", f"--max_seq_length={LENGTH}", "--learning_rate=1e-2"),
        *("--train_batch_size=16", "--nojit_compile", "--save_checkpoints_steps=1000"),
        *("--do_train", "--do_eval", "--do_predict", "--predict_file=c3-?-dev.json"),
        f"--output_dir={tmp_path / 'run'}",
    )
    result = run("run_multiple_choice.py", *flags, folder=data)
    assert result.returncode == 0 and result.stderr == "", result.stderr
    assert "60 questions with 2 to 4 choices; too long, so truncated: " in result.stdout
    folder = tmp_path / "run"
    results = json.loads((folder / "eval_results.json").read_text())
    assert results["accuracy"] > 0.8 and results["loss"] < 0.3
    assert_is_a_model(
        folder,
        NezhaForMultipleChoice,
        results["global_step"],
        data / "vocab.txt",
        task="multiple_choice",
        has_blanks=False,
    )
    found = rows_of(folder / "predictions.jsonl")
    right = [
        entry["answer"]
        for genre in "dm"
        for _, (entry,), _ in json.loads((data / f"c3-{genre}-dev.json").read_text())
    ]
    assert len(found) == 60
    hits = [row["choice"] == answer for row, answer in zip(found, right, strict=True)]
    assert np.mean(hits) == pytest.approx(results["accuracy"])
    for row in found:
        assert sum(row["probabilities"]) == pytest.approx(1, abs=1e-4)
        assert 2 <= len(row["probabilities"]) <= 4
        assert row["probabilities"][row["prediction"]] == max(row["probabilities"])


def test_choices_of_a_batch_are_those_one_by_one(settings, data):
    """Also with 2, 3 and 4 choices in one batch, and with sequences of different lengths."""
    task = MultipleChoiceTask(settings(do_predict=True, predict_file=str(data / "c3-m-dev.json")))
    examples = task.examples["predict"]
    model, objective = task.make_model("float32"), MultipleChoiceLoss()
    reader = ArrayReader(examples.arrays, LENGTH)
    found = predict(model, objective, reader, 8, False)["probabilities"]
    assert {len(question.choices) for question in examples.rows[:9]} == {2, 3, 4}
    for number, question in enumerate(examples.rows[:9]):
        count = len(question.choices)
        scores = []
        for ids, segment_ids in zip(
            examples.arrays["input_ids"][number][:count],
            examples.arrays["segment_ids"][number][:count],
            strict=True,
        ):
            inputs = {"input_ids": ids, "input_mask": np.ones_like(ids), "segment_ids": segment_ids}
            logits = model({name: value[None, None] for name, value in inputs.items()})
            scores.append(float(logits[0, 0]))
        shares = np.exp(scores) / np.exp(scores).sum()
        np.testing.assert_allclose(found[number][:count], shares, atol=1e-6)
        assert not found[number][count:].any()


def test_label_smoothing_spreads_over_the_choices_there_are():
    """The gradient of a smoothed loss pulls no choice that a question does not have."""
    logits = np.array([[1.0, -2.0, -1e4, -1e4], [0.5, 0.1, -0.3, 2.0]], np.float32)
    labels = np.array([1, 3])
    found = np.array(MultipleChoiceLoss(0.2).values(logits, {"label_ids": labels}))
    for row, label, count, loss in zip(logits, labels, (2, 4), found, strict=True):
        log_probs = row[:count] - np.log(np.exp(row[:count]).sum())
        target = np.full(count, 0.2 / count)
        target[label] += 0.8
        assert loss == pytest.approx(-(target * log_probs).sum(), rel=1e-5)


def test_blanks_of_a_passage(settings, tmp_path):
    """Each candidate belongs into one blank; without --different_choices one may stand in two."""
    rows, answers = [], {}
    draw = random.Random(1)
    for number in range(120):
        marks = [f"#idiom{number:04}{i}0#" for i in range(2)]
        right = draw.sample("甲乙", 2)
        answers |= {mark: "丙甲乙".index(char) for mark, char in zip(marks, right, strict=True)}
        # The character in front of a blank decides what belongs there.
        fronts = ["戊丁丁丁" if char == "甲" else "己何何何" for char in right]
        content = [front + mark for front, mark in zip(fronts, marks, strict=True)]
        rows.append({"content": content, "candidates": list("丙甲乙")})
    for part, span in (("train", slice(100)), ("dev", slice(100, 120))):
        write_rows(tmp_path / f"{part}.json", *rows[span])
        (tmp_path / f"{part}_answer.json").write_text(json.dumps(answers))
    changes = {"task_name": "chid", "data_dir": str(tmp_path), "max_seq_length": 16}
    modes = {"do_train": True, "do_eval": True, "do_predict": True}
    start(settings(**changes, **modes, predict_file=str(tmp_path / "dev.json")), MultipleChoiceTask)
    folder = tmp_path / "run"
    assert json.loads((folder / "eval_results.json").read_text())["accuracy"] > 0.9
    task = open_folder(folder).task
    assert task["has_blanks"] is True and task["ascii_punctuation"] is True
    found = rows_of(folder / "predictions.jsonl")
    assert np.mean([answers[row["id"]] == row["prediction"] for row in found]) > 0.9
    for first, second in zip(found[::2], found[1::2], strict=True):
        assert first["prediction"] != second["prediction"]


def test_questions_are_trained_with_r_drop_and_fgm(settings):
    """An example has one length of FGM."""
    changes = {"adversarial_epsilon": 0.5, "r_drop_alpha": 1.0, "num_train_steps": 1}
    start(settings(do_train=True, **changes), MultipleChoiceTask)
    rise = np.random.default_rng(0).normal(size=(3, 2, 5, 4)).astype(np.float32)
    moved = perturbation_along(tf.constant(rise), 0.5).numpy()
    np.testing.assert_allclose(np.sqrt((moved**2).sum((1, 2, 3))), 0.5, rtol=1e-5)


def test_a_blank_that_stands_twice_is_told_or_counted(settings, tmp_path):
    """Predictions of ChID are by mark, so two of one mark could not be told apart."""
    rows = [{"content": ["甲#idiom000001#"], "candidates": ["甲乙", "丙丁"]}] * 2
    rows.append({**rows[0], "content": ["乙#idiom000002#"]})
    flags = {"task_name": "chid", "max_seq_length": 16, "do_predict": True}
    flags["predict_file"] = write_rows(tmp_path / "twice.json", *rows)
    told = (
        r"twice\.json, line 2: the id '#idiom000001#' is used twice, also at .*twice\.json, line 1"
    )
    with pytest.raises(UserError, match=told):
        MultipleChoiceTask(settings(**flags))
    task = MultipleChoiceTask(settings(**flags, skip_bad_rows=True))
    questions = task.examples["predict"].rows
    assert [question.id for question in questions] == ["#idiom000001#", "#idiom000002#"]
    assert "bad rows skipped: 1" in task.notes[-1]


def test_ids_of_several_files_do_not_depend_on_the_rows_before(settings, tmp_path):
    """Where two files have an id in common, the file is a part of it."""
    good, bad = {"question": "何？", "choice": ["甲", "乙"]}, {"question": "何？"}
    for name in ("a.json", "b.json"):
        (tmp_path / name).write_text(json.dumps([[["甲乙"], [good, bad, good], "1"]]))
    flags = {"do_predict": True, "skip_bad_rows": True, "predict_file": str(tmp_path / "?.json")}
    questions = MultipleChoiceTask(settings(**flags)).examples["predict"].rows
    expected = [f"{tmp_path}/{name}.json:{number}" for name in "ab" for number in (0, 2)]
    assert [question.id for question in questions] == expected
    flags["predict_file"] = str(tmp_path / "b.json")
    questions = MultipleChoiceTask(settings(**flags)).examples["predict"].rows
    assert [question.id for question in questions] == ["0", "2"]


def test_mistakes(settings, tmp_path):
    bad = tmp_path / "bad.json"
    bad.write_text(json.dumps([[["甲"], [{"question": "何"}], "1"]]))
    faulty = {"train_file": str(bad)}
    for changes, message in (
        (faulty, r'bad\.json, text 1, question 1: "choice" is not a list'),
        ({**faulty, "skip_bad_rows": True}, r"no question; bad rows skipped: 1 \(the first: "),
        ({"task_name": None}, "--task_name"),
        ({"data_dir": None}, "--data_dir is needed .*c3-m-train.json and c3-d-train.json"),
        ({"data_dir": "/"}, r"--data_dir=/ has no c3-m-train\.json and .* or m-train\.json"),
        ({"task_name": "custom"}, "--train_file"),
        ({"task_name": "custom", "question_column": "context"}, "name another column for each"),
        ({"max_seq_length": 6}, "--max_seq_length=6 leaves no room .* at least 7"),
        (
            {"task_name": "chid"},
            r"has no train\.json or train_few_all\.json or train_0\.json; or pass",
        ),
    ):
        with pytest.raises(UserError, match=message) as error:
            MultipleChoiceTask(settings(do_train=True, **changes))
        assert "\n" not in str(error.value)
