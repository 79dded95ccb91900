"""Names of labels, case and heads: told in the way of Hugging Face, and read from it."""

import json

import numpy as np
import pytest
from checkpoint_models import (
    CLASSIFICATION,
    MULTIPLE_CHOICE,
    TAGGING,
    assert_equal,
    config_of,
    convert,
    weights_in,
    weights_like,
    write_model,
)

from nezha_tf.util.errors import UserError

SAFETENSORS = "model.safetensors"


def test_labels_and_case_are_told_in_the_way_of_hugging_face(tmp_path):
    rng = np.random.default_rng(0)
    config = config_of(rng, position_encoding="absolute", hidden_act="gelu_erf")
    for task, architecture, problem in (
        (CLASSIFICATION, "BertForSequenceClassification", "multi_label_classification"),
        (TAGGING, "BertForTokenClassification", None),
    ):
        run, target = tmp_path / task["task"], tmp_path / f"{task['task']}_there"
        write_model(run, config, weights_like(rng, task["task"], config), task)
        convert(run, target, "hugging_face")
        values = json.loads((target / "config.json").read_text())
        assert values["architectures"] == [architecture]
        assert values["id2label"] == {"0": "差", "1": "中", "2": "好"}
        assert values["label2id"] == {"差": 0, "中": 1, "好": 2}
        assert values.get("problem_type") == problem
        assert (values["hidden_act"], values["pad_token_id"]) == ("gelu", 0)
        tokenizer = json.loads((target / "tokenizer_config.json").read_text())
        assert tokenizer["do_lower_case"] is False
        # And back, where no task.json goes along; the configuration may lie elsewhere.
        (target / "task.json").unlink()
        convert(target, tmp_path / f"{task['task']}_back", "nezha_tf")
        alone = tmp_path / f"{task['task']}_alone"
        alone.mkdir()
        (target / SAFETENSORS).rename(alone / SAFETENSORS)
        config_file = str(target / "config.json")
        convert(
            alone / SAFETENSORS,
            tmp_path / f"{task['task']}_other",
            "nezha_tf",
            config_file=config_file,
            vocab_file=str(target / "vocab.txt"),
            do_lower_case=False,
        )
        for other in ("back", "other"):
            back = json.loads((tmp_path / f"{task['task']}_{other}" / "task.json").read_text())
            # The lengths are those that the table of places allows.
            for name in {*task} - {"max_seq_length", "window_stride"}:
                assert back[name] == task[name], name
        # Labels, as the folder of another task, is no match.
        (run / "task.json").write_text(json.dumps({**task, "labels": ["a", "b"]}))
        with pytest.raises(UserError, match=r"has 3 rows, but task\.json .* names 2 labels"):
            convert(run, tmp_path / "none", "hugging_face")
        assert not (tmp_path / "none").exists()


def test_a_head_of_one_output_is_of_the_class_that_a_file_names(tmp_path):
    """A model that chooses among texts has the weights of a regression."""
    rng = np.random.default_rng(0)
    config = config_of(rng, position_encoding="absolute", hidden_act="gelu_erf")
    weights = weights_like(rng, "multiple_choice", config)
    write_model(tmp_path / "run", config, weights, MULTIPLE_CHOICE)
    convert(tmp_path / "run", tmp_path / "hf", "hugging_face")
    path = tmp_path / "hf" / "config.json"
    values = json.loads(path.read_text())
    assert values["architectures"] == ["BertForMultipleChoice"]
    (tmp_path / "hf" / "task.json").unlink()
    for name, task in (
        ("BertForMultipleChoice", "multiple_choice"),
        ("BertForSequenceClassification", "classification"),
    ):
        path.write_text(json.dumps({**values, "architectures": [name]}))
        convert(tmp_path / "hf", tmp_path / name, "nezha_tf")
        assert json.loads((tmp_path / name / "task.json").read_text())["task"] == task
        assert_equal(weights_in(tmp_path / name / "model.ckpt-0"), weights)
