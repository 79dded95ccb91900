"""Draws of the tokens that the middle layers compute (random-LTD)."""

import laws
import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st
from small_encoders import narrow_config

from nezha_tf.data import schema
from nezha_tf.objectives.middle_tokens import MiddleTokens
from nezha_tf.util.errors import UserError

MASK = schema.Feature("input_mask", np.int64, "max_seq_length")


def drawn(mask, numbers, share, seed=1, layers=4):
    """Returns int [B, layers - 2, K]."""
    transform = MiddleTokens(
        narrow_config("rotary", num_hidden_layers=layers), mask.shape[1], share, (MASK,)
    )
    batch = transform({"input_mask": tf.constant(mask)}, tf.constant(numbers, tf.int64), seed)
    [feature] = set(transform.gives) - set(transform.reads)
    places = batch[feature.name].numpy()
    assert places.shape == (len(mask), feature.length)
    return places.reshape(len(mask), layers - 2, -1)


@laws.examples(50)
@given(
    st.lists(st.lists(st.integers(0, 1), min_size=11, max_size=11), min_size=1, max_size=4),
    st.floats(0.01, 1.0),
    st.integers(0, 2**40),
    st.integers(3, 6),
)
def test_places(mask, share, first, layers):
    """Rising places, of tokens before padding; a row's are the same in any batch."""
    mask = np.array(mask)
    numbers = first + np.arange(len(mask))
    places = drawn(mask, numbers, share, layers=layers)
    count = int(np.ceil(share * 11))
    assert places.shape[1:] == (layers - 2, count)
    assert (np.diff(places, axis=-1) > 0).all() and places.min() >= 0 and places.max() < 11
    for row, own in zip(mask, places, strict=True):
        assert (row[own].sum(axis=1) == min(count, row.sum())).all()
    np.testing.assert_array_equal(drawn(mask[-1:], numbers[-1:], share, layers=layers), places[-1:])


def test_draws_are_even_and_of_their_own():
    mask = np.ones((4000, 10), "int64")
    places = drawn(mask, np.arange(4000), 0.3)
    is_drawn = np.stack([(places == place).any(axis=-1) for place in range(10)], axis=-1)
    shares = is_drawn.mean(axis=0)
    # Four deviations of the mean of 4,000 draws.
    np.testing.assert_allclose(shares, 0.3, atol=4 * np.sqrt(0.3 * 0.7 / 4000))
    together = (is_drawn[:, 0] & is_drawn[:, 1]).mean(axis=0)
    np.testing.assert_allclose(together, 0.09, atol=4 * np.sqrt(0.09 * 0.91 / 4000))
    other = drawn(mask, np.arange(4000), 0.3, seed=2)
    assert 0.2 < (other == places).all(axis=-1).mean() * 120 < 2.5  # 120 ways to draw 3 of 10


@pytest.mark.parametrize(
    "layers, share, message",
    (
        (2, 0.5, "--middle_tokens=0.5 is for the layers between the first and the last, and the"),
        (4, 0.0, "--middle_tokens=0 must be above 0"),
    ),
)
def test_refusals(layers, share, message):
    with pytest.raises(UserError, match=message):
        drawn(np.ones((1, 4), "int64"), [0], share, layers=layers)
