"""The loss of answer spans: one softmax over a window's tokens for the start, one for the end."""

from keras import ops

from nezha_tf.objectives.losses import hits, weighted
from nezha_tf.tasks.classification.loss import ClassificationLoss, entropies_among

# The logit of padding.
LOWEST = -1e9
ENDS = ("start", "end")


class AnswerSpanLoss(ClassificationLoss):
    """The mean cross-entropy of start and end (`compute_loss` of BERT's run_squad.py).

    Unlike there, padding is not a candidate, so the loss does not depend on the amount of padding.
    Batches have `start_positions` and `end_positions`, int [B], places in the window, or 0 ([CLS])
    if it has no answer. Windows of padding only have weight 0.
    """

    name = "span_loss"

    def losses(self, outputs, batch):
        masked, mask = _masked(outputs, batch), batch["input_mask"]
        start, end = (
            entropies_among(
                outputs[f"{end}_logits"],
                masked[end],
                batch[f"{end}_positions"],
                mask,
                self._label_smoothing,
            )
            for end in ENDS
        )
        return {self.name: weighted((start + end) / 2, self.weights(batch))}

    def metrics(self, outputs, batch):
        """Returns the share of windows with both ends right."""
        logits = _masked(outputs, batch)
        start, end = (hits(logits[end], batch[f"{end}_positions"]) for end in ENDS)
        return {"span_accuracy": weighted(start * end, self.weights(batch))}

    def distributions(self, outputs, batch):
        return {self.name: ops.stack([*_masked(outputs, batch).values()], axis=1)}

    def predictions(self, outputs):
        return {name: outputs[name] for name in ("start_logits", "end_logits")}


def _masked(outputs, batch):
    """Returns {end: its logits without padding, float32 [B, T]}."""
    is_padding = ops.equal(batch["input_mask"], 0)
    logits = {end: ops.cast(outputs[f"{end}_logits"], "float32") for end in ENDS}
    return {end: ops.where(is_padding, LOWEST, values) for end, values in logits.items()}
