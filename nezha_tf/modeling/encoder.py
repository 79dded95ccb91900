"""The encoder: embeddings, Transformer layers and pooler."""

from typing import Any

from keras import ops

from nezha_tf.config import NezhaConfig
from nezha_tf.modeling import attention_mask as masks
from nezha_tf.modeling import layers, positions
from nezha_tf.modeling.configured import NezhaModel, completed
from nezha_tf.modeling.embeddings import Embeddings
from nezha_tf.modeling.transformer_layer import stack_of
from nezha_tf.util.errors import UserError


class NezhaEncoder(NezhaModel):
    """The encoder of NEZHA, BERT, RoFormer, ALBERT or ELECTRA, depending on the configuration.

    Each batch has its own length T; relative encodings allow any length. `input_mask`, TF1's name,
    is what Hugging Face's models call `attention_mask`; the input `attention_mask` here is of
    pairs.
    """

    def __init__(
        self,
        config: NezhaConfig,
        max_seq_length: int | None = None,
        pooled_only: bool = False,
        layer_mix: bool = False,
        **kwargs: Any,
    ):
        """Args:
        config: a `NezhaConfig`.
        max_seq_length: bound on T if T is dynamic, or None; it allows a faster computation for
          short sequences.
        pooled_only: whether the last layer computes its output only for the first token, from
          which `pooled_output` is made: a fifth less arithmetic of 4 layers. Not for
            `past_key_values`.
        layer_mix: whether `sequence_output` is a `LayerMix` of the states of all layers. Then
          embeddings and layers are frozen: no gradient, no dropout. The mixture and the pooler,
          which reads it, are trained.
        **kwargs: `name` and `dtype` (a Keras dtype policy), as for any Keras model.
        """
        super().__init__(**kwargs)
        self.config = config
        self.max_seq_length = max_seq_length
        self.pooled_only = pooled_only
        policy = self.dtype_policy
        self.positions = positions.of(config)(
            config, max_seq_length, dtype=policy, name="positions"
        )
        embedded = self.positions if self.positions.is_embedded else None
        self.embeddings = Embeddings(config, embedded, dtype=policy, name="embeddings")
        self.transformer_layers, self.final_norm = stack_of(config, policy)
        self.pooler = layers.dense(
            config.hidden_size, config, hidden_act=config.pooler_act, dtype=policy, name="pooler"
        )
        self.layer_mix = layer_mix
        self.mixture = None
        if layer_mix:
            if self.final_norm is not None:
                raise UserError(
                    f"--layer_mix mixes the states of all layers, and with norm_position "
                    f"{config.norm_position!r} these are not normed; leave one of them out"
                )
            self.mixture = layers.LayerMix(config.num_hidden_layers + 1, name="layer_mix")
            for part in self.layers:
                part.trainable = part in (self.mixture, self.pooler)
        self.build()

    def build(self, input_shape=None):
        if self.built:
            return
        hidden = (None, None, self.config.hidden_size)
        self.embeddings.build()
        if not self.positions.built:
            self.positions.build()
        for layer in dict.fromkeys(self.transformer_layers):
            layer.build(hidden)
        if self.final_norm is not None:
            self.final_norm.build(hidden)
        self.pooler.build((None, self.config.hidden_size))
        if self.mixture is not None:
            self.mixture.build()
        self.built = True

    def call(self, inputs, positions=None, training=False, all_outputs=False):
        """See `NezhaModel.call`, and `outputs` for the inputs and `positions`."""
        outputs = self.outputs(completed(inputs), training, positions)
        return self._selected(outputs, all_outputs)

    def outputs(self, inputs, training=False, positions=None):
        """Args:
          inputs: dict of `input_ids`, `input_mask` (1 for tokens, 0 for padding) and
            `segment_ids`, int [B, T]. Optional keys:
            `attention_mask`, bool [B, T, T] or broadcastable to [B, 1, T, T], True if the query
            (third axis) attends to the key (last axis); default: bidirectional;
            `text_ids`, int [B, T], the numbers of the texts that are packed into a row, from 1, and
            0 in padding: positions begin anew in each text, and in the default `attention_mask` it
            sees itself alone;
            `embedding_perturbation`, [B, T, E], added to the word embeddings, whose width E is
            `config.embedding_width`;
            `position_ids`, int [T] or [B, T], the positions of the tokens; default: from 0 on;
            `past_key_values`, a list of the `past_key_values` of `SelfAttention` for each layer;
            `output_positions`, int [B, Q], the places whose output is read, 0 first: the last layer
            computes no other (not with `layer_mix` or `past_key_values`);
            `middle_positions`, int [B, M * K], for each of the M layers between the first and the
            last the K places, in rising order, that it computes; other tokens pass by it, unchanged
            and unseen (not with `past_key_values`, `memory` or `query_stream`);
            `memory`, [B, L, M, hidden_size], the inputs of the L layers for the M tokens before
            these, and with it `memory_mask`, int [B, M], 1 for tokens (see `with_memory`).
          training: whether dropout is on; with `layer_mix` there is none here.
          positions: with `past_key_values`, the `AttentionPositions` with these tokens as queries,
            and the cached tokens and these as keys; the layer `positions` makes them.

        Returns:
          Dict of `sequence_output` [B, T, hidden_size], `pooled_output` [B, hidden_size],
          `encoder_outputs` (list of each layer's output), `embedding_output` [B, T, hidden_size]
          and `keys_and_values` (list of each layer's pair, each [B, N, T, H], or of K tokens).
          `sequence_output` is the last of `encoder_outputs`, with `norm_position` "pre" its norm,
          or, with `layer_mix`, the mixture. With `pooled_only`, both are [B, 1, hidden_size], and
          with `output_positions` [B, Q, hidden_size].

        Raises:
          UserError: T is larger than the table of positions.
        """
        input_ids = inputs["input_ids"]
        training = training and self.mixture is None
        view = self._view(inputs, positions)
        embedding_output = self.embeddings(
            input_ids,
            inputs["segment_ids"],
            self.position_ids(inputs),
            inputs.get("embedding_perturbation"),
            training=training,
        )
        cached = inputs.get("past_key_values", [()] * len(self.transformer_layers))
        memory = self._memory_of_layers(inputs)
        output = embedding_output
        encoder_outputs, keys_and_values = [], []
        views = [view] * len(self.transformer_layers)
        if self.pooled_only:
            views[-1] = self._view_of_first_token(inputs, view["attention_mask"])
        elif "output_positions" in inputs:
            views[-1] = self._view_of_places(inputs, view["attention_mask"])
        middle = self._middle_places(inputs)
        for number, places in middle.items():
            views[number] = self._view_among(inputs, view["attention_mask"], places)
        for number, (layer, past, own_memory, view) in enumerate(
            zip(self.transformer_layers, cached, memory, views, strict=True)
        ):
            states = output
            if number in middle:
                states = layers.gather_positions(output, middle[number])
            states, own = layer(
                states, **view, past_key_values=past, memory=own_memory, training=training
            )
            if number in middle:
                states = layers.put_positions(output, middle[number], states)
            output = states
            encoder_outputs.append(output)
            keys_and_values.append(own)
        if self.final_norm is not None:
            output = self.final_norm(output)
        if self.mixture is not None:
            output = self._mixed([embedding_output, *encoder_outputs])
        return {
            "sequence_output": output,
            "pooled_output": self.pooler(output[:, 0]),
            "encoder_outputs": encoder_outputs,
            "embedding_output": embedding_output,
            "keys_and_values": keys_and_values,
        }

    def query_stream(self, vector, inputs, outputs, training=False):
        """Computes states that see tokens but are seen by none (XLNet, arXiv 1906.08237 §2.3).

        They begin as one vector, whatever token is at their places, and pass through the same
        layers; keys and values are those of the tokens.

        Args:
          vector: [E], in place of a word embedding.
          inputs: dict of `input_ids` and `segment_ids`, int [B, T], `masked_lm_positions`, int
            [B, P], the places of the states, and `query_stream_mask`, bool [B, 1, P, T], True if a
            state attends to a token.
          outputs: the result of `call` for these inputs.

        Returns:
          [B, P, hidden_size].
        """
        places = inputs["masked_lm_positions"]
        length, remembered = ops.shape(inputs["input_ids"])[1], num_remembered(inputs)
        segment_ids = ops.take_along_axis(inputs["segment_ids"], places, axis=1)
        vectors = ops.broadcast_to(vector, (*ops.shape(places), ops.shape(vector)[0]))
        states = self.embeddings(places, segment_ids, places, vectors=vectors, training=training)
        keys = ops.arange(remembered + length, dtype="int32")
        positions = self.positions.between(remembered + places, keys)
        mask = _with_memory_mask(inputs["query_stream_mask"], inputs)
        for layer, of_tokens in zip(
            self.transformer_layers, outputs["keys_and_values"], strict=True
        ):
            states, _ = layer(
                states,
                attention_mask=mask,
                positions=positions,
                past_key_values=(of_tokens,),
                has_own_keys=False,
                training=training,
            )
        return states if self.final_norm is None else self.final_norm(states)

    def attention_probabilities(self, inputs):
        """Returns the attention probabilities of all layers, without dropout, a list.

        Each is float32 [B, N, T, T]: how much each query (third axis) attends to each key, also
        with `pooled_only`. The inputs are those of `call`, without `past_key_values`.
        """
        inputs = completed(inputs)
        view = self._view(inputs)
        outputs = self(inputs, all_outputs=True)
        states = [outputs["embedding_output"], *outputs["encoder_outputs"][:-1]]
        return [
            layer.attention.probabilities(layer.attention_residual.before(its_states), **view)
            for layer, its_states in zip(self.transformer_layers, states, strict=True)
        ]

    def position_ids(self, inputs):
        """Returns the positions of the tokens, int [T] or [B, T]; None: 0 to T-1.

        Where distances alone count, those in a packed text are right from any start, and the same
        positions in all rows take less memory.
        """
        position_ids = inputs.get("position_ids")
        if position_ids is None and "text_ids" in inputs and not self.positions.is_relative:
            return masks.places_in_texts(inputs["text_ids"])
        return position_ids

    def _memory_of_layers(self, inputs):
        if "memory" not in inputs:
            return [None] * len(self.transformer_layers)
        # No gradient passes on to earlier examples (Transformer-XL, arXiv 1901.02860 §3.2).
        memory = ops.stop_gradient(ops.cast(inputs["memory"], self.compute_dtype))
        return ops.unstack(memory, len(self.transformer_layers), axis=1)

    def _mixed(self, states):
        if self.pooled_only:
            states = [state[:, :1] for state in states]
        # No gradient passes on, so nothing of the layers is kept for a backward pass.
        mixed = self.mixture([ops.stop_gradient(state) for state in states])
        return ops.cast(mixed, self.compute_dtype)

    def _view(self, inputs, positions=None):
        """Returns the arguments of a layer in which all T tokens attend."""
        attention_mask = inputs.get("attention_mask")
        if attention_mask is None:
            ranks = masks.bidirectional_ranks(inputs["input_mask"])
            attention_mask = masks.from_ranks(ranks, inputs["input_mask"], inputs.get("text_ids"))
        attention_mask = ops.cast(attention_mask, "bool")
        if len(attention_mask.shape) == 3:
            attention_mask = attention_mask[:, None]
        attention_mask = _with_memory_mask(attention_mask, inputs)
        position_ids = self.position_ids(inputs)
        remembered = num_remembered(inputs)
        if remembered:
            places = ops.arange(remembered + ops.shape(inputs["input_ids"])[1], dtype="int32")
            positions = self.positions.between(places[remembered:], places)
        elif positions is None and position_ids is None:
            positions = self.positions.of_sequence(ops.shape(inputs["input_ids"])[1])
        elif positions is None:
            positions = self.positions.between(position_ids, position_ids)
        return {"attention_mask": attention_mask, "positions": positions}

    def _view_of_first_token(self, inputs, attention_mask):
        position_ids = self.position_ids(inputs)
        if position_ids is None:
            position_ids = ops.arange(ops.shape(inputs["input_ids"])[1], dtype="int32")
        return {
            "attention_mask": attention_mask[:, :, :1],
            # Slices with an ellipsis have no counterpart in ONNX where lengths are dynamic.
            "positions": self.positions.between(
                ops.take(position_ids, ops.array([0], "int32"), axis=-1), position_ids
            ),
            "query_places": 1,
        }

    def _middle_places(self, inputs):
        """Returns dict of the number of a layer, from 0, to its places, int [B, K]."""
        if "middle_positions" not in inputs:
            return {}
        places = inputs["middle_positions"]
        batch, size = ops.shape(places)
        count = len(self.transformer_layers) - 2
        places = ops.reshape(places, (batch, count, size // count))
        return {1 + number: each for number, each in enumerate(ops.unstack(places, count, axis=1))}

    def _view_among(self, inputs, attention_mask, places):
        """Returns the arguments of a layer in which the tokens at `places`, int [B, K], attend."""
        position_ids = self.position_ids(inputs)
        (batch, length), count = ops.shape(inputs["input_ids"]), ops.shape(places)[1]
        seen = ops.broadcast_to(attention_mask, (batch, 1, length, length))[:, 0]
        columns = ops.broadcast_to(places[:, None], (batch, count, count))
        seen = ops.take_along_axis(layers.gather_positions(seen, places), columns, axis=2)
        chosen = places
        if position_ids is not None:
            position_ids = ops.broadcast_to(position_ids, (batch, length))
            chosen = ops.take_along_axis(position_ids, places, axis=1)
        positions = self.positions.between(chosen, chosen)
        return {"attention_mask": seen[:, None], "positions": positions}

    def _view_of_places(self, inputs, attention_mask):
        """Returns the arguments of a layer in which `output_positions` alone attend."""
        places, position_ids = inputs["output_positions"], self.position_ids(inputs)
        (batch, length), remembered = ops.shape(inputs["input_ids"]), num_remembered(inputs)
        keys = ops.shape(attention_mask)[-1]
        attention_mask = ops.broadcast_to(attention_mask, (batch, 1, length, keys))
        if position_ids is None:
            queries, position_ids = remembered + places, ops.arange(keys, dtype="int32")
        else:
            position_ids = ops.broadcast_to(position_ids, (batch, length))
            queries = ops.take_along_axis(position_ids, places, axis=1)
        return {
            "attention_mask": layers.gather_positions(attention_mask[:, 0], places)[:, None],
            "positions": self.positions.between(queries, position_ids),
            "query_places": places,
        }


def with_memory(inputs, outputs):
    """Returns the memory for the next tokens, a dict of `memory` and `memory_mask`.

    These are the inputs of the layers for the last M tokens, old and new ones together; `inputs`
    and `outputs` are those of a `NezhaEncoder` with a memory.
    """
    memory, length = inputs["memory"], ops.shape(inputs["memory_mask"])[1]
    states = [outputs["embedding_output"], *outputs["encoder_outputs"][:-1]]
    own = ops.cast(ops.stack(states, axis=1), memory.dtype)
    mask = ops.concatenate([inputs["memory_mask"], inputs["input_mask"]], axis=1)
    return {
        "memory": ops.concatenate([memory, own], axis=2)[:, :, -length:],
        "memory_mask": mask[:, -length:],
    }


def num_remembered(inputs):
    """Returns M, the number of tokens in the memory of the inputs, or 0."""
    return ops.shape(inputs["memory_mask"])[1] if "memory" in inputs else 0


def _with_memory_mask(attention_mask, inputs):
    if "memory" not in inputs:
        return attention_mask
    seen = ops.cast(inputs["memory_mask"], "bool")[:, None, None, :]
    _, _, queries, keys = ops.shape(attention_mask)
    batch = ops.shape(inputs["memory_mask"])[0]
    return ops.concatenate(
        [
            ops.broadcast_to(seen, (batch, 1, queries, ops.shape(seen)[-1])),
            ops.broadcast_to(attention_mask, (batch, 1, queries, keys)),
        ],
        axis=-1,
    )
