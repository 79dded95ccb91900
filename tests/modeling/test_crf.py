"""The conditional random field against an enumeration of all paths of tags."""

import itertools

import numpy as np
import pytest
import tensorflow as tf
from small_crf import CONFIG, HAS_TAG, L, make_batch

from nezha_tf import checkpoints
from nezha_tf.modeling import crf
from nezha_tf.modeling.finetuning import NezhaForCrfTagging
from nezha_tf.tasks.tagging.loss import CrfTaggingLoss


def make_chain(scale=2.0):
    rng = np.random.default_rng(0)
    tables = [rng.normal(size=shape) * scale for shape in ((5, 5, L), (L,), (L, L), (L,))]
    logits, *rest = (tf.constant(table, tf.float32) for table in tables)
    return crf.Chain(logits, tf.constant(HAS_TAG), *rest)


def paths(chain, row):
    """Yields (path, score, counts) of a row; the counts of logits and transitions are a `Chain`."""
    logits, has_tag, *tables = (np.array(values, np.float64) for values in chain)
    places = np.flatnonzero(has_tag[row])
    for path in itertools.product(range(L), repeat=len(places)):
        counts = crf.Chain(np.zeros_like(logits), None, *map(np.zeros_like, tables))
        counts.logits[row, places, path] = 1
        if path:
            counts.start[path[0]] = counts.end[path[-1]] = 1
        for before, after in itertools.pairwise(path):
            counts.transitions[before, after] += 1
        values = (logits, *tables)
        score = sum((v * c).sum() for v, c in zip(values, _tables(counts), strict=True))
        yield path, score, counts


def _tables(chain):
    return chain.logits, chain.start, chain.transitions, chain.end


@pytest.mark.parametrize("jit_compile", (False, True))
def test_against_all_paths(jit_compile):
    """Partition, best path, marginals, likelihood and gradients, in a graph with dynamic length."""
    chain = make_chain()
    rng = np.random.default_rng(1)
    tag_ids = rng.integers(0, L, HAS_TAG.shape).astype("int32")
    weights = np.array([1.0, 2.0, 0.5, 3.0, 1.0], "float32")

    @tf.function(
        jit_compile=jit_compile,
        input_signature=[
            tf.TensorSpec((None, None, L)),
            tf.TensorSpec((None, None), tf.bool),
            *(tf.TensorSpec(shape) for shape in ((L,), (L, L), (L,))),
            tf.TensorSpec((None, None), tf.int32),
        ],
    )
    def found(*tensors):
        chain = crf.Chain(*tensors[:5])
        with tf.GradientTape(persistent=True) as tape:
            tape.watch(_tables(chain))
            partitions = crf.log_partitions(chain)
            likelihoods = crf.log_likelihoods(chain, tensors[5])
            totals = tf.reduce_sum(partitions * weights), tf.reduce_sum(likelihoods * weights)
        gradients = [tape.gradient(total, _tables(chain)) for total in totals]
        return partitions, likelihoods, gradients, crf.viterbi(chain), crf.marginals(chain)

    partitions, likelihoods, gradients, best, marginals = found(*chain, tag_ids)
    expected = [[np.zeros(v.shape) for v in _tables(chain)] for _ in range(2)]
    for row, has_tag in enumerate(HAS_TAG):
        all_paths = list(paths(chain, row))
        scores = np.array([score for _, score, _ in all_paths])
        partition = np.logaddexp.reduce(scores)
        assert float(partitions[row]) == pytest.approx(partition, abs=1e-5)
        right = tuple(tag_ids[row, has_tag])
        _, score, of_right = next(p for p in all_paths if p[0] == right)
        assert float(likelihoods[row]) == pytest.approx(score - partition, abs=1e-5)
        path = np.zeros(5, int)
        path[has_tag] = all_paths[scores.argmax()][0]
        np.testing.assert_array_equal(best[row], path)
        probabilities = np.exp(scores - partition)
        means = [
            sum(
                p * _tables(counts)[i]
                for p, (_, _, counts) in zip(probabilities, all_paths, strict=True)
            )
            for i in range(4)
        ]
        np.testing.assert_allclose(marginals[row], means[0][row], atol=1e-5)
        for i in range(4):
            expected[0][i] += weights[row] * means[i]
            expected[1][i] += weights[row] * (_tables(of_right)[i] - means[i])
    for ours, theirs in zip(gradients, expected, strict=True):
        for gradient, mean in zip(ours, theirs, strict=True):
            np.testing.assert_allclose(gradient, mean, atol=2e-5)


def test_long_sequences_of_sure_tags_stay_exact():
    """512 tokens with logits up to 50: marginals sum to 1, and nothing overflows."""
    rng = np.random.default_rng(0)
    logits = tf.constant(rng.normal(size=(2, 512, 9)) * 50, tf.float32)
    has_tag = tf.constant(np.arange(512) < np.array([[512], [300]]))
    tables = (tf.constant(rng.normal(size=shape), tf.float32) for shape in ((9,), (9, 9), (9,)))
    chain = crf.Chain(logits, has_tag, *tables)
    sums, likelihoods = tf.function(
        lambda: (
            tf.reduce_sum(crf.marginals(chain), axis=-1),
            crf.log_likelihoods(chain, crf.viterbi(chain)),
        )
    )()
    np.testing.assert_allclose(sums, tf.cast(has_tag, tf.float32), atol=1e-5)
    assert np.all(np.abs(likelihoods) < 60)


def test_the_model_is_float32_in_its_chain_and_has_names(tmp_path):
    model = NezhaForCrfTagging(CONFIG, L, dtype="mixed_bfloat16")
    batch, objective = make_batch(), CrfTaggingLoss()
    outputs = model(objective.inputs(batch), all_outputs=True)
    assert {values.dtype for values in outputs["chain"]} == {tf.float32, tf.bool}
    losses = objective.losses(outputs, batch)["tagging_loss"]
    # Transitions start at 0, where tags are independent.
    nll = tf.nn.sparse_softmax_cross_entropy_with_logits(batch["label_ids"], outputs["logits"])
    assert float(losses.sum) == pytest.approx(float(tf.reduce_sum(nll[HAS_TAG])), rel=1e-5)
    assert float(losses.weight) == HAS_TAG.sum()
    found = objective.predictions(outputs)
    probabilities = tf.reduce_max(tf.nn.softmax(outputs["logits"]), axis=-1)
    np.testing.assert_allclose(found["probabilities"], probabilities * HAS_TAG, atol=1e-5)
    best = np.argmax(outputs["logits"], axis=-1)
    np.testing.assert_array_equal(found["tag_ids"], best * HAS_TAG)

    model.crf.transitions.assign(np.arange(9.0).reshape(3, 3))
    prefix = str(tmp_path / "model.ckpt")
    checkpoints.save_tf1_checkpoint(model, prefix)
    shapes = dict(tf.train.list_variables(prefix))
    assert shapes["crf/transitions"] == [3, 3] and shapes["crf/start_transitions"] == [3]
    other = NezhaForCrfTagging(CONFIG, L)
    assert not checkpoints.load_tf1_checkpoint(other, prefix).missing
    np.testing.assert_array_equal(other.crf.transitions, model.crf.transitions)
