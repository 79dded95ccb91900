"""Which pieces of unmasked examples are predicted, drawn in the graph when they are read."""

from typing import NamedTuple

import numpy as np
import tensorflow as tf

from nezha_tf.data import draws, schema
from nezha_tf.data.corruption.policies import budgets, replacements

# No anchor's turn comes at this key.
_NEVER = np.iinfo(np.int32).max
# How exactly the time is found until which all units are chosen: to a sixteenth of the budget.
HALVINGS = 5


class DynamicMasking:
    """Masks the examples of a stream by a `MaskingPolicy`, another way in each epoch.

    What is drawn for an example depends on the seed and on its number in the stream alone. The
    draws are those of `array_masking.ArrayMasking`: the same keys give the same masks, but for
    ties, as turns are told by 31 bits here. It is a `data.transforms.Transform`.
    """

    reads = schema.UNMASKED_FEATURES
    gives = schema.FEATURES
    # Of few examples at a time each would cost several times as much.
    at_once = 1024

    def __init__(self, vocabulary, policy, lengths, masked_lm_prob):
        """Args:
        vocabulary: the `Vocabulary` that the examples were made with.
        policy: a `MaskingPolicy`.
        lengths: the `schema.Lengths` of the masked examples.
        masked_lm_prob: share of a sequence, special pieces counted, that is predicted.
        """
        self._special_ids = (vocabulary.cls_id, vocabulary.sep_id)
        self._mask_id = vocabulary.mask_id
        self._vocab_size = len(vocabulary)
        self._policy = policy
        self._length, self._predictions = lengths
        self._budgets = budgets(self._length, masked_lm_prob, self._predictions)

    def fault_of(self, record):
        """Says why an example cannot be of this vocabulary, or None.

        Args:
          record: bytes of an example that fits the schema.
        """
        features = tf.train.Example.FromString(record).features.feature
        ids = features["input_ids"].int64_list.value
        length = sum(features["input_mask"].int64_list.value)
        found = (ids[0], ids[length - 1])
        if found == self._special_ids:
            return None
        return (
            f"it begins and ends with the pieces {found[0]} and {found[1]}, and [CLS] and [SEP] "
            f"of --vocab_file are {self._special_ids[0]} and {self._special_ids[1]}; pass the "
            "vocabulary that it was made with"
        )

    def __call__(self, batch, numbers, seed):
        """Masks the examples of a batch.

        Args:
          batch: dict in the schema of unmasked examples, int32.
          numbers: int64 [B], of the examples in the stream.
          seed: string or number.

        Returns:
          Dict in the schema of masked examples.
        """
        return self.mask(batch, draws.graph_keys("masking", seed, numbers))

    def mask(self, batch, keys):
        """Masks examples.

        Args:
          batch: as for a call.
          keys: uint64 [B], random.

        Returns:
          As a call.
        """
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
        found = self._replacements(labels, keys[:, None], places, drawn_at)
        found = tf.where(is_predicted, found, labels)  # an unused slot is at [CLS], which stays
        rows = tf.broadcast_to(tf.range(tf.shape(ids)[0])[:, None], tf.shape(places))
        unmasked = {name: values for name, values in batch.items() if name != "word_starts"}
        return {
            **unmasked,
            "input_ids": tf.tensor_scatter_nd_update(ids, tf.stack([rows, places], -1), found),
            "masked_lm_positions": places,
            "masked_lm_ids": labels * tf.cast(is_predicted, tf.int32),
            "masked_lm_weights": tf.cast(is_predicted, tf.float32),
        }

    def _anchors(self, begins, is_special, keys):
        """Draws the turn and the run of every unit; returns the `Anchors`."""
        # Every unit ends where the next begins or at a special piece: behind a text is [SEP].
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
            # The special pieces up to a unit are as many as the place of the next in their list.
            before = tf.cumsum(tf.cast(~is_unit, tf.int32))
            last = tf.minimum(last, tf.gather(tf.concat([special, [0]], 0), before))
        place = tf.cast(place, tf.int32)
        ends = tf.gather(tf.concat([place, [0]], 0), last)
        counts = tf.math.count_nonzero(borders, axis=1)
        ragged = tf.RaggedTensor.from_row_lengths(turns, counts, validate=False)
        # A mixture may have no example to mask.
        shape = tf.stack([-1, tf.reduce_max(tf.concat([counts, [1]], axis=0))])
        starts, ends = (
            ragged.with_values(values).to_tensor(shape=shape) for values in (place, ends)
        )
        return Anchors(ragged.to_tensor(_NEVER, shape=shape), starts, ends)

    def _replacements(self, pieces, keys, places, drawn_at):
        """Returns what stands in the place of pieces: [MASK], a random piece or the same."""
        places, drawn_at = (tf.cast(values, tf.int64) for values in (places, drawn_at))
        shares = draws.graph_uniform(keys, drawn_at + 2 * self._length)
        random_bits = draws.graph_shifted(draws.graph_bits(keys, places + 3 * self._length), 32)
        random_ids = draws.graph_shifted(random_bits * tf.constant(self._vocab_size, tf.uint64), 32)
        return replacements(pieces, shares, tf.cast(random_ids, tf.int32), self._mask_id, tf.where)


class Anchors(NamedTuple):
    """The units of rows as anchors, in the order of their places, U at most in one.

    Attributes:
      turns: int32 [B, U], the least has the first turn; `_NEVER` where there is no unit.
      starts, ends: int32 [B, U], the places of the first piece of an anchor's run and behind
        its last.
    """

    turns: tf.Tensor
    starts: tf.Tensor
    ends: tf.Tensor


def choose_first(anchors, budget):
    """Chooses most of what is chosen of units that do not overlap, all at once.

    All units whose turn comes before some time are chosen if the budget allows them; the
    latest such time is looked for by halving.

    Args:
      anchors: the `Anchors`.
      budget: int32 [B], most pieces of a row.

    Returns:
      (whether an anchor is chosen, bool [B, U]; how many pieces are left of the budget, int32
      [B]).
    """
    turns, starts, ends = anchors
    sizes = tf.where(turns < _NEVER, ends - starts, 0)

    def used(time):
        return tf.reduce_sum(sizes * tf.cast(turns < time[:, None], tf.int32), axis=1)

    # Turns are even over time: the budget is used up long before twice its share has gone.
    share = tf.cast(2 * budget, tf.float64) / tf.cast(1 + tf.reduce_sum(sizes, 1), tf.float64)
    step = tf.cast(tf.minimum(share, 0.999) * _NEVER, tf.int32)
    time = tf.zeros_like(step)
    for _ in range(HALVINGS):
        step //= 2
        time += step * tf.cast(used(time + step) <= budget, tf.int32)
    return turns < time[:, None], budget - used(time)


def choose(anchors, budget, is_chosen=None, left=None):
    """Chooses the runs of anchors, one in each row at a time.

    A run that would overrun what is left of the budget is struck off at once, as it never can
    be chosen later; so is one that touches what is chosen. What is left over has its turn.

    Args:
      anchors: the `Anchors`.
      budget: int32 [B], most pieces of a row.
      is_chosen, left: what `choose_first` chose and left over, if it was called.

    Returns:
      bool [B, U], whether an anchor's run is chosen.
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
    """Gives each chosen piece a slot, in rising order.

    Args:
      anchors: the `Anchors`.
      is_chosen: bool [B, U].
      count: slots P of a row.

    Returns:
      (places of the pieces, int32 [B, P], 0 where there is none; places where their runs begin,
      int32 [B, P]; whether there is a piece, bool [B, P]).
    """
    sizes = (anchors.ends - anchors.starts) * tf.cast(is_chosen, tf.int32)
    ends = tf.cumsum(sizes, axis=1)
    slots = tf.broadcast_to(tf.range(count), (tf.shape(ends)[0], count))
    # The run of a slot is the one before whose end it lies; past the last there is none.
    run = tf.minimum(tf.searchsorted(ends, slots, side="right"), tf.shape(ends)[1] - 1)
    starts = tf.gather(anchors.starts, run, batch_dims=1)
    within = slots - tf.gather(ends - sizes, run, batch_dims=1)
    is_there = slots < ends[:, -1:]
    places = (starts + within) * tf.cast(is_there, tf.int32)
    return tuple(tf.ensure_shape(values, (None, count)) for values in (places, starts, is_there))
