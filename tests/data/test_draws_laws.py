"""Property tests of the draws: SplitMix64 with Python's integers, on arrays and in the graph."""

import classic
import laws
import numpy as np
import tensorflow as tf
from hypothesis import example, given
from hypothesis import strategies as st

from nezha_tf.data import draws

KEYS = st.integers(0, 2**64 - 1)
COUNTERS = st.integers(0, 2**63 - 2) | st.integers(0, 10_000)


@laws.examples(300)
@given(st.lists(KEYS, min_size=1, max_size=4), st.lists(COUNTERS, min_size=1, max_size=4))
@example([0, 2**64 - 1], [0, 2**63 - 2])
def test_bits_are_splitmix64(keys, counters):
    """One row for each key, one column for each number; as arrays and as tensors."""
    expected = [[classic.splitmix64(key, counter) for counter in counters] for key in keys]
    arrays = np.array(keys, np.uint64)[:, None], np.array(counters, np.int64)
    found = draws.bits(*arrays)
    assert found.dtype == np.uint64 and found.tolist() == expected
    tensors = tuple(map(tf.constant, arrays))
    assert draws.graph_bits(*tensors).numpy().tolist() == expected
    shares = [[(bits >> 11) / 2**53 for bits in row] for row in expected]
    assert draws.uniform(*arrays).tolist() == shares
    assert draws.graph_uniform(*tensors).numpy().tolist() == shares


def test_the_peer_is_splitmix64():
    """The first outputs of Vigna's C program for the seed 1234567."""
    assert [classic.splitmix64(1234567, number) for number in range(5)] == [
        6457827717110365317,
        3203168211198807973,
        9817491932198370423,
        4593380528125082431,
        16408922859458223821,
    ]
