"""Heads of model cards, as PyYAML and the library of Hugging Face's hub read them."""

import math

import pytest
import yaml
from checkpoint_models import CLASSIFICATION, convert, write_random
from huggingface_hub import ModelCard, metadata_eval_result
from hypothesis import given
from hypothesis import strategies as st
from laws import examples

from nezha_tf.checkpoints import card_head
from nezha_tf.checkpoints.folder import open_folder
from nezha_tf.checkpoints.task_table import TASKS
from nezha_tf.serving.export import export_folder

COMMON = {"library": "nezha_tf", "framework": "tensorflow", "tag": "text-classification"}
# What YAML takes for something else without quotes.
NAMES = (
    "no",
    "1e5",
    "~",
    "a: b",
    "# c",
    "- d",
    "[e]",
    "{f}",
    "'g",
    '"h"',
    "\\i",
    "*j",
    "",
    "k\n---\n",
)


def read(text):
    assert text.startswith("---\n") and text.endswith("\n---\n")
    return yaml.safe_load(text.removeprefix("---\n").removesuffix("---\n"))


TEXTS = st.one_of(
    st.sampled_from(NAMES), st.text(st.characters(exclude_categories=["Cs"]), min_size=1)
)


@given(TEXTS, TEXTS, st.dictionaries(TEXTS, st.floats(allow_nan=True) | st.integers(-9, 9)))
@examples(200)
def test_any_name_and_number_is_read_as_it_is(name, data, metrics):
    found = card_head.result("fill-mask", data, "validation", metrics)
    index = card_head.index_of(name, [found, None])
    head = read(card_head.text_of(**COMMON, tags=["x", name], base=name, index=index))
    assert head["tags"] == ["x", name] and head.get("base_model", "") == name
    kept = {
        name: value
        for name, value in metrics.items()
        if math.isfinite(value) and "/" not in name and name not in ("loss", "global_step")
    }
    if not kept:
        assert "model-index" not in head and "metrics" not in head
        return
    (model,) = head["model-index"]
    (result,) = model["results"]
    assert model["name"] == name and result["dataset"]["name"] == data
    rows = {row["name"]: row["value"] for row in result["metrics"]}
    assert rows == pytest.approx(kept, rel=1e-5)
    assert not any(isinstance(value, str) for value in rows.values())


def test_results_are_those_of_the_hubs_library():
    result = card_head.result("text-classification", "开发集: 1", "validation", {"macro_f1": 1e-7})
    index = card_head.index_of("模型 #1", [result])
    text = card_head.text_of(**COMMON, index=index)
    expected = metadata_eval_result(
        model_pretty_name="模型 #1",
        task_pretty_name=None,
        task_id="text-classification",
        metrics_pretty_name="macro_f1",
        metrics_id="f1",
        metrics_value=1e-7,
        dataset_pretty_name="开发集: 1",
        dataset_id="开发集: 1",
        dataset_split="validation",
    )
    del expected["model-index"][0]["results"][0]["metrics"][0]["verified"]
    assert read(text)["model-index"] == expected["model-index"]
    data = ModelCard(f"{text}# x\n").data
    assert data.model_name == "模型 #1" and data.metrics == ["f1"]
    assert data.eval_results[0].metric_value == 1e-7


@pytest.mark.parametrize(
    "settings, tag",
    (
        *(({"task": name}, row.pipeline_tag) for name, row in TASKS.items() if row.pipeline_tag),
        ({"task": "pretraining", "objectives": "bidirectional:2,causal:1"}, "fill-mask"),
        ({"task": "pretraining", "objectives": "causal"}, "text-generation"),
        ({"task": "pretraining", "objectives": "replaced_tokens"}, "feature-extraction"),
        ({"task": None}, "fill-mask"),
    ),
)
def test_what_a_model_does(settings, tag):
    assert card_head.pipeline_tag(settings) == tag


def card_of(folder):
    return ModelCard.load(folder / "README.md")


OLD = """---
license: mit
base_model:
- owner/base
metrics: [f1]
model-index:
- name: x
  results:
  - task: {type: text-classification}
    dataset: {type: d, name: d}
    metrics:
    - {type: f1, value: 0.5}
---
# Any card
"""


def test_a_conversion_says_what_the_card_of_the_original_says(tmp_path):
    """Its results are those of the task's model alone."""
    task = {**CLASSIFICATION, "label_type": "single"}
    changes = {"position_encoding": "absolute", "hidden_act": "gelu", "vocab_size": 30}
    write_random(tmp_path / "run", "classification", task, **changes)
    (tmp_path / "run" / "README.md").write_text(OLD)
    convert(tmp_path / "run", tmp_path / "hf", "hugging_face")
    data = card_of(tmp_path / "hf").data
    assert (data.license, data.base_model) == ("mit", ["owner/base"])
    assert (data.library_name, data.pipeline_tag) == ("transformers", "text-classification")
    assert data.eval_results[0].metric_value == 0.5 and data.tags == ["nezha_tf", "bert"]
    assert card_of(tmp_path / "hf").text.startswith("# hf\n\nMade by `convert_checkpoint`")
    convert(tmp_path / "run", tmp_path / "body", "tf1", drop=("output_",))
    data = card_of(tmp_path / "body").data
    assert (data.license, data.library_name) == ("mit", None)
    assert data.pipeline_tag == "feature-extraction" and data.eval_results is None
    export_folder(str(tmp_path / "run"), str(tmp_path / "export"))
    data = card_of(tmp_path / "export").data
    assert data.eval_results and data.license == "mit" and "saved_model" in data.tags
    export_folder(str(tmp_path / "run"), str(tmp_path / "features"), "features")
    data = card_of(tmp_path / "features").data
    assert data.pipeline_tag == "feature-extraction" and data.eval_results is None


def test_the_card_of_the_model_of_the_package():
    folder = open_folder("mini").path
    data = ModelCard.load(f"{folder}/README.md").data
    assert data.license == "apache-2.0" and data.language == "zh"
    assert data.pipeline_tag == card_head.pipeline_tag(open_folder("mini").task)


@pytest.mark.parametrize(
    "path, base",
    (
        ("hf:owner/name@" + "a" * 40, "owner/name"),
        ("modelscope:owner/name", "owner/name"),
        ("hf:bert-base-chinese", "bert-base-chinese"),
        ("mini", None),
        ("out/run", None),
        (None, None),
    ),
)
def test_the_base_is_that_of_a_hub(path, base):
    assert card_head.base_of(path) == base
