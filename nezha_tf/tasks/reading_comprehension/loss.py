"""The loss of answer spans: one softmax over a window's tokens for the start, one for the end."""

from keras import ops

from nezha_tf.objectives.losses import cross_entropies, hits, weighted

INPUTS = ("input_ids", "input_mask", "segment_ids")
# The logit of padding.
LOWEST = -1e9


class AnswerSpanLoss:
    """The mean cross-entropy of start and end (`compute_loss` of BERT's run_squad.py).

    Unlike there, padding is not a candidate, so the loss does not depend on the amount of padding.
    Batches have `start_positions` and `end_positions`, int [B], places in the window, or 0 ([CLS])
    if it has no answer. Windows of padding only have weight 0.
    """

    def __init__(self, label_smoothing=0.0):
        """`label_smoothing` is the share of probability to spread over the window's tokens."""
        self._label_smoothing = label_smoothing

    def inputs(self, batch):
        return {name: batch[name] for name in INPUTS}

    def loss_weights(self, batch):
        return {"span_loss": ops.cast(batch["input_mask"][:, 0], "float32")}

    def losses(self, outputs, batch):
        values = [
            self._cross_entropies(logits, positions, batch["input_mask"])
            for logits, positions in _ends(outputs, batch)
        ]
        return {"span_loss": weighted(sum(values) / 2, self.loss_weights(batch)["span_loss"])}

    def metrics(self, outputs, batch):
        """Returns the share of windows with both ends right."""
        start, end = (
            hits(_masked(logits, batch["input_mask"]), positions)
            for logits, positions in _ends(outputs, batch)
        )
        return {"span_accuracy": weighted(start * end, self.loss_weights(batch)["span_loss"])}

    def distributions(self, outputs, batch):
        logits = [_masked(logits, batch["input_mask"]) for logits, _ in _ends(outputs, batch)]
        return {"span_loss": ops.stack(logits, axis=1)}

    def predictions(self, outputs):
        return {name: outputs[name] for name in ("start_logits", "end_logits")}

    def _cross_entropies(self, logits, positions, input_mask):
        masked = _masked(logits, input_mask)
        losses = cross_entropies(masked, positions)
        if not self._label_smoothing:
            return losses
        is_token = ops.cast(input_mask, "float32")
        mean = ops.sum(logits * is_token, axis=-1) / ops.maximum(ops.sum(is_token, axis=-1), 1.0)
        even = ops.logsumexp(masked, axis=-1) - mean
        return (1.0 - self._label_smoothing) * losses + self._label_smoothing * even


def _ends(outputs, batch):
    return [(outputs[f"{end}_logits"], batch[f"{end}_positions"]) for end in ("start", "end")]


def _masked(logits, input_mask):
    return ops.where(ops.equal(input_mask, 0), LOWEST, ops.cast(logits, "float32"))
