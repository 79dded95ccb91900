"""Classification with a pattern, from raw text."""

import tensorflow as tf

from nezha_tf.serving.text_reader import cut, padded
from nezha_tf.tasks.classification.serving import MEANINGS, ClassificationServing
from nezha_tf.tasks.prompting.loss import PromptLoss
from nezha_tf.tasks.prompting.pattern import TEXT, Pattern, label_tokens


class PromptingServing(ClassificationServing):
    """As `ClassificationServing`, with a model that fills in the words of the classes."""

    meanings = MEANINGS | {
        "input_ids": "ids of tokens (line numbers of `assets/vocab.txt`, from 0): [CLS], the "
        "pattern with the text in it, [SEP], then zeros; each blank is a [MASK]",
        "segment_ids": "0, also for a second text",
    }

    def __init__(self, folder, model):
        super().__init__(folder, model)
        task, tokenizer = folder.task, folder.tokenizer
        self._text, words = task["pattern"], task["label_words"]
        self._pattern = Pattern(self._text, tokenizer, self._length, self._is_pair)
        tokens = label_tokens(self._labels, words, tokenizer, self._pattern.num_blanks)
        self._objective = PromptLoss(tokens, tokenizer.vocabulary.mask_id)
        self._words = dict(zip(self._labels, words, strict=True))

    @property
    def about(self):
        words = ", ".join(f"{word} for {label}" for label, word in self._words.items())
        return (
            f"{super().about} Texts stand in the pattern `{self._text}`, which is not cut; the "
            f"model fills its blanks with {words}."
        )

    def assets(self):
        return {**super().assets(), "pattern.txt": f"{self._text}\n"}

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
        return self._objective.predictions(
            self._model(self._objective.inputs(inputs), all_outputs=True)
        )
