"""An objective of another package: one assignment, and it can be trained, loaded and served."""

import json

import laws
import numpy as np
import pytest
import tensorflow as tf
import toy_objective
from commands import settings_of
from conftest import REPOSITORY
from hypothesis import given
from hypothesis import strategies as st
from records import encode_values, write

import nezha_tf
from nezha_tf.checkpoints.folder import open_folder
from nezha_tf.data import schema
from nezha_tf.data.reader import ExampleReader
from nezha_tf.modeling.pretraining import NezhaForMaskedLM, NezhaForPreTraining
from nezha_tf.objectives.dynamic_masking import DynamicMasking
from nezha_tf.objectives.mixture import ObjectiveMixture
from nezha_tf.objectives.objective import Examples
from nezha_tf.objectives.policies import POLICIES
from nezha_tf.objectives.table import OBJECTIVES
from nezha_tf.serving.page import models_of
from nezha_tf.tasks.pretraining.settings import PretrainingSettings
from nezha_tf.tasks.pretraining.task import Pretraining
from nezha_tf.training.run import run
from nezha_tf.util.errors import UserError

TOKENS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *map(chr, range(0x4E00, 0x4E00 + 20))]
CLS, SEP, FIRST = 2, 3, 5
LENGTHS = schema.Lengths(12, 2)
CONFIG = {
    "vocab_size": len(TOKENS),
    "hidden_size": 16,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "intermediate_size": 32,
    "type_vocab_size": 2,
    "use_relative_position": True,
    "hidden_dropout_prob": 0.0,
    "attention_probs_dropout_prob": 0.0,
    "initializer_range": 0.1,
}


def text_of(number):
    """Returns tokens in a cyclic order, so that each one determines the one before it."""
    return [FIRST + (number + place) % 20 for place in range(4 + number % 7)]


def record(number):
    text = text_of(number)
    ids = [CLS, *text, SEP]
    rest = [0] * (LENGTHS.max_seq_length - len(ids))
    values = {
        "input_ids": ids + rest,
        "input_mask": [1] * len(ids) + rest,
        "segment_ids": [0] * LENGTHS.max_seq_length,
        "word_starts": [0, *[1] * len(text), 0, *rest],
        "next_sentence_labels": [0],
    }
    return encode_values(values, schema.UNMASKED_FEATURES)


@pytest.fixture
def toy(monkeypatch):
    objective = toy_objective.PreviousToken()
    monkeypatch.setitem(OBJECTIVES, toy_objective.NAME, objective)
    return objective


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("toy")
    (folder / "config.json").write_text(json.dumps(CONFIG))
    (folder / "vocab.txt").write_text("\n".join(TOKENS) + "\n", encoding="utf-8")
    write(folder / "train.tfrecord", map(record, range(200)))
    write(folder / "eval.tfrecord", map(record, range(200, 240)))
    return folder


def train(folder, monkeypatch, objectives, output_dir, *others):
    monkeypatch.chdir(folder)
    settings = settings_of(
        PretrainingSettings,
        f"--objectives={objectives}",
        f"--output_dir={output_dir}",
        *("--bert_config_file=config.json", "--vocab_file=vocab.txt", "--pair=none"),
        *("--input_file=train.tfrecord", "--eval_file=eval.tfrecord", "--do_train", "--do_eval"),
        *("--max_seq_length=12", "--max_predictions_per_seq=2", "--train_batch_size=16"),
        *("--num_train_steps=120", "--num_warmup_steps=5", "--learning_rate=2e-2"),
        *("--optimizer=adamw", "--log_steps=20", "--nojit_compile", *others),
    )
    run(settings, Pretraining)
    return json.loads((folder / output_dir / "eval_results.json").read_text())


def test_it_is_trained_in_a_mixture_and_loaded(toy, folder, monkeypatch):
    mixture = f"bidirectional:1,{toy_objective.NAME}:3"
    results = train(folder, monkeypatch, mixture, "mixture", "--dynamic_masking=token")
    assert results[f"masked_lm_accuracy/{toy_objective.NAME}"] > 0.9
    assert 0 < results["masked_lm_loss/bidirectional"] < 5
    tokenizer, model = nezha_tf.load("mixture")
    assert type(model) is NezhaForPreTraining
    # Each token determines the one before it, although nothing left of it is visible.
    ids = [[CLS, *text_of(13), SEP]]
    batch = {"input_ids": tf.constant(ids), "input_mask": tf.ones_like(ids)}
    batch |= {"segment_ids": tf.zeros_like(ids), "masked_lm_positions": tf.constant([[4, 3]])}
    logits = model(toy.loss(of_pairs=False).inputs(batch))["masked_lm_logits"]
    assert tf.argmax(logits, axis=-1).numpy().tolist() == [[ids[0][3], ids[0][2]]]
    assert tokenizer.vocabulary.tokens_of([5]) == [TOKENS[5]]
    # The model's use is that of the mixture's other objective.
    assert set(models_of(open_folder("mixture"))) == {"Fill in", "Attention"}


def test_it_is_trained_alone_with_its_own_model(toy, folder, monkeypatch):
    results = train(folder, monkeypatch, toy_objective.NAME, "alone", "--num_train_steps=60")
    assert results["masked_lm_accuracy"] > 0.5 and "next_sentence_loss" not in results
    assert type(nezha_tf.load("alone")[1]) is NezhaForMaskedLM
    assert set(models_of(open_folder("alone"))) == {"Attention"}
    monkeypatch.delitem(OBJECTIVES, toy_objective.NAME)
    with pytest.raises(UserError, match="there is no objective 'previous_token'; they are bidir"):
        nezha_tf.load("alone")


def test_masked_examples_are_none_for_it(toy, folder, monkeypatch):
    with pytest.raises(UserError, match="it is not masked; pass --dynamic_masking"):
        train(folder, monkeypatch, f"bidirectional,{toy_objective.NAME}", "refused")


def batch_for(vocabulary, shares, numbers, seed):
    """Returns the examples of a mixture, and the objective of each."""
    masking = DynamicMasking(vocabulary, POLICIES["token"], LENGTHS, 0.2)
    mixture, examples = ObjectiveMixture(shares), Examples(LENGTHS, vocabulary, masking)
    spec = schema.parsing_spec(LENGTHS, mixture.features(examples))
    parsed = tf.io.parse_example([record(number) for number in numbers], spec)
    batch = {name: tf.cast(values, tf.int32) for name, values in parsed.items()}
    for transform in mixture.transforms(examples):
        batch = transform(batch, tf.constant(numbers, tf.int64), seed)
    drawn = batch.pop("objective_ids", tf.zeros((len(numbers), 1), tf.int32))
    return batch, [list(mixture.objectives)[place] for place in drawn.numpy()[:, 0]]


@laws.examples(15)
@given(
    st.fixed_dictionaries(
        {name: st.floats(0.1, 1) for name in ("bidirectional", toy_objective.NAME)}
    ),
    st.lists(st.integers(0, 10_000), min_size=1, max_size=6),
    st.integers(0, 2**32),
)
def test_its_rows_in_a_mixture_are_those_of_it_alone(toy, shares, numbers, seed):
    """Rows are padded with zeros if the other objective has more predictions."""
    vocabulary = nezha_tf.Vocabulary(TOKENS)
    found, drawn = batch_for(vocabulary, shares, numbers, seed)
    for name in set(drawn):
        places = [place for place, other in enumerate(drawn) if other == name]
        alone, _ = batch_for(vocabulary, {name: 1.0}, [numbers[n] for n in places], seed)
        for feature, values in alone.items():
            rows = found[feature].numpy()[places]
            length = values.shape[1]
            np.testing.assert_array_equal(rows[:, :length], values, feature)
            assert not rows[:, length:].any()
        if name == toy_objective.NAME:
            assert_predicts_the_token_before(alone, numbers, places)


def assert_predicts_the_token_before(batch, numbers, places):
    for row, place in enumerate(places):
        ids = [CLS, *text_of(numbers[place]), SEP]
        count = int(batch["masked_lm_weights"][row].numpy().sum())
        positions = batch["masked_lm_positions"][row].numpy()[:count]
        assert count == min(toy_objective.PREDICTIONS, len(ids) - 3)
        assert len(set(positions)) == count
        assert all(2 <= position < len(ids) - 1 for position in positions)
        labels = [ids[position - 1] for position in positions]
        assert batch["masked_lm_ids"][row].numpy()[:count].tolist() == labels


def test_the_batch_size_changes_no_example(toy, folder):
    vocabulary = nezha_tf.Vocabulary(TOKENS)
    masking = DynamicMasking(vocabulary, POLICIES["token"], LENGTHS, 0.2)
    mixture = ObjectiveMixture({"bidirectional": 1.0, toy_objective.NAME: 1.0})
    examples = Examples(LENGTHS, vocabulary, masking)
    reader = ExampleReader(
        [str(folder / "train.tfrecord")],
        LENGTHS,
        schema.Limits(len(TOKENS), 2),
        features=mixture.features(examples),
        transforms=mixture.transforms(examples),
    )
    found = []
    for size in (4, 6, 24):
        batches = list(reader.training_batches(size, seed=3).take(48 // size))
        assert batches[0]["masked_lm_ids"].shape == (size, toy_objective.PREDICTIONS)
        found.append({n: tf.concat([b[n] for b in batches], 0).numpy() for n in batches[0]})
    for other in found[1:]:
        for name, values in found[0].items():
            np.testing.assert_array_equal(values, other[name], name)


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_recipe_is_this_code(language):
    """`extending.md` shows it as lines to add, but for the line on what it is."""
    recipe = (REPOSITORY / "docs" / language / "extending.md").read_text(encoding="utf-8")
    blocks = [block.split("```")[0] for block in recipe.split("```diff\n")]
    shown = next(block for block in blocks if "class ChoosePlaces" in block).splitlines()
    own = (REPOSITORY / "tests" / "toy_objective.py").read_text(encoding="utf-8").splitlines()
    assert [line.removeprefix("+") for line in shown[1:]] == own[1:]
