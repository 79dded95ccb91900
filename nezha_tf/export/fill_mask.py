"""Candidates for the blanks of raw texts."""

import tensorflow as tf

from nezha_tf.config import SEGMENT_IDS
from nezha_tf.errors import UserError
from nezha_tf.modeling.pretraining import NezhaForMaskedLM
from nezha_tf.serving.saved_model import Serving, as_graphs
from nezha_tf.serving.text_reader import INPUT_MEANINGS, heads, of_ids, text_spec, valid
from nezha_tf.text.vocabulary import MASK

SPECIAL_PIECES = 2  # [CLS] and [SEP]
TOP_K = 10
MEANINGS = {
    **INPUT_MEANINGS,
    "text": f"the texts, with a {MASK} for each piece that is to be filled in",
    "num_masks": f"how many {MASK} each text has; what is behind them is empty, and 0",
    "candidates": f"the likeliest pieces for each {MASK}, likeliest first",
    "probabilities": "of each candidate",
}


class FillMaskServing(Serving):
    """The likeliest pieces at each [MASK], each by itself, with both sides seen."""

    meanings = MEANINGS
    example = f'text=tf.constant(["今天天{MASK}很好。"])'

    def __init__(self, folder, max_seq_length):
        """Args:
          folder: `ModelFolder` of a model with the head of masked LM.
          max_seq_length: most pieces of a text, [CLS] and [SEP] counted.

        Raises:
          UserError: the model has no such head.
        """
        model = folder.make_model()
        if not isinstance(model, NezhaForMaskedLM):
            raise UserError(
                f"the model in {folder.path} has no head of masked LM, so it cannot fill {MASK}; "
                "pass --task=features"
            )
        super().__init__(model, folder.tokenizer)
        self._room = max_seq_length - SPECIAL_PIECES

    @property
    def about(self):
        return (
            f"Fills blanks, written {MASK}, with one piece each: the {TOP_K} likeliest. Longer "
            f"texts are cut to {self._room + SPECIAL_PIECES} pieces, `[CLS]` and `[SEP]` among "
            "them; blanks behind that are not seen."
        )

    def signatures(self):
        def of_texts(text):
            inputs = self._reader.packed(self._with_masks(text)[:, : self._room])
            segment_ids = tf.fill(tf.shape(inputs["input_ids"]), SEGMENT_IDS["bidirectional"][0])
            return self._filled({**inputs, "segment_ids": segment_ids})

        return as_graphs(
            {
                "serving_default": (of_texts, [text_spec("text")]),
                "from_ids": of_ids(self._filled),
            }
        )

    def _with_masks(self, text):
        """Returns the ids of texts and of their [MASK]s, which the tokenizer would take apart."""
        parts = tf.strings.split(valid(text), MASK)
        ids = self._reader.ids(parts.values)
        masks = tf.fill([ids.nrows(), 1], self._reader.vocabulary.mask_id)
        ids = tf.concat([ids, masks], axis=1)
        splits = tf.gather(ids.row_splits, parts.row_splits)
        joined = tf.RaggedTensor.from_row_splits(ids.values, splits)
        # Behind the last part there is none.
        return heads(joined, joined.row_lengths() - 1)

    def _filled(self, inputs):
        """Returns the outputs for a model's inputs."""
        is_mask = inputs["input_ids"] == self._reader.vocabulary.mask_id
        is_mask &= inputs["input_mask"] > 0
        where = tf.where(is_mask)
        masks = tf.RaggedTensor.from_value_rowids(
            tf.cast(where[:, 1], tf.int32), where[:, 0], tf.shape(is_mask, tf.int64)[0]
        )
        positions = masks.to_tensor()
        outputs = self._model({**inputs, "masked_lm_positions": positions})
        pieces = self._reader.vocabulary.pieces
        # A configuration may have more rows than there are pieces.
        probabilities = tf.nn.softmax(outputs["masked_lm_logits"])[:, :, : len(pieces)]
        found = tf.math.top_k(probabilities, min(TOP_K, len(pieces)))
        is_there = tf.sequence_mask(masks.row_lengths(), tf.shape(positions)[1])[..., None]
        return {
            "num_masks": tf.cast(masks.row_lengths(), tf.int32),
            "candidates": tf.where(is_there, tf.gather(pieces, found.indices), ""),
            "probabilities": tf.where(is_there, found.values, 0.0),
        }
