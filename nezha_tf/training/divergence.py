"""Detects a run whose loss diverges instead of being only noisy."""

import collections

from nezha_tf.util import console
from nezha_tf.util.errors import UserError

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
