"""The SavedModel that gives vectors of raw texts and of their tokens, for any model."""

import tensorflow as tf

from nezha_tf.checkpoints import loading
from nezha_tf.checkpoints.kinds import POOLER
from nezha_tf.modeling.encoder import NezhaEncoder
from nezha_tf.modeling.sentence_vectors import pooled
from nezha_tf.serving.saved_model import Serving, as_graphs
from nezha_tf.serving.text_reader import INPUT_MEANINGS, heads, of_ids, text_spec

MEANINGS = {
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
SPECIAL_TOKENS = 2  # [CLS] and [SEP]


class FeaturesServing(Serving):
    """Serves vectors of texts and of tokens.

    They are the last layer's or, of a model with `layer_mix`, the mixture that its head reads.
    """

    meanings = MEANINGS
    example = 'text=tf.constant(["今天很冷。"])'

    def __init__(self, folder, max_seq_length):
        """Args:
        folder: `ModelFolder` of any model.
        max_seq_length: longest text in tokens, [CLS] and [SEP] included.
        """
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
            vectors = self._model(inputs)["sequence_output"]
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
        outputs = self._model(inputs)
        vectors = outputs["sequence_output"]
        has_text = tf.reduce_any(is_text > 0, axis=1)[:, None]
        found = {
            "mean": tf.where(has_text, pooled(vectors, is_text, "mean"), 0.0),
            "max": tf.where(has_text, pooled(vectors, is_text, "max"), 0.0),
            "cls": pooled(vectors, is_text, "cls"),
        }
        return {**found, "pooler": outputs["pooled_output"]} if self._has_pooler else found

    def _places(self, values, is_token):
        """Returns starts or ends, RaggedTensor [B, (n)], padded to the packed tokens: [B, T]."""
        shape = tf.shape(is_token) - [0, 1]  # [CLS] comes before them.
        kept = values[:, : self._room].to_tensor(-1, shape=shape)
        return tf.pad(kept, [[0, 0], [1, 0]], constant_values=-1)
