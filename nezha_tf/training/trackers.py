"""Records for services that keep runs: --record=nezha_tf.training.trackers:MLflow, or :WandB.

The services are set up by their own environment variables.
"""

import os
import re
import uuid

from nezha_tf.training.records import Record
from nezha_tf.util import storage
from nezha_tf.util.errors import Terminated, require_modules
from nezha_tf.util.files import write_text
from nezha_tf.util.settings import flag_text

# Other characters than these are refused in the names of MLflow's metrics.
_NOT_IN_NAMES = re.compile(r"[^/\w.\- ]")


class MLflow(Record):
    """Records a run as a run of MLflow, which has the folder as its name.

    A folder's run goes on in the same run of MLflow, whose id is in `mlflow_run.txt`. Parameters of
    MLflow cannot change: what a later start has otherwise is a tag, "FLAG from step STEP".
    """

    def __init__(self):
        require_modules("this record needs MLflow", "mlflow", "mlflow")

    def start(self, folder, flags, step):
        import mlflow

        path = os.path.join(folder, "mlflow_run.txt")
        # Nested, if the caller has a run of its own.
        run = mlflow.start_run(run_id=_read(path), run_name=folder, nested=True)
        write_text(path, f"{run.info.run_id}\n")
        before = run.data.params
        texts = {name: flag_text(value) for name, value in flags.items()}
        mlflow.log_params({name: text for name, text in texts.items() if name not in before})
        if step is not None:
            changed = {n: text for n, text in texts.items() if before.get(n, text) != text}
            mlflow.set_tags({f"{n} from step {step}": text for n, text in changed.items()})

    def scalars(self, step, values):
        import mlflow

        named = {_NOT_IN_NAMES.sub("_", name): float(value) for name, value in values.items()}
        mlflow.log_metrics(named, step=step)

    def end(self, results, error):
        import mlflow

        try:
            self.scalars(0, _found(results))
        finally:
            mlflow.end_run(_status(error))


class WandB(Record):
    """Records a run as a run of Weights & Biases, which has the folder as its name.

    A folder's run goes on in the same run there, whose id is in `wandb_run.txt`. The library's own
    files are in `wandb/` of the folder, if that is on this machine.
    """

    def __init__(self):
        require_modules("this record needs Weights & Biases", "wandb", "wandb")

    def start(self, folder, flags, step):
        import wandb

        path = os.path.join(folder, "wandb_run.txt")
        self._run = wandb.init(
            id=_read(path) or uuid.uuid4().hex[:8],
            resume="allow",
            name=folder,
            dir=None if storage.is_remote(folder) else folder,
            # What the programs print has a progress bar, and nothing that is not in the log.
            settings=wandb.Settings(console="off"),
        )
        write_text(path, f"{self._run.id}\n")
        self._run.config.update(flags, allow_val_change=True)
        # Steps of their own, since those of Weights & Biases cannot come again.
        self._run.define_metric("*", step_metric="step")

    def scalars(self, step, values):
        self._run.log({"step": step, **values})

    def end(self, results, error):
        self._run.summary.update(_found(results))
        self._run.finish(exit_code=int(error is not None))


def _read(path):
    """Returns the line in a file, or None if there is no file."""
    try:
        with storage.open_text(path) as file:
            return file.read().strip()
    except FileNotFoundError:
        return None


def _found(results):
    """Returns the results, under names of their own, without the last scalars of the training."""
    return {f"results/{n}": value for n, value in results.items() if not n.startswith("train ")}


def _status(error):
    """Returns MLflow's status of a run that an exception ended, or None."""
    if error is None:
        return "FINISHED"
    return "KILLED" if isinstance(error, Terminated | KeyboardInterrupt) else "FAILED"
