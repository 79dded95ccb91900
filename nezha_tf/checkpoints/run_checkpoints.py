"""The checkpoints of a run, in the TF1 Saver layout and with TF1 names.

Therefore one reader reads published checkpoints and ours, and the originals can read ours.
"""

import contextlib
import json
import math
import os
import re
from typing import NamedTuple

from nezha_tf.checkpoints import tf1
from nezha_tf.checkpoints.assigning import assign
from nezha_tf.checkpoints.refusals import UnreadableCheckpoint
from nezha_tf.util import forms, storage
from nezha_tf.util.errors import UserError
from nezha_tf.util.files import read_object, write_text

_FILE_NAME = re.compile(r"model\.ckpt-(\d+)\.index$")
# What a killed run leaves behind: `tf1.write_tensors`, `files.whole_file` and `files.whole_folder`
# end a name with the process, and TensorFlow, in `tf1.name_newest`, with a random number.
_LEFTOVER = re.compile(r".*\.\d+\.tmp|checkpoint\.tmp[0-9a-f]{32}$")
BEST_FILE = "best_checkpoint.json"
_BEST = {"global_step": forms.is_count, str: forms.is_number}


class BestMetric(NamedTuple):
    """The metric that chooses the best checkpoint."""

    name: str  # in the evaluation's results
    higher_is_better: bool  # False: the best checkpoint has the lowest value


LOWEST_LOSS = BestMetric("loss", higher_is_better=False)


class RunCheckpoints:
    """The numbered checkpoints `model.ckpt-STEP` in the folder of a run."""

    def __init__(
        self, folder, state, keep_max=5, keep_best=True, best_metric=LOWEST_LOSS, is_chief=True
    ):
        """Args:
        folder: their folder; all workers see the same one.
        state: dict of name to variable, see `training_state`.
        keep_max: number of newest checkpoints to keep; older ones are deleted after a save.
        keep_best: whether to keep the best one in addition.
        best_metric: the `BestMetric` that chooses the best one; None: the one in `BEST_FILE`,
          whatever its metric.
        is_chief: whether this process writes; the other workers only read.
        """
        self.folder = folder
        self._state = state
        self._keep_max = keep_max
        self._keep_best = keep_best
        self._best_metric = best_metric
        self._best = None
        self._is_chief = is_chief

    def steps(self):
        """Returns the steps of the existing checkpoints, rising."""
        return self._listed()

    def _listed(self):  # what is there now; a subclass's `steps` waits for a writer
        names = map(_FILE_NAME.match, storage.listdir(self.folder))
        return sorted(int(match[1]) for match in names if match)

    def path(self, step):
        """Returns the prefix of the checkpoint of a step."""
        return os.path.join(self.folder, f"model.ckpt-{step}")

    def newest(self):
        """Returns a clause for messages that names the newest checkpoint."""
        steps = self.steps()
        if not steps:
            return "no checkpoint was saved"
        return f"the last checkpoint is {self.path(steps[-1])}"

    def restore_newest(self, report=print):
        """Sets every variable from the newest readable checkpoint; `report` takes a line on others.

        It returns the checkpoint's prefix, or None if there are no checkpoints. That none can be
        read, or that it does not fit, is a `UserError`.
        """
        failed = None
        for step in reversed(self.steps()):
            try:
                prefix, reader = tf1.open_checkpoint(self.path(step))
                assign(prefix, reader, self._state)
                return prefix
            except UnreadableCheckpoint as error:
                report(f"{error}; trying the checkpoint before it")
                failed = failed or error
        if failed:
            raise UserError(f"{failed}, and so are all older ones; move them away to start again")
        return None

    def clean(self):
        """Deletes what runs that were killed while they wrote or deleted left half done."""
        names = storage.listdir(self.folder) if self._is_chief else ()
        for name in names:
            index = name.removesuffix(tf1.ENDINGS[1]) + tf1.ENDINGS[0]
            is_half = _FILE_NAME.match(index) and index not in names
            if is_half or _LEFTOVER.match(name):
                with contextlib.suppress(FileNotFoundError):
                    storage.remove_all(os.path.join(self.folder, name))

    def save(self, step):
        """Writes the complete checkpoint of a step, or nothing, and deletes old checkpoints."""
        if self._is_chief:
            self._write(step, self._state)

    def _write(self, step, state):
        try:
            tf1.write_tensors(self.path(step), state)
        except UserError as error:
            raise UserError(f"{error}; older checkpoints are intact") from error
        self._delete_old()

    def note_evaluation(self, step, results):
        """Returns whether a saved step is the best so far by its held-out results; it is then kept.

        Of equal ones, the first is the best.
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

    def go_back(self, step, entries):
        """Forgets a best checkpoint that is later than a step from which the run goes on.

        That checkpoint was moved away, or cannot be read, and its step will come again. Of the
        evaluations until the step in `read_metrics`' entries, one becomes the best instead.
        """
        best = self.best() if self._is_chief else None
        if best is None or best["global_step"] <= step:
            return
        self._best = None
        storage.remove(os.path.join(self.folder, BEST_FILE))
        metric, steps = self._best_metric.name, self.steps()
        for entry in entries:
            if entry["step"] in steps and entry["step"] <= step and f"eval_{metric}" in entry:
                self.note_evaluation(entry["step"], {metric: entry[f"eval_{metric}"]})

    def best(self):
        """Returns {"global_step": step, name of the metric: value} of the best step, or None."""
        if self._best:  # The chief writes the file; another worker may see it late.
            return self._best
        path = os.path.join(self.folder, BEST_FILE)
        best = read_object(path)
        if best is None:
            return None
        # To take a damaged file as absent would delete the best checkpoint.
        forms.require(best, _BEST, path)
        # A checkpoint that another metric has chosen is not the best one.
        is_ours = self._best_metric is None or self._best_metric.name in best
        return best if is_ours else None

    def chosen(self):
        """Returns the step of the best checkpoint if it exists, else the newest, or None."""
        steps, best = self.steps(), (self.best() or {}).get("global_step")
        return best if best in steps else max(steps, default=None)

    def has_stalled(self, step, patience):
        """Whether the best checkpoint is `patience` or more steps old; no if `patience` is 0."""
        best = self.best() if patience else None
        return best is not None and step - best["global_step"] >= patience

    def _delete_old(self):
        steps = self._listed()
        best = (self.best() or {}).get("global_step") if self._keep_best else None
        for old in steps[: -self._keep_max]:
            if old != best:
                # The index comes first: without it there is no checkpoint.
                for ending in tf1.ENDINGS:
                    with contextlib.suppress(FileNotFoundError):
                        storage.remove(self.path(old) + ending)
        # TF1's tools find the newest checkpoint by this file; we find it by the names.
        kept = [os.path.basename(self.path(number)) for number in self._listed()]
        tf1.name_newest(self.folder, kept)
