"""Objective of sentence vectors: a text is nearest to itself, seen through another dropout."""

from keras import ops

from nezha_tf.objectives.losses import cross_entropies, hits, weighted
from nezha_tf.tasks.classification.loss import INPUTS
from nezha_tf.tasks.reading_comprehension.loss import LOWEST

LOSS = "contrastive_loss"
POOLINGS = ("cls", "mean")


class ContrastiveLoss:
    """Cross-entropy of each text's own second vector among those of the batch (SimCSE §3).

    In training, batches are texts, [B, T], and each is read twice, with two draws of dropout. In
    evaluation they are pairs, [B, 2, T], whose cosine is predicted, and there is no loss.

    The last batch of an epoch is filled up with texts of that epoch. Where a batch has a text
    twice, by its `example_index` (int32 [B]), the copy is none of the others that it is compared
    with.

    With "cls", the vector in training is the pooler's output, and the vector of [CLS] afterwards:
    SimCSE's own choice, an MLP in training alone (§6.3). With "mean", it is the mean over the
    tokens without [CLS] and [SEP], in both.
    """

    distributions = None  # R-Drop needs classes.

    def __init__(self, temperature, pooling):
        """`temperature` divides the cosines, 0.05 in the paper; `pooling` is one of `POOLINGS`."""
        self._temperature = temperature
        self._pooling = pooling

    def inputs(self, batch):
        """Returns the model's inputs, [2 * B, T]; the two of a text or pair follow one another."""
        found = {}
        for name in INPUTS:
            values = batch[name]
            pairs = values if len(values.shape) == 3 else ops.stack([values, values], axis=1)
            found[name] = ops.reshape(pairs, (-1, ops.shape(values)[-1]))
        return found

    def loss_weights(self, batch):
        """Returns {name of the loss: weight of each text, float32 [B]}; {} for pairs."""
        mask = batch["input_mask"]
        return {} if len(mask.shape) == 3 else {LOSS: ops.cast(mask[:, 0], "float32")}

    def losses(self, outputs, batch):
        """Returns {name of the loss: `WeightedMean`}; {} for pairs."""
        return {
            name: weighted(cross_entropies(*self._compared(outputs, batch)), weights)
            for name, weights in self.loss_weights(batch).items()
        }

    def metrics(self, outputs, batch):
        """Returns how often a text is nearest to itself, a dict of name to `WeightedMean`."""
        found = {}
        for weights in self.loss_weights(batch).values():
            found["contrastive_accuracy"] = weighted(hits(*self._compared(outputs, batch)), weights)
        return found

    def predictions(self, outputs):
        """Returns the cosines of pairs: {"similarity": float32 [B]}."""
        first, second = self._vectors(outputs, is_training=False)
        return {"similarity": ops.sum(first * second, axis=-1)}

    def _compared(self, outputs, batch):
        """Returns (cosines over the temperature, [B, B]; the numbers 0 to B - 1)."""
        first, second = self._vectors(outputs, is_training=True)
        logits = ops.matmul(first, ops.transpose(second)) / self._temperature
        numbers, index = ops.arange(ops.shape(first)[0]), batch["example_index"]
        is_same = ops.equal(index[:, None], index[None, :])
        is_other = ops.not_equal(numbers[:, None], numbers[None, :])
        return ops.where(ops.logical_and(is_same, is_other), LOWEST, logits), numbers

    def _vectors(self, outputs, is_training):
        """Returns the first and the second vectors, float32 [B, H], of length 1."""
        states, mask = outputs["sequence_output"], outputs["input_mask"]
        if self._pooling == "mean":
            # A token of the text has a token after it, and is not the first.
            last = ops.concatenate([mask[:, 1:], ops.zeros_like(mask[:, :1])], axis=1)
            of_text = ops.concatenate([ops.zeros_like(last[:, :1]), last[:, 1:]], axis=1)
            of_text = ops.cast(of_text, "float32")[..., None]
            vectors = ops.sum(ops.cast(states, "float32") * of_text, axis=1)
        else:
            vectors = outputs["pooled_output"] if is_training else states[:, 0]
        vectors = ops.normalize(ops.cast(vectors, "float32"), axis=-1, epsilon=1e-12)
        pairs = ops.reshape(vectors, (-1, 2, vectors.shape[-1]))
        return pairs[:, 0], pairs[:, 1]
