"""The pretraining models: the encoder with the heads of masked LM and next sentence."""

from typing import Any

from keras import ops

from nezha_tf.config import NezhaConfig
from nezha_tf.modeling import layers
from nezha_tf.modeling.configured import NezhaModel, completed
from nezha_tf.modeling.encoder import NezhaEncoder
from nezha_tf.modeling.heads import LinearHead, MaskedLMHead
from nezha_tf.modeling.label_scores import are_many


class NezhaForMaskedLM(NezhaModel):
    """`NezhaEncoder` with the head of masked LM, also for writing texts and filling blanks.

    A call without `all_outputs` gives a dict of the heads' logits; without `masked_lm_positions` it
    scores all places.
    """

    main_outputs = ("masked_lm_logits",)

    def __init__(self, config: NezhaConfig, layer_mix: bool = False, **kwargs: Any):
        """Args:
        config: a `NezhaConfig`.
        layer_mix: see `NezhaEncoder`; the head's table, that of the embeddings, is frozen, too.
        **kwargs: `name` and `dtype`, as for any Keras model.
        """
        super().__init__(**kwargs)
        self.config = config
        self.layer_mix = layer_mix
        self.encoder = NezhaEncoder(config, layer_mix=layer_mix, dtype=self.dtype_policy)
        self.masked_lm = MaskedLMHead(config, dtype=self.dtype_policy, name="masked_lm")
        self.build()

    def build(self, input_shape=None):
        if self.built:
            return
        self.masked_lm.build()
        self.built = True

    def call(self, inputs, training=False, all_outputs=False):
        inputs = completed(inputs)
        if not all_outputs:
            # Labels would let the loss be computed without logits.
            inputs = {name: value for name, value in inputs.items() if name != "masked_lm_ids"}
            if "masked_lm_positions" not in inputs:
                ids = inputs["input_ids"]
                places = ops.arange(ops.shape(ids)[1], dtype="int32")
                inputs["masked_lm_positions"] = ops.broadcast_to(places, ops.shape(ids))
        return super().call(inputs, training, all_outputs)

    def outputs(self, inputs, training=False):
        """Args:
          inputs: the inputs of `NezhaEncoder`; `output_positions`, if given, are 0 and then
            `masked_lm_positions`. Optional keys: `masked_lm_positions`, int [B, P], and with it
            `masked_lm_ids`, int32 [B, P], the tokens there, and `masked_lm_weights`, float [B, P],
            above 0 where they are predicted; `next_token_weights`, float [B, T], above 0 at the
            places whose next token is scored.
          training: whether dropout is on.

        Returns:
          The encoder's dict. With `masked_lm_positions`, it also has `masked_lm_logits` [B, P, V]
          in float32 or, if these are too many and the tokens are known (`label_scores.are_many`),
          `masked_lm_scores`, float32 [3, B, P]. With `next_token_weights` it has
          `next_token_scores`, float32 [3, B, T], of the tokens that follow. See
          `label_scores.label_scores` for scores.
        """
        if self.layer_mix:  # All layers have the same places there.
            inputs = {name: value for name, value in inputs.items() if name != "output_positions"}
        outputs = self.encoder(inputs, training=training, all_outputs=True)
        if "masked_lm_positions" in inputs:
            states = self.states_to_predict(inputs, outputs, training)
            outputs |= self._predictions(states, inputs, training)
        if "next_token_weights" in inputs:
            outputs["next_token_scores"] = self.masked_lm.label_scores(
                outputs["sequence_output"],
                ops.roll(inputs["input_ids"], -1, axis=1),
                inputs["next_token_weights"] > 0,
                self.encoder.embeddings.word_embeddings,
                training,
            )
        return outputs

    def states_to_predict(self, inputs, outputs, training):
        """Returns the states for `masked_lm_positions`, [B, P, hidden_size]."""
        states = outputs["sequence_output"]
        if "output_positions" in inputs:
            return states[:, 1:]
        return layers.gather_positions(states, inputs["masked_lm_positions"])

    def _predictions(self, states, inputs, training):
        table, labels = self.encoder.embeddings.word_embeddings, inputs.get("masked_lm_ids")
        if labels is None or not are_many(labels, self.config.vocab_size):
            return {"masked_lm_logits": self.masked_lm.logits(states, table)}
        is_used = inputs["masked_lm_weights"] > 0
        scores = self.masked_lm.label_scores(states, labels, is_used, table, training)
        return {"masked_lm_scores": scores}


class NezhaForPreTraining(NezhaForMaskedLM):
    """`NezhaForMaskedLM` with the head of next-sentence prediction."""

    main_outputs = ("masked_lm_logits", "next_sentence_logits")

    def build(self, input_shape=None):
        if self.built:
            return
        self.next_sentence = LinearHead(self.config, dtype=self.dtype_policy, name="next_sentence")
        self.next_sentence.build()
        super().build()

    def outputs(self, inputs, training=False):
        """Returns the dict of `NezhaForMaskedLM` with `next_sentence_logits`, float32 [B, 2]."""
        outputs = super().outputs(inputs, training)
        outputs["next_sentence_logits"] = self.next_sentence(outputs["pooled_output"])
        return outputs


class NezhaForPermutationLM(NezhaForPreTraining):
    """`NezhaForPreTraining` with the query stream of a permutation LM (XLNet).

    Examples with `reads_query_stream` are predicted from states that do not see the tokens at their
    places; others are predicted as masked tokens.
    """

    def build(self, input_shape=None):
        if self.built:
            return
        self.query_embedding = self.add_weight(
            name="query_embedding",
            shape=(self.config.embedding_width,),
            initializer=layers.initializer(self.config),
        )
        super().build()

    def states_to_predict(self, inputs, outputs, training):
        """Reads `query_stream_mask`, bool [B, 1, P, T] (see `NezhaEncoder.query_stream`), if given.

        With it come `reads_query_stream`, bool [B, 1], the examples that it is for.
        """
        tokens = super().states_to_predict(inputs, outputs, training)
        if "query_stream_mask" not in inputs:
            return tokens
        queries = self.encoder.query_stream(
            self.query_embedding, inputs, outputs, training=training
        )
        return ops.where(inputs["reads_query_stream"][..., None], queries, tokens)
