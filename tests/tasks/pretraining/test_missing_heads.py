"""An evaluation of a published model that lacks weights which the examples ask nothing of."""

import json

import numpy as np
import pytest
import small_runs
from checkpoint_models import weights_like
from commands import settings_of

from nezha_tf import NezhaConfig
from nezha_tf.checkpoints import tf1
from nezha_tf.tasks.pretraining.settings import PretrainingSettings
from nezha_tf.tasks.pretraining.task import Pretraining
from nezha_tf.training.run import run
from nezha_tf.util.errors import UserError


@pytest.fixture
def evaluate(tmp_path):
    """Returns a function: kind of pairs, beginnings of names that are missing -> the results."""
    small_runs.write_data(tmp_path)
    config = NezhaConfig.from_json_file(tmp_path / "config.json")
    weights = weights_like(np.random.default_rng(0), "pretraining", config)

    def evaluated(pair, *missing):
        there = {name: v for name, v in weights.items() if not name.startswith(missing)}
        assert len(there) < len(weights)
        tf1.write_tensors(tmp_path / "bert_model.ckpt", there)
        flags = (f"--init_checkpoint={tmp_path}/bert_model.ckpt", f"--output_dir={tmp_path}/run")
        flags += (f"--bert_config_file={tmp_path}/config.json", "--dynamic_masking=token")
        flags += (f"--vocab_file={tmp_path}/vocab.txt", f"--eval_file={tmp_path}/eval.tfrecord")
        flags += (f"--pair={pair}", "--max_seq_length=12", "--max_predictions_per_seq=2")
        flags += ("--do_eval", "--nojit_compile")
        run(settings_of(PretrainingSettings, *flags), Pretraining)
        return json.loads((tmp_path / "run" / "eval_results.json").read_text())

    return evaluated


def test_without_pairs_masked_lm_is_enough(evaluate, capsys):
    results = evaluate("none", "cls/seq_relationship/", "bert/pooler/")
    assert "masked_lm_loss" in results and "next_sentence_loss" not in results
    [line] = [row for row in capsys.readouterr().out.splitlines() if "weights from" in row]
    assert line.count("cls/seq_relationship/") == line.count("bert/pooler/") == 2, line


@pytest.mark.parametrize(
    "pair, missing",
    [("nsp", "cls/seq_relationship/"), ("nsp", "bert/pooler/"), ("none", "cls/predictions/")],
)
def test_what_the_examples_ask_for_must_be_there(evaluate, pair, missing):
    with pytest.raises(UserError, match=missing):
        evaluate(pair, missing)
