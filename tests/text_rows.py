"""Unmasked examples of any texts, for the objectives that corrupt whole texts."""

from typing import NamedTuple

import numpy as np
import tensorflow as tf
from hypothesis import strategies as st

from nezha_tf import Vocabulary
from nezha_tf.data import schema

LENGTH = 24
UNUSED = [f"[unused{number}]" for number in range(1, 9)]
# Tokens of texts: sentence ends, words, and parts of words.
ENDS = ("。", "！", "？")
TEXT = [*ENDS, *(chr(0x4E00 + number) for number in range(60)), *(f"##{n}" for n in "abcdefgh")]
VOCABULARY = Vocabulary(["[PAD]", *UNUSED, "[UNK]", "[CLS]", "[SEP]", "[MASK]", *TEXT])
FIRST_OF_TEXT = len(VOCABULARY) - len(TEXT)
CLS, SEP, MASK = VOCABULARY.cls_id, VOCABULARY.sep_id, VOCABULARY.mask_id


class Record(NamedTuple):
    """The tokens of A and of B ([] if there is no B), the starts of words, and the label of a pair.

    `number` is the example's number in the stream.
    """

    first: list
    second: list
    starts: list
    label: int
    number: int

    @property
    def text(self):
        """The tokens that belong together."""
        return self.first if self.label else self.first + self.second


@st.composite
def records(draw, length=LENGTH):
    """Draws records; each may fill its row, or have a single token."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    is_pair = draw(st.booleans())
    most = length - 2 - is_pair
    size = draw(st.just(most) | st.integers(1 + is_pair, most))
    first = draw(st.integers(1, size - 1)) if is_pair else size
    tokens = rng.integers(FIRST_OF_TEXT, len(VOCABULARY), size).tolist()
    starts = (rng.random(size) < draw(st.sampled_from([0.3, 0.8, 1.0]))).astype(int)
    starts[[0, first if is_pair else 0]] = 1
    label = draw(st.integers(0, 1)) if is_pair else 0
    number = draw(st.integers(0, 2**62))
    return Record(tokens[:first], tokens[first:], starts.tolist(), label, number)


def batch_of(rows, length=LENGTH):
    """Returns records as a batch of the reader: a dict of `schema.UNMASKED_FEATURES`."""
    batch = {feature.name: [] for feature in schema.UNMASKED_FEATURES}
    for row in rows:
        tokens = [CLS, *row.first, SEP, *row.second, *[SEP] * bool(row.second)]
        count = len(row.first)
        starts = [0, *row.starts[:count], 0, *row.starts[count:], *[0] * bool(row.second)]
        rest = [0] * (length - len(tokens))
        batch["input_ids"].append(tokens + rest)
        batch["input_mask"].append([1] * len(tokens) + rest)
        segments = [0] * (count + 2) + [1] * (len(tokens) - count - 2)
        batch["segment_ids"].append(segments + rest)
        batch["word_starts"].append(starts + rest)
        batch["next_sentence_labels"].append([row.label])
    return {name: tf.constant(values, tf.int32) for name, values in batch.items()}


def numbers_of(rows):
    return tf.constant([row.number for row in rows], tf.int64)
