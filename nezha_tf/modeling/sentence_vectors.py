"""Vectors of texts, and the model whose training brings those of like texts together."""

import keras
import numpy as np
from keras import ops

from nezha_tf.modeling.encoder import NezhaEncoder


class NezhaForSentenceVectors(keras.Model):
    """The encoder alone; its outputs are the vectors (SimCSE, arXiv 2104.08821)."""

    def __init__(self, config, max_seq_length=None, layer_mix=False, **kwargs):
        """Args:
        config: a `NezhaConfig`.
        max_seq_length, layer_mix: see `NezhaEncoder`.
        **kwargs: `name` and `dtype` (a Keras dtype policy), as for any Keras model.
        """
        super().__init__(**kwargs)
        self.config = config
        self.encoder = NezhaEncoder(
            config, max_seq_length, layer_mix=layer_mix, dtype=self.dtype_policy
        )
        self.built = True

    def call(self, inputs, training=False):
        """Args:
          inputs: see `NezhaEncoder`.
          training: whether dropout is on.

        Returns:
          The encoder's dict with `input_mask`, which says which vectors are of tokens.
        """
        outputs = self.encoder(inputs, training=training)
        return {**outputs, "input_mask": inputs["input_mask"]}


def pooled(vectors, is_text, pooling):
    """Returns the vectors of texts, [B, D], from those of their tokens.

    Args:
      vectors: float [B, T, D].
      is_text: int [B, T]: 1 for tokens of text, 0 for [CLS], [SEP] and padding.
      pooling: "mean", "cls" or "max".
    """
    if pooling == "cls":
        return vectors[:, 0]
    is_text = is_text[:, :, None] > 0
    if pooling == "max":
        return ops.max(ops.where(is_text, vectors, float(np.finfo("float32").min)), axis=1)
    weights = ops.cast(is_text, vectors.dtype)
    return ops.sum(vectors * weights, axis=1) / ops.sum(weights, axis=1)
