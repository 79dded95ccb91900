"""Predicts the classes of a text or a pair of texts, or a number."""

from nezha_tf.serving.predictor import Classes, Predictor
from nezha_tf.tasks.classification.label_types import LABEL_TYPES, THRESHOLD
from nezha_tf.text.packing import TextPacking


class Classifier(Predictor):
    """Returns the `Classes` of a text, or of a pair of texts if `is_pair`."""

    ability = "classification"

    def __init__(self, folder, model):
        super().__init__(folder, model)
        task = folder.task
        self.is_pair = task["is_pair"]
        self._kind, self._labels = task["label_type"], task["labels"]
        self._predictions = LABEL_TYPES[self._kind].objective().predictions
        self._packing = TextPacking(
            folder.tokenizer.vocabulary, task["max_seq_length"], self.is_pair
        )

    def __call__(self, text, text_pair=None):
        sides = [self._ids(text, "the text")]
        if self.is_pair:
            sides.append(self._ids(text_pair, "the second text"))
        found = self._predictions(self._outputs(*self._packing(*sides)))
        if self._kind == "regression":
            return Classes(None, [], float(found["value"][0]))
        return classes_of(self._labels, found["probabilities"][0].numpy(), self._kind)


def classes_of(labels, probabilities, kind):
    """Returns the `Classes` of probabilities [L]; `kind` is a key of `LABEL_TYPES`."""
    by_label = dict(zip(labels, map(float, probabilities), strict=True))
    if kind == "multi":
        return Classes(by_label, [name for name, p in by_label.items() if p >= THRESHOLD])
    return Classes(by_label, [max(by_label, key=by_label.get)])
