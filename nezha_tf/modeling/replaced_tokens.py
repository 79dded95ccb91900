"""The pretraining model of ELECTRA: a small generator replaces tokens, the encoder finds them."""

import dataclasses

import keras
from keras import ops

from nezha_tf.modeling import layers, positions
from nezha_tf.modeling.configured import Configured, NezhaModel
from nezha_tf.modeling.dropout import mix
from nezha_tf.modeling.encoder import NezhaEncoder
from nezha_tf.modeling.heads import MaskedLMHead
from nezha_tf.modeling.pretraining import NezhaForPreTraining
from nezha_tf.modeling.transformer_layer import stack_of
from nezha_tf.util.errors import UserError

# The factor by which the generator is smaller (`generator_hidden_size` of ELECTRA's
# configure_pretraining.py).
REDUCTION = 4


def generator_config(config):
    """Returns the `NezhaConfig` of the generator of a model.

    It has a quarter of the width, of the heads and of the intermediate size, as many layers, and
    the model's embeddings. A `UserError` says which of these is not a multiple of 4.
    """
    names = ("hidden_size", "num_attention_heads", "intermediate_size")
    for name in names:
        if getattr(config, name) % REDUCTION:
            raise UserError(
                f"replaced_tokens: {name} {getattr(config, name)} is not a multiple of "
                f"{REDUCTION}, but the generator has a quarter of it; change the configuration"
            )
    return dataclasses.replace(
        config,
        embedding_size=config.embedding_width,
        **{name: getattr(config, name) // REDUCTION for name in names},
    )


class TokenGenerator(Configured, keras.layers.Layer):
    """Scores the tokens for masked places; it reads the embeddings of another model.

    The layers have a mapping, positions and weights of their own; word, segment and position
    embeddings with their LayerNorm are shared (ELECTRA, arXiv 2003.10555 §3.2).
    """

    def __init__(self, config, embedded_positions=None, **kwargs):
        """`config` is the result of `generator_config`.

        `embedded_positions` are the `Positions` of the other model if they are part of its
        embeddings (`is_embedded`), else None.
        """
        super().__init__(**kwargs)
        self.config = config
        self.embedded_positions = embedded_positions
        policy = self.dtype_policy
        self.mapping = None
        if config.maps_embeddings:
            self.mapping = layers.dense(config.hidden_size, config, dtype=policy, name="mapping")
        self.positions = embedded_positions
        if embedded_positions is None:
            self.positions = positions.of(config)(config, dtype=policy, name="positions")
        self.transformer_layers, self.final_norm = stack_of(config, policy)
        self.masked_lm = MaskedLMHead(config, dtype=policy, name="masked_lm")

    def build(self, input_shape=None):
        if self.mapping is not None:
            self.mapping.build((None, None, self.config.embedding_width))
        if not self.positions.built:
            self.positions.build()
        for layer in dict.fromkeys(self.transformer_layers):
            layer.build((None, None, self.config.hidden_size))
        if self.final_norm is not None:
            self.final_norm.build((None, None, self.config.hidden_size))
        self.masked_lm.build()
        self.built = True

    def call(
        self,
        embedded,
        attention_mask,
        masked_positions,
        word_embeddings,
        position_ids=None,
        training=False,
    ):
        """Returns the logits, float32 [B, P, V], at masked_positions, int [B, P].

        `embedded` are the model's embeddings, [B, T, E], before they are mapped, and
        `word_embeddings` is the shared table [V, E]. See `NezhaEncoder` for `attention_mask` and
        `position_ids`.
        """
        states = embedded if self.mapping is None else self.mapping(embedded)
        if position_ids is None:
            of_tokens = self.positions.of_sequence(ops.shape(states)[1])
        else:
            of_tokens = self.positions.between(position_ids, position_ids)
        view = {"attention_mask": attention_mask, "positions": of_tokens}
        for layer in self.transformer_layers:
            states, _ = layer(states, **view, training=training)
        if self.final_norm is not None:
            states = self.final_norm(states)
        return self.masked_lm(states, masked_positions, word_embeddings)


@keras.saving.register_keras_serializable("nezha_tf")
class Sampler(keras.layers.Layer):
    """Draws a class from each softmax, as the place of the largest logit with Gumbel noise.

    The noise of an example is a hash of its tokens, so that batches may be divided in any way. In
    training, it is also a hash of the layer's seed, which each call changes and checkpoints hold.
    Without training, the same example has the same noise each time.
    """

    def __init__(self, seed=None, **kwargs):
        # Keras would cast logits to the model's dtype, which may be too coarse for the noise.
        super().__init__(**{**kwargs, "dtype": "float32"})
        self.seed = seed
        self.seed_generator = keras.random.SeedGenerator(seed)
        self.built = True

    def call(self, logits, input_ids, training=False):
        """Returns classes, int32 [B, P], of logits, float32 [B, P, V]; no gradient passes.

        `input_ids`, int [B, T], are the tokens of the examples; the seed counts in `training`.
        """
        keys = ops.zeros((2,), "uint32")
        if training:
            keys = mix(ops.cast(self.seed_generator.next(), "uint32"))
        of_tokens = _hash_of_rows(input_ids)[:, None, None]
        first, second = mix(of_tokens ^ keys[0]), mix(of_tokens + keys[1])
        _, predictions, classes = logits.shape
        index = ops.cast(ops.arange(predictions * classes, dtype="int32"), "uint32")
        index = ops.reshape(index, (1, predictions, classes))
        bits = mix(mix(index ^ first) + second)
        # 23 bits and a half: float32 holds the number exactly, and it is never 0 or 1.
        uniform = (ops.cast(ops.right_shift(bits, 9), "float32") + 0.5) * 2.0**-23
        noise = -ops.log(-ops.log(uniform))
        return ops.cast(ops.argmax(logits + noise, axis=-1), "int32")


def _hash_of_rows(ids):
    """Returns a hash of each row of int [B, T], uint32 [B]."""
    places = mix(ops.cast(ops.arange(ids.shape[1], dtype="int32"), "uint32"))
    hashed = mix(ops.cast(ids, "uint32") + places)
    # Numbers of 20 bits, whose sum is an int32: sums of uint32 are not known on all devices.
    return mix(ops.cast(ops.sum(ops.cast(ops.right_shift(hashed, 12), "int32"), axis=1), "uint32"))


class ReplacedTokenHead(Configured, keras.layers.Layer):
    """Scores for each token that it was replaced (`discriminator_predictions` of ELECTRA)."""

    def __init__(self, config, **kwargs):
        super().__init__(**kwargs)
        self.config = config
        # The names of the originals' weights.
        policy, act = self.dtype_policy, config.hidden_act
        self.dense = layers.dense(
            config.hidden_size, config, hidden_act=act, dtype=policy, name="dense"
        )
        self.scores = layers.dense(1, config, dtype=policy, name="dense_1")

    def build(self, input_shape=None):
        for layer in (self.dense, self.scores):
            layer.build((None, None, self.config.hidden_size))
        self.built = True

    def call(self, states):
        """Maps states [B, T, hidden_size] to logits [B, T] in float32; above 0: replaced."""
        return ops.cast(self.scores(self.dense(states))[..., 0], "float32")


class NezhaDiscriminator(NezhaModel):
    """`NezhaEncoder` that says of each token whether it was replaced: ELECTRA without generator."""

    main_outputs = ("replaced_token_logits",)

    def __init__(self, config, **kwargs):
        super().__init__(**kwargs)
        self.config = config
        self.encoder = NezhaEncoder(config, dtype=self.dtype_policy)
        self.discriminator = ReplacedTokenHead(
            config, dtype=self.dtype_policy, name="discriminator_predictions"
        )
        self.build()

    def build(self, input_shape=None):
        if self.built:
            return
        self.discriminator.build()
        self.built = True

    def outputs(self, inputs, training=False):
        """Returns the dict of `NezhaEncoder` with `replaced_token_logits`, float32 [B, T]."""
        outputs = self.encoder(inputs, training=training, all_outputs=True)
        outputs["replaced_token_logits"] = self.discriminator(outputs["sequence_output"])
        return outputs


class NezhaForReplacedTokens(NezhaForPreTraining):
    """`NezhaForPreTraining` as the discriminator of ELECTRA, with a generator beside it.

    The encoder is the discriminator: it is what remains after pretraining.
    """

    main_outputs = (*NezhaForPreTraining.main_outputs, "replaced_token_logits")

    def build(self, input_shape=None):
        if self.built:
            return
        policy, encoder = self.dtype_policy, self.encoder
        embedded = encoder.positions if encoder.positions.is_embedded else None
        config = generator_config(self.config)
        self.generator = TokenGenerator(config, embedded, dtype=policy, name="generator")
        self.sampler = Sampler(name="sampler")
        self.discriminator = ReplacedTokenHead(
            self.config, dtype=policy, name="discriminator_predictions"
        )
        self.generator.build()
        self.discriminator.build()
        super().build()

    def outputs(self, inputs, training=False):
        """Replaces tokens before all heads but the generator read them, if it is told where.

        Args:
          inputs: as for `NezhaForMaskedLM`. Where to replace: `generator_positions` and
            `generator_ids`, int [B, P], the masked places and what stood there, and
            `generator_weights`, float [B, P], above 0 where there is such a place. The generator's
            word embeddings are moved by the encoder's `embedding_perturbation`, too.

        Returns:
          The dict of `NezhaForPreTraining` with `replaced_token_logits`, float32 [B, T]. If tokens
          are replaced, also `generator_logits`, float32 [B, P, V], and `is_replaced`,
          float32 [B, T], 1 for tokens that are not the original ones.
        """
        found = {}
        if "generator_positions" in inputs:
            inputs, found = self._replaced(inputs, training)
        outputs = {**super().outputs(inputs, training), **found}
        outputs["replaced_token_logits"] = self.discriminator(outputs["sequence_output"])
        return outputs

    def _replaced(self, inputs, training):
        ids, originals = inputs["input_ids"], inputs["generator_ids"]
        embeddings, position_ids = self.encoder.embeddings, self.encoder.position_ids(inputs)
        logits = self.generator(
            embeddings(
                ids,
                inputs["segment_ids"],
                position_ids,
                perturbation=inputs.get("embedding_perturbation"),
                training=training,
                mapped=False,
            ),
            inputs["attention_mask"],
            inputs["generator_positions"],
            embeddings.word_embeddings,
            position_ids,
            training=training,
        )
        drawn = self.sampler(logits, ids, training=training)
        places = ops.arange(ids.shape[1], dtype=ids.dtype)
        is_at = ops.equal(inputs["generator_positions"][..., None], places)
        is_at = ops.logical_and(is_at, inputs["generator_weights"][..., None] > 0)  # [B, P, T]
        put = ops.sum(ops.where(is_at, ops.cast(drawn, ids.dtype)[..., None], 0), axis=1)
        is_new = ops.logical_and(is_at, ops.not_equal(drawn, originals)[..., None])
        found = {
            "generator_logits": logits,
            "is_replaced": ops.cast(ops.any(is_new, axis=1), "float32"),
        }
        return {**inputs, "input_ids": ops.where(ops.any(is_at, axis=1), put, ids)}, found
