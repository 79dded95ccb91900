"""The whole classification task: toy tasks that are learnt, the folder, and every bad input."""

import csv
import functools
import json
import random
import shutil

import numpy as np
import pytest
from commands import QUICK_CONFIG, run
from helpers import assert_is_a_model, rows_of, tensors, write_model_files, write_rows

from nezha_tf.modeling.finetuning import NezhaForSequenceClassification
from nezha_tf.tasks.classification.settings import ClassificationSettings
from nezha_tf.tasks.classification.task import Classification
from nezha_tf.training import output_folder
from nezha_tf.training.run import run as start
from nezha_tf.util.errors import UserError

CHARACTERS = "甲乙丙丁戊己"
CONFIG = {**QUICK_CONFIG, "vocab_size": 11}
# The label of a text with 甲 and 乙 in it, by --label_type.
LABEL_OF = {
    "single": lambda text: "有" if "甲" in text else "无",
    "multi": lambda text: [name for name, char in (("a", "甲"), ("b", "乙")) if char in text],
    "regression": lambda text: 1.5 if "甲" in text else -0.5,
}


def make_texts(count, seed):
    """Returns texts of 1 to 37 characters, half of them with 甲, half with 乙."""
    draw = random.Random(seed)
    texts = []
    for _ in range(count):
        allowed = "丙丁戊己" + draw.choice(["", "甲"]) + draw.choice(["", "乙"])
        body = "".join(draw.choices("丙丁戊己", k=draw.choice([*range(1, 12), 35])))
        texts.append("".join(draw.sample(allowed[4:] + body, len(allowed[4:] + body))))
    return texts


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """A folder with a configuration and texts in JSON lines, with labels of each type."""
    folder = tmp_path_factory.mktemp("toy")
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    write_model_files(folder, [*special, *CHARACTERS], CONFIG)
    for kind, label_of in LABEL_OF.items():
        for part, count in (("train", 320), ("dev", 70)):
            rows = [{"text": text, "label": label_of(text)} for text in make_texts(count, part)]
            write_rows(folder / f"{kind}_{part}.jsonl", *rows)
    return folder


@pytest.fixture(scope="module")
def settings_for(data):
    """Returns a function: folder, label type, changes -> the settings of a short run."""
    common = {
        "task_name": "custom",
        "vocab_file": str(data / "vocab.txt"),
        "bert_config_file": str(data / "config.json"),
        "max_seq_length": 39,
        "learning_rate": 1e-2,
        "num_train_epochs": 10.0,
        "save_checkpoints_steps": 50,
        "steps_per_loop": 25,
        "jit_compile": False,
    }

    def make(folder, kind="single", **changes):
        paths = {"train_file": "train", "eval_file": "dev", "predict_file": "dev"}
        paths = {flag: str(data / f"{kind}_{part}.jsonl") for flag, part in paths.items()}
        own = {"output_dir": str(folder), "label_type": kind}
        return ClassificationSettings(**{**common, **paths, **own, **changes})

    return make


@pytest.fixture
def settings(settings_for, tmp_path):
    return functools.partial(settings_for, tmp_path / "run")


@pytest.fixture(scope="module")
def several(settings_for, tmp_path_factory):
    """The folder of a run on texts of several classes."""
    folder = tmp_path_factory.mktemp("several") / "run"
    changes = {"num_train_epochs": 20.0, "save_checkpoints_steps": 100, "label_smoothing": 0.05}
    start(settings_for(folder, "multi", do_train=True, do_eval=True, **changes), Classification)
    return folder


@pytest.mark.processes
def test_pairs_are_learnt_from_the_command(data, tmp_path):
    """In pairs from CSV, the second text decides; the predictions keep their order."""
    for part, count in (("train", 320), ("dev", 70)):
        with open(tmp_path / f"{part}.csv", "w", encoding="utf-8", newline="") as file:
            table = csv.writer(file)
            table.writerow(["标签", "一", "二"])
            for text in make_texts(count, part):
                table.writerow([LABEL_OF["single"](text), "丙丁,", text])
    result = run(
        "run_classifier.py",
        *("--task_name=custom", "--do_train", "--do_eval", "--do_predict"),
        *("--train_file=train.csv", "--eval_file=dev.csv", "--predict_file=dev.csv"),
        *("--text_column=一", "--text_pair_column=二", "--label_column=标签"),
        *(f"--vocab_file={data / 'vocab.txt'}", f"--bert_config_file={data / 'config.json'}"),
        *("--output_dir=run", "--max_seq_length=43", "--learning_rate=1e-2"),
        *("--num_train_epochs=10", "--save_checkpoints_steps=50", "--steps_per_loop=25"),
        *("--predictions_format=tsv", "--plot", "--nojit_compile", "--best_metric=macro_f1"),
        folder=tmp_path,
    )
    assert result.returncode == 0 and result.stderr == "", result.stderr
    folder = tmp_path / "run"
    assert "train.csv: 320 pairs" in result.stdout and "2 classes: 无, 有" in result.stdout
    results = json.loads((folder / "eval_results.json").read_text())
    assert results["accuracy"] > 0.95 and results["f1/有"] > 0.9

    with open(folder / "predictions.tsv", encoding="utf-8", newline="") as file:
        found = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    texts = make_texts(70, "dev")
    assert [row["text_pair"] for row in found] == texts
    assert [row["line"] for row in found] == [str(line) for line in range(2, 72)]
    labels = [LABEL_OF["single"](text) for text in texts]
    assert [row["label"] for row in found] == labels
    right = [row["prediction"] == label for row, label in zip(found, labels, strict=True)]
    assert np.mean(right) == pytest.approx(results["accuracy"])
    for row in found:
        shares = {name: float(row[f"probabilities/{name}"]) for name in ("无", "有")}
        assert sum(shares.values()) == pytest.approx(1, abs=1e-4)
        assert max(shares, key=shares.get) == row["prediction"]

    settings = {"task": "classification", "labels": ["无", "有"], "is_pair": True}
    step, vocab_file = results["global_step"], data / "vocab.txt"
    assert_is_a_model(folder, NezhaForSequenceClassification, step, vocab_file, **settings)

    table = (folder / "confusion.tsv").read_text(encoding="utf-8").splitlines()
    counts = np.array([line.split("\t")[1:] for line in table[1:]], int)
    assert table[0].split("\t")[1:] == ["无", "有"] and np.trace(counts) == sum(right)
    assert counts.sum(axis=1).tolist() == [labels.count("无"), labels.count("有")]
    assert (folder / "confusion.png").is_file() and (folder / "curves.png").is_file()


def test_several_classes_are_learnt_and_predicted_later(
    several, settings_for, data, tmp_path, capsys
):
    folder = shutil.copytree(several, tmp_path / "run")
    results = json.loads((folder / "eval_results.json").read_text())
    assert results["micro_f1"] > 0.9 and results["exact_match"] > 0.8
    assert json.loads((folder / "task.json").read_text())["labels"] == ["a", "b"]
    # An older folder without a task.json.
    (folder / "task.json").unlink()
    (folder / "labels.txt").write_text("a\nb\n")
    # Without the training data, on texts of which one has no label.
    rows = rows_of(data / "multi_dev.jsonl")
    del rows[3]["label"]
    flags = {"do_predict": True, "predict_file": write_rows(tmp_path / "some.jsonl", *rows)}
    start(settings_for(folder, "multi", **flags), Classification)
    found = rows_of(folder / "predictions.jsonl")
    assert [row["text"] for row in found] == [row["text"] for row in rows]
    assert all(set(row["probabilities"]) == {"a", "b"} for row in found)
    right = [
        row["prediction"] == true["label"]
        for row, true in zip(found, rows, strict=True)
        if "label" in true
    ]
    output = capsys.readouterr().out
    [line] = [line for line in output.splitlines() if "predict exact_match" in line]
    assert float(line.split()[-1]) == pytest.approx(np.mean(right), abs=1e-3)
    assert "label" not in found[3] and np.mean(right) > 0.8
    assert json.loads((folder / "task.json").read_text())["labels"] == ["a", "b"]  # again
    # The default type of labels is not given, so the folder's is taken.
    (folder / "predictions.jsonl").unlink()
    start(settings_for(folder, "single", **flags), Classification)
    assert rows_of(folder / "predictions.jsonl") == found


def test_a_folder_of_another_head_is_refused(several, settings_for, tmp_path):
    is_multi = "is with --label_type=multi, and this one with --label_type="
    pair = write_rows(tmp_path / "pair.jsonl", {"text": "甲", "b": "乙", "label": "a"})
    predicts = {"do_predict": True}
    for kind, more, message in (
        ("regression", predicts, f"{is_multi}regression; give it the same flag"),
        ("single", {"do_train": True}, f"{is_multi}single; give it the same flag"),
        ("multi", {**predicts, "best_metric": "loss"}, "is that of --best_metric=micro_f1, not of"),
        (
            "multi",
            {**predicts, "predict_file": pair, "text_pair_column": "b"},
            "is_pair is false in the run in .*run, and true here; give it the same --text_pair_col",
        ),
    ):
        with pytest.raises(UserError, match=message):
            start(settings_for(several, kind, **more), Classification)


def test_numbers_are_learnt(settings, tmp_path):
    changes = dict.fromkeys(("do_train", "do_eval", "do_predict"), True)
    changes |= {"best_metric": "mean_squared_error", "bucket_by_length": False}
    start(settings("regression", **changes), Classification)
    folder = tmp_path / "run"
    results = json.loads((folder / "eval_results.json").read_text())
    assert results["pearson"] > 0.9 and results["mean_squared_error"] < 0.2
    assert results["mean_squared_error"] == pytest.approx(results["loss"], rel=1e-4)
    # The lowest error is the best one.
    errors = [row.get("eval_mean_squared_error") for row in rows_of(folder / "metrics.jsonl")]
    assert results["mean_squared_error"] == pytest.approx(min(filter(None, errors)), rel=1e-5)
    errors = [
        row["prediction"] - LABEL_OF["regression"](row["text"])
        for row in rows_of(folder / "predictions.jsonl")
    ]
    assert np.mean(np.square(errors)) == pytest.approx(results["mean_squared_error"], rel=1e-3)


def test_batches_by_tokens_take_fewer_steps_and_go_on_bit_by_bit(settings, tmp_path, capsys):
    """Of 64 tokens 8 examples in a batch, of 32 or fewer 16."""
    folder, other = tmp_path / "run", tmp_path / "other"
    changes = dict.fromkeys(("do_train", "do_eval", "do_predict", "batch_by_tokens"), True)
    changes |= {"max_seq_length": 64, "train_batch_size": 8, "num_train_epochs": 2.0}
    changes |= {"save_checkpoints_steps": 7, "keep_checkpoint_max": 9, "num_train_steps": None}
    start(settings(**changes), Classification)
    long = sum(len(text) + 2 > 32 for text in make_texts(320, "train"))
    steps = 2 * (-(-long // 8) - (-(320 - long) // 16))
    entries = rows_of(folder / "metrics.jsonl")
    assert entries[-1]["step"] == steps < 2 * 320 // 8
    assert len(rows_of(folder / "predictions.jsonl")) == 70

    other.mkdir()
    for path in folder.glob("model.ckpt-14.*"):
        shutil.copy(path, other)
    capsys.readouterr()
    start(settings(**changes, output_dir=str(other)), Classification)
    assert f"continuing from {other}/model.ckpt-14" in capsys.readouterr().out
    once, twice = (tensors(path / f"model.ckpt-{steps}") for path in (folder, other))
    for name, value in once.items():
        np.testing.assert_array_equal(twice[name], value, err_msg=name)
    with pytest.raises(UserError, match="--batch_by_tokens does nothing without --bucket_by_len"):
        start(settings(**changes, bucket_by_length=False), Classification)


def test_bad_rows_are_one_line_or_counted(settings, data, tmp_path):
    good = [{"text": "甲", "label": "有"}, {"text": "丙", "label": "无"}]
    for kind, part, row, message in (
        (
            "single",
            "eval",
            {"text": "乙", "label": "也许"},
            "label '也许' is not one of the model's labels",
        ),
        ("single", "train", {"text": "乙"}, '"label" is missing'),
        ("single", "train", {"text": " ", "label": "有"}, "text is empty"),
        ("single", "train", {"text": "\u200b", "label": "有"}, "the text has no tokens"),
        ("multi", "eval", {"text": "乙", "label": ["有", "也许"]}, "label '也许' is not one of"),
        ("multi", "train", {"text": "乙", "label": '["有"'}, "is not a JSON list"),
        ("regression", "train", {"text": "乙", "label": "x"}, "label 'x' is not a number"),
        ("regression", "train", {"text": "乙", "label": "nan"}, "label nan is not finite"),
        ("regression", "train", {"text": "乙", "label": 1e39}, "is too large for float32"),
    ):
        numbers = [{**entry, "label": index} for index, entry in enumerate(good)]
        rows = numbers if kind == "regression" else good
        paths = {"train_file": write_rows(tmp_path / "good.jsonl", *rows)}
        paths["eval_file"] = paths["train_file"]
        bad = write_rows(tmp_path / "bad.jsonl", rows[0], row, rows[1])
        paths[f"{part}_file"] = bad
        changes = {**paths, "do_train": True, "do_eval": True}
        changes["output_dir"] = str(tmp_path / kind)
        with pytest.raises(UserError) as error:
            Classification(settings(kind, **changes))
        assert f"{bad}, line 2: " in str(error.value) and message in str(error.value)
        assert len(str(error.value).splitlines()) == 1
        task = Classification(settings(kind, **changes, skip_bad_rows=True))
        assert len(task.examples[part].rows) == 2
        [note] = [note for note in task.notes if bad in note]
        assert "2 texts" in note and f"skipped: 1 (the first: {bad}, line 2" in note


def test_mistakes_in_flags_are_one_line(settings, data, tmp_path):
    csv_file = tmp_path / "a.csv"
    csv_file.write_text("text,label\n甲,有\n丙,无\n")
    one_class = write_rows(tmp_path / "one.jsonl", {"text": "甲", "label": "有"})
    bad = write_rows(tmp_path / "bad.jsonl", {"text": "甲"})
    config = {**CONFIG, "type_vocab_size": 1}
    (tmp_path / "one_segment.json").write_text(json.dumps(config))
    pair = {"text_pair_column": "label", "label_column": "y"}
    mixed = write_rows(
        tmp_path / "mixed.jsonl", *({"text": "甲", "label": n} for n in (0, 1, True))
    )
    for changes, message in (
        ({"train_file": mixed}, "mixed.jsonl: labels are both true and 0, which may mean the same"),
        ({"text_column": "内容"}, 'line 1: "内容" is missing'),
        (
            {"train_file": str(csv_file), "label_column": "y"},
            "line 1: there is no column 'y'; the columns",
        ),
        ({"train_file": one_class}, "the classes are 有; there must be at least 2"),
        ({"train_file": bad, "skip_bad_rows": True}, "no example; bad rows skipped: 1"),
        ({"labels": ["有", "有"]}, "there must be at least 2, all different"),
        ({"labels": ["有", "a b ", "c"]}, "label 'a b ' has white space other"),
        ({"best_metric": "pearson"}, "--best_metric=pearson is not measured with --label_type=sin"),
        ({"text_pair_column": "text"}, "name another column for each"),
        ({**pair, "max_seq_length": 4}, "must be at least 5"),
        ({**pair, "bert_config_file": str(tmp_path / "one_segment.json")}, "type_vocab_size 2"),
        ({"label_type": "regression", "label_smoothing": 0.1}, "--label_smoothing needs classes"),
        ({"do_train": False, "do_predict": True}, "there is no"),
    ):
        changes = {"do_train": True, "output_dir": str(tmp_path / "new"), **changes}
        with pytest.raises(UserError) as error:
            Classification(settings(**changes))
        assert message in str(error.value) and len(str(error.value).splitlines()) == 1


def test_classes_are_listed_found_or_those_of_the_folder(settings, tmp_path):
    # 9 and 9.0 are the same number, written as a number or as a text.
    rows = [{"text": "甲", "label": label} for label in (10, 9, -1, 9.0, -1.0, "10")]
    path = write_rows(tmp_path / "numbers.jsonl", *rows)
    changes = {"train_file": path, "eval_file": path, "output_dir": str(tmp_path / "new")}

    def classes(**more):
        task = Classification(settings(**changes, **more))
        output_folder.write_settings(task.settings.output_dir, task)  # as a run does
        return task.make_model("float32").num_labels, task.settings.best_metric

    def written(folder):
        return json.loads((tmp_path / folder / "task.json").read_text())["labels"]

    assert classes(do_train=True) == (3, "accuracy")
    assert written("new") == ["-1", "9", "10"]
    assert classes(do_eval=True, best_metric="loss") == (3, "loss")
    with pytest.raises(
        UserError, match=r"the classes are 9, 10, -1, but those of the run in .*new"
    ):
        classes(do_train=True, labels=["9", "10", "-1"])
    changes["output_dir"] = str(tmp_path / "listed")
    assert classes(do_train=True, labels=["9", "10", "-1", "4"]) == (4, "accuracy")
    assert written("listed") == ["9", "10", "-1", "4"]
