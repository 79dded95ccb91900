"""--middle_tokens: in training alone, of any objectives but permutation, and with less to count."""

import json

import pytest
from commands import CONFIG, settings_of
from conftest import RESOURCES

from nezha_tf.corpus.create import create_pretraining_data
from nezha_tf.tasks.pretraining.settings import PretrainingSettings
from nezha_tf.tasks.pretraining.task import Pretraining
from nezha_tf.training.run import run
from nezha_tf.util.errors import UserError

VOCABULARY = str(RESOURCES / "vocab.txt")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("middle")
    config = {**CONFIG, "type_vocab_size": 6, "num_attention_heads": 4, "num_hidden_layers": 4}
    (folder / "config.json").write_text(json.dumps(config))
    create_pretraining_data(
        input_file=str(RESOURCES / "sample_corpus.txt"),
        output_file=str(folder / "train.tfrecord"),
        eval_output_file=str(folder / "eval.tfrecord"),
        eval_share=0.2,
        vocab_file=VOCABULARY,
        max_seq_length=48,
        masking="none",
        num_workers=1,
    )
    return folder


def settings_for(folder, objectives, *flags):
    return settings_of(
        PretrainingSettings,
        *(f"--bert_config_file={folder}/config.json", f"--vocab_file={VOCABULARY}"),
        *(f"--input_file={folder}/train.tfrecord", f"--eval_file={folder}/eval.tfrecord"),
        *(f"--output_dir={folder}/run", f"--objectives={objectives}", "--do_train", "--do_eval"),
        *("--num_train_steps=3", "--num_warmup_steps=1", "--train_batch_size=8"),
        *("--dynamic_masking=whole_word", "--log_steps=1", "--nojit_compile", *flags),
    )


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
