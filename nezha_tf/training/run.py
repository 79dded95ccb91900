"""A run of any task from its flags: training, evaluation, what it says and what it leaves."""

import contextlib
import functools
import os
import time

import keras
import numpy as np
import tensorflow as tf

from nezha_tf import console, files, locks
from nezha_tf.errors import UserError, require_flag
from nezha_tf.model_folder import run_folder
from nezha_tf.model_folder.metrics_file import read_metrics
from nezha_tf.model_folder.run_checkpoints import RunCheckpoints
from nezha_tf.training import devices, flag_history, model_card, output_folder, recipe, start
from nezha_tf.training.divergence import DivergenceWatch
from nezha_tf.training.feed import Feed
from nezha_tf.training.flags import flag_text
from nezha_tf.training.flops import training_flops
from nezha_tf.training.loop import Loop
from nezha_tf.training.monitor import Monitor
from nezha_tf.training.state import random_states, training_state
from nezha_tf.training.stop import StopRequest
from nezha_tf.training.summaries import RunRecord, SilentRecord, Throughput

# Of the folder of a run while it trains.
LOCK_FILE = "run.lock"


def run(flags, make_task):
    """Trains, evaluates, predicts, or several of these.

    Args:
      flags: the flags of the program, by name: those of `training.flags`, `do_train`, `do_eval`,
        `bert_config_file`, `init_checkpoint`, `output_dir`, and the task's own; `do_predict`
        where the task predicts.
      make_task: callable of the flags that returns a `Task`.

    Returns:
      Whether this process is the one that writes.

    Raises:
      UserError: bad flags, files or data.
      Terminated: SIGTERM came.
    """
    strategy = prepare(flags)
    run_in(strategy, flags, make_task)
    return devices.is_chief(strategy)


def prepare(flags):
    """Checks the flags and sets up the devices; returns the `tf.distribute.Strategy`.

    Raises:
      UserError: bad flags.
    """
    _check(flags)
    strategy = devices.make_strategy(
        flags["distribution_strategy"], flags["num_gpus"], flags["tpu"]
    )
    for flag in ("train_batch_size", "eval_batch_size"):
        if flags["do_train" if flag.startswith("train") else "do_eval"]:
            devices.check_batch_size(strategy, flags[flag], flag)
    return strategy


def run_in(strategy, flags, make_task, before=None):
    """Does as `run` does, in the place of `prepare`.

    Returns:
      (the `Run`, what its `run` returned).
    """
    keras.utils.set_random_seed(flags["seed"])
    task = make_task(flags)
    with alone_in(flags, strategy):
        this = Run(flags, strategy, task, before)
        results = this.run()
        devices.agree_on(strategy, 0)  # No worker leaves before the chief has written all.
    return this, results


@contextlib.contextmanager
def alone_in(flags, strategy):
    """Keeps other runs that train out of the --output_dir while the block trains.

    Several workers are one run, and their chief holds the lock.

    Args:
      flags: dict with `output_dir` and `do_train`; without the latter nobody is kept out.
      strategy: the `tf.distribute.Strategy`.

    Raises:
      UserError: another one is there; all workers raise it.
    """
    folder = flags["output_dir"]
    with contextlib.ExitStack() as stack:
        taken = None
        try:
            if flags["do_train"] and devices.is_chief(strategy):
                stack.enter_context(locks.held(os.path.join(folder, LOCK_FILE), folder))
        except UserError as error:
            taken = error
        if not devices.agree_on(strategy, int(taken is not None)) or taken:
            raise taken or UserError(f"another run writes {folder}, as the chief has found")
        yield


class Run:
    """The run of one process: the only one, or a worker of several."""

    def __init__(self, flags, strategy, task, before=None):
        """Args:
        flags: as for `run`; the task has resolved those that depend on its data.
        strategy: the `tf.distribute.Strategy`.
        task: a `Task`.
        before: None, or a `Run` that has ended, of the same flags but for seed and folder: what
          it has compiled is used again.
        """
        recipe.check(flags)
        output_folder.check(flags["output_dir"], task)
        self._flags = flags
        self._strategy = strategy
        self._task = task
        self._is_chief = devices.is_chief(strategy)
        self._folder = flags["output_dir"]
        self._before = before
        self._parts = self._train_step = None
        with strategy.scope():
            self._model = task.make_model(flags["precision"])
        self._evaluation = task.make_evaluation(strategy, self._model) if flags["do_eval"] else None

    def run(self):
        """Trains, evaluates and predicts as asked, and prints the table at the end.

        Returns:
          Dict of "train NAME", "eval NAME" and "predict NAME" to number; predictions are the
          chief's.
        """
        flags, found, trained = self._flags, {}, {}
        for line in (self._description(), *self._task.notes):
            self._say(line)
        started = time.monotonic()
        if flags["do_train"]:
            step, trained = self._train()
            found = {f"train {name}": value for name, value in trained.items()}
        if self._evaluation and self._task.reports_best:
            step, trained = self._load(*self._best_or_newest()), {}
        elif self._evaluation and not flags["do_train"]:
            step = self._load(*self._newest())
        if self._evaluation and not flags["do_train"]:
            self._record_settings("eval.flags")
        if self._evaluation:
            results = self._results(step, trained)
            found = {n: v for n, v in found.items() if not n.startswith("train eval_")}
            found.update({f"eval {name}": value for name, value in results.items()})
        if flags.get("do_predict"):
            found.update({f"predict {name}": value for name, value in self._predict().items()})
        if self._is_chief and not run_folder.has_settings(self._folder):
            output_folder.write_settings(self._folder, self._task)
        rows = [(name, _number(v)) for name, v in found.items() if "trust_ratio/" not in name]
        rows.append(("seconds", f"{time.monotonic() - started:.0f}"))
        self._say(console.table(f"results in {self._folder}", rows))
        if flags["do_train"] and self._is_chief:
            self._say(model_card.write(self._task, self._description(), found))
        if flags["plot"] and self._is_chief:
            from nezha_tf.pictures.curves import plot_curves

            self._say(f"curves in {plot_curves(self._folder)}")
        return found

    def _train(self):
        """Trains from scratch, from --init_checkpoint, or from where this folder's run stopped.

        Returns:
          (step reached, last entry of the record).
        """
        with self._strategy.scope():
            self._parts = recipe.make(self._flags, self._model)
            self._train_step = recipe.make_step(
                self._flags,
                self._strategy,
                self._model,
                self._task.make_training_objective(),
                self._parts,
            )
        self._take_over()
        parts, train_step = self._parts, self._train_step
        checkpoints = self._checkpoints()
        restored = self._restore(checkpoints, parts.moving_average)
        first_step, last_step = train_step.step, self._flags["num_train_steps"]
        if not devices.agree_on(self._strategy, first_step):
            raise UserError(
                f"the workers go on from different steps (this one from {first_step}): "
                f"--output_dir={self._folder} must be one folder that all of them see"
            )
        plan = recipe.make_plan(self._flags)
        if first_step >= last_step or checkpoints.has_stalled(first_step, plan.patience_steps):
            self._say(f"nothing to train: {restored} is at step {first_step} already")
            return first_step, {}
        checkpoints.clean()
        self._note_start(first_step if restored else 0)
        with StopRequest() as stop, contextlib.closing(self._record(first_step)) as record:
            loop = self._loop(parts, train_step, plan, checkpoints, record, stop)
            entry = loop.run(first_step)
            return train_step.step, entry

    def _take_over(self):
        """Puts what this run begins with into the variables of the one before, and uses those.

        Tracing and compiling takes longer than training on a small data set does.
        """
        before, self._before = self._before, None
        if before is None or before._train_step is None:
            return
        beginning = self._state()
        for name, variable in before._state().items():
            variable.assign(beginning[name])
        self._model = before._model
        self._parts, self._train_step = before._parts, before._train_step
        if self._evaluation:
            self._evaluation.take_over(before._evaluation)

    def _state(self):
        """Returns {name: variable} of all that training changes."""
        average = self._parts.moving_average
        return training_state(
            self._model,
            self._parts.optimizer,
            counters=self._train_step.state(),
            averages=average.state() if average else {},
        )

    def _checkpoints(self):
        flags = self._flags
        return RunCheckpoints(
            self._folder,
            self._state(),
            flags["keep_checkpoint_max"],
            flags["keep_best"],
            self._task.best_metric,
            self._is_chief,
        )

    def _record(self, first_step):
        if not self._is_chief:
            return SilentRecord()
        return RunRecord(self._folder, first_step, self._flags["num_train_steps"])

    def _loop(self, parts, train_step, plan, checkpoints, record, stop):
        flags, reader = self._flags, self._task.train_reader
        watch = DivergenceWatch(
            flags["divergence_factor"], flags["divergence_patience"], read_metrics(self._folder)
        )
        evaluate = None
        if self._evaluation:
            evaluate = functools.partial(self._evaluation, parts.moving_average)
        return Loop(
            train_step,
            Feed(
                self._strategy,
                reader,
                flags["train_batch_size"],
                flags["seed"],
                flags["input_sharding"],
            ),
            plan,
            checkpoints,
            record,
            Monitor(train_step, parts.optimizer, parts.loss_scale, reader),
            self._throughput(),
            stop,
            watch,
            evaluate,
        )

    def _restore(self, checkpoints, average):
        """Loads what the run goes on from; returns the checkpoint's prefix, or None."""
        restored = checkpoints.restore_newest(self._say)
        initial = self._flags["init_checkpoint"]
        if restored:
            self._say(f"going on from {restored}")
        elif initial:
            lines = start.load_initial(
                self._model, initial, self._task.fresh_names, self._task.flags
            )
            for line in lines:
                self._say(line)
            if average:
                average.restart()
        devices.part_random_states(self._strategy, random_states(self._model))
        return restored

    def _newest(self):
        """Returns (step, prefix) of the folder's newest checkpoint, or of --init_checkpoint.

        The folder goes first, as in the originals: there --init_checkpoint is where a run began.
        """
        checkpoints = RunCheckpoints(self._folder, {})
        steps = checkpoints.steps()
        initial = self._flags["init_checkpoint"]
        if not initial and not steps:
            raise UserError(
                f"no checkpoint in {self._folder}; pass --init_checkpoint, or train first"
            )
        return (steps[-1], checkpoints.path(steps[-1])) if steps else (None, initial)

    def _best_or_newest(self):
        """Returns (step, prefix) of the folder's best checkpoint, where an evaluation chose one."""
        checkpoints = RunCheckpoints(self._folder, {}, best_metric=self._task.best_metric)
        step = checkpoints.chosen()
        return self._newest() if step is None else (step, checkpoints.path(step))

    def _load(self, step, checkpoint):
        """Loads weights, or their averages with --ema_decay; returns the checkpoint's step."""
        # One that nothing is read from is no part of Hugging Face's models for pieces.
        unread = () if self._model.encoder.pooler.trainable else ("bert/pooler/",)
        lines, saved_step = start.load(self._model, checkpoint, unread, self._task.flags)
        for line in lines:
            self._say(line)
        return saved_step if step is None else step

    def _predict(self):
        """Predicts with the best checkpoint; returns the metrics."""
        if not (self._evaluation and self._task.reports_best):  # else it is there already
            self._load(*self._best_or_newest())
        return self._task.predict(self._model) if self._is_chief else {}

    def _results(self, step, trained):
        """Returns the results of the run's end, written by the chief."""
        found = {n.removeprefix("eval_"): v for n, v in trained.items() if n.startswith("eval_")}
        found = found or self._evaluation()
        return self._evaluation.write(step, found) if self._is_chief else found

    def _throughput(self):
        flops = training_flops(self._task.config, *self._task.lengths)
        peak = (self._flags["peak_tflops"] or 0) * 1e12 * self._strategy.num_replicas_in_sync
        return Throughput(self._flags["train_batch_size"], flops, peak)

    def _record_settings(self, name, comments=()):
        """Writes the resolved flags, a flag file again; where it trains, all of the model, too."""
        if not self._is_chief:
            return
        if self._flags["do_train"]:
            output_folder.write_settings(self._folder, self._task)
        flags = sorted(self._flags.items())
        lines = (f"--{flag}={flag_text(value)}\n" for flag, value in flags if value is not None)
        files.write_text(os.path.join(self._folder, name), "".join([*comments, *lines]))

    def _note_start(self, step):
        """Writes the flags, and tells and keeps what is changed where a run goes on."""
        if not self._is_chief:
            return
        history = flag_history.FlagHistory(self._folder, step)
        line = flag_history.told(history.take(self._flags, self._task.config))
        if line:
            self._say(line)
        self._record_settings(flag_history.FLAGS_FILE, history.comments())
        history.write()

    def _description(self):
        config, replicas = self._task.config, self._strategy.num_replicas_in_sync
        weights = sum(int(np.prod(variable.shape)) for variable in self._model.weights)
        return (
            f"{config.num_hidden_layers} layers of {config.hidden_size}, "
            f"{config.num_attention_heads} heads, {config.position_encoding} positions, "
            f"{weights / 1e6:.1f} M weights, {self._flags['precision']}, on {_device()}"
            + (f", {replicas} replicas" if replicas > 1 else "")
        )

    def _say(self, line):
        if self._is_chief:
            print(line, flush=True)


def _check(flags):
    modes = [n for n in ("do_train", "do_eval", "do_predict", "do_export") if n in flags]
    if not any(flags[name] for name in modes):
        raise UserError(f"nothing to do: pass {' or '.join(f'--{name}' for name in modes)}")
    for name in ("bert_config_file", "output_dir"):
        require_flag(flags[name], name)
    files.require_folder(flags["output_dir"], "output_dir")
    if flags["plot"]:
        from nezha_tf.pictures.fonts import require_matplotlib

        require_matplotlib()


def _device():
    gpus = tf.config.get_visible_devices("GPU")
    if not gpus:
        return "the CPU"
    return tf.config.experimental.get_device_details(gpus[0]).get("device_name", gpus[0].name)


def _number(value):
    if isinstance(value, int) or value >= 1000:
        return f"{value:,.0f}"
    return f"{value:.4g}"
