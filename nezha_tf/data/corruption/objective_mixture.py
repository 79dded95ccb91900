"""Which objective an example is trained for, and what it looks like then (UniLM's mixture)."""

import difflib

import numpy as np
import tensorflow as tf

from nezha_tf.config import SEGMENT_IDS
from nezha_tf.errors import UserError

OBJECTIVES = tuple(SEGMENT_IDS)
_HASHED = 2**31


class ObjectiveMixture:
    """Draws an objective for each example of a stream and casts the example for it.

    A pair [CLS] A [SEP] B [SEP] becomes, by the objective:

    * bidirectional: itself.
    * left_to_right, right_to_left: one text, [CLS] A B [SEP].
    * seq2seq: itself, with A as the source and B as the target.

    Only text that belongs together is taken as one text, or as source and target: where B is
    random, the objectives other than the bidirectional one keep A alone, and cut it in half into
    source and target for seq2seq. The predictions in B then count for nothing. Where a text alone
    fills its row, the [SEP] at its end gives way to the one that comes between its halves.

    Segment ids are those of `SEGMENT_IDS`. What is drawn for an example depends on the seed and
    on its number in the stream alone.
    """

    def __init__(self, shares):
        """Args:
        shares: dict of objective, a key of `SEGMENT_IDS`, to its share, in any unit.
        """
        self.names = tuple(shares)
        shares = np.array(list(shares.values()), "float64")
        self._ends = np.cumsum(shares / shares.sum())

    @classmethod
    def from_text(cls, text):
        """Reads "bidirectional:2,seq2seq:1": names and shares; a share that is left out is 1.

        Raises:
          UserError: an unknown or repeated objective, or a share that is no number above 0.
        """
        shares = {}
        for part in filter(None, (part.strip() for part in text.split(","))):
            name, _, share = part.partition(":")
            if name not in OBJECTIVES:
                close = difflib.get_close_matches(name, OBJECTIVES, n=1)
                raise UserError(
                    f"--objectives={text}: there is no objective {name!r}; "
                    + (f"is {close[0]!r} meant?" if close else f"they are {', '.join(OBJECTIVES)}")
                )
            if name in shares:
                raise UserError(f"--objectives={text}: {name} stands there twice")
            shares[name] = _share(share or "1", text)
        if not shares:
            raise UserError(f"--objectives={text} names no objective of {', '.join(OBJECTIVES)}")
        return cls(shares)

    def __call__(self, batch, numbers, seed):
        """Casts the examples of a batch for the objectives that are drawn for them.

        Args:
          batch: dict in the feature schema, segment ids 0 and 1.
          numbers: int64 [B], of the examples in the stream.
          seed: string or number.

        Returns:
          The same dict with other values.
        """
        drawn = self.draw(numbers, seed)
        is_of = {name: tf.equal(drawn, index) for index, name in enumerate(self.names)}
        never = tf.zeros_like(drawn, tf.bool)
        return _cast(batch, {name: is_of.get(name, never) for name in OBJECTIVES})

    def draw(self, numbers, seed):
        """Returns int32 [B], the places in `names` of what is drawn for examples.

        A hash of the numbers: a generator would give an example another number in another batch.
        """
        keys = tf.strings.join([str(seed), "/", tf.strings.as_string(numbers)])
        hashed = tf.strings.to_hash_bucket_fast(keys, _HASHED)
        share = (tf.cast(hashed, tf.float64) + 0.5) / _HASHED
        drawn = tf.searchsorted(self._ends, share, side="right")
        return tf.minimum(drawn, len(self.names) - 1)  # The last end may lie below 1 by rounding.


def _share(share, text):
    try:
        value = float(share)
    except ValueError:
        value = -1.0
    if not 0 < value < float("inf"):
        raise UserError(f"--objectives={text}: the share {share!r} is no number above 0")
    return value


def _cast(batch, is_of):
    """Casts a batch; `is_of` is dict of objective to bool [B]."""
    length = tf.shape(batch["input_ids"])[1]
    first = tf.reduce_sum(batch["input_mask"] * (1 - batch["segment_ids"]), axis=1)
    whole = tf.reduce_sum(batch["input_mask"], axis=1)
    is_alone = ~is_of["bidirectional"] & (
        tf.equal(batch["next_sentence_labels"][:, 0], 1) | tf.equal(first, whole)
    )
    kept = tf.where(is_alone, first, whole)
    # Of one text the middle [SEP] goes; into a text that becomes source and target one comes.
    removes = (is_of["left_to_right"] | is_of["right_to_left"]) & ~is_alone
    inserts = is_of["seq2seq"] & is_alone
    place = tf.where(inserts, first // 2, first - 1)
    shift = tf.cast(inserts, tf.int32) - tf.cast(removes, tf.int32)
    input_ids, input_mask = _moved(batch["input_ids"], place, shift, kept, first - 1)
    second = tf.where(inserts, place + 1, first)
    places = tf.range(length)[None]
    positions = batch["masked_lm_positions"]
    counts = tf.cast(positions < kept[:, None], tf.float32) * batch["masked_lm_weights"]
    is_there = tf.cast(counts > 0, tf.int32)
    is_after = tf.cast(positions >= place[:, None], tf.int32)
    return {
        **batch,
        "input_ids": input_ids,
        "input_mask": input_mask,
        "segment_ids": _segment_ids(is_of, places >= second[:, None]) * input_mask,
        "masked_lm_positions": (positions + is_after * shift[:, None]) * is_there,
        "masked_lm_ids": batch["masked_lm_ids"] * is_there,
        "masked_lm_weights": counts,
    }


def _moved(input_ids, place, shift, kept, separator):
    """Takes the piece at a place out (shift -1), puts [SEP] in there (1), or neither (0).

    Args:
      input_ids: int [B, T].
      place, shift: int [B].
      kept: int [B], the pieces of each row that are kept.
      separator: int [B], where there is a [SEP].

    Returns:
      (input_ids, input_mask), int [B, T].
    """
    length = tf.shape(input_ids)[1]
    places, place, shift = tf.range(length)[None], place[:, None], shift[:, None]
    source = places - tf.where(places >= place, shift, 0)
    source = tf.where((places == place) & (shift > 0), separator[:, None], source)
    moved = tf.gather(input_ids, tf.clip_by_value(source, 0, length - 1), batch_dims=1)
    input_mask = tf.cast(places < kept[:, None] + shift, tf.int32)
    return moved * input_mask, input_mask


def _segment_ids(is_of, is_second):
    """Returns int [B, T] by the objective of each row."""
    segment_ids = tf.zeros_like(is_second, tf.int32)
    for name, (first, second) in SEGMENT_IDS.items():
        its_own = tf.where(is_second, second, first)
        segment_ids = tf.where(is_of[name][:, None], its_own, segment_ids)
    return segment_ids
