"""Long texts as windows, inside a graph."""

from typing import NamedTuple

import tensorflow as tf

# Windows that a model reads at a time: what they take does not grow with the text.
CHUNK = 32


class Windows(NamedTuple):
    """Windows on texts; those of one text stand behind each other.

    Attributes:
      rows: int64 [W], the text that each shows pieces of.
      starts: int64 [W], the first of these pieces.
      lengths: int64 [W], how many they are.
      counts: int64 [B], how many windows each text has.
    """

    rows: tf.Tensor
    starts: tf.Tensor
    lengths: tf.Tensor
    counts: tf.Tensor

    @property
    def firsts(self):
        """Which window is each text's first, int64 [B]."""
        return tf.cumsum(self.counts, exclusive=True)

    def show(self, ragged):
        """Returns what the windows show of a RaggedTensor [B, (P)]: RaggedTensor [W, (n)]."""
        begin = tf.gather(ragged.row_starts(), self.rows) + self.starts
        return tf.gather(ragged.values, tf.ragged.range(begin, begin + self.lengths))


def windows_on(num_pieces, size, stride, is_last_full):
    """Returns the `Windows` on texts; each has one, whatever its length.

    Args:
      num_pieces: int64 [B], P of each text.
      size: int, or int64 [B]: pieces of a window.
      stride: int, from one start to the next.
      is_last_full: whether the last window is moved back until it is full (as
        `tagging.alignment.window_starts`), or shows what is left (as `stretches_of` of
        `reading_comprehension.windows`).
    """
    size = tf.broadcast_to(tf.cast(size, tf.int64), tf.shape(num_pieces))
    beyond = tf.maximum(num_pieces - size, 0)
    counts = -(-beyond // stride) + 1
    number = tf.ragged.range(counts)
    rows, starts = number.value_rowids(), number.values * stride
    if is_last_full:
        starts = tf.minimum(starts, tf.gather(beyond, rows))
    lengths = tf.minimum(tf.gather(size, rows), tf.gather(num_pieces, rows) - starts)
    return Windows(rows, starts, lengths, counts)


def in_chunks(function, inputs, dtypes):
    """Returns what a function makes of windows, a few at a time.

    Args:
      function: of a dict of inputs to a dict of outputs.
      inputs: dict of name to [W, T].
      dtypes: dict of the outputs' names to their dtypes.

    Returns:
      Dict of name to [W, T].
    """
    total = tf.shape(next(iter(inputs.values())))[0]
    count = tf.maximum(-(-total // CHUNK), 1)
    arrays = {
        name: tf.TensorArray(dtype, count, infer_shape=False, element_shape=[None, None])
        for name, dtype in dtypes.items()
    }

    def step(index, arrays):
        part = slice(index * CHUNK, (index + 1) * CHUNK)
        found = function({name: values[part] for name, values in inputs.items()})
        return index + 1, {n: array.write(index, found[n]) for n, array in arrays.items()}

    _, arrays = tf.while_loop(
        lambda index, _: index < count, step, (0, arrays), parallel_iterations=1
    )
    return {name: tf.ensure_shape(array.concat(), [None, None]) for name, array in arrays.items()}
