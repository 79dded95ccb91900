"""Checks the rows of a shard before they are written.

The check uses only the values that will be written, not the code that made them. So a defect of
this package ends the run instead of producing a bad file.
"""

import numpy as np


def check_rows(values, num_tokens, vocabulary):
    """Checks examples.

    Args:
      values: dict of the features of masked or unmasked examples to arrays [B, length].
      num_tokens: expected number of tokens of all examples together, special ones included.
      vocabulary: the `Vocabulary`.

    Raises:
      RuntimeError: some examples are invalid, which is a defect of this package; the message
        says what is wrong.
    """
    ids, is_used = values["input_ids"], np.asarray(values["input_mask"], bool)
    lengths = np.count_nonzero(is_used, axis=1)
    ends = ids[np.arange(len(ids)), lengths - 1]
    faults = {
        "do not begin with [CLS]": (ids[:, 0] != vocabulary.cls_id).any(),
        "do not end with [SEP]": (ends != vocabulary.sep_id).any(),
        "have tokens after their end": np.count_nonzero(ids[~is_used]) > 0,
        "are longer or shorter than their text": lengths.sum() != num_tokens,
        "hold ids outside the vocabulary": ids.min() < 0 or ids.max() >= len(vocabulary),
    }
    if "masked_lm_positions" in values:
        places, labels = values["masked_lm_positions"], values["masked_lm_ids"]
        is_there = values["masked_lm_weights"] > 0
        is_inside = (places > 0) & (places < lengths[:, None] - 1)
        faults["predict tokens outside their text"] = (is_there & ~is_inside).any()
        faults["predict tokens outside the vocabulary"] = labels.max() >= len(vocabulary)
    else:
        starts = np.asarray(values["word_starts"], bool)
        faults["have words outside their text"] = (starts & ~is_used).any() or starts[:, 0].any()
    found = [fault for fault, is_found in faults.items() if is_found]
    if found:
        raise RuntimeError(
            f"new examples {' and '.join(found)}: this is a defect of nezha_tf, please report "
            "the command; nothing was written under the shard's name"
        )
