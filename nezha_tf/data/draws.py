"""Random numbers as a function of what they are for, so that no order of work changes them."""

import random

import numpy as np

# SplitMix64's (Steele, Lea and Flood, 2014); `dynamic_masking` computes it in the graph.
GAMMA = np.uint64(0x9E3779B97F4A7C15)
FIRST, SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)


def generator(*names):
    """Returns a `random.Random` that these names (seed, document, repetition) determine."""
    return random.Random("/".join(map(str, names)))


def bits(keys, counters):
    """Returns 64 random bits for each key and counter: SplitMix64's output number `counters`.

    Args:
      keys: uint64, one for each stream (SplitMix64's seeds, themselves random).
      counters: int64, from 0; broadcast against the keys.

    Returns:
      uint64, of the broadcast shape.
    """
    mixed = (np.asarray(counters).astype(np.uint64) + np.uint64(1)) * GAMMA + keys
    mixed ^= mixed >> np.uint64(30)
    mixed *= FIRST
    mixed ^= mixed >> np.uint64(27)
    mixed *= SECOND
    mixed ^= mixed >> np.uint64(31)
    return mixed


def uniform(keys, counters):
    """Returns float64 in [0, 1), as `bits`."""
    return (bits(keys, counters) >> np.uint64(11)) * 2.0**-53
