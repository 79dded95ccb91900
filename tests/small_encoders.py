"""Sizes of small encoders, and random batches for them."""

import numpy as np

from nezha_tf import NezhaConfig

SIZES = {
    "vocab_size": 97,
    "hidden_size": 24,
    "num_hidden_layers": 3,
    "num_attention_heads": 3,
    "intermediate_size": 40,
    "type_vocab_size": 4,
}


def narrow_config(position_encoding, **changes):
    """Returns a configuration of width 8 whose random weights are large.

    So every token has an effect on what may see it that tests can measure.
    """
    sizes = {
        "vocab_size": 40,
        "hidden_size": 8,
        "num_hidden_layers": 3,
        "num_attention_heads": 2,
        "intermediate_size": 12,
        "type_vocab_size": 6,
        "initializer_range": 0.5,
        "max_relative_position": 3,
    }
    return NezhaConfig(position_encoding=position_encoding, **{**sizes, **changes})


def batch_of(length, batch_size=2, seed=0):
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, length, (batch_size, 1))
    return {
        "input_ids": rng.integers(0, 97, (batch_size, length)).astype("int32"),
        "input_mask": (np.arange(length) < lengths).astype("int32"),
        "segment_ids": rng.integers(0, 4, (batch_size, length)).astype("int32"),
    }
