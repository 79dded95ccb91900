"""Self-attention with position encodings."""

import math

import keras
from keras import ops

from nezha_tf.modeling import layers
from nezha_tf.modeling.dropout import Dropout

# This is added to the logits of masked keys, as in the originals. It is finite, so that the softmax
# of a row with only masked keys is defined, and within the range of float16.
MASKED_BIAS = -10000.0


class SelfAttention(keras.layers.Layer):
    """Multi-head self-attention, its output projection, residual and LayerNorm.

    It follows `attention_layer` of NEZHA's modeling.py: the query is scaled by 1/sqrt(H) before
    all uses, including relative positions; relative values are weighted with the probabilities
    after dropout.
    """

    def __init__(self, config, **kwargs):
        super().__init__(**kwargs)
        self.config = config
        policy = self.dtype_policy
        hidden = config.hidden_size
        self.query = layers.dense(hidden, config, dtype=policy, name="query")
        self.key = layers.dense(hidden, config, dtype=policy, name="key")
        self.value = layers.dense(hidden, config, dtype=policy, name="value")
        self.probs_dropout = Dropout(config.attention_probs_dropout_prob, dtype=policy)
        self.projection = layers.dense(hidden, config, dtype=policy, name="output")
        self.output_dropout = Dropout(config.hidden_dropout_prob, dtype=policy)
        self.layer_norm = layers.layer_norm(config, dtype=policy)

    def build(self, input_shape=None):
        shape = (None, None, self.config.hidden_size)
        for layer in (self.query, self.key, self.value, self.projection, self.layer_norm):
            layer.build(shape)
        self.built = True

    def call(
        self,
        hidden_states,
        attention_mask,
        positions,
        past_key_values=(),
        memory=None,
        num_queries=None,
        has_own_keys=True,
        training=False,
        dropout_keys=(None, None),
    ):
        """Args:
          hidden_states: [B, T, hidden_size].
          attention_mask: bool, broadcastable to [B, 1, Q, S]; True attends.
          positions: `AttentionPositions` of Q queries and S keys.
          past_key_values: pairs (keys, values), each [B, N, M, H], of cached pieces. Among the S
            keys, these come first in their order, and the T pieces come last.
          memory: [B, M, hidden_size], states of earlier pieces, which are keys before the T pieces
            but do not attend; or None.
          has_own_keys: whether the T pieces are keys too; if not, they have no keys and values.
          num_queries: Q: only the first Q of the T pieces attend; None: all T pieces.
          training: whether dropout is on.
          dropout_keys: what `draw_keys` returns; (None, None): new masks are drawn.

        Returns:
          ([B, Q, hidden_size], (keys, values) of the memory and the T pieces, each
          [B, N, M + T, H]; the keys are rotated by their positions, if the encoding does that; None
          without own keys).
        """
        own, (probs_keys, output_keys) = None, dropout_keys
        if has_own_keys:
            if memory is None:
                query, key, value = self._heads(hidden_states)
            else:
                states = ops.concatenate([memory, hidden_states], axis=1)
                query, key, value = self._heads(states)
                query = query[:, :, ops.shape(memory)[1] :]
            if num_queries is not None:
                query, hidden_states = query[:, :, :num_queries], hidden_states[:, :num_queries]
            query, key = positions.turned(query, key)
            own = (key, value)
        else:
            query = self._queries(hidden_states)
            query, _ = positions.turned(query, query)
        blocks = (*past_key_values, own) if has_own_keys else past_key_values
        probs = self._softmax(query, [keys for keys, _ in blocks], attention_mask, positions)
        probs = ops.cast(probs, self.compute_dtype)
        probs = self.probs_dropout(probs, training=training, keys=probs_keys)
        context = _weighted_sum(probs, [values for _, values in blocks])
        of_positions = positions.context(probs)
        if of_positions is not None:
            context = context + of_positions
        context = ops.transpose(context, (0, 2, 1, 3))
        output = self.projection(ops.reshape(context, ops.shape(hidden_states)))
        output = self.output_dropout(output, training=training, keys=output_keys)
        return self.layer_norm(output + hidden_states), own

    def draw_keys(self):
        """Returns the keys of new dropout masks, a tuple; see `Dropout.draw`."""
        return self.probs_dropout.draw(), self.output_dropout.draw()

    def probabilities(self, hidden_states, attention_mask, positions):
        """Returns the attention probabilities without dropout, float32 [B, N, T, T].

        The arguments are those of `call`; the last axis (keys) sums to 1.
        """
        query, key, _ = self._heads(hidden_states)
        query, key = positions.turned(query, key)
        return self._softmax(query, [key], attention_mask, positions)

    def _softmax(self, query, blocks, attention_mask, positions):
        """Returns the probabilities, float32 [B, N, Q, S]; the keys are in several blocks."""
        scores = [ops.matmul(query, ops.transpose(keys, (0, 1, 3, 2))) for keys in blocks]
        scores = ops.concatenate(scores, axis=-1) if len(blocks) > 1 else scores[0]
        of_positions = positions.scores(query)
        if of_positions is not None:
            scores = scores + of_positions
        # The softmax is computed in float32 for every compute dtype.
        scores = ops.cast(scores, "float32")
        return ops.softmax(scores + ops.where(attention_mask, 0.0, MASKED_BIAS), axis=-1)

    def _heads(self, states):
        """Returns query (scaled by 1/sqrt(H)), key and value, each [B, N, T, H].

        One product with the three kernels concatenated is faster than three products, and so are
        its gradients.
        """
        batch, length, _ = ops.shape(states)
        heads, size = self.config.num_attention_heads, self.config.head_size
        parts = (self.query, self.key, self.value)
        kernel = ops.concatenate([part.kernel for part in parts], axis=1)
        bias = ops.concatenate([part.bias for part in parts], axis=0)
        states = ops.reshape(ops.matmul(states, kernel) + bias, (batch, length, 3, heads, size))
        query, key, value = ops.unstack(ops.transpose(states, (2, 0, 3, 1, 4)), 3)
        return query * (1.0 / math.sqrt(size)), key, value

    def _queries(self, states):
        """Returns the query alone (scaled by 1/sqrt(H)), [B, N, T, H]."""
        batch, length, _ = ops.shape(states)
        heads, size = self.config.num_attention_heads, self.config.head_size
        query = ops.reshape(self.query(states), (batch, length, heads, size))
        return ops.transpose(query, (0, 2, 1, 3)) * (1.0 / math.sqrt(size))


def _weighted_sum(probs, blocks):
    """Returns probs [B, N, T, S] times values in several blocks, [B, N, T, H]."""
    if len(blocks) == 1:
        return ops.matmul(probs, blocks[0])
    context, start = 0.0, 0
    for values in blocks:
        end = start + ops.shape(values)[2]
        context = context + ops.matmul(probs[..., start:end], values)
        start = end
    return context
