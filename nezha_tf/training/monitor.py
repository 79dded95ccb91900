"""Watches a run: its norms and counters, divergence, requests to stop."""

import collections

import tensorflow as tf

from nezha_tf.checkpoints.name_table import tf1_name
from nezha_tf.util import console, endings
from nezha_tf.util.errors import UserError


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


_SHOWN = ("loss", "learning_rate", "gradient_norm", "weight_norm")
_ENTRIES_SHOWN = 10
# Lower losses count as this one: near 0, rounding alone changes a loss by any factor.
_NEGLIGIBLE = 1e-3


class DivergenceWatch:
    """Stops a run whose loss stays far above its minimum."""

    def __init__(self, factor, patience, entries=()):
        """Args:
        factor: a loss above this factor times the lowest loss is too high; 0: never stop.
        patience: number of consecutive log entries with a too high loss that end the run.
        entries: earlier log entries, for a resumed run.
        """
        self._factor = factor
        self._patience = patience
        self._lowest = min((e["loss"] for e in entries if "loss" in e), default=float("inf"))
        self._latest = collections.deque(maxlen=_ENTRIES_SHOWN)
        self._above = 0

    def check(self, step, entry):
        """Checks a log entry.

        Raises:
          UserError: the loss has diverged; the message ends with a table of the latest entries.
        """
        self._latest.append((step, entry))
        self._lowest = min(self._lowest, entry["loss"])
        is_above = self._factor and entry["loss"] > self._factor * max(self._lowest, _NEGLIGIBLE)
        self._above = self._above + 1 if is_above else 0
        if is_above and self._above >= self._patience:
            raise UserError(
                f"the loss has diverged: {entry['loss']:.4g} at step {step}, after "
                f"{self._lowest:.4g}; lower --learning_rate, raise --num_warmup_steps, or pass "
                "--divergence_factor=0 to continue anyway"
                f"\n{self.table()}"
            )

    def table(self):
        """Returns the latest entries as text."""
        rows = [
            (f"step {step}", "  ".join(f"{name} {entry[name]:<10.4g}" for name in _SHOWN))
            for step, entry in self._latest
        ]
        return console.table("the latest log entries", rows)


class StopRequest:
    """Turns a signal into a request that the training loop follows after the current steps.

    Attributes:
      requested: 1.0 after a signal, before it 0.0; the workers of a run add theirs up.
      signal: name of the signal that came to this process, or None.
    """

    def __init__(self):
        self.requested = 0.0
        self.signal = None
        self._handled = endings.asked(self._note)

    def __enter__(self):
        self._handled.__enter__()
        return self

    def __exit__(self, *error):
        self._handled.__exit__(*error)

    def _note(self, name):
        self.requested, self.signal = 1.0, name
