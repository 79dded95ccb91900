"""Classification with a pattern, from raw text."""

import tensorflow as tf

from nezha_tf.serving.text_reader import cut, padded
from nezha_tf.tasks.classification.serving import ClassificationServing
from nezha_tf.tasks.prompting.pattern import TEXT
from nezha_tf.tasks.prompting.predictor import objective_of, pattern_of


class PromptingServing(ClassificationServing):
    """As `ClassificationServing`, with a model that fills in the words of the classes."""

    def __init__(self, folder):
        super().__init__(folder)
        self._pattern = pattern_of(folder)
        self._objective = objective_of(folder, self._pattern)

    def packed(self, text, text_pair):
        sides = [None if side is None else self._reader.ids(side) for side in (text, text_pair)]
        first, second = cut(*sides, self._pattern.room)
        count = first.nrows()
        parts = [
            (first if part == TEXT else second)
            if isinstance(part, str)
            else tf.RaggedTensor.from_tensor(tf.tile(tf.constant([part], tf.int32), [count, 1]))
            for part in self._pattern.parts
            if isinstance(part, str) or part
        ]
        ids, mask = padded(tf.concat(parts, axis=1), least=self._pattern.num_blanks + 2)
        return {"input_ids": ids, "input_mask": mask, "segment_ids": tf.zeros_like(ids)}

    def predictions(self, inputs):
        return self._objective.predictions(self._model(self._objective.inputs(inputs)))
