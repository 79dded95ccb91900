"""Dropout whose random numbers cost little."""

import keras
from keras import ops


class Dropout(keras.layers.Dropout):
    """Keras's Dropout with random bits from an integer hash of each entry's index.

    XLA on CPU spends a quarter to a third of a training step on the Philox bits of Keras's own
    layer; the hash is a handful of integer operations that it fuses with the product. Each call
    draws a fresh pair of keys from the layer's `SeedGenerator`, as Keras does, so that a run
    which is restarted from a checkpoint of the seeds goes on with the same masks.
    """

    def call(self, inputs, training=False):
        if not training or not self.rate:
            return inputs
        keys = mix(ops.cast(self.seed_generator.next(), "uint32"))
        bits = hashed_bits(keys[0], keys[1], ops.shape(inputs))
        keep = bits >= ops.cast(round(self.rate * 2**32), "uint32")
        return ops.where(keep, inputs * (1.0 / (1.0 - self.rate)), ops.zeros_like(inputs))


def hashed_bits(first_key, second_key, shape):
    """Returns random uint32 of a shape: a hash of each entry's index with two keys (uint32 [])."""
    size = ops.prod(ops.convert_to_tensor(shape))
    index = ops.cast(ops.arange(size, dtype="int32"), "uint32")
    # The second key between two rounds: the bits of two calls are no permutations of each other.
    return ops.reshape(mix(mix(index ^ first_key) + second_key), shape)


def mix(x):
    """A bijection of uint32 in which each bit of the output depends on every bit of the input.

    Two multiplications between three shifts: the finaliser of MurmurHash3, with the better
    constants found by search ("lowbias32").
    """
    x = (x ^ ops.right_shift(x, 16)) * ops.cast(0x7FEB352D, "uint32")
    x = (x ^ ops.right_shift(x, 15)) * ops.cast(0x846CA68B, "uint32")
    return x ^ ops.right_shift(x, 16)
