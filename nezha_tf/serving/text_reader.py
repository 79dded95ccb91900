"""From raw strings to what a model reads, inside a graph."""

from typing import NamedTuple

import tensorflow as tf

from nezha_tf.text.graph_tokenizer import GraphTokenizer

# Names of a model's inputs, in the order of the signatures on ids.
MODEL_INPUTS = ("input_ids", "input_mask", "segment_ids")
# What they are in words, and texts too.
INPUT_MEANINGS = {
    "text": "the texts",
    "text_pair": "the second text of each pair",
    "input_ids": "pieces as they stand in `assets/vocab.txt`: [CLS] text [SEP], zeros behind",
    "input_mask": "1 for pieces, 0 for what is behind them",
    "segment_ids": "0, and 1 from the first piece of a second text on",
}


def text_spec(name):
    """Returns the spec of an input of texts, string [B]."""
    return tf.TensorSpec([None], tf.string, name=name)


def ids_specs():
    """Returns the specs of a model's inputs, int32 [B, T]."""
    return [tf.TensorSpec([None, None], tf.int32, name=name) for name in MODEL_INPUTS]


def of_ids(function):
    """Returns a signature on a model's inputs, int32 [B, T]: (function of each, their specs).

    Args:
      function: of a dict of `MODEL_INPUTS`.
    """

    def from_ids(input_ids, input_mask, segment_ids):
        return function(dict(zip(MODEL_INPUTS, (input_ids, input_mask, segment_ids), strict=True)))

    return from_ids, ids_specs()


class Pieces(NamedTuple):
    """Tokenized texts of P pieces each.

    Attributes:
      characters: the texts' code points, string RaggedTensor [B, (characters)].
      ids: int32 RaggedTensor [B, (P)].
      starts, ends: of the same form: a piece covers the characters [start, end) of its text.
    """

    characters: tf.RaggedTensor
    ids: tf.RaggedTensor
    starts: tf.RaggedTensor
    ends: tf.RaggedTensor


class TextReader(tf.Module):
    """Tokenizes and packs texts as the Python path does: [CLS] a [SEP], or [CLS] a [SEP] b [SEP].

    Attributes:
      vocabulary: `Vocabulary`.
      graph_tokenizer: `GraphTokenizer`.
    """

    def __init__(self, tokenizer):
        """Args:
        tokenizer: `FullTokenizer`.
        """
        super().__init__(name="text_reader")
        self.vocabulary = tokenizer.vocabulary
        self.graph_tokenizer = GraphTokenizer(self.vocabulary, tokenizer.do_lower_case)

    def ids(self, text):
        """Returns the ids of texts, string [B], as int32 RaggedTensor [B, (pieces)]."""
        return self.graph_tokenizer.tokenize(valid(text))

    def pieces(self, text):
        """Returns the `Pieces` of texts, string [B]."""
        text = valid(text)
        found = self.graph_tokenizer.tokenize_with_offsets(text)
        return Pieces(tf.strings.unicode_split(text, "UTF-8"), *found)

    def packed(self, first, second=None):
        """Returns what a model reads of pieces that fit in.

        Args:
          first: int32 RaggedTensor [B, (n)].
          second: int32 RaggedTensor [B, (m)], or None.

        Returns:
          dict of `MODEL_INPUTS`, int32 [B, T], T being the longest row's length.
        """
        count = first.nrows()
        edges = [
            tf.RaggedTensor.from_uniform_row_length(tf.repeat([piece], count), 1, count)
            for piece in (self.vocabulary.cls_id, self.vocabulary.sep_id)
        ]
        parts = [edges[0], first, edges[1]] + ([second, edges[1]] if second is not None else [])
        ids = tf.concat(parts, axis=1)
        lengths = ids.row_lengths()
        # Of no text at all there is a length nevertheless: a model reads its first piece.
        longest = tf.reduce_max(tf.concat([lengths, [2]], axis=0))
        place = tf.range(longest)
        is_piece = place < lengths[:, None]
        is_second = is_piece & (place >= first.row_lengths()[:, None] + 2)
        return {
            "input_ids": ids.to_tensor(shape=tf.stack([count, longest])),
            "input_mask": tf.cast(is_piece, tf.int32),
            "segment_ids": tf.cast(is_second, tf.int32),
        }


def valid(text):
    """Returns texts, string [B], as UTF-8: U+FFFD stands for what is none."""
    return tf.strings.unicode_transcode(text, "UTF-8", "UTF-8")


def text_of(characters, rows, starts, ends):
    """Returns parts of texts.

    Args:
      characters: as of `Pieces`.
      rows: int [n], the text that each part is of.
      starts, ends: int [n], its characters [start, end).

    Returns:
      string [n].
    """
    base = tf.gather(characters.row_starts(), rows)
    places = tf.ragged.range(base + tf.cast(starts, tf.int64), base + tf.cast(ends, tf.int64))
    return tf.strings.reduce_join(tf.gather(characters.values, places), axis=-1)


def heads(ragged, lengths):
    """Returns the first entries of each row of a RaggedTensor [B, (n)]: at most lengths [B]."""
    places = tf.ragged.range(ragged.row_lengths())
    return tf.ragged.boolean_mask(ragged, places < tf.cast(lengths, places.dtype)[:, None])


def cut(first, second, room):
    """Cuts texts to `room` pieces together, as `truncated_lengths` of tasks.finetuning.packing.

    Args:
      first: RaggedTensor [B, (n)].
      second: RaggedTensor [B, (m)], or None.
      room: most pieces of a row.

    Returns:
      The two, cut.
    """
    if second is None:
        return first[:, :room], None
    lengths = first.row_lengths(), second.row_lengths()
    kept = tf.minimum(lengths[1], tf.maximum(room - lengths[0], room // 2))
    return heads(first, tf.minimum(lengths[0], room - kept)), heads(second, kept)
