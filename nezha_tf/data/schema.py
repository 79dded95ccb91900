"""The feature schema of the TFRecord files, with TF1's names, types and lengths.

The writer and the reader both use it, and TF1's readers can read the masked records.
"""

from typing import NamedTuple

import numpy as np


class Feature(NamedTuple):
    """A feature of fixed length: its name, dtype, and length (an int or a field of `Lengths`)."""

    name: str
    dtype: type
    length: int | str


# The features of masked examples.
FEATURES = (
    Feature("input_ids", np.int64, "max_seq_length"),
    Feature("input_mask", np.int64, "max_seq_length"),
    Feature("segment_ids", np.int64, "max_seq_length"),
    Feature("masked_lm_positions", np.int64, "max_predictions_per_seq"),
    Feature("masked_lm_ids", np.int64, "max_predictions_per_seq"),
    Feature("masked_lm_weights", np.float32, "max_predictions_per_seq"),
    Feature("next_sentence_labels", np.int64, 1),
)
# The features of examples that are masked when they are read. `word_starts` is 1 at the first token
# of a word and of a segment; it is 0 inside words, at special tokens and in padding.
UNMASKED_FEATURES = (
    Feature("input_ids", np.int64, "max_seq_length"),
    Feature("input_mask", np.int64, "max_seq_length"),
    Feature("segment_ids", np.int64, "max_seq_length"),
    Feature("word_starts", np.int64, "max_seq_length"),
    Feature("next_sentence_labels", np.int64, 1),
)
# Of rows of packed texts, which do not see each other: 1 at the tokens of the first text, 2 at
# those of the second one, and so on; 0 in padding. The tokens alone do not tell it, because masking
# may replace a token by any other, [CLS] and [SEP] included.
TEXT_IDS = Feature("text_ids", np.int64, "max_seq_length")


def features(is_masked, is_packed=False):
    """Returns the features of masked or unmasked examples, or of such rows of packed texts."""
    features = FEATURES if is_masked else UNMASKED_FEATURES
    return (*features, TEXT_IDS) if is_packed else features


class Lengths(NamedTuple):
    """The two lengths of a set of examples: `max_seq_length` T, `max_predictions_per_seq` P."""

    max_seq_length: int
    max_predictions_per_seq: int

    def of(self, feature):
        """Returns the length of a feature, an int."""
        named = isinstance(feature.length, str)
        return getattr(self, feature.length) if named else feature.length


class Limits(NamedTuple):
    """The sizes of a model's tables, which bound the ids in its input."""

    vocab_size: int
    type_vocab_size: int

    def of(self, name, lengths):
        """Returns the exclusive upper bound of an integer feature."""
        return {
            "input_ids": self.vocab_size,
            "masked_lm_ids": self.vocab_size,
            "segment_ids": self.type_vocab_size,
            "masked_lm_positions": lengths.max_seq_length,
            TEXT_IDS.name: lengths.max_seq_length,
        }.get(name, 2)


def parsing_spec(lengths, features=FEATURES):
    """Returns the `features` argument of `tf.io.parse_example`: dict of name to specification."""
    import tensorflow as tf

    return {f.name: tf.io.FixedLenFeature([lengths.of(f)], tf.as_dtype(f.dtype)) for f in features}


def features_of(serialized):
    """Returns the features that a record should have.

    With `word_starts` it is not masked, with `text_ids` a row of packed texts.
    """
    found = parsed(serialized) or {}
    return features("word_starts" not in found, TEXT_IDS.name in found)


def fault_of(serialized, lengths, limits, features=FEATURES):
    """Returns a description of what is wrong with a record (bytes), or None.

    Args:
      serialized: the record.
      lengths, limits: the `Lengths` that it must have, the `Limits` of the model that reads it.
      features: the `Feature`s that it must have.
    """
    found = parsed(serialized)
    if found is None:
        return "it is not a tf.train.Example"
    names = {feature.name for feature in features}
    if "masked_lm_positions" in names - set(found) and "word_starts" in found:
        return "it is not masked; pass --dynamic_masking=whole_word or another policy"
    if "word_starts" in names - set(found) and "masked_lm_positions" in found:
        return (
            "it is masked already; remove --dynamic_masking and objectives that read unmasked "
            "examples, or make the file again with --masking=none"
        )
    if TEXT_IDS.name in set(found) - names:
        return "its texts are packed (text_ids) and must not see each other; pass --pair=packed"
    for feature in features:
        if feature.name not in found:
            return f"it lacks the feature {feature.name}"
        value = found[feature.name]
        is_float = feature.dtype is np.float32
        numbers = (value.float_list if is_float else value.int64_list).value
        if not numbers:
            return f"{feature.name} has no {'real' if is_float else 'whole'} numbers"
        if len(numbers) != lengths.of(feature):
            fault = f"{feature.name} has {len(numbers)} values, not {lengths.of(feature)}"
            named = isinstance(feature.length, str)
            return fault + (f"; is --{feature.length}={len(numbers)} meant?" if named else "")
        bound = limits.of(feature.name, lengths)
        if not is_float and not 0 <= min(numbers) <= max(numbers) < bound:
            wrong = next(number for number in numbers if not 0 <= number < bound)
            return f"{feature.name} holds {wrong}, outside 0..{bound - 1} of the model"
    return None


def parsed(serialized):
    """Returns a record's `tf.train.Feature`s by name, or None if it is no `tf.train.Example`."""
    import tensorflow as tf

    try:
        return tf.train.Example.FromString(serialized).features.feature
    except Exception:  # protobuf's DecodeError; its module differs between protobuf versions
        return None
