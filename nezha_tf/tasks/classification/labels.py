"""Finds the classes: from the flags, from the training data, or from an earlier run."""

from nezha_tf.tasks.classification.label_types import LABEL_TYPES, Number
from nezha_tf.tasks.finetuning.labels import labels_of_run
from nezha_tf.util.errors import UserError


def label_type_of(settings, data_set, training_part, task_name):
    """Returns the type of the labels with its classes, an object of `label_types`.

    Args:
      settings: an object with `label_type`, `labels`, `label_separator` and `output_dir`.
      data_set: `DataSet`.
      training_part: `Part` of the training data; None: the run does not train, and its folder
        has the labels.
      task_name: the task in `task.json`.

    Raises:
      UserError: there are no labels, or they differ from those of the folder.
    """
    kind = LABEL_TYPES[settings.label_type]
    if kind is Number:
        return Number()
    separator = settings.label_separator
    wanted = list(settings.labels) or list(data_set.labels)
    if not wanted and training_part:
        wanted = _found(training_part, kind, separator)
    path, stored = labels_of_run(settings.output_dir, task_name)
    if stored and wanted and stored != wanted:
        raise UserError(
            f"the classes are {_told(wanted)}, but those of the run in {path} are "
            f"{_told(stored)}; pass another --output_dir, or the data and --labels of that run"
        )
    labels = stored or wanted
    if not labels:
        raise UserError(f"the classes are unknown: there is no {path}; train, or pass --labels")
    _check(labels, settings)
    return kind(labels, separator)


def _found(part, kind, separator):
    """Returns the labels of the training data, sorted; numbers are sorted by value."""
    found = set()
    for text in part.texts:
        try:
            found.update(kind.labels_in(text.label, separator))
        except ValueError:
            continue  # `pack` reports the row.
    truths, numbers = found & {"true", "false"}, found & {"1", "0"}
    if truths and numbers:
        raise UserError(
            f"{', '.join(part.paths)}: labels are both {min(truths)} and {min(numbers)}, which may "
            "mean the same; write one of them"
        )
    try:
        return sorted(found, key=lambda label: (float(label), label))
    except ValueError:
        return sorted(found)


def _check(labels, settings):
    least = 2 if settings.label_type == "single" else 1
    if len(set(labels)) < max(least, len(labels)):
        raise UserError(
            f"the classes are {_told(labels)}; there must be at least {least}, all different"
        )
    for label in labels:
        if label != " ".join(label.split()):
            raise UserError(
                f"label {label!r} has white space other than single spaces, which would break "
                "the tables of results; rename it"
            )


def _told(labels):
    return ", ".join(labels[:10]) + (f" ... ({len(labels)})" if len(labels) > 10 else "")
