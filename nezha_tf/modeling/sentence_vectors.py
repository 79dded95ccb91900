"""Vectors of texts, and the model whose training brings those of like texts together."""

import numpy as np
from keras import ops

from nezha_tf.modeling.configured import NezhaModel
from nezha_tf.modeling.encoder import NezhaEncoder


class NezhaForSentenceVectors(NezhaModel):
    """The encoder alone; its outputs are the vectors (SimCSE, arXiv 2104.08821).

    The arguments, inputs and outputs are those of `NezhaEncoder`; `input_mask` is returned, too.
    """

    def __init__(self, config, max_seq_length=None, layer_mix=False, **kwargs):
        super().__init__(**kwargs)
        self.config = config
        self.max_seq_length = max_seq_length
        self.layer_mix = layer_mix
        self.encoder = NezhaEncoder(
            config, max_seq_length, layer_mix=layer_mix, dtype=self.dtype_policy
        )
        self.built = True

    def outputs(self, inputs, training=False):
        outputs = self.encoder(inputs, training=training, all_outputs=True)
        return {**outputs, "input_mask": inputs["input_mask"]}


def pooled(vectors, is_counted, pooling):
    """Returns the vectors of texts, [B, D], from those of their tokens, [B, T, D].

    `is_counted`, int [B, T], is 0 for tokens that "mean" and "max" leave out: padding and, as the
    case may be, [CLS] and [SEP]. `pooling` is "mean", "cls" or "max".
    """
    if pooling == "cls":
        return vectors[:, 0]
    is_counted = is_counted[:, :, None] > 0
    if pooling == "max":
        return ops.max(ops.where(is_counted, vectors, float(np.finfo("float32").min)), axis=1)
    weights = ops.cast(is_counted, vectors.dtype)
    return ops.sum(vectors * weights, axis=1) / ops.sum(weights, axis=1)
