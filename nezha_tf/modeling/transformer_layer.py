"""A Transformer layer, and the list of all layers of an encoder."""

import copy
import functools

import keras
from keras import ops, tree

from nezha_tf.modeling import feed_forward, layers, residual
from nezha_tf.modeling.attention import SelfAttention
from nezha_tf.modeling.configured import Configured
from nezha_tf.modeling.layers import gather_positions


class TransformerLayer(Configured, keras.layers.Layer):
    """Attention, then feed-forward, each within a residual connection with dropout and a norm.

    If `recompute`, a call in training keeps nothing of its inside for the backward pass; see
    `recomputed`. The gradients are the same.
    """

    recompute = False

    def __init__(self, config, **kwargs):
        super().__init__(**kwargs)
        self.config = config
        policy, around = self.dtype_policy, residual.of(config)
        self.attention = SelfAttention(config, dtype=policy, name="attention")
        self.attention_residual = around(config, dtype=policy, name="attention_residual")
        self.feed_forward = feed_forward.of(config)(config, dtype=policy, name="feed_forward")
        self.feed_forward_residual = around(config, dtype=policy, name="feed_forward_residual")

    def build(self, input_shape=None):
        hidden = (None, None, self.config.hidden_size)
        self.attention.build(hidden)
        self.attention_residual.build(hidden)
        self.feed_forward.build(hidden)
        self.feed_forward_residual.build(hidden)
        self.built = True

    def call(
        self,
        hidden_states,
        attention_mask,
        positions,
        past_key_values=(),
        memory=None,
        query_places=None,
        has_own_keys=True,
        training=False,
    ):
        """Arguments and result are those of `SelfAttention`; `memory` is not normed yet.

        `query_places` are the Q of the T tokens that attend and get an output: an int, the first
        so many; or int [B, Q]; None: all.
        """
        tensors = (hidden_states, attention_mask, past_key_values, memory)
        computed = functools.partial(
            self._computed, query_places=query_places, has_own_keys=has_own_keys, training=training
        )
        if training and self.recompute:
            parts = (self.attention, self.attention_residual, self.feed_forward_residual)
            keys = tuple(part.dropout.draw() for part in parts)
            output, *own = recomputed(computed, positions, (*tensors, keys))
        else:
            output, *own = computed(positions, *tensors)
        return output, tuple(own) or None

    def _computed(
        self,
        positions,
        hidden_states,
        attention_mask,
        past_key_values,
        memory,
        dropout_keys=(None, None, None),
        *,
        query_places,
        has_own_keys,
        training,
    ):
        of_probs, of_attention, of_feed_forward = dropout_keys
        before = self.attention_residual.before
        states = _at_places(hidden_states, query_places)
        attended, own = self.attention(
            before(hidden_states),
            attention_mask,
            positions=positions,
            past_key_values=past_key_values,
            memory=None if memory is None else before(memory),
            query_states=None if query_places is None else before(states),
            has_own_keys=has_own_keys,
            training=training,
            dropout_key=of_probs,
        )
        states = self.attention_residual(
            states, attended, training=training, dropout_key=of_attention
        )
        raised = self.feed_forward(self.feed_forward_residual.before(states))
        states = self.feed_forward_residual(
            states, raised, training=training, dropout_key=of_feed_forward
        )
        return states, *(own or ())


def _at_places(states, places):
    if places is None:
        return states
    return states[:, :places] if isinstance(places, int) else gather_positions(states, places)


def stack_of(config, dtype):
    """Returns (the list of all `TransformerLayer`s, the norm that follows the last one or None).

    With `num_hidden_groups` the layers of a group are one object.
    """
    distinct = {
        name: TransformerLayer(config, dtype=dtype, name=name)
        for name in dict.fromkeys(config.layer_names)
    }
    final_norm = None
    if not residual.of(config).is_normed:
        final_norm = layers.norm(config, prefix="final_", dtype=dtype)
    return [distinct[name] for name in config.layer_names], final_norm


def recomputed(function, positions, tensors):
    """Calls a function of whose inside only the arguments and results are kept.

    What lies between is computed a second time when the gradient is (gradient checkpointing, Chen
    et al., arXiv 1604.06174 §4.1). Both times must give the same, so the function may draw nothing
    and change no variable; it may read weights.

    Args:
      function: function of `positions` and `*tensors`, which returns a tuple of tensors.
      positions: the `AttentionPositions`; the tensors that it computes with are its attributes.
      tensors: tuple of tensors, None, or tuples and lists of these.
    """
    arguments = [vars(positions), tensors]
    leaves = tree.flatten(arguments)
    # TensorFlow passes no gradient to what the function finds without being given it.
    is_given = [
        ops.is_tensor(leaf)
        and keras.backend.is_float_dtype(keras.backend.standardize_dtype(leaf.dtype))
        for leaf in leaves
    ]

    def with_given(*given):
        given = iter(given)
        found = [next(given) if own else leaf for leaf, own in zip(leaves, is_given, strict=True)]
        of_positions, own_tensors = tree.pack_sequence_as(arguments, found)
        own_positions = copy.copy(positions)
        vars(own_positions).update(of_positions)
        return function(own_positions, *own_tensors)

    given = [leaf for leaf, own in zip(leaves, is_given, strict=True) if own]
    return keras.remat(with_given)(*given)
