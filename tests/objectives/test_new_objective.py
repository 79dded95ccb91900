"""An objective of another package: one assignment, and it can be trained, loaded and served."""

import pytest
import small_runs
import tensorflow as tf
import toy_objective
from conftest import REPOSITORY
from small_runs import CLS, LENGTHS, SEP, TOKENS, record, text_of, write_data

import nezha_tf
from nezha_tf.checkpoints.folder import open_folder
from nezha_tf.data import schema
from nezha_tf.modeling.pretraining import NezhaForMaskedLM, NezhaForPreTraining
from nezha_tf.objectives.table import OBJECTIVES
from nezha_tf.serving.page import models_of
from nezha_tf.util.errors import UserError


@pytest.fixture
def toy(monkeypatch):
    objective = toy_objective.PreviousToken()
    monkeypatch.setitem(OBJECTIVES, toy_objective.NAME, objective)
    return objective


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("toy")
    write_data(folder, type_vocab_size=2)
    return folder


def train(folder, output_dir, objectives, *flags):
    flags = ("--do_eval", "--num_train_steps=120", "--learning_rate=2e-2", *flags)
    return small_runs.train(folder, output_dir, objectives, *flags)


def test_it_is_trained_in_a_mixture_and_loaded(toy, folder):
    mixture = f"bidirectional:1,{toy_objective.NAME}:3"
    results = train(folder, "mixture", mixture, "--dynamic_masking=token")
    assert results[f"masked_lm_accuracy/{toy_objective.NAME}"] > 0.9
    assert 0 < results["masked_lm_loss/bidirectional"] < 5
    tokenizer, model = nezha_tf.load(str(folder / "mixture"))
    assert type(model) is NezhaForPreTraining
    # Each token determines the one before it, although nothing left of it is visible.
    ids = [[CLS, *text_of(13), SEP]]
    batch = {"input_ids": tf.constant(ids), "input_mask": tf.ones_like(ids)}
    batch |= {"segment_ids": tf.zeros_like(ids), "masked_lm_positions": tf.constant([[4, 3]])}
    logits = model(toy.loss(of_pairs=False).inputs(batch))["masked_lm_logits"]
    assert tf.argmax(logits, axis=-1).numpy().tolist() == [[ids[0][3], ids[0][2]]]
    assert tokenizer.vocabulary.tokens_of([5]) == [TOKENS[5]]
    # The model's use is that of the mixture's other objective.
    assert set(models_of(open_folder(folder / "mixture"))) == {"Fill in", "Attention"}


def test_it_is_trained_alone_with_its_own_model(toy, folder, monkeypatch):
    results = train(folder, "alone", toy_objective.NAME, "--num_train_steps=6")
    assert "masked_lm_accuracy" in results and "next_sentence_loss" not in results
    assert type(nezha_tf.load(str(folder / "alone"))[1]) is NezhaForMaskedLM
    assert set(models_of(open_folder(folder / "alone"))) == {"Attention"}
    monkeypatch.delitem(OBJECTIVES, toy_objective.NAME)
    with pytest.raises(UserError, match="there is no objective 'previous_token'; they are bidir"):
        nezha_tf.load(str(folder / "alone"))


def test_masked_examples_are_none_for_it(toy, folder):
    with pytest.raises(UserError, match="it is not masked; pass --dynamic_masking"):
        train(folder, "refused", f"bidirectional,{toy_objective.NAME}")


def test_it_predicts_the_token_before():
    numbers = range(40)
    spec = schema.parsing_spec(LENGTHS, schema.UNMASKED_FEATURES)
    parsed = tf.io.parse_example([record(number) for number in numbers], spec)
    batch = {name: tf.cast(values, tf.int32) for name, values in parsed.items()}
    batch = toy_objective.ChoosePlaces()(batch, tf.range(40, dtype=tf.int64), 3)
    for row in numbers:
        ids = [CLS, *text_of(row), SEP]
        count = int(batch["masked_lm_weights"][row].numpy().sum())
        positions = batch["masked_lm_positions"][row].numpy()[:count]
        assert count == len(set(positions)) == min(toy_objective.PREDICTIONS, len(ids) - 3)
        assert all(2 <= position < len(ids) - 1 for position in positions)
        labels = [ids[position - 1] for position in positions]
        assert batch["masked_lm_ids"][row].numpy()[:count].tolist() == labels


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_recipe_is_this_code(language):
    """`extending.md` shows it as lines to add, but for the line on what it is."""
    recipe = (REPOSITORY / "docs" / language / "extending.md").read_text(encoding="utf-8")
    blocks = [block.split("```")[0] for block in recipe.split("```diff\n")]
    shown = next(block for block in blocks if "class ChoosePlaces" in block).splitlines()
    own = (REPOSITORY / "tests" / "toy_objective.py").read_text(encoding="utf-8").splitlines()
    assert [line.removeprefix("+") for line in shown[1:]] == own[1:]
