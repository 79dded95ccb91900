"""Self-attention with position encodings."""

import math

import keras
from keras import ops

from nezha_tf.modeling.compiled_parts import fused
from nezha_tf.modeling.configured import Configured
from nezha_tf.modeling.dropout import Dropout, dropped
from nezha_tf.modeling.layers import dense, product, side_by_side

# This is added to the logits of masked keys, as in the originals. It is finite, so that the softmax
# of a row with only masked keys is defined, and within the range of float16.
MASKED_BIAS = -10000.0


class SelfAttention(Configured, keras.layers.Layer):
    """Multi-head self-attention and its output projection.

    It follows `attention_layer` of NEZHA's modeling.py: the query is scaled by 1/sqrt(H) before
    all uses, including relative positions; relative values are weighted with the probabilities
    after dropout.
    """

    def __init__(self, config, **kwargs):
        super().__init__(**kwargs)
        self.config = config
        policy = self.dtype_policy
        hidden = config.hidden_size
        options = {"use_bias": config.use_bias, "dtype": policy}
        self.query = dense(hidden, config, name="query", **options)
        self.key = dense(hidden, config, name="key", **options)
        self.value = dense(hidden, config, name="value", **options)
        self.dropout = Dropout(config.attention_probs_dropout_prob, dtype=policy)
        self.projection = dense(hidden, config, name="output", **options)

    def build(self, input_shape=None):
        shape = (None, None, self.config.hidden_size)
        for layer in (self.query, self.key, self.value, self.projection):
            layer.build(shape)
        self.built = True

    def call(
        self,
        hidden_states,
        attention_mask,
        positions,
        past_key_values=(),
        memory=None,
        query_states=None,
        has_own_keys=True,
        training=False,
        dropout_key=None,
    ):
        """Args:
          hidden_states: [B, T, hidden_size].
          attention_mask: bool, broadcastable to [B, 1, Q, S]; True attends.
          positions: `AttentionPositions` of Q queries and S keys.
          past_key_values: pairs (keys, values), each [B, N, M, H], of cached tokens: the first of
            the S keys in this order; the T tokens come last.
          memory: [B, M, hidden_size], states of earlier tokens, which are keys alone; or None.
          query_states: [B, Q, hidden_size], the states among the T that attend; None: all.
          has_own_keys: whether the T tokens are keys, too.
          dropout_key: see `Dropout.call`.

        Returns:
          ([B, Q, hidden_size], (keys, values) of the memory and the T tokens, each [B, N, M + T,
          H], the keys with their positions; None without own keys).
        """
        own = None
        if has_own_keys:
            states = hidden_states
            if memory is not None:
                states = ops.concatenate([memory, hidden_states], axis=1)
            if query_states is None:
                query, key, value = self._heads(
                    states, (self.query, self.key, self.value), training
                )
                query = query[:, :, ops.shape(states)[1] - ops.shape(hidden_states)[1] :]
            else:
                (query,) = self._heads(query_states, (self.query,), training)
                key, value = self._heads(states, (self.key, self.value), training)
            query, key = positions.turned(query, key)
            own = (key, value)
        else:
            (query,) = self._heads(hidden_states, (self.query,), training)
            query, _ = positions.turned(query, query)
        blocks = (*past_key_values, own) if has_own_keys else past_key_values
        probs = _dropped_softmax(
            *_scores(query, [keys for keys, _ in blocks], positions),
            attention_mask,
            self.dropout.keys_of_call(training, dropout_key),
            rate=self.dropout.rate,
            dtype=self.compute_dtype,
        )
        context = _weighted_sum(probs, [values for _, values in blocks])
        return self.projection(_joined(context, positions.context(probs))), own

    def probabilities(self, hidden_states, attention_mask, positions):
        """Returns the probabilities without dropout, float32 [B, N, T, T]; see `call`."""
        query, key = self._heads(hidden_states, (self.query, self.key))
        query, key = positions.turned(query, key)
        return _softmax(*_scores(query, [key], positions), attention_mask)

    def _heads(self, states, parts, training=False):
        """Returns what each of some parts makes of the states, each [B, N, T, H].

        The queries are scaled by 1/sqrt(H). In training one product is faster than several, and so
        are its gradients. Else the kernels would be put side by side for each batch.
        """
        is_quantized = any(part.quantization_mode for part in parts)  # each has a scale of its own
        groups = [parts] if training and not is_quantized else [(part,) for part in parts]
        return [heads for group in groups for heads in self._heads_of(states, group)]

    def _heads_of(self, states, parts):
        bias = None
        if parts[0].quantization_mode:
            made = parts[0](states)
        else:
            made = product(states, parts)
            if self.config.use_bias:
                bias = side_by_side([part.bias for part in parts], axis=0)
        heads = self.config.num_attention_heads
        return _split(made, bias, heads=heads, count=len(parts), has_queries=self.query is parts[0])


@fused
def _split(product, bias, *, heads, count, has_queries):
    """Returns `count` parts, each [B, N, T, H], of [B, T, count N H]; the first may be queries."""
    batch, length, width = ops.shape(product)
    size = width // (count * heads)
    states = product if bias is None else product + bias
    states = ops.reshape(states, (batch, length, count, heads, size))
    first, *others = ops.unstack(ops.transpose(states, (2, 0, 3, 1, 4)), count)
    return first * (1.0 / math.sqrt(size)) if has_queries else first, *others


def _scores(query, blocks, positions):
    """Returns the scores [B, N, Q, S] of keys in several blocks, and those of positions."""
    scores = [ops.matmul(query, ops.transpose(keys, (0, 1, 3, 2))) for keys in blocks]
    scores = ops.concatenate(scores, axis=-1) if len(blocks) > 1 else scores[0]
    return scores, positions.scores(query)


def _softmax(scores, of_positions, attention_mask):
    """Returns the probabilities, float32 [B, N, Q, S]."""
    if of_positions is not None:
        scores = scores + of_positions
    # The softmax is computed in float32 for every compute dtype.
    scores = ops.cast(scores, "float32")
    return ops.softmax(scores + ops.where(attention_mask, 0.0, MASKED_BIAS), axis=-1)


@fused
def _dropped_softmax(scores, of_positions, attention_mask, keys, *, rate, dtype):
    probs = ops.cast(_softmax(scores, of_positions, attention_mask), dtype)
    return dropped(probs, keys, rate)


@fused
def _joined(context, of_positions):
    """Returns the heads' sums [B, N, Q, H] side by side, [B, Q, N H]."""
    if of_positions is not None:
        context = context + of_positions
    batch, heads, length, size = ops.shape(context)
    return ops.reshape(ops.transpose(context, (0, 2, 1, 3)), (batch, length, heads * size))


def _weighted_sum(probs, blocks):
    """Returns probs [B, N, Q, S] times values in several blocks, [B, N, Q, H]."""
    if len(blocks) == 1:
        return ops.matmul(probs, blocks[0])
    context, start = 0.0, 0
    for values in blocks:
        end = start + ops.shape(values)[2]
        context = context + ops.matmul(probs[..., start:end], values)
        start = end
    return context
