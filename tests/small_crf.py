"""A small tagging model with a CRF, and a batch for it."""

import numpy as np

from nezha_tf import NezhaConfig

L = 3
# Padding at the end; a token without a tag in between, first and last; a single token; no token.
HAS_TAG = np.array(
    [[1, 1, 1, 1, 1], [1, 1, 1, 0, 0], [0, 1, 0, 1, 1], [0, 0, 1, 0, 0], [0] * 5], bool
)
CONFIG = NezhaConfig(
    vocab_size=30,
    hidden_size=16,
    num_hidden_layers=1,
    num_attention_heads=2,
    intermediate_size=32,
    type_vocab_size=2,
)


def make_batch():
    rng = np.random.default_rng(0)
    return {
        "input_ids": rng.integers(5, 30, (5, 5)).astype("int32"),
        "input_mask": np.ones((5, 5), "int32"),
        "segment_ids": np.zeros((5, 5), "int32"),
        "label_ids": rng.integers(0, L, (5, 5)).astype("int32"),
        "label_mask": HAS_TAG.astype("int32"),
    }
