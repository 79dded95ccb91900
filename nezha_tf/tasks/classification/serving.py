"""Classification and regression from raw text."""

import tensorflow as tf

from nezha_tf.serving.signature import Serving, as_graphs
from nezha_tf.serving.text_reader import INPUT_MEANINGS, inputs_of, of_ids, text_spec
from nezha_tf.tasks.classification.labels import LABEL_TYPES, THRESHOLD
from nezha_tf.text.packing import text_packing

MEANINGS = {
    **INPUT_MEANINGS,
    "label": "the most probable label",
    "probability": "its probability",
    "probabilities": "the probability of each label, in the order of `assets/labels.txt`",
    "labels_on": f"whether each label's probability is at least {THRESHOLD}",
    "value": "the number",
    "labels": "the labels, in the order of `probabilities`",
}


class ClassificationServing(Serving):
    """Labels and probabilities of texts, or of pairs of texts; or a number for each."""

    meanings = MEANINGS

    def __init__(self, folder, model):
        task = folder.task
        super().__init__(model, folder.tokenizer)
        self._kind = task["label_type"]
        self._labels = list(task.get("labels") or ())
        self._predictions = LABEL_TYPES[self._kind].objective().predictions
        self._is_pair = task["is_pair"]
        self._length = task["max_seq_length"]
        self._packing = self.make_packing(folder)

    @property
    def about(self):
        what = "pairs of texts" if self._is_pair else "texts"
        longer = f"Longer ones are cut to {self._length} tokens, including `[CLS]` and `[SEP]`."
        if self._kind == "regression":
            return f"A number for {what}. {longer}"
        labels = ", ".join(self._labels[:20]) + (", ..." if len(self._labels) > 20 else "")
        return f"Classification of {what}: {labels}. {longer}"

    @property
    def example(self):
        if self._is_pair:
            return 'text=tf.constant(["今天很冷。"]), text_pair=tf.constant(["今天不热。"])'
        return 'text=tf.constant(["今天很冷。"])'

    def assets(self):
        labels = {"labels.txt": "".join(f"{label}\n" for label in self._labels)}
        return {**super().assets(), **(labels if self._labels else {})}

    def signatures(self):
        def of_texts(text, text_pair=None):
            texts = (text, text_pair) if self._is_pair else (text,)
            packed = self._packing(*map(self._reader.ids, texts))
            return self._outputs(inputs_of(packed.ids, packed.segment_ids, self._packing.num_fixed))

        names = ("text", "text_pair") if self._is_pair else ("text",)
        functions = {
            "serving_default": (of_texts, [text_spec(name) for name in names]),
            "from_ids": of_ids(self._outputs),
        }
        if self._labels:
            functions["labels"] = (lambda: {"labels": tf.constant(self._labels)}, [])
        return as_graphs(functions)

    def make_packing(self, folder):
        """Returns the packing of texts, or of pairs, of a `ModelFolder`."""
        return text_packing(folder.tokenizer.vocabulary, self._length, self._is_pair)

    def predictions(self, inputs):
        """Returns the objective's predictions for the model's inputs, a dict."""
        return self._predictions(self._model(inputs, all_outputs=True))

    def _outputs(self, inputs):
        found = self.predictions(inputs)
        if self._kind == "regression":
            return {"value": found["value"]}
        probabilities = found["probabilities"]
        if self._kind == "multi":
            return {"labels_on": probabilities >= THRESHOLD, "probabilities": probabilities}
        return {
            "label": tf.gather(self._labels, tf.argmax(probabilities, axis=-1)),
            "probability": tf.reduce_max(probabilities, axis=-1),
            "probabilities": probabilities,
        }
