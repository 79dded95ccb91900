"""What any model serves: vectors of raw texts and of their tokens, and candidates for blanks."""

import tensorflow as tf

from nezha_tf.checkpoints import loading
from nezha_tf.checkpoints.kinds import POOLER
from nezha_tf.config import SEGMENT_IDS
from nezha_tf.modeling import positions
from nezha_tf.modeling.encoder import NezhaEncoder
from nezha_tf.modeling.pretraining import NezhaForMaskedLM
from nezha_tf.modeling.sentence_vectors import pooled
from nezha_tf.serving.signature import Serving, as_graphs
from nezha_tf.serving.text_reader import INPUT_MEANINGS, of_ids, text_spec
from nezha_tf.text.packing import heads
from nezha_tf.text.vocabulary import MASK
from nezha_tf.util.errors import UserError

# The longest text in tokens if the model folder does not say it.
MAX_SEQ_LENGTH = 512
SPECIAL_TOKENS = 2  # [CLS] and [SEP]
# The number of candidates for a blank.
TOP_K = 10


def length_of(folder):
    """Returns how many tokens a text of a `ModelFolder` has at most, [CLS] and [SEP] included."""
    length = folder.task.get("max_seq_length") or MAX_SEQ_LENGTH
    longest = positions.of(folder.config).longest(folder.config)
    return length if longest is None else min(length, longest)


FEATURES_MEANINGS = {
    **INPUT_MEANINGS,
    "mean": "mean of the vectors of a text's tokens without `[CLS]` and `[SEP]`; 0 if it has none",
    "max": "maximum of the same vectors; 0 if the text has no token",
    "cls": "the vector of `[CLS]`",
    "pooler": "the output of the pooler",
    "token": "the tokens, `[CLS]` and `[SEP]` included; empty after the last one",
    "num_tokens": "number of tokens of each text, `[CLS]` and `[SEP]` included",
    "start": "each token's first character (code point, from 0); -1 for `[CLS]`, `[SEP]` and after",
    "end": "the character after each token's last one; -1 as for `start`",
    "vectors": "the vector of each token; 0 after the last one",
}


class FeaturesServing(Serving):
    """Serves vectors of texts and of tokens.

    They are the last layer's or, of a model with `layer_mix`, the mixture that its head reads.
    """

    meanings = FEATURES_MEANINGS
    example = 'text=tf.constant(["今天很冷。"])'

    def __init__(self, folder):
        max_seq_length = length_of(folder)
        layer_mix = folder.task.get("layer_mix", False)
        model = NezhaEncoder(folder.config, max_seq_length, layer_mix=layer_mix)
        folder.load_into(model, (POOLER,))
        super().__init__(model, folder.tokenizer)
        _, reader = loading.open_checkpoint(folder.checkpoint)
        names = reader.get_variable_to_shape_map()
        self._has_pooler = any(name.startswith(POOLER) for name in names)
        self._room = max_seq_length - SPECIAL_TOKENS

    @property
    def about(self):
        return (
            "Gives vectors of texts; the signature `tokens` gives those of their tokens. Longer "
            f"texts are cut to {self._room + SPECIAL_TOKENS} tokens, `[CLS]` and `[SEP]` included."
        )

    def signatures(self):
        def of_texts(text):
            return self._of_texts(self._reader.packed(heads(self._reader.ids(text), self._room)))

        def of_tokens(text):
            tokens = self._reader.tokens(text)
            inputs = self._reader.packed(heads(tokens.ids, self._room))
            is_token = inputs["input_mask"] > 0
            names = tf.gather(self._reader.vocabulary.tokens, inputs["input_ids"])
            vectors = self._model(inputs, all_outputs=True)["sequence_output"]
            return {
                "token": tf.where(is_token, names, ""),
                "num_tokens": tf.reduce_sum(inputs["input_mask"], axis=1),
                "start": self._places(tokens.starts, is_token),
                "end": self._places(tokens.ends, is_token),
                "vectors": tf.where(is_token[..., None], vectors, 0.0),
            }

        return as_graphs(
            {
                "serving_default": (of_texts, [text_spec("text")]),
                "tokens": (of_tokens, [text_spec("text")]),
                "from_ids": of_ids(self._of_texts),
            }
        )

    def _of_texts(self, inputs):
        """Returns the vectors of texts: dict of pooling to float32 [B, hidden_size]."""
        ids, vocabulary = inputs["input_ids"], self._reader.vocabulary
        is_special = (ids == vocabulary.cls_id) | (ids == vocabulary.sep_id)
        is_text = tf.where(is_special, 0, inputs["input_mask"])
        outputs = self._model(inputs, all_outputs=True)
        vectors = outputs["sequence_output"]
        has_text = tf.reduce_any(is_text > 0, axis=1)[:, None]
        answer = {
            "mean": tf.where(has_text, pooled(vectors, is_text, "mean"), 0.0),
            "max": tf.where(has_text, pooled(vectors, is_text, "max"), 0.0),
            "cls": pooled(vectors, is_text, "cls"),
        }
        return {**answer, "pooler": outputs["pooled_output"]} if self._has_pooler else answer

    def _places(self, values, is_token):
        """Returns starts or ends, RaggedTensor [B, (n)], padded to the packed tokens: [B, T]."""
        shape = tf.shape(is_token) - [0, 1]  # [CLS] comes before them.
        kept = values[:, : self._room].to_tensor(-1, shape=shape)
        return tf.pad(kept, [[0, 0], [1, 0]], constant_values=-1)


FILL_MASK_MEANINGS = {
    **INPUT_MEANINGS,
    "text": f"the texts, with one {MASK} for each token to fill in",
    "num_masks": f"number of {MASK} in each text",
    "candidates": f"the likeliest tokens for each {MASK}, likeliest first; empty after the last",
    "probabilities": "the probability of each candidate; 0 after the last",
}


class FillMaskServing(Serving):
    """Serves the likeliest tokens for each [MASK] of a text, each found by itself."""

    meanings = FILL_MASK_MEANINGS
    example = f'text=tf.constant(["今天天{MASK}很好。"])'

    def __init__(self, model, tokenizer, max_seq_length, top_k=TOP_K):
        """Texts have at most `max_seq_length` tokens, [CLS] and [SEP] included."""
        super().__init__(model, tokenizer)
        self._room, self._top_k = max_seq_length - SPECIAL_TOKENS, top_k

    @property
    def about(self):
        return (
            f"Gives the {self._top_k} likeliest tokens for each {MASK} of a text. Longer texts are "
            f"cut to {self._room + SPECIAL_TOKENS} tokens, `[CLS]` and `[SEP]` included; a {MASK} "
            "after that is not filled in."
        )

    def signatures(self):
        def of_texts(text):
            return self.filled(heads(self.ids_of(text), self._room))

        return as_graphs(
            {
                "serving_default": (of_texts, [text_spec("text")]),
                "from_ids": of_ids(self._filled),
            }
        )

    def ids_of(self, text):
        """Returns the ids of texts, string [B], as int32 RaggedTensor [B, (n)], not packed."""
        return self._reader.ids_with(text, MASK, self._reader.vocabulary.mask_id)

    def filled(self, ids):
        """Returns the outputs for what `ids_of` returned."""
        inputs = self._reader.packed(ids)
        segment_ids = tf.fill(tf.shape(inputs["input_ids"]), SEGMENT_IDS["bidirectional"][0])
        return self._filled({**inputs, "segment_ids": segment_ids})

    def _filled(self, inputs):
        """Returns the outputs for a dict of the model's inputs, [B, T] each."""
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
        best = tf.math.top_k(probabilities, min(self._top_k, len(tokens)))
        is_there = tf.sequence_mask(masks.row_lengths(), tf.shape(positions)[1])[..., None]
        return {
            "num_masks": tf.cast(masks.row_lengths(), tf.int32),
            "candidates": tf.where(is_there, tf.gather(tokens, best.indices), ""),
            "probabilities": tf.where(is_there, best.values, 0.0),
        }


def fill_mask(folder, model):
    """Returns the `FillMaskServing` of a `ModelFolder`; a `UserError` without the head for it."""
    if not isinstance(model, NezhaForMaskedLM):
        raise UserError(
            f"the model in {folder.path} has no head of masked LM, so it cannot fill {MASK}; pass "
            "--task=features"
        )
    return FillMaskServing(model, folder.tokenizer, length_of(folder))
