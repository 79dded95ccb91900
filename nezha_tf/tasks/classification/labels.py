"""Which classes there are: listed, found in the training data, or as an earlier run had them."""

from nezha_tf.errors import UserError
from nezha_tf.tasks.classification.label_types import LABEL_TYPES, Number
from nezha_tf.tasks.finetuning.labels import labels_of_run


def label_type_of(settings, data_set, training_part):
    """Returns what the labels are, an object of `label_types`.

    Args:
      settings: what has `label_type`, `labels`, `label_separator` and `output_dir`.
      data_set: `DataSet`.
      training_part: `Part` of the training data, or None where the run does not train: then the
        labels are those that its folder tells of.

    Raises:
      UserError: no labels, or others than the folder's.
    """
    kind = LABEL_TYPES[settings.label_type]
    if kind is Number:
        return Number()
    separator = settings.label_separator
    wanted = list(settings.labels) or list(data_set.labels)
    if not wanted and training_part:
        wanted = _found(training_part, kind, separator)
    path, stored = labels_of_run(settings.output_dir, "classification")
    if stored and wanted and stored != wanted:
        raise UserError(
            f"the classes are {_told(wanted)}, but those of the run in {path} {_told(stored)}; "
            "pass another --output_dir, or the data and --labels of that run"
        )
    labels = stored or wanted
    if not labels:
        raise UserError(f"cannot tell the classes: there is no {path}; train first, or --labels")
    _check(labels, settings)
    return kind(labels, separator)


def _found(part, kind, separator):
    """Returns the labels of the training data, sorted, numbers by their size."""
    found = set()
    for text in part.texts:
        try:
            found.update(kind.labels_in(text.label, separator))
        except ValueError:
            continue  # `pack` tells of the row.
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
                f"label {label!r} holds odd white space; tables of the results part their columns "
                "by it"
            )


def _told(labels):
    return ", ".join(labels[:10]) + (f" ... ({len(labels)})" if len(labels) > 10 else "")
