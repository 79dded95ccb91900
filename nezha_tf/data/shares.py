"""The parts of a corpus that have shares of the examples: which part gives which example."""

import math

import numpy as np

from nezha_tf.util.errors import UserError

# The order of the parts is a table that is as long as their weights, as whole numbers, are large.
MOST_TURNS = 100_000


class Shares:
    """The shares that parts have in a stream of examples.

    The parts take turns in an order that repeats, so all that is known of the stream's first n
    examples follows from n.

    Attributes:
      shares: the part of all examples that each part gives, a list of float.
      turns: the part that gives each example of a period, int64 [n].
    """

    def __init__(self, weights):
        """Takes the weight of each part, a `Fraction` above 0.

        Raises:
          UserError: they are such numbers that the order would be too long.
        """
        unit = math.lcm(*(weight.denominator for weight in weights))
        scaled = [int(weight * unit) for weight in weights]
        divisor = math.gcd(*scaled)
        whole = [weight // divisor for weight in scaled]
        if sum(whole) > MOST_TURNS:
            told = ", ".join(f"{float(weight):g}" for weight in weights)
            raise UserError(
                f"the weights {told} are, as whole numbers, {sum(whole):,} together, more than "
                f"{MOST_TURNS:,}; write them with fewer digits"
            )
        self.shares = [weight / sum(whole) for weight in whole]
        self.turns = np.array(_turns(whole), np.int64)

    def given(self, count):
        """Returns how many of the first `count` examples each part gives, a list of int."""
        periods, rest = divmod(count, len(self.turns))
        parts = range(len(self.shares))
        return [
            periods * int(np.count_nonzero(self.turns == part))
            + int(np.count_nonzero(self.turns[:rest] == part))
            for part in parts
        ]


def _turns(weights):
    """Returns the order of a period, in which each part has as many turns as its whole weight.

    Of the first n examples a part with the share p gives less than one more or less than p * n.
    For this its turn i, from 0, must be one of those from floor(i / p) to ceil((i + 1) / p) - 1.
    That all can be so is Tijdeman's theorem (The chairman assignment problem, 1980); the windows,
    and to take first what is due first, are those of Baruah et al. (Proportionate progress, 1996).
    """
    total, taken, turns = sum(weights), [0] * len(weights), []
    for turn in range(total):
        # Whole numbers, because 1 / (1 / 3) may be anything about 3.
        _, part = min(
            (-(-(taken[part] + 1) * total // weight), part)
            for part, weight in enumerate(weights)
            if taken[part] * total // weight <= turn and taken[part] < weight
        )
        taken[part] += 1
        turns.append(part)
    return turns
