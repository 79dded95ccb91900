"""The losses of tagging: cross-entropy, or a conditional random field's log-likelihood."""

from keras import ops

from nezha_tf.modeling import crf
from nezha_tf.objectives.losses import WeightedMean
from nezha_tf.tasks.classification.loss import INPUTS, ClassificationLoss


class TaggingLoss(ClassificationLoss):
    """Cross-entropy of each token's tag.

    Batches have `input_ids`, `input_mask`, `segment_ids`, `label_ids` (the tags) and `label_mask`,
    int [B, T]. `label_mask` is 0 for tokens without a tag of their own.
    """

    name, accuracy = "tagging_loss", "tagging_accuracy"
    input_names = (*INPUTS, "label_mask")

    def weights(self, batch):
        return batch["label_mask"]

    def predictions(self, outputs):
        """Returns a dict of `tag_ids`, int32 [B, T], and their `probabilities`, float32 [B, T]."""
        probabilities = ops.softmax(ops.cast(outputs["logits"], "float32"), axis=-1)
        tag_ids = ops.cast(ops.argmax(outputs["logits"], axis=-1), "int32")
        return {"tag_ids": tag_ids, "probabilities": ops.max(probabilities, axis=-1)}


class CrfTaggingLoss(TaggingLoss):
    """Negative log-likelihood of a sequence's tags; the prediction is the best path of tags."""

    distributions = None  # The loss has no distributions of single tokens.

    def losses(self, outputs, batch):
        """Returns the loss per token, so that a sequence counts as much as its number of tokens."""
        found = crf.log_likelihoods(outputs["chain"], batch["label_ids"])
        weights = ops.cast(self.weights(batch), "float32")
        return {self.name: WeightedMean(-ops.sum(found), ops.sum(weights))}

    def metrics(self, outputs, batch):
        """Returns {}, because finding the best path in each step takes too long."""
        return {}

    def predictions(self, outputs):
        """Returns `tag_ids` of the best path, and as `probabilities` their marginals."""
        chain = outputs["chain"]
        tag_ids = crf.viterbi(chain)
        marginals = crf.marginals(chain)
        found = ops.take_along_axis(marginals, tag_ids[..., None], axis=-1)[..., 0]
        return {"tag_ids": tag_ids, "probabilities": found}
