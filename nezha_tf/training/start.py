"""What a run starts from: the weights of --init_checkpoint, and what lies beside them."""

import os

from nezha_tf.checkpoints import loading, tf1
from nezha_tf.files import same_bytes
from nezha_tf.model_folder import published, task_file
from nezha_tf.model_folder.folder import weights_of
from nezha_tf.model_folder.run_folder import vocabulary_in


def load_initial(model, path, fresh_names, settings):
    """Loads the weights that a run starts from.

    Args:
      model: a Keras model of the name table.
      path: as for `model_folder.weights_of`.
      fresh_names: as `Task.fresh_names`.
      settings: the run's `RunSettings`.

    Returns:
      List of lines: what was loaded, and how what lies beside it differs from the settings.

    Raises:
      UserError: as for `loading.load`.
    """
    checkpoint, averages = weights_of(path)
    report = loading.load(model, checkpoint, fresh_names, extend_segments=True, averages=averages)
    beside = differences(checkpoint, settings.vocab_file, settings.do_lower_case)
    return [told(checkpoint, report, averages), *beside]


def load(model, path, may_be_missing, settings):
    """Loads weights to use them.

    Args:
      model, path, settings: as for `load_initial`; with `ema_decay` moving averages are taken, also
        where nothing beside the weights says so.
      may_be_missing: as for `loading.load`.

    Returns:
      (lines as of `load_initial`, the step that they were saved at, or 0 where nothing says it).

    Raises:
      UserError: as for `loading.load`.
    """
    checkpoint, averages = weights_of(path)
    averages = averages or settings.ema_decay > 0
    report = loading.load(model, checkpoint, may_be_missing, averages=averages)
    beside = differences(checkpoint, settings.vocab_file, settings.do_lower_case)
    lines = [told(checkpoint, report, averages), *beside]
    return lines, tf1.global_step_of(loading.open_checkpoint(checkpoint)[1])


def differences(checkpoint, vocab_file, do_lower_case):
    """Returns lines on how the vocabulary and the case beside weights differ from these.

    Args:
      checkpoint: path of the weights.
      vocab_file: path of the vocabulary that is used, or None.
      do_lower_case: whether texts are lower-cased.
    """
    folder = os.path.dirname(checkpoint) or "."
    lines, beside = [], vocabulary_in(folder)
    if beside and vocab_file and not same_bytes(beside, vocab_file):
        lines.append(
            f"warning: {beside}, beside the weights, is another vocabulary than "
            f"--vocab_file={vocab_file}; ids that mean other pieces make the weights "
            "worthless"
        )
    task = task_file.read(folder)
    case = task["do_lower_case"] if task else published.do_lower_case(folder, default=None)
    if case not in (None, do_lower_case):
        flag = "--do_lower_case" if case else "--nodo_lower_case"
        lines.append(f"warning: the weights are of a model with {flag}; pass it, too")
    return lines


def told(checkpoint, report, averages):
    """Returns a line on a load: whence, and what was missing there or not taken from there.

    Args:
      checkpoint: what was loaded.
      report: the `LoadReport`.
      averages: whether moving averages of weights were taken.
    """
    line = f"weights from {checkpoint}" + (", their moving averages" if averages else "")
    if report.missing:
        line += f"; not in it, so fresh: {', '.join(report.missing)}"
    if report.unused:
        line += f"; in it, but not in this model: {', '.join(report.unused)}"
    if report.extended:
        line += f"; {report.extended}"
    return line
