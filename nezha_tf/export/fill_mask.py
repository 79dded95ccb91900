"""The SavedModel that gives candidates for the blanks of raw texts."""

import tensorflow as tf

from nezha_tf.config import SEGMENT_IDS
from nezha_tf.modeling.pretraining import NezhaForMaskedLM
from nezha_tf.serving.saved_model import Serving, as_graphs
from nezha_tf.serving.text_reader import INPUT_MEANINGS, heads, of_ids, text_spec
from nezha_tf.text.vocabulary import MASK
from nezha_tf.util.errors import UserError

SPECIAL_TOKENS = 2  # [CLS] and [SEP]
TOP_K = 10
MEANINGS = {
    **INPUT_MEANINGS,
    "text": f"the texts, with one {MASK} for each token to fill in",
    "num_masks": f"number of {MASK} in each text",
    "candidates": f"the likeliest tokens for each {MASK}, likeliest first; empty after the last",
    "probabilities": "the probability of each candidate; 0 after the last",
}


class FillMaskServing(Serving):
    """Serves the likeliest tokens for each [MASK] of a text; see `generation.fill.BlankFiller`."""

    meanings = MEANINGS
    example = f'text=tf.constant(["今天天{MASK}很好。"])'

    def __init__(self, folder, max_seq_length):
        """Args:
          folder: `ModelFolder` of a model with the head of masked LM.
          max_seq_length: longest text in tokens, [CLS] and [SEP] included.

        Raises:
          UserError: the model does not have this head.
        """
        model = folder.make_model()
        if not isinstance(model, NezhaForMaskedLM):
            raise UserError(
                f"the model in {folder.path} has no head of masked LM, so it cannot fill {MASK}; "
                "pass --task=features"
            )
        super().__init__(model, folder.tokenizer)
        self._room = max_seq_length - SPECIAL_TOKENS

    @property
    def about(self):
        return (
            f"Gives the {TOP_K} likeliest tokens for each {MASK} of a text. Longer texts are cut "
            f"to {self._room + SPECIAL_TOKENS} tokens, `[CLS]` and `[SEP]` included; a {MASK} "
            "after that is not filled in."
        )

    def signatures(self):
        def of_texts(text):
            ids = self._reader.ids_with(text, MASK, self._reader.vocabulary.mask_id)
            inputs = self._reader.packed(heads(ids, self._room))
            segment_ids = tf.fill(tf.shape(inputs["input_ids"]), SEGMENT_IDS["bidirectional"][0])
            return self._filled({**inputs, "segment_ids": segment_ids})

        return as_graphs(
            {
                "serving_default": (of_texts, [text_spec("text")]),
                "from_ids": of_ids(self._filled),
            }
        )

    def _filled(self, inputs):
        """Returns the outputs, dict of name to tensor, for a dict of the model's inputs [B, T]."""
        is_mask = inputs["input_ids"] == self._reader.vocabulary.mask_id
        is_mask &= inputs["input_mask"] > 0
        where = tf.where(is_mask)
        masks = tf.RaggedTensor.from_value_rowids(
            tf.cast(where[:, 1], tf.int32), where[:, 0], tf.shape(is_mask, tf.int64)[0]
        )
        positions = masks.to_tensor()
        outputs = self._model({**inputs, "masked_lm_positions": positions})
        tokens = self._reader.vocabulary.tokens
        # The model's table of tokens may be larger than the vocabulary.
        probabilities = tf.nn.softmax(outputs["masked_lm_logits"])[:, :, : len(tokens)]
        found = tf.math.top_k(probabilities, min(TOP_K, len(tokens)))
        is_there = tf.sequence_mask(masks.row_lengths(), tf.shape(positions)[1])[..., None]
        return {
            "num_masks": tf.cast(masks.row_lengths(), tf.int32),
            "candidates": tf.where(is_there, tf.gather(tokens, found.indices), ""),
            "probabilities": tf.where(is_there, found.values, 0.0),
        }
