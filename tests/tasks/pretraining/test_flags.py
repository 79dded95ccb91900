"""Flags of pretraining that nothing reads, or that cannot be meant."""

import json

import pytest
from commands import CONFIG
from conftest import RESOURCES

from nezha_tf.tasks.pretraining.settings import PretrainingSettings
from nezha_tf.tasks.pretraining.task import Pretraining
from nezha_tf.util.errors import UserError


def task_of(folder, **flags):
    (folder / "config.json").write_text(json.dumps({**CONFIG, "type_vocab_size": 6}))
    paths = {"bert_config_file": str(folder / "config.json"), "output_dir": str(folder)}
    paths["vocab_file"] = str(RESOURCES / "vocab.txt")
    return Pretraining(PretrainingSettings(**paths, **flags))


@pytest.mark.parametrize(
    "flags, told",
    [
        (
            {"dynamic_masking": "span", "masked_lm_prob": 0.33, "max_predictions_per_seq": 7},
            "--dynamic_masking=span, --masked_lm_prob=0.33, --max_predictions_per_seq=7",
        ),
        ({"dynamic_masking": "span"}, "--dynamic_masking=span"),
        ({}, None),
    ],
)
def test_flags_of_masking_are_told_where_nothing_is_masked(tmp_path, flags, told):
    for objectives, is_read in (("causal", False), ("causal:1,bidirectional:1", True)):
        notes = task_of(tmp_path, objectives=objectives, **flags).notes
        found = [note for note in notes if note.startswith("not read with")]
        said = f"not read with --objectives={objectives}, which masks nothing: {told}"
        assert found == ([] if is_read or not told else [said])


@pytest.mark.parametrize("objectives", ["infilling", "span_corruption", "causal,infilling"])
def test_noise_that_covers_nothing_is_refused(tmp_path, objectives):
    with pytest.raises(UserError, match=r"--noise_density=0\.0 must be above 0"):
        task_of(tmp_path, objectives=objectives, noise_density=0.0)
    assert task_of(tmp_path, objectives=objectives, noise_density=0.01).settings


@pytest.mark.parametrize(
    ("flags", "wanted"),
    (
        ({"max_seq_length": 512}, 77),
        ({"max_seq_length": 128}, None),  # 19 are wanted
        ({"max_seq_length": 128, "masked_lm_prob": 0.2}, 26),
        ({"max_seq_length": 512, "max_predictions_per_seq": 20}, None),  # this is chosen
        ({"max_seq_length": 512, "dynamic_masking": None}, None),
    ),
)
def test_a_default_that_leaves_few_predictions_is_told(tmp_path, flags, wanted):
    notes = task_of(tmp_path, **{"dynamic_masking": "token", **flags}).notes
    warnings = [note for note in notes if note.startswith("warning: ")]
    assert len(warnings) == (wanted is not None), warnings
    if wanted:
        assert f"pass --max_predictions_per_seq={wanted}, because" in warnings[0]
