"""Turns raw strings into the inputs of a model, inside a graph."""

from typing import NamedTuple

import tensorflow as tf

from nezha_tf.text.graph_tokenizer import GraphTokenizer
from nezha_tf.text.packing import bert_parts, heads, join

# Names of a model's inputs, in the order of the signatures that take ids.
MODEL_INPUTS = ("input_ids", "input_mask", "segment_ids")
# Descriptions of these inputs, and of texts.
INPUT_MEANINGS = {
    "text": "the texts",
    "text_pair": "the second text of each pair",
    "input_ids": "ids of tokens (line numbers of `assets/vocab.txt`, from 0): [CLS] text [SEP], "
    "then zeros",
    "input_mask": "1 for tokens, 0 after the last token",
    "segment_ids": "0; 1 for the tokens of a second text and its [SEP]",
}


def text_spec(name):
    """Returns the spec of an input that is texts, string [B]."""
    return tf.TensorSpec([None], tf.string, name=name)


def ids_specs(rank=2):
    """Returns the specs of a model's inputs, int32 [B, T], or of those of choices, [B, C, T]."""
    return [tf.TensorSpec([None] * rank, tf.int32, name=name) for name in MODEL_INPUTS]


def of_ids(function, rank=2):
    """Returns a signature of a function of a dict of `MODEL_INPUTS`: (function, input specs)."""

    def from_ids(input_ids, input_mask, segment_ids):
        return function(dict(zip(MODEL_INPUTS, (input_ids, input_mask, segment_ids), strict=True)))

    return from_ids, ids_specs(rank)


class Tokens(NamedTuple):
    """Tokenized texts of P tokens each."""

    characters: tf.RaggedTensor  # string [B, (characters)], the code points of the texts
    ids: tf.RaggedTensor  # int32 [B, (P)]
    starts: tf.RaggedTensor  # int [B, (P)]: a token covers the characters [start, end) of its text
    ends: tf.RaggedTensor


class TextReader(tf.Module):
    """Tokenizes and packs texts as a `FullTokenizer`: [CLS] a [SEP], or [CLS] a [SEP] b [SEP]."""

    def __init__(self, tokenizer):
        super().__init__(name="text_reader")
        self.vocabulary = tokenizer.vocabulary
        self.graph_tokenizer = GraphTokenizer(self.vocabulary, tokenizer.do_lower_case)

    def ids(self, text):
        """Returns the ids of texts, string [B], as int32 RaggedTensor [B, (tokens)]."""
        return self.graph_tokenizer.tokenize(valid(text))

    def ids_with(self, text, mark, mark_id):
        """Returns the ids of texts, int32 RaggedTensor [B, (n)], with `mark_id` for each mark.

        The texts, string [B], are tokenized in parts: the tokenizer would split the mark.
        """
        parts = tf.strings.split(valid(text), mark)
        ids = self.ids(parts.values)
        ids = tf.concat([ids, tf.fill([ids.nrows(), 1], mark_id)], axis=1)
        splits = tf.gather(ids.row_splits, parts.row_splits)
        joined = tf.RaggedTensor.from_row_splits(ids.values, splits)
        # No mark follows the last part.
        return heads(joined, joined.row_lengths() - 1)

    def tokens(self, text):
        """Returns the `Tokens` of texts, string [B]."""
        text = valid(text)
        characters = tf.strings.unicode_split(text, "UTF-8")
        return Tokens(characters, *self.graph_tokenizer.tokenize_with_offsets(text))

    def packed(self, *texts):
        """Returns the `inputs_of` the ids of one or two texts, which must not be too long."""
        return inputs_of(*join(bert_parts(self.vocabulary, *texts)))


def inputs_of(ids, segment_ids, least=2):
    """Returns `MODEL_INPUTS`, a dict of int32 [B, T], for int32 RaggedTensors [B, (n)]."""
    ids, mask = padded(ids, least)
    segment_ids = segment_ids.to_tensor(shape=tf.shape(ids))
    return dict(zip(MODEL_INPUTS, (ids, mask, segment_ids), strict=True))


def padded(ids, least=2):
    """Returns (ids, mask of the tokens), int32 [B, T], of an int32 RaggedTensor [B, (n)].

    T is at least `least`, the tokens that each row has, [CLS] and [SEP] among them: also without
    any text, because the model reads some of these tokens.
    """
    lengths = ids.row_lengths()
    longest = tf.reduce_max(tf.concat([lengths, [least]], axis=0))
    is_token = tf.range(longest) < lengths[:, None]
    return ids.to_tensor(shape=tf.stack([ids.nrows(), longest])), tf.cast(is_token, tf.int32)


def valid(text):
    """Returns texts, string [B], as valid UTF-8: invalid bytes become U+FFFD."""
    return tf.strings.unicode_transcode(text, "UTF-8", "UTF-8")


def text_of(characters, rows, starts, ends):
    """Returns parts of texts, string [n].

    Args:
      characters: as in `Tokens`.
      rows: int [n], the text to which each part belongs.
      starts, ends: int [n]: the part is the characters [start, end) of its text.
    """
    base = tf.gather(characters.row_starts(), rows)
    places = tf.ragged.range(base + tf.cast(starts, tf.int64), base + tf.cast(ends, tf.int64))
    return tf.strings.reduce_join(tf.gather(characters.values, places), axis=-1)
