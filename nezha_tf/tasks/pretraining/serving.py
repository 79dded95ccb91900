"""Exports of pretrained models that write: continuations of prompts, or targets of sources."""

from nezha_tf.generation.writing_format import pretrained_format
from nezha_tf.tasks.seq2seq.serving import WritingServing


class PretrainedWritingServing(WritingServing):
    """Writes texts as an objective of the run has trained the model to do."""

    ability: str

    def __init__(self, folder):
        """Args:
          folder: `ModelFolder` of a pretraining run.

        Raises:
          UserError: no objective of the run trains for this, or see `WritingServing`.
        """
        form = pretrained_format(folder, self.ability)
        super().__init__(folder.make_model(), folder.tokenizer, *form)


class ContinuationServing(PretrainedWritingServing):
    """Continuations of prompts, sampled from the most probable tokens."""

    ability = "left_to_right"
    written = "continuations"


class TargetServing(PretrainedWritingServing):
    """Targets of sources, by a model that was not fine-tuned."""

    ability = "seq2seq"
