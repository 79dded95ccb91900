"""The format of source and target: visibility, segments, and places of predictions."""

import dataclasses

import tensorflow as tf

from nezha_tf.config import SEGMENT_IDS, TARGET_PREDICTIONS
from nezha_tf.util.errors import UserError

MODES = ("seq2seq", "left_to_right")


@dataclasses.dataclass(frozen=True, kw_only=True)
class TargetFormat:
    """The format in which a model was trained to write.

    Attributes:
      mode: "seq2seq" ([CLS] source [SEP], whose tokens see each other, then the target) or
        "left_to_right" (all tokens of a prompt and its continuation see only what is left of
        them).
      target_prediction: "masked" (a [MASK] after the last token predicts the next one, as in
        UniLM) or "shift" (the last token itself predicts the next one).
      segment_ids: (segment id of the source, segment id of the target); None: those of the
        objective in `SEGMENT_IDS`.

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
            object.__setattr__(self, "segment_ids", SEGMENT_IDS[self.mode])

    @property
    def is_masked(self):
        """Whether a [MASK] predicts each token of the target."""
        return self.target_prediction == "masked"

    def check(self, config):
        """Raises a `UserError` if the model has no rows for the segments."""
        needed, rows = max(self.segment_ids), config.type_vocab_size
        if needed >= rows:
            raise UserError(
                f"{self.mode} uses the segments {self.segment_ids[0]} and {self.segment_ids[1]}, "
                f"and the model has {rows} (type_vocab_size); use a model that was trained on "
                "this objective, or pass the segments of its training by --segment_ids"
            )

    def ranks(self, source_length, target_length):
        """Returns the attention ranks of a source and its target, int32 [1, S + T]."""
        if self.mode == "left_to_right":
            return tf.range(source_length + target_length)[None]
        source = tf.zeros((source_length,), tf.int32)
        return tf.concat([source, 1 + tf.range(target_length)], axis=0)[None]
