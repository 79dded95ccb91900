"""Masks examples in the graph when they are read."""

from typing import NamedTuple

import numpy as np
import tensorflow as tf

from nezha_tf.data import draws, schema
from nezha_tf.objectives.objective import Transform
from nezha_tf.objectives.policies import Masking, replacements
from nezha_tf.objectives.texts import replaced

# The key of an anchor that is never taken; larger than every drawn key.
_NEVER = np.iinfo(np.int32).max
# Steps of the binary search in `choose_first`: its time is exact to a sixteenth of the budget.
HALVINGS = 5


class DynamicMasking(Masking, Transform):
    """Masks the examples of a stream by a `MaskingPolicy`, with new masks in each epoch.

    What is drawn for an example depends only on the seed and on its number in the stream. Equal
    keys give the masks of `ArrayMasking`, except for ties: the order of anchors is drawn with 31
      bits here.
    """

    reads = schema.UNMASKED_FEATURES
    gives = schema.FEATURES
    # With few examples at a time, each one takes several times as long.
    at_once = 1024

    def __init__(self, vocabulary, policy, lengths, masked_lm_prob):
        super().__init__(vocabulary, policy, lengths, masked_lm_prob)
        self._special_ids = (vocabulary.cls_id, vocabulary.sep_id)

    def fault_of(self, record):
        features = tf.train.Example.FromString(record).features.feature
        ids = features["input_ids"].int64_list.value
        length = sum(features["input_mask"].int64_list.value)
        ends = (ids[0], ids[length - 1])
        if ends == self._special_ids:
            return None
        return (
            f"it begins and ends with the ids {ends[0]} and {ends[1]}, but [CLS] and [SEP] "
            f"of --vocab_file are {self._special_ids[0]} and {self._special_ids[1]}; pass the "
            "vocabulary that it was made with"
        )

    def __call__(self, batch, numbers, seed):
        return self.mask(batch, draws.graph_keys("masking", seed, numbers))

    def mask(self, batch, keys):
        """Returns a batch masked, a dict; `keys`, uint64 [B], are random."""
        ids, is_used = batch["input_ids"], batch["input_mask"] > 0
        is_text = is_used & (ids != self._special_ids[0]) & (ids != self._special_ids[1])
        begins = is_text & (batch["word_starts"] > 0) if self._policy.of_words else is_text
        anchors = self._anchors(begins, is_used & ~is_text, keys)
        budget = tf.gather(self._budgets, tf.reduce_sum(batch["input_mask"], axis=1))
        if len(self._policy.run_ends):
            chosen = choose(anchors, budget)
        else:
            chosen = choose(anchors, budget, *choose_first(anchors, budget))
        places, drawn_at, is_predicted = _slots(anchors, chosen, self._predictions)
        labels = tf.gather(ids, places, batch_dims=1)
        if not self._policy.draws_once:
            drawn_at = places
        tokens = self._replacements(labels, keys[:, None], places, drawn_at)
        tokens = tf.where(is_predicted, tokens, labels)  # unused slots are at [CLS], which stays
        unmasked = {name: values for name, values in batch.items() if name != "word_starts"}
        return {
            **unmasked,
            "input_ids": replaced(ids, places, tokens),
            "masked_lm_positions": places,
            "masked_lm_ids": labels * tf.cast(is_predicted, tf.int32),
            "masked_lm_weights": tf.cast(is_predicted, tf.float32),
        }

    def _anchors(self, begins, is_special, keys):
        """Draws the turn and the run of every unit."""
        # A unit ends where the next unit or a special token begins: [SEP] follows every text.
        borders = begins | is_special
        where = tf.where(borders)
        row, place = where[:, 0], where[:, 1]
        is_unit = tf.gather_nd(begins, where)
        row_keys = tf.gather(keys, row)
        turns = tf.cast(draws.graph_shifted(draws.graph_bits(row_keys, place), 33), tf.int32)
        turns = tf.where(is_unit, turns, _NEVER)
        last = 1 + tf.range(tf.size(row), dtype=tf.int32)
        if len(self._policy.run_ends):
            drawn = draws.graph_uniform(row_keys, place + self._length)
            last += tf.searchsorted(self._policy.run_ends, drawn, side="right")
            special = tf.cast(tf.where(~is_unit)[:, 0], tf.int32)
            # The number of special tokens before a unit is the index of the next one in `special`.
            before = tf.cumsum(tf.cast(~is_unit, tf.int32))
            last = tf.minimum(last, tf.gather(tf.concat([special, [0]], 0), before))
        place = tf.cast(place, tf.int32)
        ends = tf.gather(tf.concat([place, [0]], 0), last)
        counts = tf.math.count_nonzero(borders, axis=1)
        ragged = tf.RaggedTensor.from_row_lengths(turns, counts, validate=False)
        # In a mixture of objectives the batch may be empty.
        shape = tf.stack([-1, tf.reduce_max(tf.concat([counts, [1]], axis=0))])
        starts, ends = (
            ragged.with_values(values).to_tensor(shape=shape) for values in (place, ends)
        )
        return Anchors(ragged.to_tensor(_NEVER, shape=shape), starts, ends)

    def _replacements(self, tokens, keys, places, drawn_at):
        places, drawn_at = (tf.cast(values, tf.int64) for values in (places, drawn_at))
        shares = draws.graph_uniform(keys, drawn_at + 2 * self._length)
        random_ids = draws.graph_integers(keys, places + 3 * self._length, self._vocab_size)
        return replacements(tokens, shares, random_ids, self._mask_id, tf.where)


class Anchors(NamedTuple):
    """The units of rows as anchors, in the order of their places; a row has at most U.

    Attributes:
      turns: int32 [B, U]; the anchor with the lowest turn is tried first; `_NEVER`: no unit.
      starts, ends: int32 [B, U]; the run of an anchor covers the places [start, end).
    """

    turns: tf.Tensor
    starts: tf.Tensor
    ends: tf.Tensor


def choose_first(anchors, budget):
    """Chooses most units at once, for policies whose runs are single units and never overlap.

    All units whose turn is before a certain time are chosen. A binary search finds the latest
    time at which they do not exceed the budget, int32 [B] tokens.

    Returns:
      (is_chosen bool [B, U], whether an anchor is chosen; left int32 [B], the number of tokens
      that the budget still allows).
    """
    turns, starts, ends = anchors
    sizes = tf.where(turns < _NEVER, ends - starts, 0)

    def used(time):
        return tf.reduce_sum(sizes * tf.cast(turns < time[:, None], tf.int32), axis=1)

    # Turns are uniform: the budget is almost surely used up within twice its share of the time.
    share = tf.cast(2 * budget, tf.float64) / tf.cast(1 + tf.reduce_sum(sizes, 1), tf.float64)
    step = tf.cast(tf.minimum(share, 0.999) * _NEVER, tf.int32)
    time = tf.zeros_like(step)
    for _ in range(HALVINGS):
        step //= 2
        time += step * tf.cast(used(time + step) <= budget, tf.int32)
    return turns < time[:, None], budget - used(time)


def choose(anchors, budget, is_chosen=None, left=None):
    """Chooses the runs of anchors, one run in each row at a time: bool [B, U].

    After each choice, all runs that exceed the rest of the budget, int32 [B] tokens, or overlap a
    chosen run are removed, because they can never be chosen later. `is_chosen` and `left` are the
    result of `choose_first`, if it was called.
    """
    turns, starts, ends = anchors
    sizes = ends - starts
    numbers = tf.range(tf.shape(turns)[1])
    left = (budget if left is None else left)[:, None]
    is_chosen = tf.zeros_like(turns, tf.bool) if is_chosen is None else is_chosen

    def turn(turns, left, is_chosen):
        anchor = tf.argmin(turns, axis=1, output_type=tf.int32)[:, None]
        is_there = tf.gather(turns, anchor, batch_dims=1) < _NEVER
        first, last = (
            tf.gather(places, anchor, batch_dims=1) * tf.cast(is_there, tf.int32)
            for places in (starts, ends)
        )
        left -= last - first
        is_chosen |= (numbers == anchor) & is_there
        is_over = ((starts < last) & (ends > first)) | (sizes > left)
        return tf.where(is_over, _NEVER, turns), left, is_chosen

    return tf.while_loop(
        lambda turns, left, is_chosen: tf.reduce_min(turns) < _NEVER,
        turn,
        (tf.where(is_chosen | (sizes > left), _NEVER, turns), left, is_chosen),
        maximum_iterations=tf.shape(turns)[1],
    )[2]


def _slots(anchors, is_chosen, count):
    """Assigns the chosen tokens to `count` slots, in rising order of their places.

    Returns:
      (places int32 [B, P] of the tokens, 0 in unused slots; starts int32 [B, P], the places where
      their runs begin; is_there bool [B, P], whether a slot is used).
    """
    sizes = (anchors.ends - anchors.starts) * tf.cast(is_chosen, tf.int32)
    ends = tf.cumsum(sizes, axis=1)
    slots = tf.broadcast_to(tf.range(count), (tf.shape(ends)[0], count))
    # A slot belongs to the first run that ends after it; slots after the last run are unused.
    run = tf.minimum(tf.searchsorted(ends, slots, side="right"), tf.shape(ends)[1] - 1)
    starts = tf.gather(anchors.starts, run, batch_dims=1)
    within = slots - tf.gather(ends - sizes, run, batch_dims=1)
    is_there = slots < ends[:, -1:]
    places = (starts + within) * tf.cast(is_there, tf.int32)
    return tuple(tf.ensure_shape(values, (None, count)) for values in (places, starts, is_there))
