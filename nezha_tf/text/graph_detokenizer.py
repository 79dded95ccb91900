"""Converts ids to natural text in the graph, as `detokenize` does without a source."""

import tensorflow as tf

from nezha_tf.text.detokenization import (
    IN_NUMBERS,
    LEFT,
    RIGHT,
    WIDE,
    WORD,
    is_dropped,
    is_inner,
    lean_of,
)
from nezha_tf.text.vocabulary import UNK


class GraphDetokenizer(tf.Module):
    """Converts ids to the text of `detokenize(tokens)`, inside a `tf.function` or a SavedModel.

    There is no source: [UNK] is left out, and text that a model writes in lower case stays so. The
    rules of `detokenize` are for basic tokens. Here they are applied to tokens: tables over the
    vocabulary contain what the rules need, and a basic token is represented by its first and last
    token.
    """

    def __init__(self, vocabulary):
        super().__init__(name="graph_detokenizer")
        tokens = vocabulary.tokens
        texts = [token[2:] if is_inner(token) else token for token in tokens]
        # The empty token is dropped, so its values in the tables do not matter.
        first, last = [text[:1] or " " for text in texts], [text[-1:] or " " for text in texts]
        self._pad_id = vocabulary.pad_id
        self._texts = tf.constant(texts)
        self._tables = {
            "is_inner": tf.constant([is_inner(token) for token in tokens]),
            "is_dropped": tf.constant([is_dropped(token) for token in tokens]),
            "is_unknown": tf.constant([token == UNK for token in tokens]),
            "is_quote": tf.constant([text == '"' for text in texts]),
            "is_period": tf.constant([text == "." for text in texts]),
            "is_in_numbers": tf.constant([text in tuple(IN_NUMBERS) for text in texts]),
            "is_long": tf.constant([len(text) > 1 for text in texts]),
            "first_lean": tf.constant([lean_of(char) for char in first]),
            "last_lean": tf.constant([lean_of(char) for char in last]),
            "first_is_upper": tf.constant([char.isupper() for char in first]),
            "first_is_digit": tf.constant([char.isdigit() for char in first]),
            "last_is_digit": tf.constant([char.isdigit() for char in last]),
        }

    def detokenize(self, ids):
        """Returns the texts, string [N], of ids, int32 [N, T]; special tokens are dropped."""
        ids, is_start, exists = self._without_dropped(ids)
        spaces = tf.where(_spaces(self._of(ids), is_start, exists), " ", "")
        texts = tf.where(exists, tf.gather(self._texts, ids), "")
        return tf.strings.reduce_join(tf.strings.join([spaces, texts]), axis=-1)

    def _of(self, ids):
        return {name: tf.gather(table, ids) for name, table in self._tables.items()}

    def _without_dropped(self, ids):
        """Removes the dropped tokens and moves the others together.

        Returns ids, whether a basic token starts there, and whether there is a token, all [N, P]
        with P = T + 1: the last column never has a token.
        """
        ids = tf.pad(ids, [[0, 0], [0, 1]], constant_values=self._pad_id)
        of = self._of(ids)
        before = _shifted(_last_place(~of["is_dropped"]), 1, -1)
        # An inner token begins a basic token if no written token is before it.
        is_start = ~of["is_inner"] | (before < 0) | _at(of["is_unknown"], before)
        is_written = ~of["is_dropped"] & ~of["is_unknown"]
        last = tf.shape(ids)[1] - 1
        places = tf.sort(tf.where(is_written, tf.range(last + 1), last), axis=1)
        return tuple(_at(values, places) for values in (ids, is_start, is_written))


def _spaces(of, is_start, exists):
    """Returns whether there is a space before a token, bool [N, P]."""
    is_end = exists & (_shifted(is_start, -1) | ~_shifted(exists, -1))
    is_single = is_start & is_end
    lean = _at(_leans(of, is_start, is_single, exists), _last_place(is_start))
    lean = tf.where(exists, lean, WIDE)
    # Punctuation that leans on a word has, on its other side, the same spaces as the word itself.
    place = _last_place(lean != LEFT)
    after = (place >= 0) & _at((lean == WORD) & (of["last_lean"] == WORD), place)
    before = _at(lean == WORD, _next_place(lean != RIGHT))
    between_digits = _shifted(of["last_is_digit"], 1) & _shifted(exists & of["first_is_digit"], -1)
    is_in_number = is_single & of["is_in_numbers"] & between_digits
    return _shifted(after & ~is_in_number, 1) & before & is_start & exists


def _leans(of, is_start, is_single, exists):
    """Returns the lean of each basic token at its first token, int32 [N, P]."""
    is_quote = is_single & of["is_quote"]
    quotes = tf.math.cumsum(tf.cast(is_quote, tf.int32), axis=1, exclusive=True)
    lean = tf.where(is_quote, tf.where(quotes % 2 == 1, LEFT, RIGHT), of["first_lean"])
    goes_on = _shifted(exists & ~is_start, -2)
    is_name = _shifted(exists & of["first_is_upper"], -1)
    is_name &= _shifted(of["is_long"], -1) | goes_on
    return tf.where(is_single & of["is_period"] & is_name, LEFT, lean)


def _shifted(values, by, fill=False):
    """Returns values [N, P] moved right by `by` places (left if negative), filled with `fill`."""
    right, left = max(by, 0), max(-by, 0)
    padded = tf.pad(values, [[0, 0], [right, left]], constant_values=fill)
    return padded[:, left : tf.shape(padded)[1] - right]


def _last_place(condition):
    """Returns for each place the last place up to it where a condition [N, P] holds, or -1."""
    length = tf.shape(condition)[1]
    places = tf.sort(tf.where(condition, tf.range(length), length), axis=1)
    number = tf.math.cumsum(tf.cast(condition, tf.int32), axis=1) - 1
    return tf.where(number >= 0, _at(places, number), -1)


def _next_place(condition):
    """Returns for each place the first place from it on where a condition holds, as at the last."""
    from_right = _last_place(tf.reverse(condition, [1]))
    return tf.shape(condition)[1] - 1 - tf.reverse(from_right, [1])


def _at(values, places):
    """Returns values [N, P] at places [N, P]; results for the place -1 are meaningless."""
    return tf.gather(values, tf.maximum(places, 0), batch_dims=1)
