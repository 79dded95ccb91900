"""The order in which parts of a corpus give examples: a law, tried at every place of a period."""

import itertools
from fractions import Fraction

import laws
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from nezha_tf.data import shares
from nezha_tf.data.shares import Shares
from nezha_tf.util.errors import UserError

WEIGHTS = st.fractions(min_value=Fraction(1, 4), max_value=20, max_denominator=4)


@laws.examples(60)
@example([Fraction(9)] + [Fraction(1)] * 9, [25])
@example([Fraction(1, 3)] * 3, [4])
@given(st.lists(WEIGHTS, min_size=1, max_size=6), st.lists(st.integers(0, 10**6), max_size=4))
def test_each_part_has_its_share_at_every_place(weights, places):
    """Within less than one example, which is the best that whole numbers allow."""
    found, total = Shares(weights), sum(weights)
    turns = found.turns.tolist()
    given_so_far = np.zeros(len(weights), int)
    for number, part in enumerate(turns, start=1):
        given_so_far[part] += 1
        for count, weight in zip(given_so_far.tolist(), weights, strict=True):
            # Whole numbers are quicker than fractions.
            most = total.numerator * weight.denominator
            share = number * weight.numerator * total.denominator
            assert abs(count * most - share) < most
    for part, weight in enumerate(weights):
        assert given_so_far[part] * total == len(turns) * weight
    assert found.shares == pytest.approx([float(weight / total) for weight in weights])
    for place in places:
        several = list(itertools.islice(itertools.cycle(turns), place))
        assert found.given(place) == [several.count(part) for part in range(len(weights))]


def test_a_short_order_is_seen_at_once():
    assert Shares([Fraction(3), Fraction(1)]).turns.tolist() == [0, 0, 0, 1]
    assert Shares([Fraction("0.5"), Fraction("0.5")]).turns.tolist() == [0, 1]
    assert Shares([Fraction(60), Fraction(20)]).turns.tolist() == [0, 0, 0, 1]
    assert Shares([Fraction(3), Fraction(1)]).given(4 * 10**15 + 2) == [3 * 10**15 + 2, 10**15]


def test_weights_with_too_many_digits_are_refused():
    assert sum(Shares([Fraction(shares.MOST_TURNS - 1), Fraction(1)]).given(10)) == 10
    with pytest.raises(UserError, match=r"the weights 3\.14159, 1 are, .* 414,159 together"):
        Shares([Fraction("3.14159"), Fraction(1)])
