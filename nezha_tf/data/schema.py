"""The one feature schema of the TFRecords: TF1's names, types and lengths.

The writer encodes by it, the reader parses by it, and a TF1 reader takes what it describes.
"""

from typing import NamedTuple

import numpy as np


class Feature(NamedTuple):
    """One fixed-length feature: its name, dtype, and length (a number, or the name of one)."""

    name: str
    dtype: type
    length: int | str


# Of masked examples.
FEATURES = (
    Feature("input_ids", np.int64, "max_seq_length"),
    Feature("input_mask", np.int64, "max_seq_length"),
    Feature("segment_ids", np.int64, "max_seq_length"),
    Feature("masked_lm_positions", np.int64, "max_predictions_per_seq"),
    Feature("masked_lm_ids", np.int64, "max_predictions_per_seq"),
    Feature("masked_lm_weights", np.float32, "max_predictions_per_seq"),
    Feature("next_sentence_labels", np.int64, 1),
)
# Of examples that are masked when they are read. `word_starts` is 1 where a word begins, and at
# the first piece of a segment; it is 0 inside words, at special pieces and in padding.
UNMASKED_FEATURES = (
    Feature("input_ids", np.int64, "max_seq_length"),
    Feature("input_mask", np.int64, "max_seq_length"),
    Feature("segment_ids", np.int64, "max_seq_length"),
    Feature("word_starts", np.int64, "max_seq_length"),
    Feature("next_sentence_labels", np.int64, 1),
)


class Lengths(NamedTuple):
    """The two lengths of a set of examples: T and P."""

    max_seq_length: int
    max_predictions_per_seq: int

    def of(self, feature):
        """Returns the length of a feature."""
        named = isinstance(feature.length, str)
        return getattr(self, feature.length) if named else feature.length


class Limits(NamedTuple):
    """Exclusive upper bounds that a model puts on the ids in its input."""

    vocab_size: int
    type_vocab_size: int

    def of(self, name, lengths):
        """Returns the exclusive upper bound of an integer feature."""
        return {
            "input_ids": self.vocab_size,
            "masked_lm_ids": self.vocab_size,
            "segment_ids": self.type_vocab_size,
            "masked_lm_positions": lengths.max_seq_length,
        }.get(name, 2)


def parsing_spec(lengths, features=FEATURES):
    """Returns what `tf.io.parse_example` wants to know of the features."""
    import tensorflow as tf

    return {f.name: tf.io.FixedLenFeature([lengths.of(f)], tf.as_dtype(f.dtype)) for f in features}


def features_of(serialized):
    """Returns which features a record is to have: it is of unmasked text if it has word starts.

    Args:
      serialized: bytes of a record.
    """
    found = parsed(serialized)
    return UNMASKED_FEATURES if found and "word_starts" in found else FEATURES


def fault_of(serialized, lengths, limits, features=FEATURES):
    """Says what is wrong with one record, or None.

    Args:
      serialized: bytes of a record.
      lengths: the `Lengths` that it must have.
      limits: the `Limits` of the model that it is meant for.
      features: the features that it must have.
    """
    found = parsed(serialized)
    if found is None:
        return "it is no tf.train.Example"
    names = {feature.name for feature in features}
    if "masked_lm_positions" in names - set(found) and "word_starts" in found:
        return "it is not masked yet; pass --dynamic_masking=whole_word or another"
    if "word_starts" in names - set(found) and "masked_lm_positions" in found:
        return (
            "it is masked already; leave --dynamic_masking out, or make the file again with "
            "--masking=none"
        )
    for feature in features:
        if feature.name not in found:
            return f"it lacks the feature {feature.name}"
        value = found[feature.name]
        is_float = feature.dtype is np.float32
        numbers = (value.float_list if is_float else value.int64_list).value
        if len(numbers) != lengths.of(feature):
            fault = f"{feature.name} has {len(numbers)} values, not {lengths.of(feature)}"
            named = isinstance(feature.length, str) and len(numbers)
            return fault + (f"; is --{feature.length}={len(numbers)} meant?" if named else "")
        bound = limits.of(feature.name, lengths)
        if not is_float and not 0 <= min(numbers) <= max(numbers) < bound:
            wrong = next(number for number in numbers if not 0 <= number < bound)
            return f"{feature.name} holds {wrong}, outside 0..{bound - 1} of the model"
    return None


def parsed(serialized):
    """Returns the features of a record, `tf.train.Feature`s by name, or None if it is no example.

    Args:
      serialized: bytes of a record.
    """
    import tensorflow as tf

    try:
        return tf.train.Example.FromString(serialized).features.feature
    except Exception:  # protobuf's DecodeError, whose place differs between its versions
        return None
