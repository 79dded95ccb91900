"""WordPiece in the graph with tensorflow-text; the tokens are those of `FullTokenizer`."""

import tensorflow as tf
import tensorflow_text as tf_text

from nezha_tf.text import characters
from nezha_tf.text.packing import rows_of
from nezha_tf.text.tokenization import MAX_CHARS_PER_BASIC_TOKEN
from nezha_tf.text.vocabulary import UNK, Vocabulary

# RE2 character classes that correspond to `characters.kind_of`. The originals' control characters
# are Cc and Cf; tab, newline and return are white space.
_SPACE = r"[\p{Z}\t\n\r]"
_DROPPED = r"[\p{Cc}\p{Cf}\x{FFFD}]"
_CJK = "".join(rf"\x{{{low:X}}}-\x{{{high:X}}}" for low, high in characters.CJK_RANGES)
_SEPARATOR = rf"[ \p{{P}}$+<=>\^`|~{_CJK}]"
# A cheap test for overlong basic tokens: without such a long run there is no such long basic token.
_LONG_RUN = rf".*[^ -/:-@\[-`{{-~\x{{4E00}}-\x{{9FFF}}，。、]{{{MAX_CHARS_PER_BASIC_TOKEN + 1}}}"
TOKENIZED_AT_ONCE = 1024
_UNMATCHED = "\ue000"  # A private-use character, in no vocabulary: it becomes [UNK].


class GraphTokenizer(tf.Module):
    """Converts text to ids inside a `tf.function`, a `tf.data` pipeline or a SavedModel.

    It takes a `Vocabulary`, and whether to lower-case and strip accents first. TensorFlow's
    libraries may know characters that Python's Unicode version does not have yet; these may give
    other tokens than in Python.

    tensorflow-text's own lower-casing is NFKC case folding, which turns full-width punctuation into
    ASCII. So the text is first normalised here as the originals do it.
    """

    def __init__(self, vocabulary: Vocabulary, do_lower_case: bool = True):
        super().__init__(name="graph_tokenizer")
        self.do_lower_case = do_lower_case
        self._tokenizer = tf_text.FastBertTokenizer(
            vocab=_distinct(vocabulary),
            token_out_type=tf.int32,
            unknown_token=UNK,
            # This can only bound a token's bytes; `normalize` bounds its characters.
            max_bytes_per_word=4 * MAX_CHARS_PER_BASIC_TOKEN,
        )

    def normalize(self, text):
        """Cleans and folds texts, string [batch_size], and handles overlong basic tokens."""
        text = self._fold(text)
        has_long_run = tf.strings.regex_full_match(text, f"(?s){_LONG_RUN}.*")
        return tf.cond(
            tf.reduce_any(has_long_run), lambda: _without_overlong_tokens(text), lambda: text
        )

    def _fold(self, text):
        """Cleans and folds text; the length is the same as if each character is folded alone."""
        text = tf.strings.regex_replace(text, _SPACE, " ")
        text = tf.strings.regex_replace(text, _DROPPED, "")
        if self.do_lower_case:
            text = tf.strings.lower(text, encoding="utf-8")
            text = tf_text.normalize_utf8(text, "NFD")
            text = tf.strings.regex_replace(text, r"\p{Mn}", "")
        return text

    def tokenize(self, text):
        """Returns the ids, int32 ragged [batch_size, (tokens)], of texts [batch_size].

        Of one text, a scalar as before `batch` in a pipeline, it is a tensor [tokens].
        """
        text = tf.convert_to_tensor(text)
        if text.shape.rank == 0:
            return self.tokenize(text[None]).values
        return self._tokenizer.tokenize(self.normalize(text))

    def tokenize_with_offsets(self, text):
        """Returns the ids and offsets of texts, the same as `FullTokenizer`.

        Args:
          text: string tensor [batch_size], valid UTF-8.

        Returns:
          (ids, starts, ends), int32 RaggedTensors [batch_size, (tokens)]: a token covers the
          characters (code points) [start, end) of its raw text.
        """
        normal = self.normalize(text)
        ids, starts, ends = self._tokenizer.tokenize_with_offsets(normal)
        source = self._sources(text)
        # `begins` is the byte offset of each character in all normalised texts, concatenated, while
        # `starts` and `ends` are byte offsets in each text.
        _, begins = tf.strings.unicode_decode_with_offsets(normal, "UTF-8")
        base = tf.cumsum(tf.cast(tf.strings.length(normal), tf.int64), exclusive=True)
        begins = (begins + base[:, None]).values
        row_base = tf.gather(base, ids.value_rowids())
        first = tf.searchsorted(begins, starts.values + row_base)
        last = tf.searchsorted(begins, ends.values + row_base) - 1
        starts, ends = tf.gather(source, first), tf.gather(source, last) + 1
        return ids, ids.with_values(starts), ids.with_values(ends)

    def _sources(self, text):
        """Returns the place in its raw text, int32, of each character of all normalised texts."""
        codes = tf.strings.unicode_decode(text, "UTF-8")
        distinct, which = tf.unique(codes.values)
        folded = self._fold(tf.strings.unicode_encode(distinct[:, None], "UTF-8"))
        widths = tf.gather(tf.strings.length(folded, unit="UTF8_CHAR"), which)
        places = tf.ragged.range(tf.cast(codes.row_lengths(), tf.int32)).values
        return tf.repeat(places, widths)

    def ids_of(self, texts):
        """Yields the ids of each text of a list, int32 [n]; see `each_row`."""
        return each_row(self.tokenize, texts)


def each_row(function, texts):
    """Yields each row, an array [n], of what a function makes of a list of texts, many at a time.

    The function takes texts, string [B], and returns a RaggedTensor [B, (n)].
    """
    for first in range(0, len(texts), TOKENIZED_AT_ONCE):
        yield from rows_of(function(tf.constant(texts[first : first + TOKENIZED_AT_ONCE])))


def _distinct(vocabulary):
    """Returns the tokens; those that must never match get a name that no text contains.

    These are the first of two equal tokens, and tokens with a space or a NUL. No basic token
    contains a space or a NUL, but tensorflow-text would match the first across words and fail for
    the second.
    """
    ids = vocabulary.ids_of(vocabulary.tokens)
    return [
        token if index == last and not {*" \0"} & {*token} else f"{_UNMATCHED}{index}"
        for index, (token, last) in enumerate(zip(vocabulary.tokens, ids, strict=True))
    ]


def _without_overlong_tokens(text):
    """Replaces each character of an overlong basic token by one that no vocabulary has."""
    parts = tf_text.regex_split(text, _SEPARATOR, keep_delim_regex_pattern=_SEPARATOR)
    overlong = tf.strings.length(parts.values, unit="UTF8_CHAR") > MAX_CHARS_PER_BASIC_TOKEN
    unmatched = tf.strings.regex_replace(parts.values, "(?s).", _UNMATCHED)
    parts = parts.with_values(tf.where(overlong, unmatched, parts.values))
    return tf.strings.reduce_join(parts, axis=-1)
