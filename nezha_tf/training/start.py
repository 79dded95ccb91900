"""Loads the weights of --init_checkpoint, and takes or compares the files beside them."""

import contextlib
import dataclasses
import os

from nezha_tf import hub
from nezha_tf.checkpoints import loading, published, tf1
from nezha_tf.checkpoints.kinds import LAYER_MIX, listed
from nezha_tf.checkpoints.places import folder_of_model, weights_of
from nezha_tf.checkpoints.run_checkpoints import RunCheckpoints
from nezha_tf.checkpoints.run_folder import vocabulary_in
from nezha_tf.util import storage
from nezha_tf.util.errors import UserError


def with_files_beside(settings):
    """Returns the settings with the files beside --init_checkpoint that the flags do not name.

    These are the configuration and the vocabulary; what is not there stays None. The name of a
    model on a hub gets its commit: that with which the run in the folder began, or the present one.

    Args:
      settings: `RunSettings`, or others with these three flags.

    Raises:
      UserError: see `weights_of`.
    """
    if hub.is_name(settings.init_checkpoint):
        folder, name = getattr(settings, "output_dir", None), settings.init_checkpoint
        begun_with = hub.recorded(folder, name)
        settings = dataclasses.replace(settings, init_checkpoint=begun_with or hub.pinned(name))
    if not settings.init_checkpoint or (settings.bert_config_file and settings.vocab_file):
        return settings
    checkpoint = own_of_run(settings) or weights_of(settings.init_checkpoint)[0]
    folder = _folder_of(checkpoint)
    found = {"vocab_file": vocabulary_in(folder)}
    with contextlib.suppress(UserError):  # `Run` reports which flag is missing.
        found["bert_config_file"] = published.config_file_in(folder, checkpoint)
    taken = {name: path for name, path in found.items() if path and not getattr(settings, name)}
    return dataclasses.replace(settings, **taken)


def own_of_run(settings):
    """Returns the run's folder if it goes on from its own checkpoints, and begun from a hub.

    It has all that it needs there, so that nobody is asked for the model it began with. Otherwise
    the result is None.
    """
    folder = getattr(settings, "output_dir", None)
    goes_on = hub.recorded(folder, settings.init_checkpoint) and RunCheckpoints(folder, {}).steps()
    return folder if goes_on else None


def load_initial(model, path, fresh_names, settings):
    """Loads the initial weights of a run.

    Args:
      model: a Keras model whose variables are in the name table.
      path: see `places.weights_of`.
      fresh_names: see `Task.fresh_names`.
      settings: the run's `RunSettings`.

    Returns:
      List of lines: what was loaded, and how the files beside it differ from the settings.

    Raises:
      UserError: see `loading.load`.
    """
    checkpoint, averages = weights_of(path)
    report = loading.load(model, checkpoint, fresh_names, extend_segments=True, averages=averages)
    beside = _reading_warnings(checkpoint, settings)
    return [weights_note(checkpoint, report, averages), *beside]


def load(model, path, may_be_missing, settings):
    """Loads weights for evaluation or prediction.

    Args:
      model, path, settings: see `load_initial`. With `ema_decay`, the moving averages are loaded
        even if no file beside the weights says so.
      may_be_missing: see `loading.load`.

    Returns:
      (lines as in `load_initial`; the checkpoint's step, or 0 if it has none).

    Raises:
      UserError: see `loading.load`; or the weights are those of a model with `layer_mix`, and this
        one is without.
    """
    checkpoint, averages = weights_of(path)
    averages = averages or settings.ema_decay > 0
    report = loading.load(model, checkpoint, may_be_missing, averages=averages)
    if any(name.startswith(LAYER_MIX) for name in report.unused):
        raise UserError(
            f"the model of {checkpoint} reads a mixture of all layers; pass --layer_mix, too"
        )
    beside = _reading_warnings(checkpoint, settings)
    lines = [weights_note(checkpoint, report, averages), *beside]
    return lines, tf1.global_step_of(loading.open_checkpoint(checkpoint)[1])


def _reading_warnings(checkpoint, settings):
    folder, case = _folder_of(checkpoint), settings.do_lower_case
    return published.reading_warnings(folder, settings.vocab_file, case)


def newest(folder, init_checkpoint):
    """Returns (step, prefix) of a run's newest checkpoint, or (None, the initial weights).

    As in the originals, the folder comes first: --init_checkpoint is where a run began.

    Raises:
      UserError: there is neither.
    """
    checkpoints = RunCheckpoints(folder, {})
    steps = checkpoints.steps()
    if not init_checkpoint and not steps:
        raise UserError(f"no checkpoint in {folder}; pass --init_checkpoint, or train first")
    return (steps[-1], checkpoints.path(steps[-1])) if steps else (None, init_checkpoint)


def best_or_newest(folder, init_checkpoint, best_metric):
    """Returns (step, prefix) of the best checkpoint of a run, or of the best run of a sweep.

    Without one it is that of `newest`.
    """
    checkpoints = RunCheckpoints(folder_of_model(folder), {}, best_metric=best_metric)
    step = checkpoints.chosen()
    return newest(folder, init_checkpoint) if step is None else (step, checkpoints.path(step))


def _folder_of(checkpoint):
    """Returns the folder of weights; Hugging Face's are named by it."""
    return checkpoint if storage.isdir(checkpoint) else os.path.dirname(checkpoint) or "."


def weights_note(checkpoint, report, averages):
    """Returns a line on loaded weights: their source, and missing and unused weights.

    Args:
      checkpoint: the path of the weights.
      report: the `LoadReport`.
      averages: whether moving averages were loaded.
    """
    line = f"weights from {checkpoint}" + (", their moving averages" if averages else "")
    if report.missing:
        line += f"; missing there, so random: {listed(report.missing)}"
    if report.unused:
        line += f"; there, but not in this model: {listed(report.unused)}"
    if report.extended:
        line += f"; {report.extended}"
    return line
