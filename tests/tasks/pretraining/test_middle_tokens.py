"""--middle_tokens: in training alone, of any objectives but permutation, and with less to count."""

import json

import pytest
import sample_examples
from sample_examples import make_examples

from nezha_tf.tasks.pretraining.task import Pretraining
from nezha_tf.training.run import run
from nezha_tf.util.errors import UserError


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("middle")
    make_examples(folder, {"num_hidden_layers": 4}, masking="none")
    return folder


def settings_for(folder, objectives, *flags):
    return sample_examples.settings_for(folder, objectives, "--dynamic_masking=whole_word", *flags)


def test_a_run_of_several_objectives(folder, tmp_path, monkeypatch):
    """The model that is evaluated computes all tokens."""
    objectives = "bidirectional,seq2seq,causal,infilling,replaced_tokens"
    settings = settings_for(
        folder, objectives, "--middle_tokens=0.5", f"--output_dir={tmp_path}/run"
    )
    seen = {}
    given = Pretraining.make_objective

    def make_objective(self, label_smoothing):
        objective = given(self, label_smoothing)
        inputs = objective.inputs

        def noted(batch):
            seen.setdefault(int(batch["input_ids"].shape[0]), set()).add(
                batch["middle_positions"].shape[1] if "middle_positions" in batch else None
            )
            return inputs(batch)

        objective.inputs = noted
        return objective

    monkeypatch.setattr(Pretraining, "make_objective", make_objective)
    run(settings, Pretraining)
    assert seen[8] == {48, None}  # 24 tokens for each of two layers; an evaluation has 8, too
    results = json.loads((tmp_path / "run" / "eval_results.json").read_text())
    assert results["masked_lm_loss"] > 0


def test_the_arithmetic_that_is_counted(folder):
    all_tokens, half, whole = (
        Pretraining(settings_for(folder, "bidirectional", *flags)).num_middle
        for flags in ((), ("--middle_tokens=0.5",), ("--middle_tokens=1",))
    )
    assert (all_tokens, half, whole) == (None, 24, None)


@pytest.mark.parametrize(
    "objectives, flags, message",
    (
        ("permutation", (), "--objectives=permutation: the query stream sees all tokens"),
        ("causal", ("--memory_length=8",), "--middle_tokens=0.5 does nothing with --memory_length"),
    ),
)
def test_refusals(folder, objectives, flags, message):
    settings = settings_for(folder, objectives, "--middle_tokens=0.5", *flags)
    with pytest.raises(UserError, match=message):
        run(settings, Pretraining)
