"""--do_export: the SavedModel of what a program has left."""

import json

import numpy as np
import pytest
import tensorflow as tf
from commands import assert_each_one_line, run
from export_folders import ask, write_folder

from nezha_tf.serving.export import check_output_dir, export_folder, run_and_export
from nezha_tf.tasks.pretraining.settings import PretrainingSettings
from nezha_tf.util.errors import UserError

LABELLED = [
    {"text": f"{text}{number}", "label": label}
    for number in range(4)
    for text, label in (("很好", "1"), ("不好", "0"))
]
PRETRAINING = {"task": "pretraining", "max_seq_length": 16, "objectives": "bidirectional"}


@pytest.mark.processes
def test_a_classifier_is_trained_and_exported(tmp_path):
    write_folder(tmp_path / "start", PRETRAINING)
    rows = "".join(json.dumps(row) + "\n" for row in LABELLED)
    (tmp_path / "data.jsonl").write_text(rows)
    files = [f"--{part}_file=data.jsonl" for part in ("train", "eval", "predict")]
    standard = (
        *("--task_name=custom", "--do_train", "--do_eval", "--do_predict", "--do_export", *files),
        *("--vocab_file=start/vocab.txt", "--bert_config_file=start/bert_config.json"),
        *("--max_seq_length=16", "--num_train_epochs=4", "--learning_rate=1e-2", "--nojit_compile"),
        *("--output_dir=run", "--save_checkpoints_steps=2", "--train_batch_size=4"),
    )
    result = run("run_classifier.py", *standard, folder=tmp_path)
    assert result.returncode == 0 and result.stderr == "", result.stderr
    assert "classification in run/export; how to use it: run/export/README.md" in result.stdout
    lines = (tmp_path / "run" / "predictions.jsonl").read_text(encoding="utf-8").splitlines()
    predicted = [json.loads(line) for line in lines]
    found = ask(tmp_path / "run" / "export", text=[row["text"] for row in predicted])
    assert found["label"].tolist() == [row["prediction"] for row in predicted]
    probabilities = [[row["probabilities"][label] for label in "01"] for row in predicted]
    np.testing.assert_allclose(found["probabilities"], probabilities, atol=1e-5)
    # Before anything is read or trained.
    mistakes = (((), ("run/export exists",)), (("--export_dir=run",), ("run exists already",)))
    assert_each_one_line("run_classifier.py", standard, mistakes, tmp_path)


@pytest.mark.processes
def test_what_there_is_is_exported_without_a_run(tmp_path):
    write_folder(tmp_path / "run", PRETRAINING)
    (tmp_path / "empty").mkdir()
    standard = ("--do_export", "--output_dir=run")
    result = run("run_pretraining.py", *standard, "--export_dir=out/export", folder=tmp_path)
    assert result.returncode == 0 and result.stderr == "", result.stderr
    *waited_for, line = result.stdout.splitlines()
    assert line == "fill_mask in out/export; how to use it: out/export/README.md"
    assert waited_for == ["loading TensorFlow", "tracing and writing the SavedModel"]
    assert ask(tmp_path / "out" / "export", text=["今天[MASK]好"])["num_masks"].tolist() == [1]
    mistakes = (
        (("--output_dir=empty",), ("pass --vocab_file",)),
        (("--output_dir=empty", "--vocab_file=run/vocab.txt"), ("no weights in empty",)),
        (("--nodo_export",), ("nothing to do: pass --do_train or --do_eval or --do_export",)),
    )
    assert_each_one_line("run_pretraining.py", standard, mistakes, tmp_path)


def test_a_folder_that_cannot_be_written_is_told_before_the_run(tmp_path):
    write_folder(tmp_path / "run", PRETRAINING)
    vocabulary = str(tmp_path / "run" / "vocab.txt")

    def run(*_):
        raise AssertionError("the run began")

    for changes, message in (
        ({"export_dir": "gs://bucket/export"}, "--export_dir=gs://bucket/export is not on this"),
        ({"output_dir": "ram://runs/a"}, "--export_dir=ram://runs/a/export is not on this"),
        ({"export_dir": f"{vocabulary}/export"}, r"--export_dir=.*vocab\.txt is a file"),
    ):
        values = {"output_dir": str(tmp_path / "run"), "vocab_file": vocabulary, **changes}
        settings = PretrainingSettings(do_train=True, do_export=True, **values)
        with pytest.raises(UserError, match=message):
            run_and_export(run, settings, None)
    with pytest.raises(UserError, match=r"--output_dir=.*vocab\.txt is a file"):
        export_folder(str(tmp_path / "run"), f"{vocabulary}/export")


def test_the_vocabulary_of_a_remote_run_is_found(tmp_path):
    remote = "ram://exported_run"
    with tf.io.gfile.GFile(f"{remote}/vocab.txt", "w") as file:
        file.write("[PAD]")
    begun = []
    values = {"output_dir": remote, "export_dir": str(tmp_path / "export"), "do_train": True}
    settings = PretrainingSettings(do_export=True, **values)
    run_and_export(lambda *arguments: begun.append(arguments), settings, None)
    assert len(begun) == 1


@pytest.mark.parametrize(
    "path, title",
    (("models/reviews/1", "reviews"), ("named", "named"), ("run/export", "run"), ("run/2", "run")),
)
def test_the_readme_bears_the_models_name_and_runs_where_the_user_is(
    tmp_path, monkeypatch, path, title
):
    write_folder(tmp_path / "run", PRETRAINING)
    monkeypatch.chdir(tmp_path)
    export_folder("run", path)
    readme = (tmp_path / path / "README.md").read_text(encoding="utf-8")
    assert readme.split("---\n")[2].startswith(f"# {title}\n")
    found = {}
    exec(readme.split("```python\n")[1].split("```")[0], found)
    assert found["outputs"]["num_masks"].shape == (1,)


def test_a_name_that_tensorflow_takes_for_a_pattern_is_refused(tmp_path):
    """It would write the SavedModel there, but find no weights in it."""
    for name in ("a[1]", "a*", "a?", "a\\b", "a[1]/b"):
        with pytest.raises(UserError, match=r"--export_dir=.* for a pattern"):
            check_output_dir(str(tmp_path / name), "export_dir")
    check_output_dir(str(tmp_path / "a]1{2} 层"), "export_dir")
