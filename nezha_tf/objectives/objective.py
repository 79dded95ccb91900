"""The interface of objectives of pretraining, and of the transforms that make their examples."""

import abc
from typing import NamedTuple

from nezha_tf.data import schema
from nezha_tf.modeling.pretraining import NezhaForMaskedLM, NezhaForPreTraining
from nezha_tf.objectives.terms import NEXT_TOKEN, TokenLoss
from nezha_tf.text.vocabulary import Vocabulary
from nezha_tf.util.errors import UserError


class Use(NamedTuple):
    """An ability of a trained model, and the input format of its training.

    Attributes:
      ability: "fill_mask" (tokens for [MASK]s, which see both sides), "left_to_right"
        (continuations of a prompt) or "seq2seq" (targets for a source).
      segment_ids: (id of the first text, id of the second text); the same for a single text.
      target_prediction: see `TargetFormat`; only for abilities that write texts.
    """

    ability: str
    segment_ids: tuple[int, int]
    target_prediction: str = "masked"


class Transform(abc.ABC):
    """Changes each example of a batch; the result does not depend on the batch's other examples.

    Attributes:
      reads, gives: tuples of `schema.Feature`, those that the batch must have and those of the
        result.
      at_once: the number of examples that the reader should pass together, rounded down to
        whole batches; 1 if the number does not affect the speed.
    """

    reads: tuple
    gives: tuple
    at_once = 1

    @abc.abstractmethod
    def __call__(self, batch, numbers, seed):
        """Changes a batch, in the graph; returns a new dict with the examples in the same order.

        Args:
          batch: dict of feature name to int32 or float32 [B, n], n static.
          numbers: int64 [B], the examples' numbers in the stream. What is drawn for an example
            depends only on the seed and on its number.
          seed: string or number.
        """

    def fault_of(self, record):
        """Returns why this transform cannot use a record (bytes) that fits the schema, or None."""
        return None


class ExampleSettings(NamedTuple):
    """The examples that a run reads, before any transform, and how objectives may change them.

    Attributes:
      lengths: the `schema.Lengths` of the records.
      vocabulary: the `Vocabulary`, or None if the user names none.
      masking: the transform that masks the records; None: they are masked already.
      noise_density, mean_span_length: the share of noise and the mean length of its spans, for
        objectives that corrupt spans; None: as their papers.
      num_predict: the most predictions of an example, for objectives that choose them themselves;
        None: a sixth of its length, as in XLNet.
    """

    lengths: schema.Lengths
    vocabulary: Vocabulary | None = None
    masking: Transform | None = None
    noise_density: float | None = None
    mean_span_length: float | None = None
    num_predict: int | None = None

    def required_vocabulary(self, objective):
        """Returns the vocabulary, or raises a `UserError` that names the objective."""
        if self.vocabulary is None:
            raise UserError(
                f"{objective} needs --vocab_file, the vocabulary that the examples were made with"
            )
        return self.vocabulary


class Objective(abc.ABC):
    """A pretraining objective: its examples, attention mask, loss, model and uses.

    Attributes:
      reads: the features that its transforms start from: `schema.FEATURES` (masked examples; the
        records are masked, or `ExampleSettings.masking` masks them) or `schema.UNMASKED_FEATURES`.
      segment_ids: the segment ids of its examples, (first, second).
      model: class of the Keras model, called with a `NezhaConfig` and `dtype`. A mixture uses the
        class that is a subclass of all others, or joins several of `NezhaForPreTraining`.
      has_query_stream: see `TokenLoss`.
      options: the names of those optional fields of `ExampleSettings` (from `noise_density` on)
        that it reads; the user gets an error for a flag that no objective of the run reads.
      has_memory: whether its examples can go on from the states of the examples before them.
      has_packed_texts: whether its examples can be rows of packed texts (`schema.TEXT_IDS`), each
        of which it then treats as if it were alone in its row.
      uses: tuple of `Use`; a model trained only with this objective is exported for the first.
      best_metric: the held-out loss that chooses the best checkpoint.
      shown_as: the name of an objective with the same segments and attention, in whose form
        pictures show a text; None: pictures show what `transforms` makes of it.
    """

    reads = schema.FEATURES
    segment_ids = (0, 1)
    model = NezhaForPreTraining
    has_query_stream = False
    options: tuple[str, ...] = ()
    has_memory = False
    has_packed_texts = False
    uses: tuple[Use, ...] = ()
    best_metric = "loss"
    shown_as: str | None = None

    def transforms(self, examples):
        """Returns the `Transform`s that make its examples in the graph, a tuple.

        The result has the features that `TokenLoss` and the terms need. In a mixture, a
        transform gets only the rows that are drawn for this objective, sometimes none. So a row's
        result must not depend on other rows, and all shapes except the number of rows are static.
        If the examples must be masked first, the result begins with `examples.masking`.

        Raises:
          UserError: something that the objective needs is missing.
        """
        return (examples.masking,) if self._masks(examples) else ()

    def begins_with(self, examples):
        """Returns the features of the records that `transforms` reads."""
        return examples.masking.reads if self._masks(examples) else self.reads

    def _masks(self, examples):
        return self.reads == schema.FEATURES and examples.masking is not None

    def lengths(self, examples):
        """Returns the `schema.Lengths` of its examples."""
        return examples.lengths

    @abc.abstractmethod
    def ranks(self, batch):
        """Returns the attention ranks of its examples, int [B, T]: see `attention_mask`."""

    @abc.abstractmethod
    def terms(self, of_pairs):
        """Returns its `LossTerm`s, a tuple; pairs (`of_pairs`) have `next_sentence_labels`."""

    def loss(self, of_pairs=True, label_smoothing=0.0):
        """Returns its `TokenLoss`."""
        terms = self.terms(of_pairs)
        return TokenLoss(self.ranks, terms, label_smoothing, self.has_query_stream)


class NextTokenObjective(Objective):
    """The base of objectives that predict each next token; their examples must not be masked."""

    reads = schema.UNMASKED_FEATURES
    model = NezhaForMaskedLM

    def lengths(self, examples):
        # Any place may predict; this counts for the arithmetic of a step alone.
        lengths = examples.lengths
        return lengths._replace(max_predictions_per_seq=lengths.max_seq_length)

    def terms(self, of_pairs):
        return (NEXT_TOKEN,)
