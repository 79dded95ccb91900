"""All objectives in one batch: each example counts as it does in a batch of its objective alone.

And all losses have the methods that a run needs; R-Drop has those of the loss that it wraps.
"""

import keras
import laws
import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st
from objective_models import config_of_segments
from text_rows import LENGTH, VOCABULARY, Record, batch_of, numbers_of, records

from nezha_tf.data import schema
from nezha_tf.objectives.dynamic_masking import DynamicMasking
from nezha_tf.objectives.losses import Loss
from nezha_tf.objectives.mixture import ObjectiveMixture
from nezha_tf.objectives.objective import ExampleSettings
from nezha_tf.objectives.policies import POLICIES
from nezha_tf.objectives.table import OBJECTIVES
from nezha_tf.tasks.classification.loss import ClassificationLoss, MultiLabelLoss, RegressionLoss
from nezha_tf.tasks.finetuning.r_drop import RDrop
from nezha_tf.tasks.reading_comprehension.loss import AnswerSpanLoss
from nezha_tf.tasks.seq2seq.loss import Seq2SeqLoss
from nezha_tf.tasks.tagging.loss import CrfTaggingLoss, TaggingLoss
from nezha_tf.util.errors import UserError

LENGTHS = schema.Lengths(LENGTH, 5)
MASKING = DynamicMasking(VOCABULARY, POLICIES["whole_word"], LENGTHS, 0.15)
EXAMPLES = ExampleSettings(LENGTHS, VOCABULARY, MASKING)
NAMES = list(OBJECTIVES)
MIXTURE = ObjectiveMixture(dict.fromkeys(NAMES, 1.0))
ROWS = 5 * len(NAMES)


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(3)
    made = []
    for number in range(ROWS):
        first, second = rng.integers(4, 11, 2).tolist()
        tokens = rng.integers(len(VOCABULARY) - 60, len(VOCABULARY), first + second).tolist()
        starts = [1] * (first + second)
        made.append(Record(tokens[:first], tokens[first:], starts, number % 3 == 0, number))
    return made


@pytest.fixture(scope="module")
def model():
    keras.utils.set_random_seed(0)
    config = config_of_segments(
        len(VOCABULARY),
    )
    return MIXTURE.model(config)


def transformed(mixture, rows, seed=4):
    batch = batch_of(rows)
    for transform in mixture.transforms(EXAMPLES):
        batch = transform(batch, numbers_of(rows), seed)
    return batch


def test_losses_are_the_sums_of_those_of_each_objective_alone(rows, model):
    batch = transformed(MIXTURE, rows)
    drawn = batch["objective_ids"].numpy()[:, 0]
    assert len(set(drawn.tolist())) == len(NAMES)
    loss = MIXTURE.loss(of_pairs=True)

    @tf.function(jit_compile=True, autograph=False)
    def figures(batch):
        outputs = model(loss.inputs(batch), all_outputs=True)
        return {**loss.losses(outputs, batch), **loss.metrics(outputs, batch)}

    found, sums = figures(batch), {}
    for number, name in enumerate(NAMES):
        own = [row for row, other in zip(rows, drawn, strict=True) if other == number]
        alone = ObjectiveMixture({name: 1.0})
        of_one, given = alone.loss(of_pairs=True), transformed(alone, own)
        outputs = model(of_one.inputs(given), all_outputs=True)
        metrics = of_one.metrics(outputs, given)
        for key, mean in {**of_one.losses(outputs, given), **metrics}.items():
            total, weight = sums.get(key, (0.0, 0.0))
            sums[key] = total + float(mean.sum), weight + float(mean.weight)
            if f"{key}/{name}" in found:
                np.testing.assert_allclose(found[f"{key}/{name}"].sum, mean.sum, rtol=2e-5)
    assert set(sums) <= set(found)
    for key, (total, weight) in sums.items():
        np.testing.assert_allclose(found[key].sum, total, rtol=2e-5, err_msg=key)
        np.testing.assert_allclose(found[key].weight, weight, rtol=1e-6, err_msg=key)


def test_examples_of_each_objective_are_those_of_it_alone(rows):
    """The same tokens, segments, predictions and weights, with zeros for what it does not have."""
    batch = transformed(MIXTURE, rows)
    drawn = batch["objective_ids"].numpy()[:, 0]
    for number, name in enumerate(NAMES):
        places = np.flatnonzero(drawn == number)
        alone = transformed(ObjectiveMixture({name: 1.0}), [rows[place] for place in places])
        for feature, values in batch.items():
            of_one = tf.gather(values, places).numpy()
            if feature == "objective_ids":
                continue
            width = alone[feature].shape[1] if feature in alone else 0
            if width:
                np.testing.assert_array_equal(of_one[:, :width], alone[feature], feature)
            assert not of_one[:, width:].any(), (name, feature)


def test_no_token_of_another_objective_is_replaced(rows, model):
    batch, loss = transformed(MIXTURE, rows), MIXTURE.loss(of_pairs=True)
    is_replaced = model(loss.inputs(batch), all_outputs=True)["is_replaced"].numpy()
    is_own = batch["objective_ids"].numpy()[:, 0] == NAMES.index("replaced_tokens")
    assert is_replaced[is_own].any() and not is_replaced[~is_own].any()


def test_a_batch_without_pairs_is_trained_on(rows, model):
    """There is no next sentence to predict, so its gradient is 0 and not nan."""
    batch, gradients = transformed(MIXTURE, rows), []
    others = tf.where(batch["objective_ids"][:, 0] != NAMES.index("bidirectional"))[:, 0]
    batch = {name: tf.gather(values, others) for name, values in batch.items()}
    tables = [table.value for table in model.encoder.embeddings.trainable_variables]
    for of_pairs in (True, False):
        loss = MIXTURE.loss(of_pairs)
        with tf.GradientTape() as tape:
            losses = loss.losses(model(loss.inputs(batch), all_outputs=True), batch)
            total = sum(mean.over(mean.weight) for mean in losses.values())
        gradients.append(map(tf.convert_to_tensor, tape.gradient(total, tables)))
    assert np.isfinite(total) and "next_sentence_loss" not in losses
    for with_pairs, without in zip(*gradients, strict=True):
        np.testing.assert_allclose(with_pairs, without, atol=1e-6)


def test_label_smoothing_is_of_what_is_trained_alone(rows, model):
    batch = transformed(MIXTURE, rows)
    smooth, plain = (MIXTURE.loss(True, share) for share in (0.2, 0.0))
    outputs = model(plain.inputs(batch), all_outputs=True)
    losses = [float(o.losses(outputs, batch)["masked_lm_loss"].sum) for o in (smooth, plain)]
    assert losses[0] != pytest.approx(losses[1], rel=1e-3)
    name = "masked_lm_loss/seq2seq"
    sums = [float(o.metrics(outputs, batch)[name].sum) for o in (smooth, plain)]
    assert sums[0] == sums[1]


@laws.examples(20)
@given(st.lists(records(), min_size=1, max_size=9), st.integers(), st.randoms())
def test_a_row_depends_on_seed_and_number_alone(rows, seed, random):
    """Not on the batch's other rows, or on its place in the batch."""
    batch = transformed(MIXTURE, rows, seed)
    order = random.sample(range(len(rows)), random.randint(1, len(rows)))
    others = transformed(MIXTURE, [rows[place] for place in order], seed)
    assert others.keys() == batch.keys()
    for feature, values in others.items():
        np.testing.assert_array_equal(values, batch[feature].numpy()[order], feature)


@pytest.mark.parametrize(
    "name", ("span_corruption", "infilling", "mass", "prefix", "permutation", "replaced_tokens")
)
def test_what_makes_tokens_needs_a_vocabulary(name):
    with pytest.raises(UserError, match=f"{name} needs --vocab_file, the vocabulary that"):
        OBJECTIVES[name].transforms(ExampleSettings(LENGTHS))


FINE_TUNED = (
    ClassificationLoss(),
    MultiLabelLoss(),
    RegressionLoss(),
    TaggingLoss(),
    CrfTaggingLoss(),
    AnswerSpanLoss(),
)
PRETRAINED = (
    Seq2SeqLoss(),
    *(objective.loss() for objective in OBJECTIVES.values()),
    MIXTURE.loss(),
)


@pytest.mark.parametrize("loss", (*FINE_TUNED, *PRETRAINED), ids=lambda loss: type(loss).__name__)
def test_losses_have_the_interface(loss):
    assert isinstance(loss, Loss)
    assert hasattr(loss, "predictions") == (loss in FINE_TUNED)
    if getattr(loss, "distributions", None):
        assert isinstance(RDrop(loss, 1.0), Loss)
