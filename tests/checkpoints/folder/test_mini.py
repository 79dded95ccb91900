"""The model of the package: what it knows, where its name may stand, what it is refused with."""

import collections
import json
import math
import os

import numpy as np
import pytest
import tensorflow as tf
from checkpoint_models import convert
from commands import run
from conftest import REPOSITORY, RESOURCES

import nezha_tf
from nezha_tf import inputs, resources
from nezha_tf.checkpoints import loading
from nezha_tf.checkpoints.folder import open_folder
from nezha_tf.checkpoints.places import weights_of
from nezha_tf.generation.score import score_text
from nezha_tf.generation.settings import ScoreSettings
from nezha_tf.util.errors import UserError

MINI = RESOURCES / "mini"
MOST_BYTES = 12e6
# No model has seen the sample: the project wrote it, and mini is trained on other texts.
EVERY = [
    line
    for line in (RESOURCES / "sample_corpus.txt").read_text(encoding="utf-8").splitlines()
    if 8 <= len(line) <= 30
]
SENTENCES = EVERY[::8]


def test_it_is_small_and_stored_in_float16():
    _, reader = loading.open_checkpoint(open_folder("mini").checkpoint)
    assert {reader.get_tensor(name).dtype for name in reader.get_variable_to_shape_map()} == {
        np.dtype("float16")
    }
    assert sum(path.stat().st_size for path in MINI.iterdir()) <= MOST_BYTES


def test_the_package_holds_all_of_it():
    """A wheel has the files that setup.cfg names."""
    setup = (REPOSITORY / "setup.cfg").read_text(encoding="utf-8")
    files = ("README.md", "*.po", "*.tsv", "*.txt", "mini/*")
    assert "\n    ".join(("nezha_tf.resources =", *files)) + "\n" in setup
    card = (MINI / "README.md").read_text(encoding="utf-8")
    assert "CC BY-SA 4.0" in card and "MIT" in card


@pytest.fixture
def scored(tmp_path):
    """Returns a function: mode -> for each sentence, the log-probabilities of its tokens."""
    text_file = tmp_path / "texts.txt"
    text_file.write_text("".join(f"{line}\n" for line in SENTENCES), encoding="utf-8")

    def score(mode):
        path = tmp_path / "scores.jsonl"
        names = {"input_file": str(text_file), "output_file": str(path), "mode": mode}
        score_text(ScoreSettings(**names))
        return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]

    return score


def perplexity(rows):
    return math.exp(-sum(r["log_prob"] for r in rows) / sum(r["tokens"] for r in rows))


def test_it_knows_more_than_how_often_characters_stand(scored):
    """Counts of the other sentences of the same texts know their topics, but no context."""
    vocabulary = open_folder("mini").tokenizer.vocabulary
    counts = collections.Counter("".join(line for line in EVERY if line not in SENTENCES))
    total = counts.total() + len(vocabulary)
    text = "".join(SENTENCES)
    log_probs = [math.log((counts[character] + 1) / total) for character in text]
    without_context = math.exp(-sum(log_probs) / len(text))
    found = {mode: perplexity(scored(mode)) for mode in ("left_to_right", "bidirectional")}
    print(without_context, found)
    assert found["left_to_right"] < without_context
    assert found["bidirectional"] < without_context / 2


def test_its_first_guess_for_a_blank_is_often_right():
    """At least twice as often as the best of all constant guesses."""
    tokenizer, model = nezha_tf.load("mini")
    rows = [tokenizer.tokenize(sentence) for sentence in EVERY]
    places = [1 + (7 * number) % len(row) for number, row in enumerate(rows)]
    length = 2 + max(map(len, rows))
    ids = np.zeros((len(rows), length), np.int32)
    right = []
    for row, place, filled in zip(rows, places, ids, strict=True):
        tokens = ["[CLS]", *row, "[SEP]"]
        right.append(tokens[place])
        tokens[place] = "[MASK]"
        filled[: len(tokens)] = tokenizer.convert_tokens_to_ids(tokens)
    outputs = model(
        {
            "input_ids": tf.constant(ids),
            "input_mask": tf.constant((ids > 0).astype(np.int32)),
            "segment_ids": tf.zeros_like(ids),
            "masked_lm_positions": tf.constant(places)[:, None],
        },
        all_outputs=True,
    )
    best = tf.argmax(outputs["masked_lm_logits"][:, 0], -1).numpy()
    guesses = tokenizer.convert_ids_to_tokens(best)
    hits = sum(guess == token for guess, token in zip(guesses, right, strict=True))
    [(_, most)] = collections.Counter(right).most_common(1)
    print(hits, most, len(right))
    assert hits >= 2 * most


def test_a_folder_of_that_name_comes_first(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert weights_of("mini")[0].startswith(str(MINI))
    os.mkdir("mini")
    assert resources.model_path("mini") == "mini"
    assert resources.model_path(str(tmp_path)) == str(tmp_path)


@pytest.mark.processes
def test_it_fills_blanks_and_goes_on_without_a_folder(tmp_path):
    filled = run("tools/fill_mask.py", "--text=皇帝派使者前[MASK]京城。", folder=tmp_path)
    assert filled.returncode == 0, filled.stderr
    assert filled.stdout.splitlines()[2].split()[0] in "往到来去赴"
    flags = ("--mode=left_to_right", "--decoding=greedy", "--max_target_length=8")
    flags += ("--init_checkpoint=mini", "--nojit_compile")
    written = run("tools/generate_text.py", "--prompt=今天", *flags, folder=tmp_path)
    assert written.returncode == 0 and "今天" in written.stdout, written.stderr


@pytest.mark.processes
def test_it_is_a_start_for_a_task_with_its_own_files(tmp_path):
    (tmp_path / "train.tsv").write_text("text\tlabel\n好\t1\n差\t0\n", encoding="utf-8")
    flags = ("--do_train", "--train_file=train.tsv", "--output_dir=run", "--max_seq_length=8")
    trained = run(
        "run_classifier.py",
        *("--task_name=custom", "--init_checkpoint=mini", "--train_batch_size=2"),
        *("--num_train_steps=1", "--nojit_compile", *flags),
        folder=tmp_path,
    )
    assert trained.returncode == 0, trained.stderr
    [line] = [line for line in trained.stdout.splitlines() if line.startswith("weights from")]
    assert "missing there, so random: output_weights, output_bias;" in line
    assert (tmp_path / "run" / "vocab.txt").read_bytes() == (MINI / "vocab.txt").read_bytes()
    assert "--init_checkpoint=mini" in (tmp_path / "run" / "README.md").read_text(encoding="utf-8")


def test_it_is_converted_by_its_name(tmp_path):
    convert("mini", tmp_path / "new", "nezha_tf")
    assert open_folder(tmp_path / "new").config == open_folder("mini").config


def test_other_files_than_its_own_are_one_line(tmp_path):
    own = json.loads((MINI / "bert_config.json").read_text(encoding="utf-8"))
    for name, changes in (
        ("free", {"hidden_dropout_prob": 0.3}),
        ("other", {"hidden_act": "relu"}),
    ):
        (tmp_path / f"{name}.json").write_text(json.dumps({**own, **changes}))
    begin = {"init_checkpoint": "mini"}
    with pytest.raises(UserError, match="is not the vocabulary of mini; leave it out"):
        inputs.check({**begin, "vocab_file": str(RESOURCES / "vocab.txt")})
    with pytest.raises(UserError, match="has hidden_act relu, but mini has gelu"):
        inputs.check({**begin, "bert_config_file": str(tmp_path / "other.json")})
    inputs.check({**begin, "bert_config_file": str(tmp_path / "free.json")})
