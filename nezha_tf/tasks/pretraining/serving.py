"""Exports of pretrained models that write: continuations of prompts, or targets of sources."""

from nezha_tf.generation.writing_format import pretrained_format
from nezha_tf.tasks.seq2seq.serving import WritingServing


class PretrainedWritingServing(WritingServing):
    """Writes texts as an objective of the run has trained the model to do."""

    ability: str
    num_on_page = 3

    def __init__(self, folder, model):
        """Args:
          folder: `ModelFolder` of a pretraining run.
          model: as returned by `folder.make_model`.

        Raises:
          UserError: no objective of the run trains for this, or see `WritingServing`.
        """
        super().__init__(model, folder.tokenizer, pretrained_format(folder, self.ability))


class ContinuationServing(PretrainedWritingServing):
    """Continuations of prompts, sampled from the most probable tokens."""

    ability = "left_to_right"
    written = "continuations"


class TargetServing(PretrainedWritingServing):
    """Targets of sources, by a model that was not fine-tuned."""

    ability = "seq2seq"
