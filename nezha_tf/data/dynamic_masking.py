"""Masking in the graph: examples that were written unmasked are masked anew whenever they are read.

The policies, the draws and what is chosen are those of `pretraining_data.array_masking`: the same
key gives the same masks.
"""

import tensorflow as tf

from nezha_tf.data.masking_policies import MASKED_SHARE, POLICIES, RANDOM_SHARE, budgets
from nezha_tf.errors import UserError

_MOST_KEYS = 2**63 - 1


class DynamicMasking:
    """Masks batches of unmasked examples.

    What is drawn for an example depends on the seed and on its number in the stream alone: a
    hash of both is the key of its random numbers.
    """

    def __init__(self, policy_name, vocabulary, masked_lm_prob, lengths):
        """Args:
          policy_name: a key of `POLICIES`.
          vocabulary: the `Vocabulary` of the examples.
          masked_lm_prob: share of a sequence, special pieces counted, that is predicted.
          lengths: the `schema.Lengths` of the masked examples.

        Raises:
          UserError: a policy whose units the records do not tell.
        """
        self._policy = POLICIES[policy_name]
        if self._policy.of_entities:
            raise UserError(
                f"--dynamic_masking={policy_name}: records tell words, not entities; mask them "
                f"when they are made, with --masking={policy_name}"
            )
        self._mask_id = vocabulary.mask_id
        self._sep_id = vocabulary.sep_id
        self._vocab_size = len(vocabulary)
        self._length, self._predictions = lengths
        self._budgets = budgets(self._length, masked_lm_prob, self._predictions)

    def __call__(self, batch, numbers, seed):
        """Masks the examples of a batch.

        Args:
          batch: dict of the `schema.UNMASKED_FEATURES`, int32 [B, ...].
          numbers: int64 [B], of the examples in the stream.
          seed: string or number.

        Returns:
          Dict of the `schema.FEATURES`, int32 but for the weights, float32.
        """
        names = tf.strings.join([f"{seed}/masking/", tf.strings.as_string(numbers)])
        keys = tf.cast(tf.strings.to_hash_bucket_fast(names, _MOST_KEYS), tf.uint64)
        return self.mask(batch, keys)

    def mask(self, batch, keys):
        """Does so with the keys of the examples' random numbers, uint64 [B]."""
        keys = keys[:, None]
        sizes = batch["word_lengths"]
        if not self._policy.of_words:
            sizes = tf.cast(self._is_text(batch), tf.int32)
        lengths = tf.reduce_sum(batch["input_mask"], axis=1)
        begins = self._choose(keys, sizes, tf.gather(tf.constant(self._budgets), lengths))
        positions = self._slots(begins)
        is_slot = positions > 0  # no text stands at place 0
        drawn_at = positions
        if self._policy.draws_once:
            drawn_at = tf.gather(begins, positions, batch_dims=1) - 1
        labels = tf.gather(batch["input_ids"], positions, batch_dims=1)
        found = self._replacements(keys, labels, positions, drawn_at)
        # The slots that are left over write [CLS] where [CLS] is.
        ids = _put(batch["input_ids"], positions, tf.where(is_slot, found, labels))
        return {
            "input_ids": ids,
            "input_mask": batch["input_mask"],
            "segment_ids": batch["segment_ids"],
            "masked_lm_positions": positions,
            "masked_lm_ids": tf.where(is_slot, labels, 0),
            "masked_lm_weights": tf.cast(is_slot, tf.float32),
            "next_sentence_labels": batch["next_sentence_labels"],
        }

    def _is_text(self, batch):
        is_special = tf.equal(batch["input_ids"], self._sep_id) | (tf.range(self._length) == 0)
        return (batch["input_mask"] > 0) & ~is_special

    def _choose(self, keys, sizes, budgets):
        """Chooses runs of units, in the order of the anchors' random numbers.

        Args:
          keys: uint64 [B, 1].
          sizes: int32 [B, T], the pieces of the unit that begins at a place, or 0.
          budgets: int32 [B], most pieces of each example.

        Returns:
          int32 [B, T], for each piece that is chosen the place where its run begins and 1; else 0.
        """
        # Rarely is there room left for what comes after so many anchors: then all are looked at.
        few = min(self._predictions * 3 // 2, self._length)
        begins, goes_on = self._look(keys, sizes, budgets, few)

        def look_again():
            rows = tf.where(goes_on)
            given = (tf.gather_nd(values, rows) for values in (keys, sizes, budgets))
            return tf.tensor_scatter_nd_update(begins, rows, self._look(*given, self._length)[0])

        return tf.cond(tf.reduce_any(goes_on), look_again, lambda: begins)

    def _look(self, keys, sizes, budgets, count):
        """Does so looking at `count` anchors only; also returns which rows had to go on, bool [B].

        Anchors come in turn. A run is passed over where it would overrun the budget or touch one
        that is chosen.
        """
        turns = tf.bitwise.invert(bits(keys, tf.range(self._length, dtype=tf.int64)))
        turns = tf.cast(tf.bitwise.right_shift(turns, tf.constant(1, tf.uint64)), tf.int64)
        turns, starts = tf.math.top_k(tf.where(sizes > 0, turns, -1), count)
        ends = self._ends(keys, sizes, starts)
        left = budgets[:, None]
        is_open = (turns >= 0) & (ends - starts <= left)
        left, taken = self._take(starts, ends, is_open, left)
        goes_on = (turns[:, -1] >= 0) & (left[:, 0] > 0)
        return _spread(starts, ends, tf.where(taken, starts + 1, 0), self._length), goes_on

    def _ends(self, keys, sizes, starts):
        """Returns int32 [B, K], where the runs of anchors end: with their segment at the latest."""
        ends = starts + tf.gather(sizes, starts, batch_dims=1)
        if len(self._policy.run_ends):
            drawn = uniform(keys, tf.cast(starts, tf.int64) + self._length)
            for share in self._policy.run_ends:
                # Behind a segment there is [SEP], which is no unit and adds nothing.
                more = tf.gather(sizes, tf.minimum(ends, self._length - 1), batch_dims=1)
                ends += tf.where(drawn >= share, more, 0)
        return tf.minimum(ends, self._length - 1)

    def _take(self, starts, ends, is_open, left):
        """Takes each run in turn that does not overrun what is left, or touch one taken before.

        Args:
          starts, ends: int32 [B, K], of the runs in their order.
          is_open: bool [B, K], whether a run may be taken.
          left: int32 [B, 1], of the budget.

        Returns:
          (left, which are taken: bool [B, K]).
        """
        sizes, number = ends - starts, tf.range(tf.shape(starts)[1])
        last = tf.size(number)

        def take(left, is_open, taken):
            if len(self._policy.run_ends):
                first = tf.reduce_min(tf.where(is_open, number, last), axis=1, keepdims=True)
                now = tf.equal(number, first)
                start, end = (
                    tf.reduce_sum(tf.where(now, at, 0), axis=1, keepdims=True)
                    for at in (starts, ends)
                )
                is_open &= (starts >= end) | (ends <= start)
            else:
                # Units do not touch each other: all up to the first that is too long.
                now = is_open & (tf.cumsum(tf.where(is_open, sizes, 0), axis=1) <= left)
                is_open &= ~now
            left -= tf.reduce_sum(tf.where(now, sizes, 0), axis=1, keepdims=True)
            return left, is_open & (sizes <= left), taken | now

        left, _, taken = tf.while_loop(
            lambda left, is_open, taken: tf.reduce_any(is_open),
            take,
            (left, is_open, tf.zeros_like(is_open)),
        )
        return left, taken

    def _slots(self, begins):
        """Returns int32 [B, P], the places above 0 in rising order, then zeros."""
        places = tf.where(begins > 0)
        rows = tf.shape(begins, tf.int64)[0]
        positions = tf.RaggedTensor.from_value_rowids(places[:, 1], places[:, 0], rows, False)
        return tf.cast(positions.to_tensor(shape=[None, self._predictions]), tf.int32)

    def _replacements(self, keys, pieces, places, drawn_at):
        """Returns what stands in the place of pieces: [MASK], a random piece or the same."""
        places, drawn_at = (tf.cast(at, tf.int64) for at in (places, drawn_at))
        share = uniform(keys, drawn_at + 2 * self._length)
        half = tf.constant(32, tf.uint64)
        random_bits = tf.bitwise.right_shift(bits(keys, places + 3 * self._length), half)
        random_ids = tf.bitwise.right_shift(random_bits * self._vocab_size, half)
        found = tf.where(share < MASKED_SHARE + RANDOM_SHARE, tf.cast(random_ids, tf.int32), pieces)
        return tf.where(share < MASKED_SHARE, self._mask_id, found)


def _spread(starts, ends, values, length):
    """Returns int32 [B, T]: from start to end of each run its value, elsewhere 0.

    Args:
      starts, ends: int32 [B, K].
      values: int32 [B, K], 0 where a run overlaps another one.
      length: T.
    """
    rows = tf.shape(values)[0]
    begin = tf.range(rows)[:, None] * length
    places = tf.concat([begin + starts, begin + ends], axis=1)
    steps = tf.concat([values, -values], axis=1)
    steps = tf.math.unsorted_segment_sum(
        tf.reshape(steps, [-1]), tf.reshape(places, [-1]), rows * length
    )
    return tf.cumsum(tf.reshape(steps, (-1, length)), axis=1)


def _put(tensor, places, values):
    """Returns int32 [B, T] with values [B, P] at places [B, P]."""
    length = tf.shape(tensor)[1]
    flat = tf.range(tf.shape(tensor)[0])[:, None] * length + places
    put = tf.tensor_scatter_nd_update(
        tf.reshape(tensor, [-1]), tf.reshape(flat, [-1, 1]), tf.reshape(values, [-1])
    )
    return tf.reshape(put, tf.shape(tensor))


def bits(keys, counters):
    """Returns 64 random bits for each key and counter, as `pretraining_data.draws.bits`.

    Args:
      keys: uint64.
      counters: int64, from 0; broadcast against the keys.

    Returns:
      uint64, of the broadcast shape.
    """
    mixed = tf.cast(counters + 1, tf.uint64) * tf.constant(0x9E3779B97F4A7C15, tf.uint64) + keys
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB), (31, 1)):
        shifted = tf.bitwise.right_shift(mixed, tf.constant(shift, tf.uint64))
        mixed = tf.bitwise.bitwise_xor(mixed, shifted)
        if factor != 1:
            mixed *= tf.constant(factor, tf.uint64)
    return mixed


def uniform(keys, counters):
    """Returns float64 in [0, 1), as `bits`."""
    shifted = tf.bitwise.right_shift(bits(keys, counters), tf.constant(11, tf.uint64))
    return tf.cast(tf.cast(shifted, tf.int64), tf.float64) * 2.0**-53
