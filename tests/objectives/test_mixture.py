"""Mixtures of objectives: their text, model, draws, transforms and loss."""

import keras
import laws
import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st

from nezha_tf.data.schema import Feature
from nezha_tf.objectives import table
from nezha_tf.objectives.bert import Bidirectional
from nezha_tf.objectives.mixture import MixtureTransform, ObjectiveMixture
from nezha_tf.objectives.objective import Transform
from nezha_tf.util.errors import UserError


@pytest.mark.parametrize(
    "text, message",
    [
        ("seq2sec:1", "is 'seq2seq' meant"),
        ("xyz", "they are bidirectional"),
        ("seq2seq:0", "'0' is not a number above 0"),
        ("seq2seq:x", "'x' is not a number"),
        ("seq2seq,seq2seq", "twice"),
        (",", "names no objective"),
    ],
)
def test_mixtures_that_do_not_exist(text, message):
    with pytest.raises(UserError, match=message):
        ObjectiveMixture.from_text(text)


def test_a_mixture_has_the_model_that_has_what_each_needs(monkeypatch):
    """It is the class that is a subclass of all others; without such a class there is an error."""

    class Small(keras.Model):
        pass

    class Large(Small):
        pass

    class Other(keras.Model):
        pass

    for name, kind in (("small", Small), ("large", Large), ("other", Other)):
        objective = Bidirectional()
        objective.model = kind
        monkeypatch.setitem(table.OBJECTIVES, name, objective)
    assert ObjectiveMixture.from_text("small,large").model is Large
    assert ObjectiveMixture.from_text("large,small").model is Large
    with pytest.raises(UserError, match=r"--objectives=large,other: no model fits .*Large, Other"):
        _ = ObjectiveMixture.from_text("large,other").model


FEATURES = (Feature("x", np.int64, 3),)
SHARES = (2, 2, 1, 1)


class Change(Transform):
    """Adds to `x`, appends some columns to it, and gives another feature if it has a name."""

    reads = FEATURES

    def __init__(self, added, columns=0, name=None, at_once=1):
        self._added, self._columns, self._name = added, columns, name
        self.gives = (Feature("x", np.int64, 3 + columns),)
        self.at_once = at_once
        self.rows = []  # of each call

    def __call__(self, batch, numbers, seed):
        self.rows.append(len(batch["x"]))
        x = tf.pad(batch["x"] + self._added, [(0, 0), (0, self._columns)], constant_values=7)
        other = {self._name: tf.cast(numbers[:, None], tf.float32) + seed} if self._name else {}
        return {**batch, "x": x, **other}

    def fault_of(self, record):
        return f"fault {self._added}" if record == b"bad" and self._added > 9 else None


def draws(numbers, seed, shares=SHARES):
    mixture = MixtureTransform(FEATURES, shares, [()] * len(shares))
    return mixture.draw(tf.constant(numbers, tf.int64), seed).numpy()


@pytest.mark.parametrize(
    "seed, first, expected",
    (
        (7, 0, "223310120201221321013131001111031131200030213301120120001001"),
        ("12345/1", 0, "113310002110121110221113001131201200303313111111031003000003"),
        ("evaluation", 0, "122103323102312300001001013020111103002112031321110311002131"),
        (7, 2**40, "003001103110000111110120130030"),
    ),
)
def test_draws_are_those_of_the_runs_there_are(seed, first, expected):
    """UniLM's mixture must draw the same as commit 583fb47, so that runs can be resumed."""
    assert "".join(map(str, draws(first + np.arange(len(expected)), seed))) == expected


def test_shares_are_those_asked_for():
    count = 60_000
    found = draws(np.arange(count), 7)
    expected = count * np.array(SHARES) / 6
    # Chi-square with 3 degrees of freedom is above 16.27 in one of 1,000 cases.
    assert ((np.bincount(found, minlength=4) - expected) ** 2 / expected).sum() < 16.27
    # Another seed agrees as often as by chance: 2/3 of 1/3 and 1/3 of 1/6.
    assert np.mean(found == draws(np.arange(count), 8)) == pytest.approx(5 / 18, abs=0.01)


def by_hand(x, number, place, seed):
    """Returns the row of a chain of `mixture_of`, computed in plain Python."""
    x = [value + (0, 10, 11, 20)[place] for value in x]
    x += [7, 7] if place == 3 else [0, 0]
    return x, float(number + seed) if place == 2 else 0.0


def mixture_of(shared, shares):
    chains = [(), (shared,), (shared, Change(1, name="y")), (Change(20, columns=2),)]
    return MixtureTransform(FEATURES, shares, chains)


@laws.examples(60)
@given(
    st.lists(st.integers(0, 1000), min_size=1, max_size=9),
    st.tuples(*[st.floats(0.1, 1)] * 4),
    st.integers(0, 99),
)
def test_each_row_is_that_of_its_own_transforms(numbers, shares, seed):
    """Rows are padded with zeros if others are longer or have more features."""
    shared = Change(10)
    mixture = mixture_of(shared, shares)
    x = [[number, 1, 2] for number in numbers]
    batch = mixture({"x": tf.constant(x)}, tf.constant(numbers, tf.int64), seed)
    drawn = draws(numbers, seed, shares)
    assert batch["objective_ids"].numpy().tolist() == drawn[:, None].tolist()
    expected = [by_hand(*row, seed) for row in zip(x, numbers, drawn, strict=True)]
    assert batch["x"].numpy().tolist() == [row for row, _ in expected]
    assert batch["y"].numpy().tolist() == [[value] for _, value in expected]
    # The transform that two chains begin with was called once, with the rows of both.
    assert shared.rows == [np.isin(drawn, (1, 2)).sum()]


def test_shapes_are_static():
    mixture = mixture_of(Change(10, at_once=64), SHARES)
    numbers = tf.data.Dataset.range(40).batch(8, drop_remainder=True)
    batches = numbers.map(lambda n: mixture({"x": tf.tile(n[:, None], (1, 3))}, n, 1))
    assert {name: spec.shape for name, spec in batches.element_spec.items()} == {
        "x": (8, 5),
        "y": (8, 1),
        "objective_ids": (8, 1),
    }
    assert mixture.at_once == 64
    given = {feature.name: feature.length for feature in mixture.gives}
    assert given == {"x": 5, "objective_ids": 1}


def test_faults_are_those_of_any_transform():
    mixture = mixture_of(Change(10), SHARES)
    assert mixture.fault_of(b"good") is None
    assert mixture.fault_of(b"bad") == "fault 10"
