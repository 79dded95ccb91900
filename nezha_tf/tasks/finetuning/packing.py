"""One text or two as the ids that a model reads: [CLS] a [SEP], or [CLS] a [SEP] b [SEP]."""

import numpy as np

from nezha_tf.errors import UserError


class TextPacking:
    """Packs texts that are pieces already, cut to a length.

    Attributes:
      num_truncated: examples that were cut so far.
    """

    def __init__(self, vocabulary, max_seq_length, is_pair):
        """Args:
          vocabulary: a `Vocabulary`.
          max_seq_length: the most pieces of an example, the special ones counted.
          is_pair: whether examples are of two texts.

        Raises:
          UserError: a length that leaves no room for a piece of each text.
        """
        self._cls_id, self._sep_id = vocabulary.cls_id, vocabulary.sep_id
        self._room = max_seq_length - (3 if is_pair else 2)
        least = 2 if is_pair else 1
        if self._room < least:
            raise UserError(
                f"--max_seq_length={max_seq_length} leaves no room for a piece of each text: it "
                f"must be at least {max_seq_length - self._room + least}"
            )
        self.num_truncated = 0

    def __call__(self, first, second=None):
        """Packs an example.

        Args:
          first: int32 [n], its pieces.
          second: int32 [m], the pieces of its second text, or None.

        Returns:
          (ids, segment ids: 0, and 1 from the first piece of the second text on), both int32 of
          the same length.
        """
        lengths = (len(first), 0 if second is None else len(second))
        kept = truncated_lengths(*lengths, self._room)
        self.num_truncated += kept != lengths
        parts = [[self._cls_id], first[: kept[0]], [self._sep_id]]
        if second is not None:
            parts += [second[: kept[1]], [self._sep_id]]
        ids = np.concatenate(parts).astype(np.int32)
        segment_ids = np.zeros(len(ids), np.int32)
        segment_ids[kept[0] + 2 :] = 1
        return ids, segment_ids


def truncated_lengths(first, second, room):
    """Returns what is left of the lengths of two texts that are cut to `room` pieces together.

    The last piece of the longer one goes first, of the second where they are as long
    (`_truncate_seq_pair` of BERT's run_classifier.py).
    """
    # Of two long texts the second keeps the smaller half; a short one leaves its room.
    kept = min(second, max(room - first, room // 2))
    return min(first, room - kept), kept
