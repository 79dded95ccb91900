"""Random numbers that depend only on what they are for, never on the order of the work.

There are functions for Python, for NumPy arrays, and (with names in `graph_`) for the graph. The
latter import TensorFlow when they are called, so that programs that only handle text do not need
it.
"""

import random

import numpy as np

# The constants of SplitMix64 (Steele, Lea and Flood, 2014).
GAMMA = np.uint64(0x9E3779B97F4A7C15)
FIRST, SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
# The generator is named because TensorFlow's own choice differs between devices.
_ALGORITHM = "philox"


def generator(*names):
    """Returns a `random.Random` whose seed is these names (seed, document, repetition, ...)."""
    return random.Random("/".join(map(str, names)))


def bits(keys, counters):
    """Returns 64 random bits for each key and counter: SplitMix64's output number `counters`.

    The keys are uint64, one seed for each stream; the counters are int64, from 0. Both are
    broadcast.
    """
    mixed = (np.asarray(counters).astype(np.uint64) + np.uint64(1)) * GAMMA + keys
    mixed ^= mixed >> np.uint64(30)
    mixed *= FIRST
    mixed ^= mixed >> np.uint64(27)
    mixed *= SECOND
    mixed ^= mixed >> np.uint64(31)
    return mixed


def uniform(keys, counters):
    """Returns float64 numbers in [0, 1) from `bits(keys, counters)`."""
    return (bits(keys, counters) >> np.uint64(11)) * 2.0**-53


def graph_bits(keys, counters):
    """The same as `bits`, for tensors: uint64 keys and int64 counters, or one int."""
    import tensorflow as tf

    mixed = tf.bitcast(tf.convert_to_tensor(counters, tf.int64) + 1, tf.uint64) * GAMMA + keys
    mixed = tf.bitwise.bitwise_xor(mixed, graph_shifted(mixed, 30)) * FIRST
    mixed = tf.bitwise.bitwise_xor(mixed, graph_shifted(mixed, 27)) * SECOND
    return tf.bitwise.bitwise_xor(mixed, graph_shifted(mixed, 31))


def graph_uniform(keys, counters):
    """The same as `uniform`, for tensors."""
    import tensorflow as tf

    return tf.cast(graph_shifted(graph_bits(keys, counters), 11), tf.float64) * 2.0**-53


def graph_integers(keys, counters, bound):
    """Returns int32 numbers from 0 to `bound` - 1 from `bits(keys, counters)`, for tensors."""
    import tensorflow as tf

    upper = graph_shifted(graph_bits(keys, counters), 32)
    return tf.cast(graph_shifted(upper * tf.constant(bound, tf.uint64), 32), tf.int32)


def graph_shifted(values, count):
    """Returns a uint64 tensor shifted to the right by `count` bits."""
    import tensorflow as tf

    return tf.bitwise.right_shift(values, tf.constant(count, tf.uint64))


def graph_keys(name, seed, numbers):
    """Returns uint64 keys [B] for `graph_bits`, one for each example of a stream.

    Different names of what is drawn give different keys. `seed` is a string or number, `numbers`
    (int64 [B]) are the examples' numbers in the stream.
    """
    return graph_bits(np.uint64(generator(name, seed).getrandbits(64)), numbers)


def graph_seeds(seed, count):
    """Returns int64 [count, 2], seeds for the functions below, from one seed, int64 [2]."""
    import tensorflow as tf

    return tf.random.experimental.stateless_split(seed, count, alg=_ALGORITHM)


def graph_example_seed(seed, epoch, index):
    """Returns the seed, int64 [2], of an example in an epoch; the arguments are int64 scalars."""
    import tensorflow as tf

    seeds = tf.stack([tf.cast(seed, tf.int64), epoch])
    return tf.random.experimental.stateless_fold_in(seeds, index, alg=_ALGORITHM)


def graph_shuffled(values, seed):
    """Returns values [n, ...] shuffled along the first axis; the seed is int64 [2]."""
    import tensorflow as tf

    return tf.random.experimental.stateless_shuffle(values, seed, alg=_ALGORITHM)


def graph_shares(shape, seed):
    """Returns a float32 tensor of random numbers in [0, 1); the seed is int64 [2]."""
    import tensorflow as tf

    return tf.random.stateless_uniform(shape, seed, alg=_ALGORITHM)


def graph_choices(shape, seed, count):
    """Returns an int32 tensor of random numbers from 0 to count - 1; the seed is int64 [2]."""
    import tensorflow as tf

    return tf.random.stateless_uniform(shape, seed, 0, count, tf.int32, alg=_ALGORITHM)
