"""What a pretrained model writes, as a SavedModel: what goes on from a prompt, or targets."""

from nezha_tf.tasks.pretraining.writing import form_of
from nezha_tf.tasks.seq2seq.serving import WritingServing


class PretrainedWritingServing(WritingServing):
    """Texts in the form in which an objective of the run has trained the model to write."""

    ability: str

    def __init__(self, folder):
        """Args:
          folder: `ModelFolder` of a pretraining run.

        Raises:
          UserError: no objective of the run has trained it to, or as of `WritingServing`.
        """
        form = form_of(folder, self.ability)
        super().__init__(folder.make_model(), folder.tokenizer, *form)


class ContinuationServing(PretrainedWritingServing):
    """What goes on from a prompt, drawn from the likeliest pieces."""

    ability = "left_to_right"
    written = "continuations"


class TargetServing(PretrainedWritingServing):
    """Targets of sources, of a model that was not fine-tuned."""

    ability = "seq2seq"
