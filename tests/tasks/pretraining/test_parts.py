"""Parts with weights: what flags mean, what a run says of them, and their evaluation."""

import json
from fractions import Fraction

import laws
import numpy as np
import pytest
import small_runs
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st
from records import write
from small_runs import record, write_data

from nezha_tf.tasks.pretraining.parts import notes_on_training, weighted_parts
from nezha_tf.util.errors import UserError
from nezha_tf.util.parts import Part, parts_of

PATHS = st.from_regex(r"(gs://b:8/|C:|a:b/|[.]/|/)?[a-z*]{1,6}[.]tfrecord", fullmatch=True)
NUMBERS = st.none() | st.from_regex(r"[0-9]{1,3}([.][0-9]{1,2})?", fullmatch=True)


@laws.examples(60)
@given(st.lists(st.tuples(PATHS, NUMBERS), min_size=1, max_size=4))
def test_a_number_at_the_end_is_a_weight(given_parts):
    """And no other colon."""
    text = " , ".join(path + (f":{number}" if number else "") for path, number in given_parts)
    expected = [
        Part(path, None if number is None else Fraction(number)) for path, number in given_parts
    ]
    assert parts_of(text) == expected


def test_a_file_with_such_a_name_has_no_weight(tmp_path):
    (tmp_path / "part:3").touch()
    assert parts_of(f"{tmp_path}/part:3, {tmp_path}/p*:3") == [
        Part(f"{tmp_path}/part:3", None),
        Part(f"{tmp_path}/p*", Fraction(3)),
    ]


@pytest.fixture
def folder(tmp_path):
    write_data(tmp_path)
    write(tmp_path / "news-1.tfrecord", map(record, range(30)))
    write(tmp_path / "news-2.tfrecord", map(record, range(30, 50)))
    write(tmp_path / "books.tfrecord", map(record, range(50, 60)))
    return tmp_path


@pytest.mark.parametrize(
    "value, message",
    (
        ("news*:3", "the weight of a single pattern does nothing; leave it out"),
        ("news*:0,books*:1", r"a weight must be above 0; leave \S*news\* out"),
        ("news*:3,*-2*:1", r"news-2\.tfrecord belongs to two parts, \S*news\* and \S*\*-2\*; nar"),
        ("news*:1,news*:2", r"news-1\.tfrecord belongs to two parts"),
        ("news*:1,poems*:2", r"no file matches '\S*poems\*'"),
        ("news*:3.00001,books*:1", "the weights .* write them with fewer digits"),
    ),
)
def test_weights_that_cannot_be_meant(folder, value, message):
    value = ",".join(f"{folder}/{each}" for each in value.split(","))
    with pytest.raises(UserError, match=message) as error:
        small_runs.train(folder, "run", "bidirectional", f"--input_file={value}")
    assert "\n" not in str(error.value)


def test_without_weights_there_are_no_parts(folder):
    assert weighted_parts(f"{folder}/news*,{folder}/books*", "input_file") == []
    (news, books) = weighted_parts(f"{folder}/news*:3,{folder}/books*", "input_file")
    assert (news.weight, books.weight) == (3, 1)
    assert len(news.files) == 2 and len(books.files) == 1


@pytest.mark.parametrize(
    "patterns, names",
    (
        (["news-*.tfrecord", "books.tfrecord"], ["news", "books"]),
        (["news*", "old/*.tfrecord"], ["news", "old"]),
        (["old/a/eval*", "./old/b/eval-1.tfrecord"], ["eval", "eval-1"]),
        (["old/a/eval*", "./old/b/eval.tfrecord"], ["a", "b"]),
        (["*books.tfrecord", "old/books*"], ["books", "old/books"]),
        (["books.tfrecord", "books.tfrecord2"], ["books.tfrecord", "books.tfrecord2"]),
        (["news*", "old/causal.tfrecord"], ["news", "old/causal"]),
    ),
)
def test_names_of_parts(folder, patterns, names, monkeypatch):
    monkeypatch.chdir(folder)
    for name in ("old/books", "old/causal", "old/a/eval", "old/b/eval", "old/b/eval-1"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        write(folder / f"{name}.tfrecord", [record(1)])
    write(folder / "books.tfrecord2", [record(1)])
    value = ",".join(f"{pattern}:1" for pattern in patterns)
    found = weighted_parts(value, "eval_file", ("bidirectional", "causal"))
    assert [part.name for part in found] == names


def test_what_a_run_says_of_its_parts(folder):
    parts = weighted_parts(f"{folder}/news*:3,{folder}/books*:1", "input_file")
    counts = {f"{folder}/news-1.tfrecord": 30, f"{folder}/news-2.tfrecord": 20}
    assert notes_on_training(parts, counts, 1000) == [
        f"part {folder}/news* of --input_file: 75.0% of the examples; 2 files with 50 records, "
        "each read 15.00 times in this run",
        f"part {folder}/books* of --input_file: 25.0% of the examples, 250 in this run; 1 file, "
        "whose records are not counted",
    ]
    # The clock ends it, so that the number of examples is not known.
    assert notes_on_training(parts, counts, None) == [
        f"part {folder}/news* of --input_file: 75.0%; 2 files with 50 records",
        f"part {folder}/books* of --input_file: 25.0%; 1 file, whose records are not counted",
    ]


WEIGHTED = ("--dynamic_masking=token", "--num_train_steps=12", "--save_checkpoints_steps=4")


def tensors(folder, step):
    reader = tf.train.load_checkpoint(str(folder / f"model.ckpt-{step}"))
    return {name: reader.get_tensor(name) for name in reader.get_variable_to_shape_map()}


def test_a_run_that_goes_on_is_one_that_was_never_stopped(folder, capsys):
    """12 steps of 16: books are read through 4.8 times, and from step 4 on in the second epoch."""
    flags = (*WEIGHTED, f"--input_file={folder}/news*:3,{folder}/books*:1")
    small_runs.train(folder, "run", "bidirectional", *flags)
    whole = tensors(folder / "run", 12)
    card = (folder / "run" / "README.md").read_text(encoding="utf-8")
    told = f"part {folder}/news* of --input_file: 75.0% of the examples, 144 in this run; 2 files"
    assert told in capsys.readouterr().out and told in card and "news-1.tfrecord" in card
    for step in (8, 12):
        for path in (folder / "run").glob(f"model.ckpt-{step}.*"):
            path.unlink()
    small_runs.train(folder, "run", "bidirectional", *flags)
    assert "flags that changed" not in capsys.readouterr().out
    found = tensors(folder / "run", 12)
    assert all(np.array_equal(found[name], whole[name]) for name in whole)
    small_runs.train(folder, "run", "bidirectional", *flags[:-1], f"{flags[-1]}0")
    assert f"changed since the last start: {flags[-1]}0 (was" in capsys.readouterr().out.replace(
        "--input_file ", "--input_file="
    )


def test_memory_and_weights_are_refused_together(folder):
    flags = ("--pair=stream", "--memory_length=4", f"--input_file={folder}/news*:3,{folder}/b*:1")
    with pytest.raises(UserError, match=r"--memory_length=4 reads the text in its order, so parts"):
        small_runs.train(folder, "run", "causal", *flags)


def test_an_evaluation_of_parts_is_that_of_each_alone(folder):
    """Each result of a part is that of a run with this part alone; the others are means."""
    train = (*WEIGHTED, "--save_checkpoints_steps=12", "--do_eval", "--max_eval_steps=4")
    parts, objectives = {"news": 3, "books": 1}, "causal:1,bidirectional:1"
    value = ",".join(f"{folder}/{name}*:{weight}" for name, weight in parts.items())
    found = small_runs.train(folder, "run", objectives, *train, f"--eval_file={value}")
    with open(folder / "run" / "metrics.jsonl") as file:
        logged = next(entry for entry in map(json.loads, file) if "eval_loss" in entry)
    alone = {}
    for name in parts:
        flags = (*train, "--nodo_train", f"--eval_file={folder}/{name}*")
        alone[name] = small_runs.train(folder, "run", objectives, *flags)
    plain = alone["news"].keys() - {"global_step"}
    assert found.keys() == {"global_step"} | plain | {
        f"{name}/{part}" for name in plain if "/" not in name for part in parts
    }
    assert logged["eval_loss"] == found["loss"]
    assert logged["eval_masked_lm_loss/news"] == found["masked_lm_loss/news"]
    for name in plain:
        values = [alone[part][name] for part in parts]
        if "/" not in name:
            assert [found[f"{name}/{part}"] for part in parts] == pytest.approx(values, rel=1e-5)
        if name.endswith("loss") or ("_accuracy" in name and "majority" not in name):
            assert found[name] == pytest.approx((3 * values[0] + values[1]) / 4, rel=1e-5), name
    expected = np.exp(found["next_token_loss"])
    assert found["next_token_perplexity"] == pytest.approx(expected)
    # Characters for each token, from the bits and the losses of each part.
    news, books = (
        each["next_token_loss"] / each["next_token_bits_per_character"] for each in alone.values()
    )
    expected = found["next_token_loss"] / ((3 * news + books) / 4)
    assert found["next_token_bits_per_character"] == pytest.approx(expected, rel=1e-5)
    # One guess for all parts is no better than one for each.
    name = "next_token_majority_accuracy"
    most = (3 * alone["news"][name] + alone["books"][name]) / 4
    assert most / 2 < found[name] <= most * (1 + 1e-6)
