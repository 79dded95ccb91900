"""Runs that train adapters (--lora_rank): their flags, and the model that they belong to."""

import math

from nezha_tf.checkpoints import adapters
from nezha_tf.checkpoints.adapter_saving import adapters_of
from nezha_tf.checkpoints.run_checkpoints import RunCheckpoints
from nezha_tf.modeling import lora
from nezha_tf.util.errors import UserError


def check(settings):
    """Raises a `UserError` if the `RunSettings` of a run that trains ask for no real adapters."""
    if settings.lora_rank and not settings.init_checkpoint:
        raise UserError("--lora_rank trains adapters of a model; name it with --init_checkpoint")
    if settings.lora_rank and settings.layer_mix:
        raise UserError("--layer_mix freezes the layers that --lora_rank adapts; leave one out")
    if settings.lora_rank and settings.lora_alpha == 0:
        raise UserError("--lora_alpha=0 switches the adapters off; pass a number above 0")


def check_folder(folder, settings):
    """Raises a `UserError` if the run in a folder, if there is one, has other adapters.

    Args:
      folder: the run's folder.
      settings: the `RunSettings`; a run that does not train needs no flags of adapters.
    """
    there = adapters.read(folder)
    is_run = there is not None or RunCheckpoints(folder, {}).steps()
    if not is_run or not (settings.do_train or settings.lora_rank):
        return
    stored = (there.rank, there.alpha) if there else (0, 0)
    if stored != _sizes(settings):
        theirs, ours = _told(*stored), _told(*_sizes(settings))
        raise UserError(
            f"the run in {folder} is {theirs}, and this one {ours}; give it the same flags, or "
            "another --output_dir"
        )


def _sizes(settings):
    """Returns (rank, alpha), or (0, 0) without adapters."""
    rank = settings.lora_rank
    return (rank, settings.lora_alpha or rank) if rank else (0, 0)


def _told(rank, alpha):
    return f"with --lora_rank={rank} --lora_alpha={alpha:g}" if rank else "without --lora_rank"


def note_base(settings, model, saved, is_chief):
    """Writes which model a run's adapters belong to, or compares it with what is written there.

    Args:
      settings: the `RunSettings`; --init_checkpoint is the model that they change.
      model: the Keras model with adapters.
      saved: the names in the run's checkpoints.
      is_chief: whether this process writes.

    Raises:
      UserError: the run was begun with other weights.
    """
    folder, base = settings.output_dir, settings.init_checkpoint
    found, there = adapters_of(model, base, saved), adapters.read(folder)
    if there and there.fingerprint != found.fingerprint:
        raise UserError(
            f"the adapters in {folder} belong to another model: they were begun with {there.base}, "
            f"and --init_checkpoint={base} has other weights; pass that one, or another "
            "--output_dir"
        )
    if is_chief and found != there:
        adapters.write(folder, found)


def line_on(model):
    """Returns a line on how many weights a model with adapters has, and how many are trained."""
    counts = [
        sum(math.prod(variable.shape) for variable in variables)
        for variables in (model.trainable_variables, model.weights)
    ]
    layers = len(lora.adapted_layers(model))
    return f"adapters of {layers} dense layers: {counts[0]:,} of {counts[1]:,} weights are trained"
