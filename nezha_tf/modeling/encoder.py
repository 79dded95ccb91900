"""The body of the model: embeddings, Transformer layers, pooler."""

import keras
from keras import ops

from nezha_tf.modeling import attention_mask as masks
from nezha_tf.modeling import layers, positions
from nezha_tf.modeling.attention import SelfAttention
from nezha_tf.modeling.dropout import Dropout
from nezha_tf.modeling.embeddings import Embeddings


class TransformerLayer(keras.layers.Layer):
    """Self-attention and feed-forward, each with residual and LayerNorm after it."""

    def __init__(self, config, **kwargs):
        super().__init__(**kwargs)
        self.config = config
        policy = self.dtype_policy
        self.attention = SelfAttention(config, dtype=policy, name="attention")
        self.intermediate = layers.dense(
            config.intermediate_size,
            config,
            dtype=policy,
            name="intermediate",
            activation=layers.activation(config.hidden_act),
        )
        self.projection = layers.dense(config.hidden_size, config, dtype=policy, name="output")
        self.dropout = Dropout(config.hidden_dropout_prob, dtype=policy)
        self.layer_norm = layers.layer_norm(config, dtype=policy)

    def build(self, input_shape=None):
        hidden = (None, None, self.config.hidden_size)
        self.attention.build(hidden)
        self.intermediate.build(hidden)
        self.projection.build((None, None, self.config.intermediate_size))
        self.layer_norm.build(hidden)
        self.built = True

    def call(
        self,
        hidden_states,
        attention_mask,
        positions,
        past_key_values=(),
        num_queries=None,
        training=False,
    ):
        """Arguments and result as for `SelfAttention`."""
        attended, keys_and_values = self.attention(
            hidden_states,
            attention_mask,
            positions=positions,
            past_key_values=past_key_values,
            num_queries=num_queries,
            training=training,
        )
        output = self.projection(self.intermediate(attended))
        output = self.layer_norm(self.dropout(output, training=training) + attended)
        return output, keys_and_values


class NezhaEncoder(keras.Model):
    """NEZHA's encoder, and BERT's or RoFormer's: `position_encoding` says whose.

    The length T is a property of the batch: relative encodings take any. What is called
    `input_mask` here, as in TF1, is `attention_mask` in Hugging Face's models; `attention_mask`
    here says of each pair of pieces whether one attends to the other.
    """

    def __init__(self, config, max_seq_length=None, pooled_only=False, **kwargs):
        """Args:
        config: a `NezhaConfig`.
        max_seq_length: where T is known only when the graph runs, a bound on it, if there is
          one: short sequences are computed in a way that is faster for them.
        pooled_only: whether the last layer's output is wanted of the first piece alone, from
          which `pooled_output` is made: nothing is spent on the others' (of 4 layers about a
          fifth of the arithmetic). Not for use with `past_key_values`.
        **kwargs: `name`, and `dtype` (a Keras dtype policy), as for any Keras model.
        """
        super().__init__(**kwargs)
        self.config = config
        self.pooled_only = pooled_only
        policy = self.dtype_policy
        self.positions = positions.of(config)(
            config, max_seq_length, dtype=policy, name="positions"
        )
        embedded = self.positions if self.positions.is_embedded else None
        self.embeddings = Embeddings(config, embedded, dtype=policy, name="embeddings")
        self.transformer_layers = [
            TransformerLayer(config, dtype=policy, name=f"layer_{index}")
            for index in range(config.num_hidden_layers)
        ]
        self.pooler = layers.dense(
            config.hidden_size, config, dtype=policy, name="pooler", activation="tanh"
        )
        self.build()

    def build(self, input_shape=None):
        if self.built:
            return
        hidden = (None, None, self.config.hidden_size)
        self.embeddings.build()
        if not self.positions.built:
            self.positions.build()
        for layer in self.transformer_layers:
            layer.build(hidden)
        self.pooler.build((None, self.config.hidden_size))
        self.built = True

    def call(self, inputs, positions=None, training=False):
        """Args:
          inputs: dict of `input_ids`, `input_mask` (1 for pieces, 0 for padding) and
            `segment_ids`, int [B, T]; and, where it is not to be bidirectional,
            `attention_mask`, bool [B, T, T] or broadcastable to [B, 1, T, T], True where the
            query (third axis) attends to the key (last axis); and
            `embedding_perturbation`, [B, T, hidden_size], added to the word embeddings. For
            pieces that are not those of the positions 0 to T-1, or not alone:
            `position_ids`, int [T] or [B, T], the positions of the pieces;
            `past_key_values`, for each layer those of `SelfAttention`.
          positions: with `past_key_values`, the `AttentionPositions` of these pieces as queries
            and of the cached ones and these as keys; the layer `positions` makes them.
          training: whether dropout is on.

        Returns:
          dict of `sequence_output` [B, T, hidden_size], `pooled_output` [B, hidden_size],
          `encoder_outputs` (list of each layer's output), `embedding_output`
          [B, T, hidden_size] and `keys_and_values` (list of each layer's pair, each
          [B, N, T, H]). Where `pooled_only` is set, `sequence_output`, which is the last of
          `encoder_outputs`, is [B, 1, hidden_size].

        Raises:
          UserError: T is past the table of positions.
        """
        input_ids = inputs["input_ids"]
        view = self._view(inputs, positions)
        embedding_output = self.embeddings(
            input_ids,
            inputs["segment_ids"],
            inputs.get("position_ids"),
            inputs.get("embedding_perturbation"),
            training=training,
        )
        cached = inputs.get("past_key_values", [()] * len(self.transformer_layers))
        output = embedding_output
        encoder_outputs, keys_and_values = [], []
        views = [view] * len(self.transformer_layers)
        if self.pooled_only:
            views[-1] = self._view_of_first_piece(inputs, view["attention_mask"])
        for layer, past, view in zip(self.transformer_layers, cached, views, strict=True):
            output, own = layer(output, **view, past_key_values=past, training=training)
            encoder_outputs.append(output)
            keys_and_values.append(own)
        return {
            "sequence_output": output,
            "pooled_output": self.pooler(output[:, 0]),
            "encoder_outputs": encoder_outputs,
            "embedding_output": embedding_output,
            "keys_and_values": keys_and_values,
        }

    def attention_probabilities(self, inputs):
        """Computes how much each piece attends to each, in evaluation mode.

        Args:
          inputs: as for `call`, without `past_key_values`.

        Returns:
          A list of float32 [B, N, T, T], one for each layer: the share of the query (third axis)
          that goes to the key (last axis). Also where `pooled_only` is set, all T queries.
        """
        view = self._view(inputs)
        outputs = self(inputs)
        states = [outputs["embedding_output"], *outputs["encoder_outputs"][:-1]]
        return [
            layer.attention.probabilities(its_states, **view)
            for layer, its_states in zip(self.transformer_layers, states, strict=True)
        ]

    def _view(self, inputs, positions=None):
        """Returns the arguments of a layer in which all pieces attend."""
        attention_mask = inputs.get("attention_mask")
        if attention_mask is None:
            attention_mask = masks.bidirectional(inputs["input_mask"])
        attention_mask = ops.cast(attention_mask, "bool")
        if len(attention_mask.shape) == 3:
            attention_mask = attention_mask[:, None]
        position_ids = inputs.get("position_ids")
        if positions is None and position_ids is None:
            positions = self.positions.of_sequence(ops.shape(inputs["input_ids"])[1])
        elif positions is None:
            positions = self.positions.between(position_ids, position_ids)
        return {"attention_mask": attention_mask, "positions": positions}

    def _view_of_first_piece(self, inputs, attention_mask):
        """Returns the arguments of a layer in which only the first of T pieces attends."""
        position_ids = inputs.get("position_ids")
        if position_ids is None:
            position_ids = ops.arange(ops.shape(inputs["input_ids"])[1], dtype="int32")
        return {
            "attention_mask": attention_mask[:, :, :1],
            "positions": self.positions.between(position_ids[..., :1], position_ids),
            "num_queries": 1,
        }
