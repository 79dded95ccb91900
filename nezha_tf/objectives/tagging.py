"""A tag for each piece: cross-entropy, or the log-likelihood of a conditional random field."""

from keras import ops

from nezha_tf.modeling import crf
from nezha_tf.objectives.losses import WeightedMean, cross_entropies, hits, weighted


class TaggingLoss:
    """Cross-entropy of each piece's tag.

    Batches have `input_ids`, `input_mask`, `segment_ids`, `label_ids` (the tags) and `label_mask`,
    int [B, T]; the last is 0 for pieces that have no tag of their own.
    """

    def __init__(self, label_smoothing=0.0):
        """Args:
        label_smoothing: in `losses`; see `cross_entropies`.
        """
        self._label_smoothing = label_smoothing

    def inputs(self, batch):
        """Returns the model's inputs."""
        return {n: batch[n] for n in ("input_ids", "input_mask", "segment_ids", "label_mask")}

    def loss_weights(self, batch):
        """Returns what each piece counts: [B, T]."""
        return {"tagging_loss": ops.cast(batch["label_mask"], "float32")}

    def losses(self, outputs, batch):
        """Returns the loss as a `WeightedMean`."""
        losses = cross_entropies(outputs["logits"], batch["label_ids"], self._label_smoothing)
        return {"tagging_loss": weighted(losses, self.loss_weights(batch)["tagging_loss"])}

    def metrics(self, outputs, batch):
        """Returns the share of pieces with the right tag as a `WeightedMean`."""
        right = hits(outputs["logits"], batch["label_ids"])
        return {"tagging_accuracy": weighted(right, self.loss_weights(batch)["tagging_loss"])}

    def distributions(self, outputs, batch):
        """Returns the logits that `RDrop` compares, [B, T, L], by the name of the loss."""
        return {"tagging_loss": outputs["logits"]}

    def predictions(self, outputs):
        """Returns `tag_ids`, int32 [B, T], and the probability of each, float32 [B, T]."""
        probabilities = ops.softmax(ops.cast(outputs["logits"], "float32"), axis=-1)
        tag_ids = ops.cast(ops.argmax(outputs["logits"], axis=-1), "int32")
        return {"tag_ids": tag_ids, "probabilities": ops.max(probabilities, axis=-1)}


class CrfTaggingLoss(TaggingLoss):
    """Log-likelihood of the tags of a sequence; the best path of tags is what is predicted."""

    distributions = None  # Of the pieces alone there are none.

    def losses(self, outputs, batch):
        """Returns the loss of a piece: a long sequence counts as much as its pieces do."""
        found = crf.log_likelihoods(outputs["chain"], batch["label_ids"])
        weights = self.loss_weights(batch)["tagging_loss"]
        return {"tagging_loss": WeightedMean(-ops.sum(found), ops.sum(weights))}

    def metrics(self, outputs, batch):
        """Returns nothing: the best path would have to be searched in each step."""
        return {}

    def predictions(self, outputs):
        """As above; the probabilities are those of the tag by itself, over all paths."""
        chain = outputs["chain"]
        tag_ids = crf.viterbi(chain)
        marginals = crf.marginals(chain)
        found = ops.take_along_axis(marginals, tag_ids[..., None], axis=-1)[..., 0]
        return {"tag_ids": tag_ids, "probabilities": found}
