"""Norms, trust ratios and counters for the log of a run."""

import collections

import tensorflow as tf

from nezha_tf.checkpoints.name_table import tf1_name


class Monitor:
    """Reads norms, trust ratios and counters for each log entry."""

    def __init__(self, train_step, optimizer, loss_scale, reader):
        """Args:
        train_step: `TrainStep`.
        optimizer: its optimizer.
        loss_scale: its `DynamicLossScale`, or None.
        reader: `ExampleReader`.
        """
        self._train_step = train_step
        self._loss_scale = loss_scale
        self._reader = reader
        self._metrics = optimizer.metrics
        self._groups = [_group(tf1_name(variable.path)) for variable in train_step.variables]

    def values(self, report):
        """Returns a dict of name to float; `report` is the last `StepReport`."""
        values = {
            "weight_norm": float(_norm([v.value for v in self._train_step.variables])),
            "skipped_steps": self._train_step.count("skipped_steps"),
            "corrupt_records": self._reader.corrupt_records,
        }
        if self._loss_scale is not None:
            values["loss_scale"] = float(tf.convert_to_tensor(self._loss_scale.scale))
        for metric in self._metrics:
            figures = collections.defaultdict(list)
            for group, figure in zip(self._groups, report.trust_ratios.numpy(), strict=True):
                figures[group].append(float(figure))
            values.update({f"{metric}/{g}": sum(f) / len(f) for g, f in figures.items()})
        return values


@tf.function(autograph=False)
def _norm(tensors):
    return tf.linalg.global_norm(tensors)


def _group(name):
    """Returns the part of the model with a weight: embeddings, layer_3, group_0, pooler, heads."""
    parts = name.split("/")
    if parts[0] == "bert":
        return next((part for part in parts if part.startswith(("layer_", "group_"))), parts[1])
    return "heads"
