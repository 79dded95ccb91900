"""What a run starts from: the weights of --init_checkpoint, and what lies beside them."""

import os

from nezha_tf import published, task_file
from nezha_tf.checkpoints import loading
from nezha_tf.files import same_bytes
from nezha_tf.model_folder import weights_of
from nezha_tf.training.output_folder import vocabulary_in


def load_initial(model, path, fresh_names, flags):
    """Loads the weights that a run starts from.

    Args:
      model: a Keras model of the name table.
      path: as for `model_folder.weights_of`.
      fresh_names: as `Task.fresh_names`.
      flags: dict of the run's flags.

    Returns:
      List of lines: what was loaded, and how what lies beside it differs from the flags.

    Raises:
      UserError: as for `loading.load`.
    """
    checkpoint, averages = weights_of(path)
    report = loading.load(model, checkpoint, fresh_names, extend_segments=True, averages=averages)
    return [told(checkpoint, report, averages), *differences(checkpoint, flags)]


def load(model, path, may_be_missing, averages=False):
    """Loads weights to use them.

    Args:
      model, path: as for `load_initial`.
      may_be_missing: as for `loading.load`.
      averages: whether moving averages are taken, also where nothing beside the weights says so.

    Returns:
      A line on what was loaded.

    Raises:
      UserError: as for `loading.load`.
    """
    checkpoint, are_averaged = weights_of(path)
    averages = averages or are_averaged
    report = loading.load(model, checkpoint, may_be_missing, averages=averages)
    return told(checkpoint, report, averages)


def differences(checkpoint, flags):
    """Returns lines on how the vocabulary and the case beside weights differ from the flags."""
    folder = os.path.dirname(checkpoint) or "."
    lines, beside = [], vocabulary_in(folder)
    if beside and flags["vocab_file"] and not same_bytes(beside, flags["vocab_file"]):
        lines.append(
            f"warning: {beside}, beside the weights, is another vocabulary than "
            f"--vocab_file={flags['vocab_file']}; ids that mean other pieces make the weights "
            "worthless"
        )
    task = task_file.read(folder)
    case = task["do_lower_case"] if task else published.do_lower_case(folder, default=None)
    if case not in (None, flags["do_lower_case"]):
        flag = "--do_lower_case" if case else "--nodo_lower_case"
        lines.append(f"warning: the weights are of a model with {flag}, and this run is not")
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
