"""The programs as a user runs them: a whole job, and one clear line for each mistake."""

import functools
import json
import os
import shutil
import subprocess
import sys

import pytest
import tensorflow as tf
from commands import (
    CONFIG,
    MAKING_DATA,
    PRETRAINING,
    assert_each_one_line,
    assert_one_line,
    create_data,
    run,
    run_anew,
    run_pretraining,
    start,
    start_anew,
)
from conftest import REPOSITORY, RESOURCES
from helpers import assert_is_a_model
from waiting import TIME_LIMIT, ended, read_line

from nezha_tf import NezhaForPreTraining

pytestmark = pytest.mark.processes


def test_a_run_trains_evaluates_and_goes_on(folder):
    changes = ("--do_eval", "--eval_file=eval.tfrecord", "--save_checkpoints_steps=2", "--plot")
    changes += (f"--vocab_file={RESOURCES / 'vocab.txt'}",)
    arguments = (*PRETRAINING, *changes, "--num_train_steps=4")
    result = run("run_pretraining.py", *arguments, folder=folder)
    assert result.returncode == 0 and result.stderr == "", result.stderr
    out = folder / "run"
    entries = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
    trained = [entry for entry in entries if "loss" in entry]
    assert [entry["step"] for entry in trained] == [1, 2, 3, 4]
    for name in (
        "masked_lm_loss",
        "masked_lm_accuracy",
        "next_sentence_loss",
        "learning_rate",
        "next_sentence_accuracy",
        "gradient_norm",
        "examples_per_second",
        "tokens_per_second",
    ):
        assert all(name in entry for entry in trained), name
    assert [e["step"] for e in entries if "eval_masked_lm_accuracy" in e] == [2, 4]
    results = json.loads((out / "eval_results.json").read_text())
    assert results["global_step"] == 4 and 0 <= results["masked_lm_accuracy"] <= 1
    assert f"global_step = {results['global_step']}" in (out / "eval_results.txt").read_text()
    assert (out / "curves.png").read_bytes().startswith(b"\x89PNG")
    written = [
        value.simple_value or value.tensor
        for path in (out / "summaries").iterdir()
        for record in tf.data.TFRecordDataset(str(path))
        for value in tf.compat.v1.Event.FromString(record.numpy()).summary.value
        if value.tag == "loss"
    ]
    assert len(written) == 4

    # Back at step 2, the same command repeats steps 3 and 4 bit by bit.
    last = tf.train.load_checkpoint(str(out / "model.ckpt-4"))
    first_time = {name: last.get_tensor(name) for name in last.get_variable_to_shape_map()}
    for path in out.glob("model.ckpt-4.*"):
        path.unlink()
    result = run("run_pretraining.py", *arguments, folder=folder)
    assert "continuing from run/model.ckpt-2" in result.stdout
    last = tf.train.load_checkpoint(str(out / "model.ckpt-4"))
    for name, value in first_time.items():
        assert (last.get_tensor(name) == value).all(), name
    again = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
    assert [e["loss"] for e in again if "loss" in e] == [e["loss"] for e in trained]

    # The resolved flags are a flag file: the same run continues for two more steps.
    longer = run(
        "run_pretraining.py", "--flagfile=run/run.flags", "--num_train_steps=6", folder=folder
    )
    assert longer.returncode == 0 and "continuing from run/model.ckpt-4" in longer.stdout
    steps = [json.loads(line)["step"] for line in (out / "metrics.jsonl").read_text().splitlines()]
    assert sorted(set(steps)) == [1, 2, 3, 4, 5, 6]
    done = run_pretraining(folder, "--num_train_steps=6")
    assert done.returncode == 0 and "nothing to train" in done.stdout

    evaluated = run_anew(
        "run_pretraining.py",
        "--bert_config_file=config.json",
        "--do_eval",
        "--eval_file=eval.tfrecord",
        "--output_dir=run",
        "--max_seq_length=32",
        "--max_predictions_per_seq=5",
        folder=folder,
    )
    assert evaluated.returncode == 0, evaluated.stderr
    alone = json.loads((out / "eval_results.json").read_text())
    assert alone["global_step"] == 6
    best = json.loads((out / "best_checkpoint.json").read_text())["global_step"]
    settings = {"task": "pretraining", "objectives": "bidirectional", "max_seq_length": 32}
    vocab_file = RESOURCES / "vocab.txt"
    assert_is_a_model(out, NezhaForPreTraining, best, vocab_file, do_lower_case=True, **settings)


def test_the_mixture_goes_on_from_a_checkpoint_of_two_segments(folder, two_steps):
    """UniLM from BERT's or NEZHA's weights: the table is extended, all objectives are trained."""
    shutil.copytree(two_steps, folder / "first")
    assert "The vocabulary is missing here" in (folder / "first" / "README.md").read_text()
    (folder / "config.json").write_text(json.dumps({**CONFIG, "type_vocab_size": 6}))
    objectives = ("bidirectional", "seq2seq", "left_to_right", "right_to_left")
    changes = (f"--objectives={','.join(objectives)}", "--init_checkpoint=first/model.ckpt-2")
    changes += ("--do_eval", "--eval_file=eval.tfrecord", "--log_steps=8", "--num_train_steps=8")
    result = run_pretraining(folder, *changes)
    assert result.returncode == 0 and result.stderr == "", result.stderr
    assert "two segment rows extended to six" in result.stdout
    entry = json.loads((folder / "run" / "metrics.jsonl").read_text().splitlines()[0])
    for name in objectives:
        assert 0 < entry[f"masked_lm_loss/{name}"] < 12
        assert 0 <= entry[f"masked_lm_accuracy/{name}"] <= 1
    table = "bert/embeddings/token_type_embeddings"
    load = tf.train.load_checkpoint
    before = load(str(folder / "first" / "model.ckpt-2")).get_tensor(table)
    after = load(str(folder / "run" / "model.ckpt-8")).get_tensor(table)
    assert after.shape == (6, 16) and (after[2:4] != before[0]).all()


def test_examples_are_masked_when_they_are_read(folder):
    """Unmasked examples are made, inspected, and used for training and evaluation."""
    made = create_data(
        folder,
        "--masking=none",
        "--max_predictions_per_seq=20",
        "--output_file=whole.tfrecord",
        "--eval_output_file=held.tfrecord",
    )
    assert made.returncode == 0 and made.stderr == "", made.stderr
    inspect = functools.partial(run, "tools/inspect_tfrecords.py", folder=folder)
    assert "2 files" in inspect("--input_file=whole.tfrecord,held.tfrecord", "--check").stdout
    assert "words, next_sentence_labels" in inspect("--input_file=whole.tfrecord").stdout
    (folder / "config.json").write_text(json.dumps({**CONFIG, "type_vocab_size": 6}))
    changes = ("--input_file=whole.tfrecord", "--eval_file=held.tfrecord", "--do_eval")
    changes += ("--objectives=bidirectional,seq2seq", "--dynamic_masking=ngram")
    changes += (f"--vocab_file={RESOURCES / 'vocab.txt'}", "--masked_lm_prob=0.2")
    result = run_pretraining(folder, *changes, "--num_train_steps=3")
    assert result.returncode == 0 and result.stderr == "", result.stderr
    results = json.loads((folder / "run" / "eval_results.json").read_text())
    assert 0 < results["masked_lm_loss/seq2seq"] < 12


def test_lengths_are_those_of_the_examples(folder):
    """The run reads them from the summary beside the examples, and stores the resolved flags."""
    assert create_data(folder, "--output_file=ours.tfrecord").returncode == 0
    given = [flag for flag in PRETRAINING if not flag.startswith("--max_")]
    standard = (*given, "--input_file=ours.tfrecord", "--num_train_steps=2")
    result = run("run_pretraining.py", *standard, folder=folder)
    assert result.returncode == 0 and result.stderr == "", result.stderr
    assert json.loads((folder / "run" / "task.json").read_text())["max_seq_length"] == 32
    kept = (folder / "run" / "run.flags").read_text().splitlines()
    assert {"--max_seq_length=32", "--max_predictions_per_seq=5"} <= set(kept)
    made = "ours.tfrecord was made with --max_"
    vocabulary = f"--vocab_file={RESOURCES / 'vocab.txt'}"
    mistakes = (
        (["--max_seq_length=64"], [f"{made}seq_length=32", "=64; remove that flag"]),
        (["--max_predictions_per_seq=9"], [f"{made}predictions_per_seq=5", "=9; remove that flag"]),
        (
            ["--dynamic_masking=span", vocabulary],
            ["ours.tfrecord is masked already, with --masking=whole_word --masked_lm_prob=0.15"],
        ),
    )
    assert_each_one_line("run_pretraining.py", standard, mistakes, folder)


def _is_weight(name):
    return name.startswith(("bert/", "cls/")) and not name.endswith(("_m", "_v"))


def test_without_pairs_nothing_is_predicted_from_the_first_token(folder, two_steps):
    made = create_data(folder, "--pair=none", "--output_file=text.tfrecord")
    assert made.returncode == 0, made.stderr
    shutil.copytree(two_steps, folder / "first")
    shutil.copy(folder / "text.tfrecord", folder / "foreign.tfrecord")  # without its summary
    changes = ("--init_checkpoint=first/model.ckpt-2", "--num_train_steps=3", "--do_eval")
    changes += ("--save_checkpoints_steps=1", "--weight_decay_rate=0.5", "--learning_rate=0.1")
    for name, *said in (("text",), ("foreign", "--pair=none")):
        files = (f"--input_file={name}.tfrecord", f"--eval_file={name}.tfrecord")
        result = run_pretraining(folder, *changes, *files, *said, f"--output_dir={name}")
        assert result.returncode == 0 and result.stderr == "", result.stderr
        results = json.loads((folder / name / "eval_results.json").read_text())
        assert "masked_lm_loss" in results and not any("next" in key for key in results)
    before, after, other = (
        tf.train.load_checkpoint(str(folder / path))
        for path in ("first/model.ckpt-2", "text/model.ckpt-3", "foreign/model.ckpt-3")
    )
    names = [name for name in before.get_variable_to_shape_map() if _is_weight(name)]
    assert {"bert/pooler/dense/kernel", "cls/seq_relationship/output_weights"} < set(names)
    for name in names:
        same = (before.get_tensor(name) == after.get_tensor(name)).all()
        assert same == ("pooler" in name or "seq_relationship" in name), name
        assert (after.get_tensor(name) == other.get_tensor(name)).all(), name


def test_a_checkpoint_of_another_shape_starts_no_run(folder):
    checkpoint = REPOSITORY / "tests" / "golden" / "nezha_tiny" / "model.ckpt"
    result = run_pretraining(folder, f"--init_checkpoint={checkpoint}", "--num_train_steps=2")
    shapes = "bert/embeddings/word_embeddings has shape [211, 32], and the model's is [9200, 16]"
    assert_one_line(result, shapes)
    assert not list(folder.glob("run/model.ckpt*"))


def test_mistakes_in_making_data(folder):
    before = sorted(os.listdir(folder))
    (folder / "empty.txt").touch()
    (folder / "blank.txt").write_text("\n \n\n")
    (folder / "gbk.txt").write_bytes("好\n".encode() * 9 + "坏".encode("gb18030"))
    vocabulary = (RESOURCES / "vocab.txt").read_text(encoding="utf-8")
    (folder / "vocab.txt").write_text(vocabulary.replace("[MASK]\n", ""), encoding="utf-8")
    mistakes = (
        (["--input_file=none.txt"], ["--input_file", "no file matches 'none.txt'"]),
        (["--input_file=empty.txt"], ["empty.txt: no text"]),
        (["--input_file=blank.txt"], ["blank.txt", "no text"]),
        (["--input_file=nowhere/*.txt"], ["no file matches 'nowhere/*.txt'"]),
        (["--input_file=gbk.txt"], ["gbk.txt, line 10: not UTF-8"]),
        (["--vocab_file=vocab.txt"], ["vocab.txt lacks [MASK]"]),
        (["--vocab_file=none.txt"], ["none.txt", "No such file"]),
        (["--masking=words"], ["masking", "whole_word"]),
        (["--output_file=."], ["is a folder"]),
        (["--masking=none"], ["--max_predictions_per_seq=5 does nothing with --masking=none"]),
    )
    standard = (*MAKING_DATA, "--output_file=new.tfrecord")
    assert_each_one_line("tools/create_pretraining_data.py", standard, mistakes, folder)
    left = set(os.listdir(folder)) - set(before)
    assert left == {"empty.txt", "blank.txt", "gbk.txt", "vocab.txt"}


def test_mistakes_in_pretraining(folder):
    (folder / "empty.tfrecord").touch()
    (folder / "cut.tfrecord").write_bytes((folder / "train.tfrecord").read_bytes()[:-9])
    (folder / "odd.json").write_text(json.dumps({**CONFIG, "hidden_size": 17}))
    (folder / "small.json").write_text(json.dumps({**CONFIG, "vocab_size": 300}))
    (folder / "bad.flags").write_text("--do_train\n--learning_rat=1\n")
    mistakes = (
        (["--input_file=none*"], ["--input_file", "no file matches 'none*'"]),
        (["--input_file=empty.tfrecord"], ["empty.tfrecord is empty"]),
        (["--bert_config_file=none.json"], ["none.json", "No such file"]),
        (["--bert_config_file=odd.json"], ["odd.json", "hidden_size 17 is not a multiple"]),
        (["--bert_config_file=small.json"], ["train.tfrecord, record 1", "outside 0..299"]),
        (
            ["--bert_config_file=small.json", f"--vocab_file={RESOURCES / 'vocab.txt'}"],
            ["the vocabulary has 9103 tokens and the model 300 rows"],
        ),
        (["--vocab_file=none.txt"], ["cannot read vocabulary none.txt"]),
        (["--max_seq_length=64"], ["32 values, not 64; is --max_seq_length=32 meant?"]),
        (["--max_predictions_per_seq=9"], ["is --max_predictions_per_seq=5 meant?"]),
        (
            ["--input_file=cut.tfrecord", "--num_train_steps=1000"],
            ["cut.tfrecord, record", "trunc"],
        ),
        (["--init_checkpoint=none/model.ckpt"], ["no checkpoint at none/model.ckpt"]),
        (["--flagfile=bad.flags"], ["learning_rat", "bad.flags"]),
        (["--flagfile=none.flags"], ["none.flags"]),
        (["--num_warmup_steps=9", "--num_train_steps=9"], ["--num_warmup_steps=9"]),
        (["--learning_rate=fast"], ["learning_rate", "fast"]),
        (["--do_eval"], ["--eval_file is needed"]),
        (["--nodo_train"], ["--do_train"]),
        (["do_train"], ["'do_train' is not a flag"]),
        (["--objectives=seq2sec"], ["is 'seq2seq' meant"]),
        (["--objectives=seq2seq"], ["needs type_vocab_size 6", "config.json, not 2"]),
        (["--early_stopping_patience=1"], ["--do_eval"]),
        (["--masked_lm_prob=0.2"], ["--masked_lm_prob=0.2 does nothing without --dynamic_masking"]),
        (["--dynamic_masking=span"], ["needs --vocab_file"]),
        (["--noise_density=0.2"], ["--noise_density=0.2 does nothing with --objectives=bidirecti"]),
        (["--mean_span_length=2"], ["--mean_span_length=2.0 does nothing with", "and infilling)"]),
        (["--num_predict=2"], ["--num_predict=2 does nothing", "(it is for permutation)"]),
        (["--dynamic_masking=entity"], ["dynamic_masking", "whole_word"]),
        (
            ["--dynamic_masking=span", f"--vocab_file={RESOURCES / 'vocab.txt'}"],
            ["train.tfrecord, record 1: it is masked already"],
        ),
    )
    standard = (*PRETRAINING, "--num_train_steps=3")
    assert_each_one_line("run_pretraining.py", standard, mistakes, folder)
    assert not list(folder.glob("run/*tmp*")) and not list(folder.glob("run/model.ckpt*"))


def test_a_reader_that_has_seen_enough_is_no_defect(folder):
    arguments = ("--input_file=train.tfrecord", f"--vocab_file={RESOURCES / 'vocab.txt'}")
    process = start_anew(
        "tools/inspect_tfrecords.py", *arguments, "--num_records=999", folder=folder
    )
    read_line(process.stdout)
    process.stdout.close()
    process.stdout = None
    result = ended(process)
    assert result.stderr == "" and result.returncode == 141


def test_vocabulary_command(folder):
    result = run(
        "tools/build_vocab.py",
        f"--input_file={RESOURCES / 'sample_corpus.txt'}",
        "--output_file=vocab.txt",
        "--vocab_size=3000",
        folder=folder,
    )
    assert result.returncode == 0 and result.stderr == "", result.stderr
    assert "Chinese characters covered" in result.stdout
    created = create_data(folder, "--vocab_file=vocab.txt", "--output_file=new.tfrecord")
    assert created.returncode == 0, created.stderr
    small = run(
        "tools/build_vocab.py",
        f"--input_file={RESOURCES / 'sample_corpus.txt'}",
        "--output_file=small.txt",
        "--vocab_size=300",
        folder=folder,
    )
    assert_one_line(small, "--vocab_size=300 is too small")
    assert not (folder / "small.txt").exists()


def test_a_program_without_an_open_output_does_its_work(tmp_path):
    command = f"exec {sys.executable} {REPOSITORY}/tools/build_vocab.py --vocab_size=2000 "
    command += f"--input_file={RESOURCES}/sample_corpus.txt --output_file=vocab.txt >&- 2>&-"
    done = subprocess.run(["bash", "-c", command], cwd=tmp_path, timeout=TIME_LIMIT, check=False)
    assert done.returncode == 0 and os.listdir(tmp_path) == ["vocab.txt"]


def test_outputs_that_would_overwrite_each_other(folder):
    shutil.copy(RESOURCES / "sample_corpus.txt", folder / "corpus.txt")
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    for changes in (
        ["--output_file=new", "--eval_output_file=new"],
        ["--input_file=corpus.txt", "--output_file=./corpus.txt"],
    ):
        assert_one_line(create_data(folder, *changes), "is named twice or is an input")
    assert_one_line(create_data(folder, "--output_file=new,new"), "--num_output_shards")
    # A set has other files beside its shards.
    for name in ("new.tfrecord.json", "manifest.json", "new.tmp"):
        for flag in ("output_file", "eval_output_file"):
            result = create_data(folder, "--output_file=new.tfrecord", f"--{flag}={name}")
            assert_one_line(result, f"output {name} has the ending of a summary or")
    assert_one_line(create_data(folder, "--output_file=new/"), "output new/ is a folder")
    (folder / "link").symlink_to(".")
    names = "--output_file=new.tfrecord", "--eval_output_file=link/new-00001-of-00002.tfrecord"
    result = create_data(folder, *names, "--num_output_shards=2")
    assert_one_line(result, "link/new-00001-of-00002.tfrecord is a shard of --output_file and of")
    (folder / "link").unlink()
    assert_one_line(create_data(folder), "train.tfrecord is there, but not its summary")
    # The second set cannot be written, so the first one is not written either.
    result = create_data(folder, "--eval_output_file=corpus.txt/eval.tfrecord")
    assert_one_line(result, "corpus.txt")
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_evaluation_takes_the_folders_own_checkpoint(folder, two_steps):
    """A run from --init_checkpoint is evaluated with its last weights, not with the first."""
    shutil.copytree(two_steps, folder / "first")
    begun = ("--output_dir=second", "--init_checkpoint=first/model.ckpt-2")
    second = run_pretraining(folder, "--num_train_steps=3", *begun)
    assert "weights from first/model.ckpt-2" in second.stdout
    evaluation = ("--nodo_train", "--do_eval", "--eval_file=eval.tfrecord")
    result = run_pretraining(folder, *evaluation, *begun)
    assert "weights from second/model.ckpt-3" in result.stdout
    results = json.loads((folder / "second" / "eval_results.json").read_text())
    parts = results["masked_lm_loss"] + results["next_sentence_loss"]
    assert results["global_step"] == 3 and results["loss"] == pytest.approx(parts)
    assert (folder / "second" / "eval.flags").exists()
    elsewhere = ("--output_dir=third", "--init_checkpoint=first/model.ckpt-2")
    result = run_pretraining(folder, *evaluation, *elsewhere)
    assert "weights from first/model.ckpt-2" in result.stdout
    assert json.loads((folder / "third" / "eval_results.json").read_text())["global_step"] == 2


def test_tensorflow_comes_without_packages_that_only_it_would_need(tmp_path):
    """JAX, scikit-learn and matplotlib are installed here, and can be imported afterwards."""
    (tmp_path / "program.py").write_text(
        "import importlib.util, sys\n"
        "packages = {'jax', 'sklearn', 'matplotlib'}\n"
        "assert 'tensorflow' in sys.modules and 'keras' in sys.modules\n"
        "print(packages & set(sys.modules), all(map(importlib.util.find_spec, packages)))\n"
    )
    # The server that forks has imported TensorFlow as the programs do.
    result = ended(start(tmp_path / "program.py", folder=tmp_path))
    assert (result.returncode, result.stdout) == (0, "set() True\n"), result.stderr
