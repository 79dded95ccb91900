"""The rules of whole examples: what `data.schema` cannot tell from one feature alone."""

import numpy as np

from nezha_tf.data import schema


def row_faults(values, vocab_size, ends):
    """Returns a dict of what can be wrong with examples to bool [B], whether it is.

    Args:
      values: dict of the features of masked or unmasked examples to arrays [B, length].
      vocab_size: exclusive bound on ids.
      ends: the ids of the first and the last token, those of [CLS] and [SEP].
    """
    ids, mask = values["input_ids"], values["input_mask"]
    # Of a mask of other values than 0 and 1, which is a fault, the sum may be no place.
    lengths = np.clip(mask.sum(axis=1), 0, ids.shape[1])
    places = np.arange(ids.shape[1])
    is_used = places < lengths[:, None]
    last = ids[np.arange(len(ids)), np.maximum(lengths - 1, 0)]
    has_rest = (ids != 0) & ~is_used
    if "segment_ids" in values:
        has_rest |= (values["segment_ids"] != 0) & ~is_used
    faults = {
        "a first token that is not [CLS]": ids[:, 0] != ends[0],
        "a last token that is not [SEP]": last != ends[1],
        "padding that is not at the end, or not empty": ((mask != is_used) | has_rest).any(axis=1),
        "numbers out of range": _is_out_of_range(values, vocab_size),
    }
    if "masked_lm_positions" in values:
        weights, positions = values["masked_lm_weights"], values["masked_lm_positions"]
        is_predicted = np.arange(weights.shape[1]) < weights.sum(axis=1, keepdims=True)
        is_odd = is_predicted & ((positions < 1) | (positions >= lengths[:, None] - 1))
        is_odd |= weights != is_predicted
        is_odd[:, 1:] |= (np.diff(positions, axis=1) <= 0) & is_predicted[:, 1:]
        faults["predictions outside the text, or not in its order"] = is_odd.any(axis=1)
    else:
        # Each [CLS] and [SEP] is no text, and a segment begins with a word.
        is_text = (ids != ends[0]) & (ids != ends[1]) & is_used
        starts = np.asarray(values["word_starts"], bool)
        lacks_first = is_text[:, 1:] & ~is_text[:, :-1] & ~starts[:, 1:]
        is_odd = (starts & ~is_text).any(axis=1) | lacks_first.any(axis=1)
        faults["words that do not begin where the text has them"] = is_odd
    if schema.TEXT_IDS.name in values:
        faults["texts that do not begin with [CLS], or end without [SEP]"] = _has_odd_texts(
            values, is_used, ends
        )
    return faults


def _has_odd_texts(values, is_used, ends):
    """Returns bool [B], whether texts are numbered otherwise than their special tokens say."""
    ids, text_ids = values["input_ids"], values[schema.TEXT_IDS.name]
    begins = (np.diff(text_ids, axis=1) != 0) & is_used[:, 1:]
    expected = 1 + np.cumsum(begins, axis=1)
    is_odd = (text_ids[:, 1:] != expected * is_used[:, 1:]).any(axis=1) | (text_ids[:, 0] != 1)
    is_border = (ids[:, :-1] == ends[1]) & (ids[:, 1:] == ends[0])
    is_odd |= (begins & ~is_border).any(axis=1)
    if "masked_lm_positions" not in values:  # masking may put a [CLS] into a text
        is_odd |= ((ids[:, 1:] == ends[0]) & ~begins).any(axis=1)
    return is_odd


def _is_out_of_range(values, vocab_size):
    limits = schema.Limits(vocab_size, type_vocab_size=2)
    lengths = schema.Lengths(values["input_ids"].shape[1], 0)
    is_out = np.zeros(len(values["input_ids"]), bool)
    for name, value in values.items():
        if name != "masked_lm_weights":
            is_out |= ((value < 0) | (value >= limits.of(name, lengths))).any(axis=1)
    return is_out


def check_rows(values, num_tokens, vocabulary):
    """Raises a `RuntimeError` that tells what is wrong with new examples, if something is.

    So a defect of this package ends the run instead of producing a bad file.

    Args:
      values: as for `row_faults`.
      num_tokens: expected number of tokens of all examples together, special ones included.
      vocabulary: the `Vocabulary`.
    """
    ends = vocabulary.cls_id, vocabulary.sep_id
    faults = row_faults(values, len(vocabulary), ends)
    present = [fault for fault, rows in faults.items() if rows.any()]
    if np.sum(values["input_mask"]) != num_tokens:
        present.append("more or fewer tokens than their text")
    if present:
        raise RuntimeError(
            f"new examples have {' and '.join(present)}: this is a defect of nezha_tf, please "
            "report the command; nothing was written under the shard's name"
        )
