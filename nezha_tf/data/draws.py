"""Random numbers as a function of what they are for, so that no order of work changes them.

In Python, on arrays of NumPy and, in the functions that begin with `graph_`, in the graph. The
latter import tensorflow when they are called: programs that handle text alone do without it.
"""

import random

import numpy as np

# SplitMix64's (Steele, Lea and Flood, 2014).
GAMMA = np.uint64(0x9E3779B97F4A7C15)
FIRST, SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
# The generator is named: what tensorflow chooses by itself differs between devices.
_ALGORITHM = "philox"


def generator(*names):
    """Returns a `random.Random` that these names (seed, document, repetition) determine."""
    return random.Random("/".join(map(str, names)))


def bits(keys, counters):
    """Returns 64 random bits for each key and counter: SplitMix64's output number `counters`.

    Args:
      keys: uint64, one for each stream (SplitMix64's seeds, themselves random).
      counters: int64, from 0; broadcast against the keys.

    Returns:
      uint64, of the broadcast shape.
    """
    mixed = (np.asarray(counters).astype(np.uint64) + np.uint64(1)) * GAMMA + keys
    mixed ^= mixed >> np.uint64(30)
    mixed *= FIRST
    mixed ^= mixed >> np.uint64(27)
    mixed *= SECOND
    mixed ^= mixed >> np.uint64(31)
    return mixed


def uniform(keys, counters):
    """Returns float64 in [0, 1), as `bits`."""
    return (bits(keys, counters) >> np.uint64(11)) * 2.0**-53


def graph_bits(keys, counters):
    """As `bits`, of tensors: uint64 and int64."""
    import tensorflow as tf

    mixed = tf.bitcast(counters + 1, tf.uint64) * GAMMA + keys
    mixed = tf.bitwise.bitwise_xor(mixed, graph_shifted(mixed, 30)) * FIRST
    mixed = tf.bitwise.bitwise_xor(mixed, graph_shifted(mixed, 27)) * SECOND
    return tf.bitwise.bitwise_xor(mixed, graph_shifted(mixed, 31))


def graph_uniform(keys, counters):
    """As `uniform`, of tensors."""
    import tensorflow as tf

    return tf.cast(graph_shifted(graph_bits(keys, counters), 11), tf.float64) * 2.0**-53


def graph_shifted(values, count):
    """Returns uint64 tensors shifted to the right by a number of bits."""
    import tensorflow as tf

    return tf.bitwise.right_shift(values, tf.constant(count, tf.uint64))


def graph_keys(name, seed, numbers):
    """Returns a key of `graph_bits` for each example of a stream.

    Args:
      name: of what is drawn: other names give other keys.
      seed: string or number.
      numbers: int64 [B], of the examples in the stream.

    Returns:
      uint64 [B].
    """
    return graph_bits(np.uint64(generator(name, seed).getrandbits(64)), numbers)


def graph_seeds(seed, count):
    """Returns seeds, int64 [count, 2], of one seed, int64 [2], for the functions below."""
    import tensorflow as tf

    return tf.random.experimental.stateless_split(seed, count, alg=_ALGORITHM)


def graph_example_seed(seed, epoch, index):
    """Returns the seed, int64 [2], of an example in an epoch; int64 scalars."""
    import tensorflow as tf

    seeds = tf.stack([tf.cast(seed, tf.int64), epoch])
    return tf.random.experimental.stateless_fold_in(seeds, index, alg=_ALGORITHM)


def graph_shuffled(values, seed):
    """Returns values [n, ...] in a random order of the first axis; the seed is int64 [2]."""
    import tensorflow as tf

    return tf.random.experimental.stateless_shuffle(values, seed, alg=_ALGORITHM)


def graph_shares(shape, seed):
    """Returns float32 numbers in [0, 1) of a shape; the seed is int64 [2]."""
    import tensorflow as tf

    return tf.random.stateless_uniform(shape, seed, alg=_ALGORITHM)


def graph_choices(shape, seed, count):
    """Returns int32 numbers from 0 to count - 1 of a shape; the seed is int64 [2]."""
    import tensorflow as tf

    return tf.random.stateless_uniform(shape, seed, 0, count, tf.int32, alg=_ALGORITHM)
