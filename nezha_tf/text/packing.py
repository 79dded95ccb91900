"""Packs one or two texts for a model: [CLS] a [SEP], or [CLS] a [SEP] b [SEP]."""

import numpy as np

from nezha_tf.util.errors import UserError


class TextPacking:
    """Packs texts, given as ids of tokens, and truncates them to a length.

    `num_truncated` is the number of truncated examples so far.
    """

    def __init__(self, vocabulary, max_seq_length, is_pair):
        """Takes the most tokens of an example, special ones included; whether it has two texts.

        Raises:
          UserError: the length leaves no room for a token of each text.
        """
        self._cls_id, self._sep_id = vocabulary.cls_id, vocabulary.sep_id
        self._room = max_seq_length - (3 if is_pair else 2)
        least = 2 if is_pair else 1
        if self._room < least:
            raise UserError(
                f"--max_seq_length={max_seq_length} leaves no room for a token of each text: it "
                f"must be at least {max_seq_length - self._room + least}"
            )
        self.num_truncated = 0

    def __call__(self, first, second=None):
        """Packs the ids of a text, int32 [n], and of a second one, int32 [m] or None.

        Returns:
          (ids, segment_ids), int32 arrays of the same length; segment_ids are 1 from the second
          text's first token on, else 0.
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
    """Returns the lengths of two texts after truncation to `room` tokens together.

    This equals removing the last token of the longer text again and again; of the second text if
    both have the same length (`_truncate_seq_pair` of BERT's run_classifier.py).
    """
    # If both texts are long, the second keeps the smaller half of the room.
    kept = min(second, max(room - first, room // 2))
    return min(first, room - kept), kept
