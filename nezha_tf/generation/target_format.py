"""The format of source and target: visibility, segments, and places of predictions."""

import dataclasses
from collections.abc import Callable
from typing import NamedTuple

import tensorflow as tf

from nezha_tf.config import SEGMENT_IDS, TARGET_PREDICTIONS, NezhaConfig
from nezha_tf.text.vocabulary import UNK
from nezha_tf.util.errors import UserError


class Mode(NamedTuple):
    """A way to write: the row of a mode in `MODES`."""

    source: str  # what its input is called
    special_tokens: int  # how many of [CLS] and [SEP] are in the input
    truncate: str | None  # the end of the input that is cut off by default; None: the folder's
    ranks: Callable  # of the lengths S and T: attention ranks of input and target, int32 [S + T]
    segment_ids: tuple[int, int]  # unless the model folder or a flag says others
    search: dict  # `GenerationOptions` of models that were pretrained for it
    banned: tuple[str, ...] = ()  # tokens that are not written


# Beam search finds the most probable targets of a source. Continuations of a prompt are sampled,
# because the most probable ones repeat themselves (Holtzman et al., arXiv 1904.09751 §3).
MODES = {
    "seq2seq": Mode(
        source="source",
        special_tokens=2,
        truncate=None,
        ranks=lambda source, target: tf.maximum(tf.range(1 - source, 1 + target), 0),
        segment_ids=SEGMENT_IDS["seq2seq"],
        search={"method": "beam", "length_penalty": 0.7, "min_length": 2},
    ),
    "left_to_right": Mode(
        source="prompt",
        special_tokens=1,
        truncate="head",  # The text goes on at the end of the prompt.
        ranks=lambda source, target: tf.range(source + target),
        segment_ids=SEGMENT_IDS["left_to_right"],
        search={"method": "sample", "top_p": 0.9, "min_length": 1},
        banned=(UNK,),  # A source often shows what [UNK] means, a prompt does not.
    ),
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class TargetFormat:
    """The format in which a model was trained to write.

    Attributes:
      mode: "seq2seq" ([CLS] source [SEP], whose tokens see each other, then the target) or
        "left_to_right" (all tokens of a prompt and its continuation see only what is left of
        them).
      target_prediction: "masked" (a [MASK] after the last token predicts the next one, as in
        UniLM) or "shift" (the last token itself predicts the next one).
      segment_ids: (segment id of the source, segment id of the target); None: those of the mode.

    Raises:
      UserError: `mode` or `target_prediction` is unknown.
    """

    mode: str = "seq2seq"
    target_prediction: str = "masked"
    segment_ids: tuple[int, int] | None = None

    def __post_init__(self):
        for name, choices in (("mode", MODES), ("target_prediction", TARGET_PREDICTIONS)):
            if getattr(self, name) not in choices:
                raise UserError(
                    f"{name} must be one of {', '.join(choices)}, not {getattr(self, name)!r}"
                )
        if self.segment_ids is None:
            object.__setattr__(self, "segment_ids", MODES[self.mode].segment_ids)

    @property
    def is_masked(self) -> bool:
        return self.target_prediction == "masked"

    def check(self, config: NezhaConfig) -> None:
        """Raises a `UserError` if the model has no rows for the segments."""
        needed, rows = max(self.segment_ids), config.type_vocab_size
        if needed >= rows:
            raise UserError(
                f"{self.mode} uses the segments {self.segment_ids[0]} and {self.segment_ids[1]}, "
                f"and the model has {rows} (type_vocab_size); use a model that was trained on "
                "this objective, or pass the segments of its training by --segment_ids"
            )

    def ranks(self, source_length: int, target_length: int) -> tf.Tensor:
        """Returns the attention ranks of a source and its target, int32 [1, S + T]."""
        return MODES[self.mode].ranks(source_length, target_length)[None]
