"""Classification with a pattern: `run_classifier.py --pattern`."""

from nezha_tf.checkpoints.kinds import LAYER_MIX, POOLER
from nezha_tf.tasks.classification.task import Classification
from nezha_tf.tasks.prompting.loss import PromptLoss
from nezha_tf.tasks.prompting.pattern import Pattern, check_text, label_tokens
from nezha_tf.util.errors import UserError


class Prompting(Classification):
    """Fine-tuning of the head of masked LM to fill in the word of each class.

    The head is a part of the checkpoint: this is for few examples (PET, arXiv 2001.07676), from
    which a new head cannot be learnt.
    """

    task_name = "prompting"
    # A pattern has segment ids 0 alone.
    pairs_need_segments = False
    has_head_dropout = False
    # The head must be in --init_checkpoint.
    fresh_names = (POOLER, LAYER_MIX)

    def __init__(self, settings):
        if settings.label_type != "single":
            raise UserError(f"--pattern needs --label_type=single, not {settings.label_type}")
        if not settings.label_words:
            raise UserError("--pattern needs --label_words: a word for each class")
        super().__init__(settings)
        check_text(settings.pattern, self.tokenizer)
        count = self.make_packing().num_blanks
        labels, words = self.label_type.labels, settings.label_words
        self._label_tokens = label_tokens(labels, words, self.tokenizer, count)
        pairs = (f"{label}: {word}" for label, word in zip(labels, words, strict=True))
        self.notes.append(f"words of the classes: {', '.join(pairs)}")

    def make_packing(self):
        settings, is_pair = self.settings, self.data_set.is_pair
        return Pattern(settings.pattern, self.tokenizer, settings.max_seq_length, is_pair)

    def task_file_settings(self):
        own = {"pattern": self.settings.pattern, "label_words": list(self.settings.label_words)}
        return {**super().task_file_settings(), **own}

    def make_model(self, precision):
        model = super().make_model(precision)
        # Nothing is predicted from [CLS], so the pooler has no gradient.
        model.encoder.pooler.trainable = False
        return model

    def make_objective(self, label_smoothing):
        mask_id = self.tokenizer.vocabulary.mask_id
        return PromptLoss(self._label_tokens, mask_id, label_smoothing)
