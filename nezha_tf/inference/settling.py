"""What the model folder says where a flag is not given: the mode, the form and the search."""

import dataclasses

import numpy as np

from nezha_tf.generation.generator import check_room
from nezha_tf.generation.target_format import MODES, TargetFormat
from nezha_tf.objectives.uses import uses_of
from nezha_tf.tasks.seq2seq.settings import Seq2SeqSettings
from nezha_tf.util.errors import UserError

# The values if neither a flag nor the model folder says one: those of run_seq2seq.py.
FORM_DEFAULTS = {
    name: Seq2SeqSettings.__dataclass_fields__[name].default
    for name in ("target_prediction", "max_source_length", "max_target_length", "truncate_source")
}


def settled(settings, opened, defaults):
    """Returns the settings with values for flags that were not given.

    Args:
      settings: a dataclass; None stands for a flag that was not given.
      opened: as returned by `open_model`.
      defaults: dict of field names to the values that hold if the model folder does not say one.
    """
    found = {
        name: opened.task.get(name, default)
        for name, default in defaults.items()
        if getattr(settings, name) is None
    }
    return dataclasses.replace(settings, **found)


def settled_mode(settings, opened):
    """Returns the settings with a `mode`: if none is given, what the model was trained for.

    That is the first of `MODES` that the model was pretrained for, or else the first of all. If
    the model was pretrained for the mode, its objective also says the segment ids and the target
    prediction, unless flags do.

    Args:
      settings: `FormSettings` with a `mode`.
      opened: as returned by `open_model`.
    """
    uses = uses_of(opened.task)
    mode = settings.mode or next((mode for mode in MODES if mode in uses), MODES[0])
    if mode not in uses:
        return dataclasses.replace(settings, mode=mode)
    return dataclasses.replace(
        settings,
        mode=mode,
        segment_ids=settings.segment_ids or tuple(map(str, uses[mode].segment_ids)),
        target_prediction=settings.target_prediction or uses[mode].target_prediction,
    )


def settled_scoring_mode(settings, opened):
    """Does what `settled_mode` does, but a model may also be one that only fills in blanks.

    A model whose objectives fill blanks and do not write scores texts in the mode "bidirectional".
    A bare checkpoint or a published model does not say its objectives: its mode is the first of
    all.

    Args:
      settings: `ScoreSettings`.
      opened: as returned by `open_model`.
    """
    uses = uses_of(opened.task) if "objectives" in opened.task else {}
    if not settings.mode and "fill_mask" in uses and not set(MODES) & set(uses):
        return dataclasses.replace(settings, mode="bidirectional")
    return settled_mode(settings, opened)


def require_blanks(opened):
    """Raises a `UserError` if a model was pretrained for objectives of which none fills blanks.

    Args:
      opened: as returned by `open_model`.
    """
    objectives = opened.task.get("objectives")
    if objectives is not None and "fill_mask" not in uses_of(opened.task):
        raise UserError(
            f"the model was pretrained for {objectives} and cannot fill blanks; take one whose "
            "objectives contain bidirectional"
        )


def settled_form(settings, opened):
    """Returns the `FormSettings`, of which `mode` is known, with values for all other fields."""
    if settings.truncate_source is None and settings.mode != "seq2seq":
        # What the model folder says is for sources. A prompt keeps its end, where the text goes on.
        settings = dataclasses.replace(settings, truncate_source="head")
    return settled(settings, opened, FORM_DEFAULTS)


def target_format_of(settings):
    """Returns the `TargetFormat` of settled `FormSettings`.

    Raises:
      UserError: --segment_ids is not two numbers.
    """
    segment_ids = settings.segment_ids
    if segment_ids is not None:
        if len(segment_ids) != 2 or not all(part.isdecimal() for part in segment_ids):
            raise UserError(f"--segment_ids={','.join(segment_ids)} must be two numbers, as in 0,1")
        segment_ids = tuple(map(int, segment_ids))
    return TargetFormat(
        mode=settings.mode,
        target_prediction=settings.target_prediction,
        segment_ids=segment_ids,
    )


def check_form(target_format, settings):
    """Returns a function that checks a configuration: `UserError` if segments or room is missing.

    Args:
      target_format: `TargetFormat`.
      settings: `FormSettings`; a source and a target of its lengths must have room.
    """

    def check(config):
        target_format.check(config)
        check_room(config, np.array([settings.max_source_length]), settings.max_target_length)

    return check
