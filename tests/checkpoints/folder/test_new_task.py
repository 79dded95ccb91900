"""A task of another package: with one row it has everything that our tasks have."""

import json

import keras
import numpy as np
import pytest
import tensorflow as tf
import toy_row
import toy_task
from checkpoint_models import assert_equal, weights_in
from toy_finetuning import ToySettings

import nezha_tf
from nezha_tf import NezhaConfig, NezhaForPreTraining, checkpoints
from nezha_tf.checkpoints import name_table
from nezha_tf.checkpoints.convert import convert_checkpoint
from nezha_tf.checkpoints.folder import open_folder
from nezha_tf.checkpoints.run_folder import check_task
from nezha_tf.checkpoints.settings import ConversionSettings
from nezha_tf.checkpoints.task_table import TASKS
from nezha_tf.serving.export import export_folder
from nezha_tf.serving.page import open_models
from nezha_tf.tasks.finetuning import sweep
from nezha_tf.util.errors import UserError

TEXTS = ["丂丄丆丈", "丅七丈万上", "丏"]


@pytest.fixture(scope="module", autouse=True)
def registered():
    """The code that a user writes to add the task."""
    TASKS[toy_row.NAME] = toy_row.ROW
    name_table.ROWS.append(toy_row.NAME_TABLE_ROW)
    yield
    del TASKS[toy_row.NAME]
    name_table.ROWS.remove(toy_row.NAME_TABLE_ROW)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """The folder of a run from pretrained weights, which lack the head."""
    folder = tmp_path_factory.mktemp("marks")
    toy_task.write_files(folder)
    values = {**toy_task.CHANGES, "num_train_epochs": 12.0}
    values |= {"learning_rate": ("0.01",), "init_checkpoint": "pretrained.ckpt"}
    paths = [name for name in values if name.endswith(("_file", "_dir", "init_checkpoint"))]
    values |= {name: str(folder / values[name]) for name in paths}
    keras.utils.set_random_seed(1)
    pretrained = NezhaForPreTraining(NezhaConfig.from_json_file(values["bert_config_file"]))
    checkpoints.save_tf1_checkpoint(pretrained, values["init_checkpoint"])
    sweep.run(ToySettings(**values), toy_row.MarksTask)
    return folder / "out"


def test_its_folder_is_a_model(run):
    """It learns, and the model of its folder predicts the same as the run."""
    task = json.loads((run / "task.json").read_text())
    assert task["task"] == toy_row.NAME and task["marks"] == toy_row.MARKS
    results = json.loads((run / "eval_results.json").read_text())
    assert results["accuracy"] > 0.8
    tokenizer, model = nezha_tf.load(run)
    assert type(model) is toy_row.NezhaForMarks and len(tokenizer.vocabulary) == 30
    examples = toy_task.Examples(17, len("predict"))
    for ids, logits in zip(
        examples.arrays["input_ids"],
        json.loads((run / "predictions.json").read_text()),
        strict=True,
    ):
        inputs = {"input_ids": ids[None], "input_mask": np.ones_like(ids[None])}
        found = model({**inputs, "segment_ids": np.zeros_like(ids[None])})[0]
        np.testing.assert_allclose(found, logits, atol=1e-5)
    with pytest.raises(UserError, match="marks must be a list of different texts, not 3"):
        check_task("task.json", {**task, "marks": 3})


def test_its_export_and_the_demo_say_what_the_model_says(run, tmp_path):
    said = export_folder(str(run), str(tmp_path / "export"))
    assert said.startswith("marks in ")
    exported = tf.saved_model.load(str(tmp_path / "export")).signatures["serving_default"]
    found = exported(text=tf.constant(TEXTS))
    tokenizer, model = nezha_tf.load(run)
    demos = open_models([str(run), str(tmp_path / "export")])
    assert set(demos) == {"Marks", "Attention"}
    for row, text in enumerate(TEXTS):
        ids = np.array([[2, *tokenizer.convert_tokens_to_ids(tokenizer.tokenize(text)), 3]])
        zeros = np.zeros_like(ids)
        inputs = {"input_ids": ids, "input_mask": zeros + 1, "segment_ids": zeros}
        logits = model(inputs)[0].numpy()
        np.testing.assert_allclose(found["scores"][row], logits, atol=1e-5)
        best = toy_row.MARKS[logits.argmax()]
        assert found["mark"][row].numpy().decode() == best
        for answer in demos["Marks"].values():
            said = answer(text=text)
            assert said["mark"] == best and max(said["scores"]) == pytest.approx(logits.max())


def test_it_is_converted_where_its_head_has_a_place(run, tmp_path):
    def convert(layout, **changes):
        target = tmp_path / layout
        values = {"source": str(run), "to": str(target), "format": layout, **changes}
        return target, convert_checkpoint(ConversionSettings(**values))

    target, report = convert("nezha_tf")
    assert "functional_relative, marks" in report and "logits" in report
    (prefix,) = target.glob("*.index")
    found = weights_in(prefix.with_suffix(""))
    source = weights_in(open_folder(run).checkpoint)
    assert_equal(found, {name: source[name] for name in found})
    assert {"marks/output_weights", "marks/output_bias"} <= set(found)
    assert open_folder(target).task == open_folder(run).task
    for layout, reader in (("hugging_face", "Hugging Face's"), ("tf1", "TF1's")):
        with pytest.raises(
            UserError, match=f"marks/.* has no counterpart in {reader}.*drop=marks/"
        ):
            convert(layout)
    target, report = convert("hugging_face", drop=["marks/"])
    assert "functional_relative, encoder" in report and not (target / "task.json").exists()
