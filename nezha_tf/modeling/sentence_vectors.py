"""The model whose training brings the vectors of like texts together."""

import keras

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
