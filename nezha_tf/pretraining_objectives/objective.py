"""What an objective of pretraining is: the one interface of all of them."""

import abc
from typing import NamedTuple

from nezha_tf.data import schema
from nezha_tf.data.transforms import Transform
from nezha_tf.modeling.pretraining import NezhaForPreTraining
from nezha_tf.objectives.masked_lm import PieceLoss
from nezha_tf.text.vocabulary import Vocabulary


class Use(NamedTuple):
    """What a trained model can do, and in which form it was trained to.

    Attributes:
      ability: "fill_mask" (pieces for [MASK]s, both sides seen), "left_to_right" (texts that go
        on from a prompt) or "seq2seq" (texts for a source).
      segment_ids: of the first and of the second text; where there is one text, the same twice.
      target_prediction: as of `TargetFormat`, where texts are written.
    """

    ability: str
    segment_ids: tuple[int, int]
    target_prediction: str = "masked"


class Examples(NamedTuple):
    """The examples that a run reads, before anything is done to them.

    Attributes:
      lengths: the `schema.Lengths` of the records.
      vocabulary: the `Vocabulary`, or None where the user gives none.
      masking: None of masked records; else the transform that masks them.
    """

    lengths: schema.Lengths
    vocabulary: Vocabulary | None = None
    masking: Transform | None = None


class Objective(abc.ABC):
    """A pretraining objective: its examples, who sees whom in them, its loss, model and use.

    Attributes:
      reads: the features that it begins with: `schema.FEATURES` (masked examples: of masked
        records, or of others with `Examples.masking`) or `schema.UNMASKED_FEATURES`.
      segment_ids: the ids that its examples have, (first, second).
      model: class of the Keras model, called with a `NezhaConfig` and `dtype`. In a mixture it is
        the class that is a subclass of all the others.
      uses: tuple of `Use`; the first is what a model of this objective alone is exported as.
    """

    reads = schema.FEATURES
    segment_ids = (0, 1)
    model = NezhaForPreTraining
    uses: tuple[Use, ...] = ()

    def transforms(self, examples):
        """Returns the `Transform`s that make its examples: corruption, in the graph.

        Batches keep the features of `PieceLoss`, and may have others. In a mixture they get the
        rows alone that are drawn for this objective, none at times; so a result must not depend on
        the other rows, and shapes but for the number of rows are static.

        Args:
          examples: the `Examples`; those that are masked first begin with `examples.masking`.

        Raises:
          UserError: what it needs is not there.
        """
        return (examples.masking,) if self._masks(examples) else ()

    def begins_with(self, examples):
        """Returns the features of the records that `transforms` reads."""
        return examples.masking.reads if self._masks(examples) else self.reads

    def _masks(self, examples):
        return self.reads == schema.FEATURES and examples.masking is not None

    def lengths(self, lengths):
        """Returns the `schema.Lengths` of its examples, those of the records being given."""
        return lengths

    @abc.abstractmethod
    def ranks(self, batch):
        """Returns who sees whom in its examples: int [B, T], see `modeling.attention_mask`."""

    @abc.abstractmethod
    def terms(self, of_pairs):
        """Returns what is predicted: `objectives.terms.LossTerm`s.

        Args:
          of_pairs: whether the records are pairs that `next_sentence_labels` tell apart.
        """

    def loss(self, of_pairs, label_smoothing=0.0):
        """Returns its `PieceLoss`."""
        return PieceLoss(self.ranks, self.terms(of_pairs), label_smoothing)
