"""Losses of given pieces, without the scores of the whole vocabulary for all of them at once."""

import math

from keras import ops

# The number of predictions whose scores exist at a time.
CHUNK = 512
# Above so many scores at once (256 MiB in float32), masked LM is computed in chunks, too.
MOST_SCORES = 2**26
# The rows of the result: see `label_scores`.
LOSS, EVEN_LOSS, HIT = range(3)


def are_many(labels, pieces):
    """Returns whether the scores of `pieces` pieces for all labels should not exist at a time.

    Args:
      labels: int tensor; if its shape is not static, the result is False.
      pieces: V.
    """
    return None not in labels.shape and math.prod(labels.shape) * pieces > MOST_SCORES


def label_scores(states, table, bias, labels, is_used):
    """Scores the vocabulary for each state, and keeps only what a loss needs.

    The used predictions are computed in chunks, forward and again backward, so that no [N, V]
    tensor exists, and unused ones cost nothing.

    Args:
      states: [N, E], N static.
      table: [V, E], of the states' dtype.
      bias: float32 [V].
      labels: int32 [N].
      is_used: bool [N].

    Returns:
      float32 [3, N], 0 for unused predictions: the cross-entropy of the label; the cross-entropy
      of an even distribution (see `label_smoothing` of `objectives.losses.cross_entropies`); and,
      without a gradient, 1 if the label is the most probable piece, else 0.
    """
    return ops.where(is_used, _Chunks(labels, is_used).scores(states, table, bias), 0.0)


class _Chunks:
    """The scores of predictions and their gradient, one chunk at a time; used ones come first."""

    def __init__(self, labels, is_used):
        """Args:
        labels: int32 [N].
        is_used: bool [N].
        """
        self._order = ops.argsort(ops.cast(ops.logical_not(is_used), "int32"))
        self._places = ops.argsort(self._order)  # the inverse of the order
        self._size = min(CHUNK, labels.shape[0])
        self._padding = -labels.shape[0] % self._size
        self._labels = self._ordered(labels, 0)
        count = ops.sum(ops.cast(is_used, "int32"))
        self._num_chunks = (count + self._size - 1) // self._size

    def scores(self, states, table, bias):
        """Returns float32 [3, N]; see `label_scores`."""

        @ops.custom_gradient
        def function(states, table, bias):
            ordered = self._ordered(states, 0)

            def gradient(*upstream, **_):
                slopes = self._ordered(upstream[-1], 1)
                of_states, *others = self._gradients(ordered, table, bias, slopes)
                return (ops.take(of_states, self._places, axis=0), *others)

            found = self._forward(ordered, table, bias)
            return ops.take(found, self._places, axis=1), gradient

        return function(states, table, bias)

    def _ordered(self, values, axis):
        """Returns values in the order of the chunks, padded to whole chunks."""
        padding = [(0, 0)] * len(values.shape)
        padding[axis] = (0, self._padding)
        return ops.pad(ops.take(values, self._order, axis=axis), padding)

    def _forward(self, states, table, bias):
        def chunk(start, found):
            logits, labels = self._logits(start, states, table, bias), self._labels_at(start)
            log_sum = ops.logsumexp(logits, axis=-1)
            own = ops.take_along_axis(logits, labels[:, None], axis=-1)[:, 0]
            even = log_sum - ops.mean(logits, axis=-1)
            hit = ops.cast(ops.equal(ops.argmax(logits, axis=-1), labels), "float32")
            scores = ops.stack([log_sum - own, even, hit])
            return (ops.slice_update(found, (0, start), scores),)

        return self._over_chunks(chunk, (ops.zeros((3, states.shape[0]), "float32"),))[0]

    def _gradients(self, states, table, bias, upstream):
        vocabulary = table.shape[0]

        def chunk(start, of_states, of_table, of_bias):
            logits, labels = self._logits(start, states, table, bias), self._labels_at(start)
            slopes = ops.slice(upstream, (0, start), (2, self._size))
            of_loss, of_even = slopes[LOSS][:, None], slopes[EVEN_LOSS][:, None]
            is_label = ops.equal(ops.arange(vocabulary, dtype="int32"), labels[:, None])
            change = (of_loss + of_even) * ops.softmax(logits, axis=-1) - of_even / vocabulary
            change = change - ops.where(is_label, of_loss, 0.0)
            narrow = ops.cast(change, states.dtype)
            own = ops.slice(states, (start, 0), (self._size, states.shape[1]))
            more = ops.cast(ops.matmul(ops.transpose(narrow), own), "float32")
            return (
                ops.slice_update(of_states, (start, 0), ops.matmul(narrow, table)),
                of_table + more,
                of_bias + ops.sum(change, axis=0),
            )

        start = (
            ops.zeros(states.shape, states.dtype),
            ops.zeros(table.shape, "float32"),
            ops.zeros(bias.shape, "float32"),
        )
        of_states, of_table, of_bias = self._over_chunks(chunk, start)
        return of_states, ops.cast(of_table, table.dtype), of_bias

    def _over_chunks(self, chunk, values):
        def step(number, *values):
            return (number + 1, *chunk(number * self._size, *values))

        def goes_on(number, *values):
            return number < self._num_chunks

        return ops.while_loop(goes_on, step, (ops.cast(0, "int32"), *values))[1:]

    def _logits(self, start, states, table, bias):
        own = ops.slice(states, (start, 0), (self._size, states.shape[1]))
        # With the table as the left factor, as in `MaskedLMHead`.
        logits = ops.transpose(ops.matmul(table, ops.transpose(own)))
        return ops.cast(logits, "float32") + bias

    def _labels_at(self, start):
        return ops.slice(self._labels, (start,), (self._size,))
