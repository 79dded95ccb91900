"""Heads: masked LM with the tied output table, and the linear head of all other tasks."""

import keras
from keras import ops

from nezha_tf.modeling import layers
from nezha_tf.modeling.compiled_parts import fused
from nezha_tf.modeling.configured import Configured
from nezha_tf.modeling.label_scores import label_scores

# Up to this many states are multiplied as in a step of decoding: see `_product`.
FEW_ROWS = 64


class MaskedLMHead(Configured, keras.layers.Layer):
    """Scores the vocabulary only at the masked positions (`get_masked_lm_output` of BERT).

    The output table is that of the embeddings, so the head maps its input to their width E (the
    same function of ALBERT's run_pretraining.py).
    """

    def __init__(self, config, **kwargs):
        super().__init__(**kwargs)
        self.config = config
        self.transform = layers.dense(
            config.embedding_width,
            config,
            hidden_act=config.masked_lm_act,
            dtype=self.dtype_policy,
            name="transform",
        )
        self.norm = layers.norm(config, dtype=self.dtype_policy)

    def build(self, input_shape=None):
        self.transform.build((None, None, self.config.hidden_size))
        self.norm.build((None, None, self.config.embedding_width))
        self.output_bias = self.add_weight(
            name="output_bias", shape=(self.config.vocab_size,), initializer="zeros"
        )
        self.built = True

    def call(self, sequence_output, masked_lm_positions, word_embeddings):
        """Returns the logits at masked_lm_positions, int [B, P], of sequence_output [B, T, ...]."""
        return self.logits(
            layers.gather_positions(sequence_output, masked_lm_positions), word_embeddings
        )

    def logits(self, states, word_embeddings):
        """Returns the logits, float32 [B, P, V], of states [B, P, hidden_size], table [V, E]."""
        states, table, bias = self._factors(states, word_embeddings)
        batch, count, width = ops.shape(states)
        logits = _with_bias(_product(ops.reshape(states, (batch * count, width)), table), bias)
        return ops.reshape(logits, (batch, count, self.config.vocab_size))

    def label_scores(self, states, labels, is_used, word_embeddings, training=False):
        """Scores given tokens without keeping the logits; see `label_scores.label_scores`.

        `states` are [B, P, hidden_size], B and P static, `labels` int32 [B, P], `is_used` bool [B,
        P]; the result is float32 [3, B, P].
        """
        states, table, bias = self._factors(states, word_embeddings)
        states = ops.reshape(states, (-1, states.shape[-1]))
        flat = (ops.reshape(values, (-1,)) for values in (labels, is_used))
        scores = label_scores(states, table, bias, *flat, training)
        return ops.reshape(scores, (3, *labels.shape))

    def _factors(self, states, word_embeddings):
        states = self.norm(self.transform(states))
        table = ops.cast(word_embeddings, self.compute_dtype)
        return states, table, ops.cast(self.output_bias, "float32")


class LinearHead(Configured, keras.layers.Layer):
    """Scores classes for vectors.

    With two classes it is the head of next-sentence prediction (1: segment B is random) or of
    sentence order (ALBERT; 1: the segments were swapped).
    """

    def __init__(self, config, num_labels=2, **kwargs):
        super().__init__(**kwargs)
        self.config = config
        self.num_labels = num_labels

    def build(self, input_shape=None):
        # The originals' shape, so that checkpoints need no transposition. The product is in
        # float32, too: in bfloat16, whose numbers near 8 are 1/32 apart, many logits are equal.
        self.output_weights = self.add_weight(
            name="output_weights",
            shape=(self.num_labels, self.config.hidden_size),
            initializer=layers.initializer(self.config),
            autocast=False,
        )
        self.output_bias = self.add_weight(
            name="output_bias", shape=(self.num_labels,), initializer="zeros", autocast=False
        )
        self.built = True

    def call(self, states):
        """Maps states [..., hidden_size] to logits [..., num_labels] in float32."""
        states, weights, bias = (
            ops.cast(value, "float32") for value in (states, self.output_weights, self.output_bias)
        )
        return ops.matmul(states, ops.transpose(weights)) + bias


def _product(states, table):
    if isinstance(states.shape[0], int) and states.shape[0] > FEW_ROWS:
        return ops.matmul(states, ops.transpose(table))
    # With the table as the left factor, the few rows of a decoding step take half the time.
    return ops.transpose(ops.matmul(table, ops.transpose(states)))


@fused
def _with_bias(product, bias):
    return ops.cast(product, "float32") + bias
