"""The models of the understanding tasks: the encoder with a linear layer on its output."""

from typing import Any

from keras import ops

from nezha_tf.config import NezhaConfig
from nezha_tf.modeling.configured import NezhaModel
from nezha_tf.modeling.crf import LinearChain
from nezha_tf.modeling.dropout import Dropout
from nezha_tf.modeling.encoder import NezhaEncoder
from nezha_tf.modeling.heads import LinearHead

# The logit of a choice that a question does not have: its probability is 0 in float32.
NO_CHOICE = -1e4


class NezhaForSequenceClassification(NezhaModel):
    """Scores classes for a text or a pair (`create_model` of BERT's run_classifier.py)."""

    main_outputs = "logits"
    head_name = "classifier"
    reads = "pooled_output"
    head_dropout = 0.1

    def __init__(
        self,
        config: NezhaConfig,
        num_labels: int,
        max_seq_length: int | None = None,
        layer_mix: bool = False,
        **kwargs: Any,
    ):
        """Args:
        config: a `NezhaConfig`.
        num_labels: L; 1 for regression.
        max_seq_length, layer_mix: see `NezhaEncoder`.
        **kwargs: `name` and `dtype`, as for any Keras model.
        """
        super().__init__(**kwargs)
        self.config = config
        self.num_labels = num_labels
        self.max_seq_length = max_seq_length
        self.layer_mix = layer_mix
        reads_pooled = self.reads == "pooled_output"
        self.encoder = NezhaEncoder(
            config, max_seq_length, reads_pooled, layer_mix, dtype=self.dtype_policy
        )
        # A pooler whose output is not used has no gradient.
        self.encoder.pooler.trainable = reads_pooled
        self.dropout = Dropout(self.head_dropout, dtype=self.dtype_policy)
        self.head = LinearHead(config, num_labels, dtype=self.dtype_policy, name=self.head_name)
        self.build()

    def build(self, input_shape=None):
        if self.built:
            return
        self.head.build()
        self.built = True

    def outputs(self, inputs, training=False):
        """Returns the dict of `NezhaEncoder`, whose inputs it takes, with `logits`, float32.

        They are [B, L], with `sequence_output` of the first token only; or [B, T, L] in models that
        score each token.
        """
        outputs = self.encoder(inputs, training=training, all_outputs=True)
        outputs["logits"] = self.head(self.dropout(outputs[self.reads], training=training))
        return outputs


class NezhaForTokenClassification(NezhaForSequenceClassification):
    """Scores tags for each token; the tokens are independent of each other."""

    reads = "sequence_output"


class NezhaForCrfTagging(NezhaForTokenClassification):
    """Scores paths of tags with a conditional random field over the scores of each token."""

    def build(self, input_shape=None):
        if self.built:
            return
        self.crf = LinearChain(self.num_labels, name="crf")
        self.crf.build()
        super().build()

    def outputs(self, inputs, training=False):
        """Reads `label_mask`, too, int [B, T], 0 for tokens off the path.

        The result has `chain`, a `crf.Chain`.
        """
        outputs = super().outputs(inputs, training)
        outputs["chain"] = self.crf(
            outputs["logits"], inputs.get("label_mask", inputs["input_mask"])
        )
        return outputs


class NezhaForQuestionAnswering(NezhaForSequenceClassification):
    """Scores each token as an answer's start and end (`create_model` of BERT's run_squad.py)."""

    main_outputs = ("start_logits", "end_logits")
    head_name = "span"
    reads = "sequence_output"
    head_dropout = 0.0

    def __init__(
        self,
        config: NezhaConfig,
        max_seq_length: int | None = None,
        layer_mix: bool = False,
        **kwargs: Any,
    ):
        super().__init__(config, 2, max_seq_length, layer_mix, **kwargs)

    def outputs(self, inputs, training=False):
        """Returns the dict with `start_logits` and `end_logits`, [B, T], instead of `logits`."""
        outputs = super().outputs(inputs, training)
        logits = outputs.pop("logits")
        outputs["start_logits"], outputs["end_logits"] = ops.unstack(logits, axis=-1)
        return outputs


class NezhaForMultipleChoice(NezhaForSequenceClassification):
    """Scores the choices of a question, each in a sequence of its own.

    It is `BertForMultipleChoice` of transformers. A question with fewer than C choices has empty
    sequences in place of the others, which are never chosen.
    """

    ids_rank = 3

    def __init__(
        self,
        config: NezhaConfig,
        max_seq_length: int | None = None,
        layer_mix: bool = False,
        **kwargs: Any,
    ):
        super().__init__(config, 1, max_seq_length, layer_mix, **kwargs)

    def outputs(self, inputs, training=False):
        """The inputs are [B, C, T] instead of [B, T].

        Returns the encoder's dict, for B * C sequences, with `logits`, float32 [B, C], which are
        `NO_CHOICE` where the sequence is empty.
        """
        sequences = {n: ops.reshape(v, (-1, *ops.shape(v)[2:])) for n, v in inputs.items()}
        outputs = super().outputs(sequences, training)
        logits = ops.reshape(outputs["logits"], ops.shape(inputs["input_mask"])[:-1])
        outputs["logits"] = ops.where(inputs["input_mask"][..., 0] > 0, logits, NO_CHOICE)
        return outputs
