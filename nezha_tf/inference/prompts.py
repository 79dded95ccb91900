"""Prompts and texts as ids, without a [SEP] at their end."""

import numpy as np

from nezha_tf.tasks.seq2seq.packing import Pairs, Side
from nezha_tf.util.errors import UserError


def pack_prompts(rows, tokenizer, max_length, truncate):
    """Packs prompts as [CLS] prompt.

    Args:
      rows: list of `data.rows.Row` with `src`.
      tokenizer: `FullTokenizer`.
      max_length: longest prompt in tokens, [CLS] included.
      truncate: "tail" or "head": which end of a prompt that is too long is cut off.

    Returns:
      `Pairs` without targets.

    Raises:
      UserError: a prompt has no token of text.
    """
    side = Side("prompt", 1, max_length, truncate)
    packed, truncated = [], 0
    for row in rows:
        whole = ids_of(row, "src", tokenizer)
        ids = side.cut(whole)
        truncated += len(ids) < len(whole)
        packed.append(np.array([tokenizer.vocabulary.cls_id, *ids], np.int32))
    return Pairs(packed, [len(ids) for ids in packed], {"prompt": truncated})


def ids_of(row, column, tokenizer):
    """Returns the ids of a row's text, a list of int; raises `UserError` if there are none."""
    ids = tokenizer.convert_tokens_to_ids(tokenizer.tokenize(row.values[column]))
    if not ids:
        raise UserError(f"{row.place}: {column} holds no token of text")
    return ids
