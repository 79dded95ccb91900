"""WordPiece in the graph, on tensorflow-text: the same pieces as `FullTokenizer`."""

import numpy as np
import tensorflow as tf
import tensorflow_text as tf_text

from nezha_tf.text import characters
from nezha_tf.text.tokenization import MAX_CHARS_PER_TOKEN
from nezha_tf.text.vocabulary import UNK

# RE2 character classes, written after `characters.kind_of`. The originals' own control
# characters are Cc and Cf; tab, newline and return are white space.
_SPACE = r"[\p{Z}\t\n\r]"
_DROPPED = r"[\p{Cc}\p{Cf}\x{FFFD}]"
_CJK = "".join(rf"\x{{{low:X}}}-\x{{{high:X}}}" for low, high in characters.CJK_RANGES)
_SEPARATOR = rf"[ \p{{P}}$+<=>\^`|~{_CJK}]"
# No run of so many characters, no token of so many: a cheap test that most text passes.
_LONG_RUN = rf".*[^ -/:-@\[-`{{-~\x{{4E00}}-\x{{9FFF}}，。、]{{{MAX_CHARS_PER_TOKEN + 1}}}"
TOKENIZED_AT_ONCE = 1024
_UNMATCHED = "\ue000"  # A private-use character, which is in no vocabulary: it becomes [UNK].


class GraphTokenizer(tf.Module):
    """Text to ids inside a `tf.function`, a `tf.data` pipeline or a SavedModel.

    Of characters that Python's Unicode does not have yet, tensorflow's libraries may know some.

    tensorflow-text's own lower-casing is NFKC case folding, which turns full-width punctuation
    into ASCII; so the text is normalised here first, in the originals' way.
    """

    def __init__(self, vocabulary, do_lower_case=True):
        """Args:
        vocabulary: a `Vocabulary`.
        do_lower_case: lower-case and strip accents first.
        """
        super().__init__(name="graph_tokenizer")
        self.do_lower_case = do_lower_case
        self._tokenizer = tf_text.FastBertTokenizer(
            vocab=_distinct(vocabulary),
            token_out_type=tf.int32,
            unknown_token=UNK,
            # `normalize` bounds the characters of a token; here only bytes can be.
            max_bytes_per_word=4 * MAX_CHARS_PER_TOKEN,
        )

    def normalize(self, text):
        """Cleans and folds text.

        Args:
          text: string tensor [batch_size], UTF-8.

        Returns:
          String tensor of the same shape.
        """
        text = self._fold(text)
        has_long_run = tf.strings.regex_full_match(text, f"(?s){_LONG_RUN}.*")
        return tf.cond(
            tf.reduce_any(has_long_run), lambda: _without_overlong_tokens(text), lambda: text
        )

    def _fold(self, text):
        """Cleans and folds text: as many characters as its characters give one by one."""
        text = tf.strings.regex_replace(text, _SPACE, " ")
        text = tf.strings.regex_replace(text, _DROPPED, "")
        if self.do_lower_case:
            text = tf.strings.lower(text, encoding="utf-8")
            text = tf_text.normalize_utf8(text, "NFD")
            text = tf.strings.regex_replace(text, r"\p{Mn}", "")
        return text

    def tokenize(self, text):
        """Args:
          text: string tensor [batch_size], UTF-8.

        Returns:
          int32 RaggedTensor [batch_size, (pieces)].
        """
        return self._tokenizer.tokenize(self.normalize(text))

    def tokenize_with_offsets(self, text):
        """Tokenizes, and tells what each piece stands for, as `FullTokenizer` does.

        Args:
          text: string tensor [batch_size], valid UTF-8.

        Returns:
          (ids, starts, ends), int32 RaggedTensors [batch_size, (pieces)]: a piece covers the
          characters (code points) [start, end) of its raw text.
        """
        normal = self.normalize(text)
        ids, starts, ends = self._tokenizer.tokenize_with_offsets(normal)
        source = self._sources(text)
        # Where each character of the normalised texts begins, in the bytes of all behind each
        # other: `starts` and `ends` are in the bytes of their own.
        _, begins = tf.strings.unicode_decode_with_offsets(normal, "UTF-8")
        base = tf.cumsum(tf.cast(tf.strings.length(normal), tf.int64), exclusive=True)
        begins = (begins + base[:, None]).values
        row_base = tf.gather(base, ids.value_rowids())
        first = tf.searchsorted(begins, starts.values + row_base)
        last = tf.searchsorted(begins, ends.values + row_base) - 1
        starts, ends = tf.gather(source, first), tf.gather(source, last) + 1
        return ids, ids.with_values(starts), ids.with_values(ends)

    def _sources(self, text):
        """Returns which character of its text each character of the normalised texts is of.

        Returns:
          int32 [characters of all normalised texts].
        """
        codes = tf.strings.unicode_decode(text, "UTF-8")
        distinct, which = tf.unique(codes.values)
        folded = self._fold(tf.strings.unicode_encode(distinct[:, None], "UTF-8"))
        widths = tf.gather(tf.strings.length(folded, unit="UTF8_CHAR"), which)
        places = tf.ragged.range(tf.cast(codes.row_lengths(), tf.int32)).values
        return tf.repeat(places, widths)

    def ids_of(self, texts):
        """Yields the ids of each of a list of texts, int32 [n]; many are tokenized at a time."""
        for first in range(0, len(texts), TOKENIZED_AT_ONCE):
            tokenized = self.tokenize(tf.constant(texts[first : first + TOKENIZED_AT_ONCE]))
            yield from np.split(tokenized.values.numpy(), tokenized.row_splits.numpy()[1:-1])


def _distinct(vocabulary):
    """Returns the pieces, some under a name that no text has.

    Those are the earlier one where a piece is there twice, and pieces with a blank or a NUL:
    no token has these, but tensorflow-text would find the one across words, and fail on the other.
    """
    ids = vocabulary.ids_of(vocabulary.pieces)
    return [
        piece if index == found and not {*" \0"} & {*piece} else f"{_UNMATCHED}{index}"
        for index, (piece, found) in enumerate(zip(vocabulary.pieces, ids, strict=True))
    ]


def _without_overlong_tokens(text):
    """Puts one that no vocabulary has in the place of each character of an overlong token.

    tensorflow-text bounds a token's bytes, the originals its characters.
    """
    parts = tf_text.regex_split(text, _SEPARATOR, keep_delim_regex_pattern=_SEPARATOR)
    overlong = tf.strings.length(parts.values, unit="UTF8_CHAR") > MAX_CHARS_PER_TOKEN
    unmatched = tf.strings.regex_replace(parts.values, "(?s).", _UNMATCHED)
    parts = parts.with_values(tf.where(overlong, unmatched, parts.values))
    return tf.strings.reduce_join(parts, axis=-1)
