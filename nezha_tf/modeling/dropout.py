"""Dropout with cheap random numbers."""

import math

import keras
from keras import ops

from nezha_tf.modeling.compiled_parts import fused


@keras.saving.register_keras_serializable("nezha_tf")
class Dropout(keras.layers.Dropout):
    """Keras's Dropout, with random bits from an integer hash of each entry's index.

    XLA on CPU spends a quarter to a third of a training step on the Philox bits of Keras's own
    layer. The hash has a few integer operations, which XLA fuses with the product. As in Keras,
    each call draws new keys from the layer's `SeedGenerator`, so a run that is resumed from a
    checkpoint with the seeds continues with the same masks.
    """

    def draw(self):
        """Returns the keys of a new mask, uint32 [2]; None if the rate is 0."""
        return mix(ops.cast(self.seed_generator.next(), "uint32")) if self.rate else None

    def keys_of_call(self, training, keys=None):
        """Returns the keys for `dropped`, uint32 [2]: those given or new ones; None: no dropout."""
        if not training or not self.rate:
            return None
        return self.draw() if keys is None else keys

    def call(self, inputs, training=False, keys=None):
        """`keys` are the result of `draw`, if several calls must have the same mask."""
        return _dropped(inputs, self.keys_of_call(training, keys), rate=self.rate)


def dropped(inputs, keys, rate):
    """Returns inputs with a share `rate` of 0, scaled; as they are if keys are None."""
    if keys is None:
        return inputs
    bits = hashed_bits(keys[0], keys[1], ops.shape(inputs))
    keep = bits >= ops.cast(round(rate * 2**32), "uint32")
    return ops.where(keep, inputs * (1.0 / (1.0 - rate)), ops.zeros_like(inputs))


@fused
def _dropped(inputs, keys, *, rate):
    return dropped(inputs, keys, rate)


def hashed_bits(first_key, second_key, shape):
    """Returns random uint32 of a shape: hashes of each entry's index and two keys (uint32 [])."""
    rows, columns = _size(shape[:-1]), _size(shape[-1:])
    index = indices(ops.arange(rows, dtype="int32"), columns)
    # With the second key between two rounds, two calls' bits are not permutations of each other.
    return ops.reshape(mix(mix(index ^ first_key) + second_key), shape)


def indices(rows, columns):
    """Returns the indices of the entries in some rows of a matrix, uint32 [n, columns].

    They are counted modulo 2^32. No range is longer than a row or a column, as 2^31 are too many.
    """
    starts = ops.cast(rows, "uint32") * ops.cast(columns, "uint32")
    return starts[:, None] + ops.cast(ops.arange(columns, dtype="int32"), "uint32")


def _size(shape):
    # JAX must know the size when it compiles, and no operation's result is known then.
    if all(isinstance(dimension, int) for dimension in shape):
        return math.prod(shape)
    return ops.prod(ops.convert_to_tensor(shape))


def mix(x):
    """Returns a bijective hash of uint32: every output bit depends on every input bit.

    It is MurmurHash3's finaliser with the better constants of "lowbias32".
    """
    x = (x ^ ops.right_shift(x, 16)) * ops.cast(0x7FEB352D, "uint32")
    x = (x ^ ops.right_shift(x, 15)) * ops.cast(0x846CA68B, "uint32")
    return x ^ ops.right_shift(x, 16)
