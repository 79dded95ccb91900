"""The checkpoints of a run, in the TF1 Saver layout and under TF1 names.

So one reader serves published checkpoints and ours, and the originals read ours.
"""

import contextlib
import json
import math
import os
import re
from typing import NamedTuple

from nezha_tf.checkpoints import tf1
from nezha_tf.errors import UserError
from nezha_tf.files import write_text

_FILE_NAME = re.compile(r"model\.ckpt-(\d+)\.index$")
# What `tf1.write_tensors` and `files.whole_file` leave behind where a run is killed.
_LEFTOVER = re.compile(r".*\.\d+\.tmp")
_ENDINGS = (".index", ".data-00000-of-00001")
BEST_FILE = "best_checkpoint.json"


class BestMetric(NamedTuple):
    """The result of an evaluation by which the best checkpoint is chosen.

    Attributes:
      name: as in the evaluation's results.
      higher_is_better: whether the best one has the highest value, or the lowest.
    """

    name: str
    higher_is_better: bool


LOWEST_LOSS = BestMetric("loss", higher_is_better=False)


class RunCheckpoints:
    """The numbered checkpoints `model.ckpt-STEP` in the folder of a run."""

    def __init__(
        self, folder, state, keep_max=5, keep_best=True, best_metric=LOWEST_LOSS, is_chief=True
    ):
        """Args:
        folder: where they are; all workers see the same.
        state: dict of name to variable, as of `training_state`.
        keep_max: how many are kept; older ones are deleted after a save.
        keep_best: whether the best one is kept beside them.
        best_metric: a `BestMetric`, which says what is best; None: by whichever it was.
        is_chief: whether this process writes; the others only read.
        """
        self.folder = folder
        self._state = state
        self._keep_max = keep_max
        self._keep_best = keep_best
        self._best_metric = best_metric
        self._best = None
        self._is_chief = is_chief

    def steps(self):
        """Returns the steps of the checkpoints there are, rising."""
        names = os.listdir(self.folder) if os.path.isdir(self.folder) else ()
        return sorted(int(match[1]) for match in map(_FILE_NAME.match, names) if match)

    def path(self, step):
        """Returns the prefix of the checkpoint of a step."""
        return os.path.join(self.folder, f"model.ckpt-{step}")

    def newest(self):
        """Returns a few words on where the run could go on from, for messages."""
        steps = self.steps()
        return f"the last checkpoint is {self.path(steps[-1])}" if steps else "none was saved"

    def restore_newest(self, report=print):
        """Sets every variable from the newest checkpoint that can be read.

        Args:
          report: called with a line for each one that cannot.

        Returns:
          Its prefix, or None where there is none at all.

        Raises:
          UserError: it does not fit (the message names the first variable and both shapes), or
            none of them can be read.
        """
        failed = None
        for step in reversed(self.steps()):
            try:
                prefix, reader = tf1.open_checkpoint(self.path(step))
                tf1.assign(prefix, reader, self._state)
                return prefix
            except tf1.UnreadableCheckpoint as error:
                report(f"{error}; trying the one before it")
                failed = failed or error
        if failed:
            raise UserError(f"{failed}, and so is each before it; move them away to start anew")
        return None

    def clean(self):
        """Deletes what runs that were killed while they wrote or deleted have left."""
        names = os.listdir(self.folder) if self._is_chief and os.path.isdir(self.folder) else ()
        for name in names:
            index = name.removesuffix(_ENDINGS[1]) + _ENDINGS[0]
            is_half = _FILE_NAME.match(index) and index not in names
            if is_half or _LEFTOVER.match(name):
                with contextlib.suppress(FileNotFoundError):
                    os.remove(os.path.join(self.folder, name))

    def save(self, step):
        """Writes the checkpoint of a step, whole or not at all, and deletes old ones.

        Raises:
          UserError: it cannot be written; those before it are as they were.
        """
        if not self._is_chief:
            return
        try:
            tf1.write_tensors(self.path(step), self._state)
        except UserError as error:
            raise UserError(f"{error}; the checkpoints before it are intact") from error
        self._delete_old()

    def note_evaluation(self, step, results):
        """Takes note of the held-out results of a saved step: the best one's checkpoint is kept.

        Args:
          step: the step.
          results: dict of name to float, the best metric among them.

        Returns:
          Whether it is the best so far; of equal ones the first is.
        """
        name, higher_is_better = self._best_metric
        value, best = results[name], self.best()
        if best is not None and not math.isnan(best[name]):
            is_better = value > best[name] if higher_is_better else value < best[name]
            if not is_better:
                return False
        self._best = {"global_step": step, name: value}
        if self._is_chief:
            write_text(os.path.join(self.folder, BEST_FILE), json.dumps(self._best) + "\n")
            self._delete_old()
        return True

    def best(self):
        """Returns {"global_step", the best metric's name: value} of the best one, or None."""
        # The file is the chief's; another worker may see it late.
        return self._best or self._read_best()

    def chosen(self):
        """Returns the step of the best checkpoint that is there, else of the newest, or None."""
        steps, best = self.steps(), (self.best() or {}).get("global_step")
        return best if best in steps else max(steps, default=None)

    def _read_best(self):
        try:
            with open(os.path.join(self.folder, BEST_FILE), encoding="utf-8") as file:
                best = json.load(file)
        except (FileNotFoundError, ValueError):
            return None
        if not isinstance(best, dict):
            return None
        # By another metric, it is not the best one.
        is_ours = self._best_metric is None or self._best_metric.name in best
        return best if is_ours else None

    def has_stalled(self, step, patience):
        """Whether the best checkpoint is at least `patience` steps, above 0, before a step."""
        best = self.best() if patience else None
        return best is not None and step - best["global_step"] >= patience

    def _delete_old(self):
        steps = self.steps()
        best = (self.best() or {}).get("global_step") if self._keep_best else None
        for old in steps[: -self._keep_max]:
            if old != best:
                for ending in _ENDINGS:  # The index first: without it the rest is no checkpoint.
                    with contextlib.suppress(FileNotFoundError):
                        os.remove(self.path(old) + ending)
        # The file by which TF1's tools find the newest checkpoint; we go by the names.
        kept = [os.path.basename(self.path(number)) for number in self.steps()]
        tf1.name_newest(self.folder, kept)
