"""Losses of given tokens, without the scores of the whole vocabulary for all of them at once."""

import math

import keras
from keras import ops

from nezha_tf.modeling.compiled_parts import fused

# The number of predictions whose scores exist at a time.
CHUNK = 512
# With more scores than this at once (256 MiB in float32), masked LM is computed in chunks, too.
MOST_SCORES = 2**26
# The rows of the result: see `label_scores`.
LOSS, EVEN_LOSS, HIT = range(3)


def are_many(labels, tokens):
    """Whether the scores of `tokens` tokens for all labels should not exist at a time."""
    return None not in labels.shape and math.prod(labels.shape) * tokens > MOST_SCORES


def label_scores(states, table, bias, labels, is_used, training=False):
    """Scores the vocabulary for each state, and keeps only what a loss needs.

    The used predictions are computed in chunks, so that no [N, V] tensor exists, and unused ones
    cost nothing. The gradient needs the scores again. A loss mostly is a multiple of the sum of all
    used cross-entropies; so in training the gradient of this sum is computed with the scores, and
    the backward pass multiplies it. For any other loss, outside of training, and in float16, the
    backward pass computes the scores anew. The result is the same but for rounding.

    Args:
      states: [N, E], N static.
      table: [V, E], of the states' dtype.
      bias: float32 [V].
      labels: int32 [N].
      is_used: bool [N].
      training: whether a gradient will be asked for; it costs time if there is none.

    Returns:
      float32 [3, N], 0 for unused predictions: the cross-entropy of the label; the cross-entropy
      of an even distribution (see `label_smoothing` of `objectives.losses.cross_entropies`); and,
      without a gradient, 1 if the label is the most probable token, else 0.
    """
    # In float16 the loss scale must come before the cast, in which probabilities below 3e-8 vanish;
    # the gradient of the sum is made before anything is known of the scale.
    with_sum = training and keras.backend.standardize_dtype(states.dtype) != "float16"
    chunks = _Chunks(labels, is_used)
    return ops.where(is_used, chunks.scores(states, table, bias, with_sum), 0.0)


class _Chunks:
    """The scores of predictions and their gradient, one chunk at a time; used ones come first."""

    def __init__(self, labels, is_used):
        self._order = ops.argsort(ops.cast(ops.logical_not(is_used), "int32"))
        self._places = ops.argsort(self._order)  # the inverse of the order
        self._size = min(CHUNK, labels.shape[0])
        self._padding = -labels.shape[0] % self._size
        self._labels = self._ordered(labels, 0)
        self._is_used = self._ordered(is_used, 0)
        count = ops.sum(ops.cast(is_used, "int32"))
        self._num_chunks = (count + self._size - 1) // self._size

    def scores(self, states, table, bias, with_sum):
        @ops.custom_gradient
        def function(states, table, bias):
            factors = (self._ordered(states, 0), table, bias)
            found, of_sum = self._forward(factors, with_sum)

            def gradient(*upstream, **_):
                slopes = self._ordered(upstream[-1], 1)
                of_states, *others = self._backward(factors, slopes, of_sum)
                return (ops.take(of_states, self._places, axis=0), *others)

            return ops.take(found, self._places, axis=1), gradient

        return function(states, table, bias)

    def _ordered(self, values, axis):
        """Returns values in the order of the chunks, padded to whole chunks."""
        padding = [(0, 0)] * len(values.shape)
        padding[axis] = (0, self._padding)
        return ops.pad(ops.take(values, self._order, axis=axis), padding)

    def _forward(self, factors, with_sum):
        """Returns (scores [3, N]; the gradients of the sum of all losses, [] without the sum)."""

        bias = factors[2]

        def chunk(start, found, *of_sum):
            product, labels = self._product(start, factors), self._at(start, self._labels)
            if not with_sum:
                own = _scores(product, bias, labels)
                return (ops.slice_update(found, (0, start), own),)
            one = ops.cast(self._at(start, self._is_used), "float32")
            own, *changes = _scores_and_changes(product, bias, labels, one)
            found = ops.slice_update(found, (0, start), own)
            return (found, *self._added(start, changes, factors, of_sum))

        of_sum = self._no_gradients(factors) if with_sum else []
        found = ops.zeros((3, self._labels.shape[0]), "float32")
        found, *of_sum = self._over_chunks(chunk, (found, *of_sum))
        return found, of_sum

    def _backward(self, factors, slopes, of_sum):
        """Returns the gradients of the factors for slopes, float32 [3, N], of the scores."""
        if not of_sum:
            return self._anew(factors, slopes)
        both = slopes[LOSS] + slopes[EVEN_LOSS]
        are_equal = ops.all(ops.equal(both, both[0]) | ops.logical_not(self._is_used))
        return ops.cond(
            are_equal,
            lambda: self._multiplied(factors, both[0], slopes[EVEN_LOSS], of_sum),
            lambda: self._anew(factors, slopes),
        )

    def _multiplied(self, factors, factor, of_even, of_sum):
        """Returns `factor` times the gradients of the sum, with those of smoothed labels.

        Smoothing moves a part of each slope from the label to all tokens alike.
        """
        states, table, _ = factors
        tokens, dtype = table.shape[0], states.dtype
        moved = ops.cast(states, "float32") * of_even[:, None]
        rows = ops.cast(ops.take(table, self._labels, axis=0), "float32")
        rows = of_even[:, None] * (rows - ops.mean(ops.cast(table, "float32"), axis=0))
        to_labels = ops.segment_sum(moved, self._labels, tokens) - ops.sum(moved, axis=0) / tokens
        bias = ops.segment_sum(of_even, self._labels, tokens) - ops.sum(of_even) / tokens
        of_states, of_table, of_bias = of_sum
        return (
            ops.cast(factor * ops.cast(of_states, "float32") + rows, dtype),
            ops.cast(factor * of_table + to_labels, dtype),
            factor * of_bias + bias,
        )

    def _anew(self, factors, slopes):
        """Returns the gradients of the factors for any slopes, from scores that are made again."""

        def chunk(start, *gradients):
            product, labels = self._product(start, factors), self._at(start, self._labels)
            own = ops.slice(slopes, (0, start), (3, self._size))
            changes = _changes(product, factors[2], labels, own[LOSS], own[EVEN_LOSS])
            return self._added(start, changes, factors, gradients)

        of_states, of_table, of_bias = self._over_chunks(chunk, self._no_gradients(factors))
        return of_states, ops.cast(of_table, factors[1].dtype), of_bias

    def _no_gradients(self, factors):
        states, table, bias = factors
        sums = (ops.zeros(values.shape, "float32") for values in (table, bias))
        return (ops.zeros(states.shape, states.dtype), *sums)

    def _added(self, start, changes, factors, gradients):
        """Returns gradients with those of a chunk; `changes` are those of its product and bias."""
        states, table, _ = factors
        of_states, of_table, of_bias = gradients
        of_product, of_own_bias = changes
        of_own_table = ops.matmul(ops.transpose(of_product), self._at(start, states))
        return (
            ops.slice_update(of_states, (start, 0), ops.matmul(of_product, table)),
            of_table + ops.cast(of_own_table, "float32"),
            of_bias + of_own_bias,
        )

    def _over_chunks(self, chunk, values):
        def step(number, *values):
            return (number + 1, *chunk(number * self._size, *values))

        def goes_on(number, *values):
            return number < self._num_chunks

        return ops.while_loop(goes_on, step, (ops.cast(0, "int32"), *values))[1:]

    def _product(self, start, factors):
        states, table, _ = factors
        return ops.matmul(self._at(start, states), ops.transpose(table))

    def _at(self, start, values):
        rest = tuple(values.shape[1:])
        return ops.slice(values, (start, *[0] * len(rest)), (self._size, *rest))


@fused
def _scores(product, bias, labels):
    """Returns float32 [3, n], see `label_scores`, of the products [n, V] without the bias."""
    return _scores_of_logits(*_logits(product, bias), labels)


@fused
def _changes(product, bias, labels, of_loss, of_even):
    """Returns the gradients of the products and of the bias for the slopes of both losses, [n]."""
    change = _change(*_logits(product, bias), labels, of_loss, of_even)
    return ops.cast(change, product.dtype), ops.sum(change, axis=0)


@fused
def _scores_and_changes(product, bias, labels, of_loss):
    """Returns the result of `_scores`, then those of `_changes`, in one pass."""
    logits, log_sum = _logits(product, bias)
    change = _change(logits, log_sum, labels, of_loss, ops.zeros_like(of_loss))
    scores = _scores_of_logits(logits, log_sum, labels)
    return scores, ops.cast(change, product.dtype), ops.sum(change, axis=0)


def _logits(product, bias):
    logits = ops.cast(product, "float32") + bias
    return logits, ops.logsumexp(logits, axis=-1)


def _scores_of_logits(logits, log_sum, labels):
    own = ops.take_along_axis(logits, labels[:, None], axis=-1)[:, 0]
    even = log_sum - ops.mean(logits, axis=-1)
    hit = ops.cast(ops.equal(ops.argmax(logits, axis=-1), labels), "float32")
    return ops.stack([log_sum - own, even, hit])


def _change(logits, log_sum, labels, of_loss, of_even):
    """Returns the gradients of logits, [n, V], for the slopes of both losses, each [n]."""
    tokens = logits.shape[-1]
    is_label = ops.equal(ops.arange(tokens, dtype="int32"), labels[:, None])
    both, of_even = (of_loss + of_even)[:, None], of_even[:, None]
    change = both * ops.exp(logits - log_sum[:, None]) - of_even / tokens
    return change - ops.where(is_label, of_loss[:, None], 0.0)
