"""The checks before a program starts: its flags, and the files that they name."""

import json
import os
import shutil

import pytest
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
)
from conftest import REPOSITORY, RESOURCES
from waiting import ended

from nezha_tf.util import locks

VOCAB_FILE = RESOURCES / "vocab.txt"
PROGRAMS = [path.name for path in REPOSITORY.glob("run_*.py")]
PROGRAMS += [f"tools/{path.name}" for path in (REPOSITORY / "tools").glob("*.py")]


@pytest.fixture
def shuffled(folder):
    """The bundled vocabulary with two tokens swapped."""
    tokens = VOCAB_FILE.read_text(encoding="utf-8").splitlines()
    tokens[200], tokens[201] = tokens[201], tokens[200]
    path = folder / "shuffled.txt"
    path.write_text("\n".join(tokens) + "\n", encoding="utf-8")
    return path


@pytest.fixture
def with_record(prepared, folder):
    """The folder with the summaries beside the examples."""
    for name in ("train.tfrecord.json", "eval.tfrecord.json", "manifest.json"):
        shutil.copy(prepared / name, folder / name)
    return folder


@pytest.mark.parametrize("program", PROGRAMS)
def test_help_is_no_mistake(program, tmp_path):
    result = run(program, "--help", folder=tmp_path)
    assert result.returncode == 0 and "--" in result.stdout and result.stderr == ""


@pytest.mark.processes
def test_what_is_missing_is_told_before_tensorflow_is_imported(tmp_path):
    """TensorFlow cannot be imported here, so the message must come before its import."""
    package = tmp_path / "broken" / "tensorflow"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("raise AssertionError('tensorflow is imported')")
    paths = [str(package.parent), str(REPOSITORY)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    (tmp_path / "config.json").write_text(json.dumps(CONFIG))
    (tmp_path / "odd.json").write_text(json.dumps({**CONFIG, "hidden_size": 17}))
    config, text = "--bert_config_file=config.json", "--input_file=none.txt"
    for program, arguments, message in (
        ("run_pretraining.py", [*PRETRAINING], "no file matches 'train.tfrecord'"),
        ("run_pretraining.py", ["--do_train", "--input_file=n*:3,b:1"], "no file matches 'n*'"),
        ("run_pretraining.py", ["--bert_config_file=odd.json"], "hidden_size 17"),
        ("run_classifier.py", ["--do_train", "--train_file=none.tsv"], "none.tsv"),
        ("run_mrc.py", ["--do_eval", "--eval_file=none.json"], "none.json"),
        ("run_ner.py", ["--do_predict", "--predict_file=none.txt"], "none.txt"),
        ("run_seq2seq.py", [config, "--init_checkpoint=none/model.ckpt"], "none/model.ckpt"),
        ("run_seq2seq.py", [config, "--vocab_file=none.txt"], "none.txt"),
        ("tools/inspect_tfrecords.py", ["--input_file=none*"], "no file matches 'none*'"),
        ("tools/fill_mask.py", ["--bert_config_file=none.json"], "none.json"),
        ("tools/score_text.py", [text], "none.txt"),
        ("tools/export_saved_model.py", ["--model_folder=none"], "none"),
        ("tools/build_vocab.py", [text, "--output_file=vocab.txt"], "none.txt"),
    ):
        result = run_anew(program, *arguments, folder=tmp_path, env=environment)
        assert_one_line(result, message)
    # Files that a program does not read need not exist.
    result = run_anew("run_mrc.py", "--eval_file=none.json", folder=tmp_path, env=environment)
    assert "tensorflow is imported" in result.stderr


def test_a_flag_that_is_no_number(folder):
    mistakes = (
        (["--learning_rate=nan"], ["--learning_rate=nan is not a finite number"]),
        (["--clip_norm=inf"], ["--clip_norm=inf is not a finite number"]),
        (["--ema_decay=nan"], ["--ema_decay=nan"]),
        (["--dynamic_masking=token", "--masked_lm_prob=nan"], ["--masked_lm_prob=nan"]),
        (
            ["--dynamic_masking=token", "--masked_lm_prob=0", f"--vocab_file={VOCAB_FILE}"],
            ["--masked_lm_prob=0.0 must be above 0"],
        ),
        (["--output_dir=config.json"], ["--output_dir=config.json", "is a file, not a folder"]),
        (["--output_dir=config.json/run"], ["is a file, not a folder"]),
    )
    standard = (*PRETRAINING, "--num_train_steps=3")
    assert_each_one_line("run_pretraining.py", standard, mistakes, folder)
    (folder / "corpus.txt").write_text("好。\n" * 9)
    (folder / "corpus_words.txt").write_text("好\n")
    (folder / "link.txt").symlink_to("corpus.txt")
    mistakes = (
        (
            ["--input_file=corpus*.txt", "--user_dict=./corpus_words.txt"],
            ["--input_file: corpus_words.txt is the dictionary (--user_dict), not text"],
        ),
        (["--input_file=corpus.txt,./corpus.txt"], ["corpus.txt are the same file"]),
        (["--input_file=corpus.txt,link.txt"], ["corpus.txt and link.txt are the same file"]),
        (["--masked_lm_prob=nan"], ["--masked_lm_prob=nan"]),
        (["--masked_lm_prob=0"], ["--masked_lm_prob=0.0 must be above 0"]),
        (["--masking=entity"], ["--masking=entity needs --user_dict"]),
        (["--user_dict=none.txt"], ["cannot read --user_dict none.txt"]),
        ([f"--input_file={VOCAB_FILE},corpus.txt"], ["vocab.txt is the vocabulary"]),
    )
    standard = (*MAKING_DATA, "--input_file=corpus.txt", "--output_file=new.tfrecord")
    assert_each_one_line("tools/create_pretraining_data.py", standard, mistakes, folder)


def test_data_of_another_vocabulary_or_case_are_refused(with_record, shuffled):
    mistakes = (
        (["--vocab_file=shuffled.txt"], ["another vocabulary than shuffled.txt"]),
        (["--nodo_lower_case"], ["made with --do_lower_case", "not with --nodo_lower_case"]),
    )
    standard = (*PRETRAINING, "--num_train_steps=3")
    assert_each_one_line("run_pretraining.py", standard, mistakes, with_record)
    evaluation = ("--nodo_train", "--do_eval", "--eval_file=eval.tfrecord")
    assert_each_one_line("run_pretraining.py", (*standard, *evaluation), mistakes[:1], with_record)
    assert not (with_record / "run").exists()
    inspect = "tools/inspect_tfrecords.py", "--input_file=train.tfrecord"
    checked = run(*inspect, "--vocab_file=shuffled.txt", "--check", folder=with_record)
    assert checked.returncode == 1 and "with another vocabulary than" in checked.stdout
    shown = run(*inspect, "--vocab_file=shuffled.txt", folder=with_record)
    assert_one_line(shown, "made with another vocabulary than shuffled.txt")
    fine = run(*inspect, f"--vocab_file={VOCAB_FILE}", "--check", folder=with_record)
    assert fine.returncode == 0, fine.stdout


def test_the_case_is_that_of_the_data(folder):
    made = create_data(folder, "--nodo_lower_case", "--output_file=cased.tfrecord")
    assert made.returncode == 0, made.stderr
    changes = ("--input_file=cased.tfrecord", f"--vocab_file={VOCAB_FILE}", "--output_dir=cased")
    result = run_pretraining(folder, *changes, "--num_train_steps=2")
    assert result.returncode == 0, result.stderr
    task = json.loads((folder / "cased" / "task.json").read_text())
    assert task["do_lower_case"] is False
    assert "--do_lower_case=false" in (folder / "cased" / "run.flags").read_text()
    # Other data without flags: the run has another case, but the same vocabulary.
    lower = ("--output_dir=cased", "--num_train_steps=3")
    assert_one_line(run_pretraining(folder, *lower), "do_lower_case is true here, and false in")
    made = create_data(folder, "--vocab_file=small.txt", "--output_file=other.tfrecord")
    assert_one_line(made, "small.txt")


def test_what_lies_beside_examples_is_no_example(with_record):
    (with_record / "train.tfrecord.host.77.tmp").write_bytes(b"begun")
    (with_record / "train.tfrecord.host.78.tmp").touch()
    changes = ("--input_file=train*", "--do_eval", "--eval_file=eval*", "--num_train_steps=2")
    result = run_pretraining(with_record, *changes)
    assert result.returncode == 0 and result.stderr == "", result.stderr
    checked = run(
        "tools/inspect_tfrecords.py", "--input_file=*train*,eval*", "--check", folder=with_record
    )
    assert checked.returncode == 0 and "2 files" in checked.stdout
    for names in ("train*.json", "manifest.json"):
        result = run_pretraining(with_record, f"--input_file={names}", "--output_dir=other")
        assert_one_line(result, f"--input_file={names}", "name the TFRecord files")
    result = run_pretraining(with_record, "--input_file=config.json", "--output_dir=other")
    assert_one_line(result, "config.json is not a TFRecord file, or has no undamaged record")


def test_a_vocabulary_is_not_written_over_its_text(folder):
    for name in ("a.txt", "b.txt"):
        shutil.copy(RESOURCES / "sample_corpus.txt", folder / name)
    os.link(folder / "a.txt", folder / "link.txt")
    before = (folder / "a.txt").read_bytes()
    for text, output in (("a.txt,b.txt", "a.txt"), ("*.txt", "./b.txt"), ("a.txt", "link.txt")):
        arguments = (f"--input_file={text}", f"--output_file={output}", "--vocab_size=3000")
        result = run("tools/build_vocab.py", *arguments, folder=folder)
        assert_one_line(result, f"--output_file={output} is also an input file")
    assert (folder / "a.txt").read_bytes() == (folder / "b.txt").read_bytes() == before
    again = ("--input_file=*.txt", "--output_file=vocab.txt", "--vocab_size=3000")
    assert run("tools/build_vocab.py", *again, folder=folder).returncode == 0
    assert_one_line(run("tools/build_vocab.py", *again, folder=folder), "is also an input file")


def test_text_that_comes_into_no_example_is_told(folder):
    text = (RESOURCES / "sample_corpus.txt").read_bytes()
    (folder / "cr.txt").write_bytes(text.replace(b"\n", b"\r"))
    told = "characters that are in an example"
    lost = create_data(folder, "--input_file=cr.txt", "--output_file=cr.tfrecord")
    assert lost.returncode == 0 and "warning: 99." in lost.stdout and told in lost.stdout
    assert "write one sentence per line" in lost.stdout and "1 document," in lost.stdout
    whole = create_data(folder, "--output_file=whole.tfrecord", "--pair=none")
    assert f"{told}  100.0%" in whole.stdout and "warning" not in whole.stdout
    manifest = json.loads((folder / "manifest.json").read_text())["data_sets"]
    assert manifest["cr.tfrecord"]["shares"]["used"] < 0.01
    assert manifest["whole.tfrecord"]["shares"]["used"] == 1


def test_two_runs_do_not_write_the_same_set(folder):
    with locks.held(str(folder / ".new.tfrecord.lock"), "here"):
        for output in ("--output_file=new.tfrecord", "--eval_output_file=new.tfrecord"):
            # A process may take a lock of its own again, so this one cannot be the other run.
            flags = (*MAKING_DATA, "--output_file=other.tfrecord", output)
            result = ended(start("tools/create_pretraining_data.py", *flags, folder=folder))
            assert_one_line(result, f"another run (process {os.getpid()} on", "new.tfrecord;")
        assert not (folder / "new.tfrecord").exists()
    made = create_data(folder, "--output_file=new.tfrecord")
    assert made.returncode == 0 and not list(folder.glob(".*"))
