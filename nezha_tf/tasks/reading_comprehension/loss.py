"""The loss of answer spans: one softmax over a window's tokens for the start, one for the end."""

from keras import ops

from nezha_tf.objectives.losses import hits, weighted
from nezha_tf.tasks.classification.loss import ClassificationLoss, entropies_among

# The logit of padding.
LOWEST = -1e9


class AnswerSpanLoss(ClassificationLoss):
    """The mean cross-entropy of start and end (`compute_loss` of BERT's run_squad.py).

    Unlike there, padding is not a candidate, so the loss does not depend on the amount of padding.
    Batches have `start_positions` and `end_positions`, int [B], places in the window, or 0 ([CLS])
    if it has no answer. Windows of padding only have weight 0.
    """

    name = "span_loss"

    def losses(self, outputs, batch):
        mask = batch["input_mask"]
        start, end = (
            entropies_among(logits, positions, mask, self._label_smoothing)
            for logits, positions in _ends(outputs, batch)
        )
        return {self.name: weighted((start + end) / 2, self.weights(batch))}

    def metrics(self, outputs, batch):
        """Returns the share of windows with both ends right."""
        start, end = (hits(*pair) for pair in _ends(outputs, batch))
        return {"span_accuracy": weighted(start * end, self.weights(batch))}

    def distributions(self, outputs, batch):
        return {self.name: ops.stack([logits for logits, _ in _ends(outputs, batch)], axis=1)}

    def predictions(self, outputs):
        return {name: outputs[name] for name in ("start_logits", "end_logits")}


def _ends(outputs, batch):
    """Returns [(logits without padding, positions)] of start and end."""
    ends = ("start", "end")
    masked = (_masked(outputs[f"{end}_logits"], batch["input_mask"]) for end in ends)
    return list(zip(masked, (batch[f"{end}_positions"] for end in ends), strict=True))


def _masked(logits, input_mask):
    return ops.where(ops.equal(input_mask, 0), LOWEST, ops.cast(logits, "float32"))
