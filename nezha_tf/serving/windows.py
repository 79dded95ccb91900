"""Divides long texts into windows, inside a graph."""

from typing import NamedTuple

import tensorflow as tf

# Windows that the model reads at a time, so that long texts do not need more memory.
CHUNK = 32


class Windows(NamedTuple):
    """Windows of texts; the windows of one text follow each other. All are int64."""

    rows: tf.Tensor  # [W], the text to which each window belongs
    starts: tf.Tensor  # [W], the first token of each window
    lengths: tf.Tensor  # [W], the number of tokens of each window
    counts: tf.Tensor  # [B], the number of windows of each text

    @property
    def firsts(self):
        """The index of each text's first window, int64 [B]."""
        return tf.cumsum(self.counts, exclusive=True)

    def show(self, ragged):
        """Returns the parts of a RaggedTensor [B, (P)] in the windows: RaggedTensor [W, (n)]."""
        begin = tf.gather(ragged.row_starts(), self.rows) + self.starts
        return tf.gather(ragged.values, tf.ragged.range(begin, begin + self.lengths))

    def best(self, rows, tokens, size, stride):
        """Returns the window in which each token has the most context, int64 [N].

        The context is the smaller distance to the window's ends plus a hundredth of its length; of
        ties the first window counts (`_check_is_max_context` of run_squad.py). It is one of the two
        windows whose middles are nearest to the token, or the last one, which may be shorter.

        Args:
          rows: int64 [N], the text of each token.
          tokens: int64 [N], the place of each token in its text.
          size, stride: see `windows_on`.
        """
        size = tf.gather(tf.broadcast_to(tf.cast(size, tf.int64), tf.shape(self.counts)), rows)
        first = tf.gather(self.firsts, rows)
        last = first + tf.gather(self.counts, rows) - 1
        lower = tf.clip_by_value(first + (2 * tokens - (size - 1)) // (2 * stride), first, last)
        best, most = lower, self._context(tokens, lower)
        for window in (tf.minimum(lower + 1, last), last):
            context = self._context(tokens, window)
            best, most = tf.where(context > most, window, best), tf.maximum(context, most)
        return best

    def _context(self, tokens, window):
        left = tokens - tf.gather(self.starts, window)
        length = tf.gather(self.lengths, window)
        right = length - 1 - left
        context = tf.cast(tf.minimum(left, right), tf.float64) + 0.01 * tf.cast(length, tf.float64)
        return tf.where((left >= 0) & (right >= 0), context, tf.float64.min)


def windows_on(num_tokens, size, stride, is_last_full):
    """Returns the `Windows` that cover texts in order; a text without tokens has one, too.

    Args:
      num_tokens: int64 [B], the number of tokens of each text.
      size: int, or int64 [B]: largest number of tokens of a window.
      stride: int, number of tokens from the start of one window to the start of the next.
      is_last_full: whether the last window begins earlier, so that it is full.
    """
    size = tf.broadcast_to(tf.cast(size, tf.int64), tf.shape(num_tokens))
    beyond = tf.maximum(num_tokens - size, 0)
    counts = -(-beyond // stride) + 1
    number = tf.ragged.range(counts)
    rows, starts = number.value_rowids(), number.values * stride
    if is_last_full:
        starts = tf.minimum(starts, tf.gather(beyond, rows))
    lengths = tf.minimum(tf.gather(size, rows), tf.gather(num_tokens, rows) - starts)
    return Windows(rows, starts, lengths, counts)


def in_chunks(function, inputs, dtypes):
    """Calls a function for some windows at a time, and joins its results.

    It takes and returns dicts of name to tensor [W, T]; `dtypes` has those of the outputs.
    """
    total = tf.shape(next(iter(inputs.values())))[0]
    count = tf.maximum(-(-total // CHUNK), 1)
    arrays = {
        name: tf.TensorArray(dtype, count, infer_shape=False, element_shape=[None, None])
        for name, dtype in dtypes.items()
    }

    def step(index, arrays):
        part = slice(index * CHUNK, (index + 1) * CHUNK)
        outputs = function({name: values[part] for name, values in inputs.items()})
        return index + 1, {n: array.write(index, outputs[n]) for n, array in arrays.items()}

    _, arrays = tf.while_loop(
        lambda index, _: index < count, step, (0, arrays), parallel_iterations=1
    )
    return {name: tf.ensure_shape(array.concat(), [None, None]) for name, array in arrays.items()}
