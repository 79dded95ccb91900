"""The original's algorithm, one instance and one draw at a time, to compare ours with.

It follows `create_masked_lm_predictions` of google-research/bert, with units and runs for single
tokens.
"""

import itertools

import numpy as np

from nezha_tf.corpus.tokens import ShardTokens


def units_of(is_text, begins):
    """Returns the units of a row as lists of places; no unit contains a special token."""
    units, fresh = [], True
    for place, text in enumerate(is_text):
        if text and (fresh or begins[place]):
            units.append([])
        if text:
            units[-1].append(place)
        fresh = not text
    return units


def run_from(units, index, size):
    """Returns the places of a run of units; a special token ends the run."""
    run = list(units[index])
    for following in units[index + 1 : index + size]:
        if following[0] != run[-1] + 1:
            break
        run += following
    return run


def chosen_runs(units, order, sizes, budget):
    """Returns a dict of anchor to the places of its run, in the order in which they are tried."""
    runs, chosen = {}, set()
    for index in order:
        run = run_from(units, index, sizes[index])
        if len(chosen) + len(run) > budget or not chosen.isdisjoint(run):
            continue
        runs[index] = run
        chosen.update(run)
    return runs


def mask_tokens(ids, is_text, budget, vocabulary, rng):
    """Masks single tokens with the draws of the original.

    Returns:
      (ids after masking, places in rising order, the original tokens there).
    """
    order = [place for place, text in enumerate(is_text) if text]
    rng.shuffle(order)
    output = list(ids)
    chosen = order[:budget]
    for place in chosen:
        if rng.random() < 0.8:
            output[place] = vocabulary.mask_id
        elif rng.random() >= 0.5:
            output[place] = rng.randint(0, len(vocabulary) - 1)
    places = sorted(chosen)
    return output, places, [ids[place] for place in places]


def splitmix64(seed, number):
    """Returns SplitMix64's output `number` (from 0), computed with Python's integers."""
    mixed = (seed + (number + 1) * 0x9E3779B97F4A7C15) % 2**64
    mixed = (mixed ^ mixed >> 30) * 0xBF58476D1CE4E5B9 % 2**64
    mixed = (mixed ^ mixed >> 27) * 0x94D049BB133111EB % 2**64
    return mixed ^ mixed >> 31


def mask_by_key(row, key, policy, budget, vocabulary):
    """Masks a row with the draws of its key, one unit and one token after another.

    Args:
      row: `Rows` of one row, without the first axis.
      key: int. Its outputs from 0, T, 2T and 3T on draw turns, runs, kinds and random tokens.
      policy: a `MaskingPolicy`.
      budget: most tokens.
      vocabulary: a `Vocabulary`.

    Returns:
      (ids after masking, dict of the predicted places in rising order to their tokens).
    """

    def uniform(number):
        return (splitmix64(key, number) >> 11) / 2**53

    length, ids = len(row.ids), row.ids.tolist()
    units = units_of(row.is_text, row.word_starts | (not policy.of_words))
    order = sorted(range(len(units)), key=lambda unit: splitmix64(key, units[unit][0]))
    *ends, whole = itertools.accumulate(policy.run_shares)
    drawn = [whole * uniform(unit[0] + length) for unit in units]
    sizes = [1 + sum(end <= share for end in ends) for share in drawn]
    runs = chosen_runs(units, order, sizes, budget)
    for anchor, places in runs.items():
        for place in places:
            share = uniform(2 * length + (units[anchor][0] if policy.draws_once else place))
            if share < 0.8:
                ids[place] = vocabulary.mask_id
            elif share < 0.9:
                drawn = splitmix64(key, place + 3 * length) >> 32
                ids[place] = drawn * len(vocabulary) >> 32
    predicted = sorted(place for places in runs.values() for place in places)
    return ids, {place: int(row.ids[place]) for place in predicted}


def shard_tokens(documents, word_starts=None):
    """Returns the `ShardTokens` of documents: lists of sentences, which are lists of ids."""
    ids, bounds, sentences = [], [0], []
    for number, document in enumerate(documents):
        sentences.append((number, len(bounds) - 1, len(bounds) - 1 + len(document)))
        for sentence in document:
            ids += sentence
            bounds.append(len(ids))
    starts = np.ones(len(ids), bool) if word_starts is None else np.array(word_starts, bool)
    sizes = np.ones(len(ids), np.int32)
    return ShardTokens(np.array(ids, np.int32), starts, bounds, sentences, sizes, len(ids), None)
