"""Packed texts from the corpus to a trained model: the records tell, and no flag is needed."""

import json

import pytest
import sample_examples
from conftest import RESOURCES
from sample_examples import VOCABULARY, make_examples

from nezha_tf.corpus.create import create_pretraining_data
from nezha_tf.corpus.record_check import check_files
from nezha_tf.corpus.shard_files import summary_name
from nezha_tf.tasks.pretraining.task import Pretraining
from nezha_tf.training.run import run
from nezha_tf.util.errors import UserError


@pytest.fixture(scope="module", params=["none", "token"])
def folder(request, tmp_path_factory):
    """A folder with examples that are masked or not, and a configuration."""
    folder = tmp_path_factory.mktemp(request.param)
    few = {"dupe_factor": 1, "max_predictions_per_seq": 7} if request.param == "token" else {}
    make_examples(folder, masking=request.param, pair="packed", **few)
    return folder


def settings_for(folder, objectives, *flags):
    is_masked = folder.name.startswith("token")
    masking = () if is_masked or "bidirectional" not in objectives else ("whole_word",)
    flags = (*(f"--dynamic_masking={policy}" for policy in masking), *flags)
    return sample_examples.settings_for(folder, objectives, *flags)


def test_records_are_whole(folder):
    paths = [str(folder / name) for name in ("train.tfrecord", "eval.tfrecord")]
    checked, missing = check_files(paths, VOCABULARY)
    assert not missing and not any(result.faults for result in checked.values())
    assert all(result.records for result in checked.values())


def test_a_run_follows_the_records(folder, tmp_path):
    """Several objectives in one run; no pair is predicted."""
    objectives = "bidirectional,left_to_right,right_to_left,replaced_tokens"
    if folder.name.startswith("none"):
        objectives += ",causal"
    run(settings_for(folder, objectives, f"--output_dir={tmp_path}/run"), Pretraining)
    results = json.loads((tmp_path / "run" / "eval_results.json").read_text())
    assert "next_sentence_loss" not in results and results["masked_lm_loss"] > 0


def test_other_objectives_are_refused_in_one_line(folder):
    others = ["seq2seq"]
    if folder.name.startswith("none"):
        others = ["permutation", "span_corruption", "bidirectional,prefix"]
    for objectives in others:
        name = objectives.split(",")[-1]
        with pytest.raises(
            UserError, match=f"^--objectives={objectives}: {name} does not"
        ) as error:
            Pretraining(settings_for(folder, objectives))
        assert "as bidirectional, left_to_right, right_to_left, causal, rep" in str(error.value)
        assert "make the examples again with --pair=none" in str(error.value)


def test_records_without_a_summary_need_the_flag(folder):
    """So no run lets the texts see each other because a file was lost."""
    lost = {}
    for name in ("train.tfrecord", "eval.tfrecord"):
        path = summary_name(str(folder / name))
        lost[path] = open(path).read()
    manifest = folder / "manifest.json"
    lost[str(manifest)] = manifest.read_text()
    try:
        for path in lost:
            folder.joinpath(path).unlink()
        lengths = ("--max_seq_length=48", "--max_predictions_per_seq=7")
        with pytest.raises(UserError, match=r"record 1: its texts are packed \(text_ids\)"):
            Pretraining(settings_for(folder, "bidirectional", *lengths, "--pair=none"))
        Pretraining(settings_for(folder, "bidirectional", *lengths, "--pair=packed"))
    finally:
        for path, content in lost.items():
            folder.joinpath(path).write_text(content)


def test_records_of_one_text_in_a_row_are_refused_as_packed(folder, tmp_path):
    create_pretraining_data(
        input_file=str(RESOURCES / "sample_corpus.txt"),
        output_file=str(tmp_path / "train.tfrecord"),
        vocab_file=VOCABULARY,
        max_seq_length=48,
        masking="none",
        pair="none",
        num_workers=1,
    )
    files = (f"--input_file={tmp_path}/train.tfrecord", "--nodo_eval", "--dynamic_masking=token")
    with pytest.raises(UserError, match="was made with --pair=none"):
        Pretraining(settings_for(folder, "bidirectional", *files, "--pair=packed"))
    for path in tmp_path.glob("*.json"):
        path.unlink()
    with pytest.raises(UserError, match="record 1: it lacks the feature text_ids"):
        lengths = ("--max_seq_length=48", "--max_predictions_per_seq=7")
        Pretraining(settings_for(folder, "bidirectional", *files, *lengths, "--pair=packed"))
