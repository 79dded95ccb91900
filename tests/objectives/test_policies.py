"""The policies' numbers against those of their papers."""

import numpy as np
import pytest

from nezha_tf.objectives.policies import POLICIES, budgets


def mean_run(name):
    shares = np.array(POLICIES[name].run_shares)
    return (shares / shares.sum()) @ np.arange(1, len(shares) + 1)


def test_run_lengths_are_those_of_the_papers():
    assert POLICIES["ngram"].run_ends == pytest.approx([0.8, 0.9])
    assert len(POLICIES["span"].run_shares) == 10
    assert mean_run("span") == pytest.approx(3.8, abs=0.01)  # SpanBERT §3.1
    assert [name for name in POLICIES if mean_run(name) == 1] == ["whole_word", "token", "entity"]


def test_budgets_are_those_of_the_original():
    for share, most in ((0.15, 20), (0.3, 5), (0.125, 100)):
        expected = [min(most, max(1, round(length * share))) for length in range(129)]
        assert budgets(128, share, most).tolist() == expected
