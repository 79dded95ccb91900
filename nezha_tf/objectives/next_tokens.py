"""Objectives that predict each next token: of a text, or of a target made of the text."""

import abc

from nezha_tf.config import SEGMENT_IDS
from nezha_tf.data import schema
from nezha_tf.modeling import attention_mask
from nezha_tf.modeling.pretraining import NezhaForMaskedLM
from nezha_tf.objectives.casts import NextTokens
from nezha_tf.objectives.infilling import Infilling
from nezha_tf.objectives.objective import Objective, Use
from nezha_tf.objectives.spans import SpanCorruption
from nezha_tf.objectives.terms import NEXT_TOKEN
from nezha_tf.objectives.text_to_text import Fragment, Prefix, TextToText
from nezha_tf.util.errors import UserError

_NOISE = ("noise_density", "mean_span_length")


class NextTokenObjective(Objective):
    """The base of these objectives; their examples must not be masked."""

    reads = schema.UNMASKED_FEATURES
    model = NezhaForMaskedLM

    def lengths(self, examples):
        # Any place may predict; this counts for the arithmetic of a step alone.
        lengths = examples.lengths
        return lengths._replace(max_predictions_per_seq=lengths.max_seq_length)

    def terms(self, of_pairs):
        return (NEXT_TOKEN,)


class Causal(NextTokenObjective):
    """Each token of a text predicts the next one and sees what is left of it (GPT, NEZHA-Gen)."""

    has_memory = True

    segment_ids = SEGMENT_IDS["left_to_right"]
    uses = (Use("left_to_right", segment_ids, "shift"),)
    shown_as = "left_to_right"

    def transforms(self, examples):
        return (NextTokens(self.segment_ids[0]),)

    def ranks(self, batch):
        return attention_mask.left_to_right_ranks(batch["input_mask"])


class TextToTextObjective(NextTokenObjective):
    """The target's tokens are predicted from the source and what is left of them."""

    segment_ids = SEGMENT_IDS["seq2seq"]
    uses = (Use("seq2seq", segment_ids, "shift"),)
    # A picture of a text is of all of it, not of a stretch with other tokens in it.
    shown_as = "seq2seq"

    @abc.abstractmethod
    def corruption(self, examples, vocabulary):
        """Returns the `Corruption` that makes source and target of a text.

        Args:
          examples: the `Examples`.
          vocabulary: the `Vocabulary` of the examples.

        Raises:
          UserError: it cannot be made for these.
        """

    def transforms(self, examples):
        vocabulary = examples.vocabulary
        if vocabulary is None:
            raise UserError(
                "objectives that make a source and a target of a text need --vocab_file, the "
                "vocabulary that the examples were made with"
            )
        corruption = self.corruption(examples, vocabulary)
        length = examples.lengths.max_seq_length
        return (TextToText(corruption, vocabulary, length, self.segment_ids),)

    def ranks(self, batch):
        return attention_mask.seq2seq_ranks(batch["input_mask"], batch["segment_ids"])


class SpanCorruptionObjective(TextToTextObjective):
    """Spans become sentinels, and the target tells what stood there (T5, arXiv 1910.10683)."""

    options = _NOISE

    def corruption(self, examples, vocabulary):
        length = examples.lengths.max_seq_length
        return SpanCorruption(vocabulary, length, **_noise_of(examples))


class InfillingObjective(TextToTextObjective):
    """Spans become [MASK]s, sentences change places; the target is the text (BART, 1910.13461)."""

    options = _NOISE

    def corruption(self, examples, vocabulary):
        return Infilling(vocabulary, **_noise_of(examples))


class FragmentObjective(TextToTextObjective):
    """The target is a masked fragment of the source (MASS, arXiv 1905.02450)."""

    def corruption(self, examples, vocabulary):
        return Fragment(vocabulary)


class PrefixObjective(TextToTextObjective):
    """The target is the rest of the text (the prefix LM of T5, arXiv 1910.10683 §3.2.3)."""

    def corruption(self, examples, vocabulary):
        return Prefix()


def _noise_of(examples):
    """Returns the settings of noise that are given, as keyword arguments."""
    given = {name: getattr(examples, name) for name in _NOISE}
    return {name: value for name, value in given.items() if value is not None}
