"""Classification with a pattern, from raw text."""

from nezha_tf.tasks.classification.serving import MEANINGS, ClassificationServing
from nezha_tf.tasks.prompting.loss import PromptLoss
from nezha_tf.tasks.prompting.pattern import Pattern, label_tokens


class PromptingServing(ClassificationServing):
    """As `ClassificationServing`, with a model that fills in the words of the classes."""

    meanings = MEANINGS | {
        "input_ids": "ids of tokens (line numbers of `assets/vocab.txt`, from 0): [CLS], the "
        "pattern with the text in it, [SEP], then zeros; each blank is a [MASK]",
        "segment_ids": "0, also for a second text",
    }

    def __init__(self, folder, model):
        super().__init__(folder, model)
        tokenizer, words = folder.tokenizer, folder.task["label_words"]
        self._text = folder.task["pattern"]
        tokens = label_tokens(self._labels, words, tokenizer, self._packing.num_blanks)
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

    def make_packing(self, folder):
        return Pattern(folder.task["pattern"], folder.tokenizer, self._length, self._is_pair)

    def predictions(self, inputs):
        return self._objective.predictions(
            self._model(self._objective.inputs(inputs), all_outputs=True)
        )
