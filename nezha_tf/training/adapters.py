"""Runs that train adapters (--lora_rank): what they save, and the model that they belong to."""

import math
import os

from nezha_tf.checkpoints import adapters, loading
from nezha_tf.checkpoints.adapters import Adapters
from nezha_tf.checkpoints.name_table import tf1_name, tf1_names
from nezha_tf.checkpoints.places import weights_of
from nezha_tf.checkpoints.run_checkpoints import RunCheckpoints
from nezha_tf.checkpoints.tf1 import SEGMENT_TABLE
from nezha_tf.modeling import lora
from nezha_tf.resources import model_path
from nezha_tf.util import storage
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


def saved_weights(model):
    """Returns {TF1 name: variable} of the weights that a run saves.

    Without adapters these are all; with them only what is trained, and the table of segments, which
    may have more rows than that of the base.
    """
    weights = tf1_names(model)
    if not lora.adapted_layers(model):
        return weights
    found = {tf1_name(variable.path): variable for variable in model.trainable_variables}
    return {SEGMENT_TABLE: weights[SEGMENT_TABLE], **found}


def note_base(settings, config, saved, is_chief):
    """Writes which model a run's adapters belong to, or compares it with what is written there.

    Args:
      settings: the `RunSettings`; --init_checkpoint is the model.
      config: its `NezhaConfig`.
      saved: the names in the run's checkpoints.
      is_chief: whether this process writes.

    Raises:
      UserError: the run was begun with other weights.
    """
    folder, base = settings.output_dir, settings.init_checkpoint
    digest = adapters.fingerprint(loading.open_base(base, config, saved), saved)
    found, there = Adapters(_lasting(base), digest, *_sizes(settings)), adapters.read(folder)
    if there and there.fingerprint != digest:
        raise UserError(
            f"the adapters in {folder} belong to another model: they were begun with {there.base}, "
            f"and --init_checkpoint={base} has other weights; pass that one, or another "
            "--output_dir"
        )
    if is_chief and found != there:
        adapters.write(folder, found)


def _lasting(path):
    """Returns a name of the weights that means the same from every folder."""
    if model_path(path) != os.fspath(path):  # the name of a model
        return path
    checkpoint, _ = weights_of(path)
    return checkpoint if storage.is_remote(checkpoint) else os.path.abspath(checkpoint)


def line_on(model):
    """Returns a line on how many weights a model with adapters has, and how many are trained."""
    counts = [
        sum(math.prod(variable.shape) for variable in variables)
        for variables in (model.trainable_variables, model.weights)
    ]
    layers = len(lora.adapted_layers(model))
    return f"adapters of {layers} dense layers: {counts[0]:,} of {counts[1]:,} weights are trained"
