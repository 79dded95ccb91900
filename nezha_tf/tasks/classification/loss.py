"""Objectives of text classification (one or several classes) and regression."""

from keras import ops

from nezha_tf.objectives.losses import cross_entropies, hits, weighted

INPUTS = ("input_ids", "input_mask", "segment_ids")
LOSS = "classification_loss"


class ClassificationLoss:
    """Cross-entropy for one of several classes (`create_model` of BERT's run_classifier.py).

    Batches have `label_ids`, int [B], beside the model's inputs. Examples of padding only have no
    weight.
    """

    def __init__(self, label_smoothing=0.0):
        self._label_smoothing = label_smoothing

    def inputs(self, batch):
        return {name: batch[name] for name in INPUTS}

    def loss_weights(self, batch):
        """Returns {name of the loss: weight of each example, float32 [B]}."""
        # Every example begins with [CLS]; only padding has no first token.
        return {LOSS: ops.cast(batch["input_mask"][:, 0], "float32")}

    def logits(self, outputs):
        """Returns the scores of the classes, [B, L], from the model's outputs."""
        return outputs["logits"]

    def losses(self, outputs, batch):
        """Returns {name of the loss: `WeightedMean`}."""
        values = self.values(self.logits(outputs), batch["label_ids"])
        return {LOSS: weighted(values, self.loss_weights(batch)[LOSS])}

    def values(self, logits, label_ids):
        """Returns the loss of each example, float32 [B], for logits [B, L]."""
        return cross_entropies(logits, label_ids, label_smoothing=self._label_smoothing)

    def metrics(self, outputs, batch):
        """Returns the metrics, a dict of name to `WeightedMean`."""
        right = hits(self.logits(outputs), batch["label_ids"])
        return {"accuracy": weighted(right, self.loss_weights(batch)[LOSS])}

    def distributions(self, outputs, batch):
        """Returns {name of the loss: the logits that `RDrop` compares, [B, L]}."""
        return {LOSS: self.logits(outputs)}

    def predictions(self, outputs):
        """Returns the predictions for each example: {"probabilities": float32 [B, L]}."""
        return {"probabilities": ops.softmax(self.logits(outputs), axis=-1)}


class MultiLabelLoss(ClassificationLoss):
    """The mean sigmoid cross-entropy over the classes, for any number of classes per example.

    `label_ids` is int [B, L], 1 for each class of an example. Label smoothing moves it towards 1/2.
    """

    def values(self, logits, label_ids):
        targets = ops.cast(label_ids, "float32")
        targets = targets * (1.0 - self._label_smoothing) + 0.5 * self._label_smoothing
        return ops.mean(ops.binary_crossentropy(targets, logits, from_logits=True), axis=-1)

    def metrics(self, outputs, batch):
        return {}

    def distributions(self, outputs, batch):
        """Returns {name of the loss: logits of each class and of its absence, [B, L, 2]}."""
        logits = outputs["logits"]
        return {LOSS: ops.stack([logits, ops.zeros_like(logits)], axis=-1)}

    def predictions(self, outputs):
        return {"probabilities": ops.sigmoid(outputs["logits"])}


class RegressionLoss(ClassificationLoss):
    """Squared error for regression; `label_ids` is float32 [B], and L is 1."""

    distributions = None  # R-Drop needs classes.

    def values(self, logits, label_ids):
        return ops.square(logits[:, 0] - label_ids)

    def metrics(self, outputs, batch):
        return {}

    def predictions(self, outputs):
        """Returns {"value": float32 [B]}."""
        return {"value": outputs["logits"][:, 0]}
