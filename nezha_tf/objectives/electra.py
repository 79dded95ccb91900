"""Replaced token detection, the objective of ELECTRA (arXiv 2003.10555)."""

import numpy as np
import tensorflow as tf
from keras import ops

from nezha_tf.config import SEGMENT_IDS
from nezha_tf.data import draws, schema
from nezha_tf.data.schema import Feature
from nezha_tf.modeling import attention_mask
from nezha_tf.modeling.replaced_tokens import NezhaForReplacedTokens
from nezha_tf.objectives.objective import Objective, Transform
from nezha_tf.objectives.terms import LossTerm, MaskedLM
from nezha_tf.objectives.texts import replaced

# The share of the tokens to predict that become [MASK]; the others stay, none becomes a random
# token (`mask` of ELECTRA's pretrain_helpers.py).
MASKED_SHARE = 0.85
# Added to the denominators of both losses (run_pretraining.py).
EPSILON = 1e-6
FEATURES = (
    *schema.FEATURES[:3],
    Feature("generator_positions", np.int64, "max_predictions_per_seq"),
    Feature("generator_ids", np.int64, "max_predictions_per_seq"),
    Feature("generator_weights", np.float32, "max_predictions_per_seq"),
)


class MaskOrKeep(Transform):
    """Draws anew which of the predicted tokens are masked.

    The predictions get names of their own, because in a mixture the model's other head has no
    prediction in these examples.
    """

    reads = schema.FEATURES
    gives = FEATURES

    def __init__(self, mask_id):
        self._mask_id = mask_id

    def __call__(self, batch, numbers, seed):
        places, weights = batch["masked_lm_positions"], batch["masked_lm_weights"]
        originals, is_there = batch["masked_lm_ids"], batch["masked_lm_weights"] > 0
        keys = draws.graph_keys("mask_or_keep", seed, numbers)[:, None]
        shares = draws.graph_uniform(keys, tf.cast(places, tf.int64))
        tokens = tf.where(shares < MASKED_SHARE, self._mask_id, originals)
        # Unused slots are at [CLS], which stays.
        tokens = tf.where(is_there, tokens, tf.gather(batch["input_ids"], places, batch_dims=1))
        kept = ("input_mask", "segment_ids", schema.TEXT_IDS.name)
        return {
            **{name: batch[name] for name in kept if name in batch},
            "input_ids": replaced(batch["input_ids"], places, tokens),
            "generator_positions": places,
            "generator_ids": originals,
            "generator_weights": weights,
        }


class GeneratorLM(MaskedLM):
    """The masked LM of ELECTRA's generator at `generator_positions`, [B, P]."""

    name = head = "generator"
    epsilon = EPSILON
    inputs = ("generator_positions", "generator_ids", "generator_weights")
    labels_as_inputs = ()


class ReplacedToken(LossTerm):
    """Whether the generator replaced a token (ELECTRA, arXiv 2003.10555 §3.1), all tokens, [B, T].

    The labels are the model's output `is_replaced`, because the model draws the replacements. They
    are not smoothed.
    """

    name = "replaced_token"
    epsilon = EPSILON
    # `disc_weight` of configure_pretraining.py: the loss of two classes is much the smaller one.
    scale = 50.0
    head = "discriminator"

    def weights(self, batch):
        return ops.cast(batch["input_mask"], "float32")

    def values(self, outputs, batch, label_smoothing=0.0):
        logits = outputs["replaced_token_logits"]
        return ops.softplus(logits) - logits * outputs["is_replaced"]

    def hits(self, outputs, batch):
        return ops.cast(ops.equal(_judged(outputs), outputs["is_replaced"]), "float32")

    def rates(self, outputs, batch):
        """Tells an able discriminator from one that finds nothing.

        `majority_accuracy` is the accuracy of the guess that no token is replaced.
        """
        found, right = _judged(outputs), self.hits(outputs, batch)
        return {
            "majority_accuracy": (1.0 - outputs["is_replaced"], ops.ones_like(right)),
            "precision": (right, found),
            "recall": (right, outputs["is_replaced"]),
        }


def _judged(outputs):
    return ops.cast(outputs["replaced_token_logits"] > 0, "float32")


GENERATOR_LM = GeneratorLM()
REPLACED_TOKEN = ReplacedToken()


class ReplacedTokens(Objective):
    """A generator fills masked places, and the model finds which tokens it replaced.

    The examples are those of masked LM, but a token to predict is masked or kept. The model cannot
    fill blanks afterwards: it has never read a [MASK].
    """

    has_packed_texts = True
    segment_ids = SEGMENT_IDS["bidirectional"]
    shown_as = "bidirectional"
    model = NezhaForReplacedTokens
    # The loss of the model rises when the generator becomes better: its replacements are harder to
    # find. So values of different steps cannot be compared.
    best_metric = "generator_loss"

    def transforms(self, examples):
        vocabulary = examples.required_vocabulary("replaced_tokens")
        return (*super().transforms(examples), MaskOrKeep(vocabulary.mask_id))

    def ranks(self, batch):
        return attention_mask.bidirectional_ranks(batch["input_mask"])

    def terms(self, of_pairs):
        return (GENERATOR_LM, REPLACED_TOKEN)
