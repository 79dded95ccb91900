"""Predicts the class of a text or a pair of texts by the words that fill a pattern's blanks."""

import tensorflow as tf

from nezha_tf.tasks.classification.predictor import Classifier
from nezha_tf.tasks.prompting.loss import PromptLoss
from nezha_tf.tasks.prompting.pattern import Pattern, label_tokens


class PromptedClassifier(Classifier):
    """As `Classifier`, with a model that fills in the words of the classes."""

    def __init__(self, folder, model):
        super().__init__(folder, model)
        self._packing = pattern_of(folder)
        self._objective = objective_of(folder, self._packing)
        self._predictions = self._objective.predictions

    def _outputs(self, ids, segment_ids):
        inputs = {"input_ids": tf.constant([ids]), "segment_ids": tf.constant([segment_ids])}
        inputs["input_mask"] = tf.ones_like(inputs["input_ids"])
        return self._model(self._objective.inputs(inputs), training=False)


def pattern_of(folder):
    """Returns the `Pattern` of a `ModelFolder`."""
    task = folder.task
    length = task["max_seq_length"]
    return Pattern(task["pattern"], folder.tokenizer, length, task["is_pair"])


def objective_of(folder, pattern):
    """Returns the `PromptLoss` of a `ModelFolder` with a `Pattern`."""
    task, tokenizer = folder.task, folder.tokenizer
    tokens = label_tokens(task["labels"], task["label_words"], tokenizer, pattern.num_blanks)
    return PromptLoss(tokens, tokenizer.vocabulary.mask_id)
