"""Gives a model another vocabulary, with rows that begin where its own tokens end.

A token that both vocabularies have keeps its row. A new one begins as the mean of the rows of the
pieces into which the old vocabulary splits it: a word as its characters (as in WoBERT, whose
train.py passes them to bert4keras as `compound_tokens`), a character that the old one lacks as
[UNK].
"""

import numpy as np

from nezha_tf.text.tokenization import basic_tokens, longest_match
from nezha_tf.text.vocabulary import UNK
from nezha_tf.util.errors import UserError

# The weights with a row for each token, by TF1 name.
_WORDS = "bert/embeddings/word_embeddings"
_TABLES = (_WORDS, "cls/predictions/output_bias", "generator/masked_lm/output_bias")


def with_vocabulary(weights, old, new, do_lower_case):
    """Returns (the `Weights` with a row for each token of `new`, what was done as text).

    Args:
      weights: `Weights` of a model that reads `old`: its table of words is [rows, width] and the
        bias of its outputs [rows], in any float dtype, which stays. Rows beyond the tokens of `old`
        are left out; the new tables have as many rows as `new` has tokens.
      old, new: `Vocabulary`.
      do_lower_case: whether the model reads lower-cased text.

    Raises:
      UserError: the weights have no table of words.
    """
    if _WORDS not in weights.values:
        raise UserError(f"--new_vocab_file: the weights have no {_WORDS}")
    pieces = [old.ids_of(pieces_of(token, old, do_lower_case)) for token in new.tokens]
    values = dict(weights.values)
    for name in filter(values.__contains__, _TABLES):
        table = values[name]
        # In float64 the mean of one row is that row, bit by bit.
        rows = [table[ids].mean(axis=0, dtype="float64") for ids in pieces]
        values[name] = np.stack(rows).astype(table.dtype)
    kept = sum(token in old for token in new.tokens)
    unknown = old.ids_of([UNK])
    lacking = sum(ids == unknown for ids in pieces) - 1
    words = (
        f"{len(old):,} tokens become {len(new):,}: {kept:,} keep their rows, {lacking:,} begin as "
        f"[UNK], {len(new) - kept - lacking:,} as the mean of their pieces"
    )
    return weights._replace(values=values), words


def pieces_of(token, vocabulary, do_lower_case):
    """Returns the tokens of `vocabulary` that stand for a token of another one, a list of str.

    Chinese characters are split one by one, as in a text. A piece inside a word, "##ab", is split
    as what follows the beginning of a word.
    """
    if token in vocabulary:
        return [token]
    is_inside = token.startswith("##") and len(token) > 2
    text = token[2:] if is_inside else token
    pieces = []
    for number, word in enumerate(basic_tokens(text, do_lower_case)):
        found = longest_match(word.text, vocabulary, is_inside and number == 0)
        pieces += [piece for piece, _, _ in found]
    return pieces or [UNK]
