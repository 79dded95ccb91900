"""How a model writes: its input, the format of its targets, and the search for them.

The flags of a tool, the task of a fine-tuned model or the objectives of a pretrained one say it.
"""

import dataclasses
from typing import NamedTuple

import numpy as np

from nezha_tf.generation.generator import check_room
from nezha_tf.generation.model import with_defaults
from nezha_tf.generation.options import GenerationOptions, options_of
from nezha_tf.generation.settings import FORMAT_DEFAULTS
from nezha_tf.generation.sources import Side
from nezha_tf.generation.target_format import MODES, TargetFormat
from nezha_tf.objectives.uses import uses_of
from nezha_tf.util.errors import UserError

# Most tokens that a pretrained model writes; at most half of an example's length.
MAX_LENGTH = 64
# The assumed length of examples if the folder does not contain it.
MAX_SEQ_LENGTH = 512


class WritingFormat(NamedTuple):
    """How a model writes; the source is [CLS] source [SEP], or [CLS] prompt."""

    source: Side
    target_format: TargetFormat
    options: GenerationOptions

    def check(self, config):
        """Raises a `UserError` if the model has no rows for the segments, or for the positions."""
        self.target_format.check(config)
        check_room(config, np.array([self.source.max_length]), self.options.max_length)


def format_of(values, tokenizer):
    """Returns the `WritingFormat` of a fine-tuned model, or of the flags of a tool.

    The values are a dict with the fields of `FormatSettings` and `SearchSettings`, as in the
    `task.json` of run_seq2seq.py; it may also have those of `ModelFormatSettings`.
    """
    options = options_of(values, tokenizer)
    return WritingFormat(source_side(values), target_format_of(values), options)


def source_side(values):
    """Returns the `Side` of sources or prompts; the argument is that of `format_of`."""
    row = MODES[values.get("mode", "seq2seq")]
    ends = values["max_source_length"], values["truncate_source"]
    return Side(row.source, row.special_tokens, *ends)


def target_format_of(values):
    """Returns the `TargetFormat`; the argument is that of `format_of`."""
    segment_ids = values.get("segment_ids")
    if segment_ids is not None:
        if len(segment_ids) != 2 or not all(part.isdecimal() for part in segment_ids):
            raise UserError(f"--segment_ids={','.join(segment_ids)} must be two numbers, as in 0,1")
        segment_ids = tuple(map(int, segment_ids))
    return TargetFormat(
        mode=values.get("mode", "seq2seq"),
        target_prediction=values["target_prediction"],
        segment_ids=segment_ids,
    )


def pretrained_format(folder, mode):
    """Returns the `WritingFormat` of a pretrained `ModelFolder` in a mode, a key of `MODES`.

    Raises:
      UserError: no objective has trained the model for it, or its examples are too short.
    """
    uses = uses_of(folder.task)
    if mode not in uses:
        raise UserError(
            f"the model in {folder.path} was not trained for {mode}; it serves as "
            f"{', '.join([*uses, 'features'])}"
        )
    longest = folder.task.get("max_seq_length") or MAX_SEQ_LENGTH
    max_length = max(1, min(MAX_LENGTH, longest // 2))
    row = MODES[mode]
    truncate = row.truncate or FORMAT_DEFAULTS["truncate_source"]
    source = Side(row.source, row.special_tokens, longest - max_length, truncate)
    source.check()
    target_format = TargetFormat(
        mode=mode,
        target_prediction=uses[mode].target_prediction,
        segment_ids=uses[mode].segment_ids,
    )
    least = min(row.search["min_length"], max_length)
    options = GenerationOptions(max_length=max_length, **{**row.search, "min_length": least})
    return WritingFormat(source, target_format, options)


def with_format(settings, opened, other=None):
    """Returns `ModelFormatSettings` with a mode, and with values for all flags of the format.

    Without --mode, it is the first of `MODES` that the model was pretrained for, or else the first
    of all; `other` is that of a pretrained model that fills blanks, but does not write. What flags
    do not give is that of the objective, if the model was pretrained for the mode; else what its
    folder says; else what run_seq2seq.py would take.
    """
    uses = uses_of(opened.task)
    mode = settings.mode or next((mode for mode in MODES if mode in uses), None)
    if mode is None and "objectives" in opened.task and "fill_mask" in uses:
        mode = other
    mode = mode or next(iter(MODES))
    values = {"mode": mode}
    if mode in MODES and not settings.truncate_source:
        values["truncate_source"] = MODES[mode].truncate
    if mode in MODES and mode in uses:
        use = uses[mode]
        values["segment_ids"] = settings.segment_ids or tuple(map(str, use.segment_ids))
        values["target_prediction"] = settings.target_prediction or use.target_prediction
    return with_defaults(dataclasses.replace(settings, **values), opened, FORMAT_DEFAULTS)
