"""Objectives of text classification (one or several classes) and regression."""

from keras import ops

from nezha_tf.objectives.losses import cross_entropies, hits, weighted

INPUTS = ("input_ids", "input_mask", "segment_ids")


class ClassificationLoss:
    """Cross-entropy for one of several classes (`create_model` of BERT's run_classifier.py).

    Batches have `label_ids`, int [B], beside the model's inputs. Examples of padding only have no
    weight. The losses of other tasks with classes are subclasses.

    Attributes:
      name, accuracy: the names of the loss and of the metric.
      input_names: the model's inputs.
    """

    name, accuracy = "classification_loss", "accuracy"
    input_names = INPUTS

    def __init__(self, label_smoothing=0.0):
        """`label_smoothing` is the share of probability to spread over the classes."""
        self._label_smoothing = label_smoothing

    def inputs(self, batch):
        return {name: batch[name] for name in self.input_names}

    def loss_weights(self, batch):
        """Returns {name of the loss: weight of each example, float32 [B]}."""
        return {self.name: ops.cast(self.weights(batch), "float32")}

    def weights(self, batch):
        # Every example begins with [CLS]; only padding has no first token.
        return batch["input_mask"][:, 0]

    def logits(self, outputs):
        """Returns the scores of the classes, [B, L], from the model's outputs."""
        return outputs["logits"]

    def losses(self, outputs, batch):
        """Returns {name of the loss: `WeightedMean`}."""
        values = self.values(self.logits(outputs), batch)
        return {self.name: weighted(values, self.weights(batch))}

    def values(self, logits, batch):
        """Returns the loss of each example, float32 [B], for logits [B, L]."""
        return cross_entropies(logits, batch["label_ids"], label_smoothing=self._label_smoothing)

    def metrics(self, outputs, batch):
        """Returns the metrics, a dict of name to `WeightedMean`."""
        right = hits(self.logits(outputs), batch["label_ids"])
        return {self.accuracy: weighted(right, self.weights(batch))}

    def distributions(self, outputs, batch):
        """Returns {name of the loss: the logits that `RDrop` compares, [B, L]}."""
        return {self.name: self.logits(outputs)}

    def predictions(self, outputs):
        """Returns the predictions for each example: {"probabilities": float32 [B, L]}."""
        return {"probabilities": ops.softmax(self.logits(outputs), axis=-1)}


def entropies_among(logits, masked, labels, is_class, label_smoothing):
    """Returns cross-entropies where an example has only some of the classes, float32 [...].

    Args:
      logits: [..., L].
      masked: the same, float32, but far below the others for what is no class.
      labels: int [...].
      is_class: [..., L], 1 or true for the classes that an example has.
      label_smoothing: the share of probability to spread over these.
    """
    losses = cross_entropies(masked, labels)
    if not label_smoothing:
        return losses
    is_class = ops.cast(is_class, "float32")
    mean = ops.sum(logits * is_class, axis=-1) / ops.maximum(ops.sum(is_class, axis=-1), 1.0)
    even = ops.logsumexp(masked, axis=-1) - mean
    return (1.0 - label_smoothing) * losses + label_smoothing * even


class MultiLabelLoss(ClassificationLoss):
    """The mean sigmoid cross-entropy over the classes, for any number of classes per example.

    `label_ids` is int [B, L], 1 for each class of an example. Label smoothing moves it towards 1/2.
    """

    def values(self, logits, batch):
        targets = ops.cast(batch["label_ids"], "float32")
        targets = targets * (1.0 - self._label_smoothing) + 0.5 * self._label_smoothing
        return ops.mean(ops.binary_crossentropy(targets, logits, from_logits=True), axis=-1)

    def metrics(self, outputs, batch):
        return {}

    def distributions(self, outputs, batch):
        """Returns {name of the loss: logits of each class and of its absence, [B, L, 2]}."""
        logits = outputs["logits"]
        return {self.name: ops.stack([logits, ops.zeros_like(logits)], axis=-1)}

    def predictions(self, outputs):
        return {"probabilities": ops.sigmoid(outputs["logits"])}


class RegressionLoss(ClassificationLoss):
    """Squared error for regression; `label_ids` is float32 [B], and L is 1."""

    distributions = None  # R-Drop needs classes.

    def values(self, logits, batch):
        return ops.square(logits[:, 0] - batch["label_ids"])

    def metrics(self, outputs, batch):
        return {}

    def predictions(self, outputs):
        """Returns {"value": float32 [B]}."""
        return {"value": outputs["logits"][:, 0]}
