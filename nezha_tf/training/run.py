"""Runs any task from its settings: training, evaluation, prediction, messages and files."""

import contextlib
import functools
import os
import time
from typing import NamedTuple

import keras
import numpy as np

from nezha_tf.checkpoints import run_folder
from nezha_tf.checkpoints.run_folder import read_metrics
from nezha_tf.training import (
    adapters,
    compiling,
    devices,
    flag_history,
    model_card,
    output_folder,
    recipe,
    start,
    workers,
)
from nezha_tf.training.batch_sizes import batch_sizes, smallest_batch
from nezha_tf.training.clock import clock_of
from nezha_tf.training.log import (
    DivergenceWatch,
    Journal,
    MetricsFile,
    Monitor,
    Screen,
    SilentScreen,
    log_evaluation,
    result_text,
)
from nezha_tf.training.loop import Feed, Loop, StopRequest
from nezha_tf.training.output_folder import alone_in
from nezha_tf.training.precision import with_precision
from nezha_tf.training.recipe import Recipe
from nezha_tf.training.records import Records, made
from nezha_tf.training.saving import CheckpointsBeside, random_states, training_state
from nezha_tf.training.step import TrainStep
from nezha_tf.training.summaries import Summaries
from nezha_tf.training.throughput import throughput_of
from nezha_tf.util import console, files
from nezha_tf.util.errors import UserError, require_flag
from nezha_tf.util.settings import flag_lines, flags_of, require_read

# The modes of programs; a program has the flags of some of them.
MODES = ("do_train", "do_eval", "do_predict", "do_export")


def run(settings, make_task):
    """Trains, evaluates and predicts, as the settings say.

    Args:
      settings: the program's `RunSettings`.
      make_task: function of the settings that returns a `Task`.

    Returns:
      Whether this process is the one that writes.

    Raises:
      UserError: settings, files or data are bad.
      Terminated: the process was asked to end; see `endings`.
      WorkerLost: another worker does not answer.
    """
    settings = output_folder.with_head_of_run(start.with_files_beside(settings))
    strategy = prepare(settings)
    task = make(settings, strategy, [settings.output_dir], make_task)
    run_in(strategy, task, task.settings)
    return devices.is_chief(strategy)


def prepare(settings):
    """Checks the settings and sets up the devices; returns the `tf.distribute.Strategy`.

    Raises:
      UserError: the settings are bad.
    """
    _check(settings)
    strategy = devices.make_strategy(
        settings.distribution_strategy, settings.num_gpus, settings.tpu
    )
    if settings.do_train:
        devices.check_batch_size(strategy, *smallest_batch(settings))
    if settings.do_eval:
        devices.check_batch_size(strategy, settings.eval_batch_size, "eval_batch_size")
    return strategy


def make(settings, strategy, folders, make_task):
    """Chooses precision and compiling, and returns the `Task`, which reads its data; says so.

    The arguments are those of `with_precision`, and `make_task` of `run`.

    Raises:
      UserError: see `with_precision` and `Task`.
    """
    settings = with_precision(settings, strategy, folders)
    if devices.is_chief(strategy):
        console.tell("reading the data", flush=True)
    task = make_task(settings)
    if task.settings.jit_compile is None:
        task.resolve(jit_compile=compiling.pays_to_compile(task))
    return task


def run_in(strategy, task, settings, before=None):
    """Runs a task on the devices that `prepare` has set up; the arguments are those of `Run`.

    Returns:
      (the `Run`, the result of its `run`).

    Raises:
      WorkerLost: another worker does not answer.
      UserError, Terminated: see `run`.
    """
    keras.utils.set_random_seed(settings.seed)
    with workers.lost_worker_named(strategy, settings.output_dir), alone_in(settings, strategy):
        workers.check(strategy, settings)
        this = Run(strategy, task, settings, before)
        results = this.run()
        # All workers wait until the chief has written everything. The chief waits for none of them:
        # another worker may end as soon as it has the chief's word, before its own has arrived.
        causes = devices.CAUSES if devices.is_chief(strategy) else ()
        with contextlib.suppress(*causes):
            devices.agree_on(strategy, 0)
    return this, results


class Compiled(NamedTuple):
    """The parts of a training run that are traced and compiled.

    Attributes:
      model: the Keras model.
      recipe: the `Recipe`.
      train_step: the `TrainStep`.
      evaluation: the evaluation of the model, or None.
    """

    model: keras.Model
    recipe: Recipe
    train_step: TrainStep
    evaluation: object

    def state(self):
        """Returns {name: variable} for all variables that training changes."""
        average = self.recipe.moving_average
        return training_state(
            self.model,
            self.recipe.optimizer,
            counters=self.train_step.state(),
            averages=average.state() if average else {},
        )


class Run:
    """The run of one process: the only one, or a worker of several.

    Attributes:
      compiled: the `Compiled` of a run that has trained, or None.
    """

    compiled = None

    def __init__(self, strategy, task, settings, before=None):
        """Args:
        strategy: the `tf.distribute.Strategy`.
        task: a `Task`.
        settings: the task's settings, or the same with another `output_dir`.
        before: None, or the `Compiled` of a finished run to use again; its settings may differ
          only in seed and folder.
        """
        recipe.check(settings)
        output_folder.check(settings.output_dir, task)
        self._settings = settings
        self._strategy = strategy
        self._task = task
        self._is_chief = devices.is_chief(strategy)
        self._folder = settings.output_dir
        self._before = before
        self._records = Records(self._recorders() if self._is_chief else ())
        with strategy.scope():
            self._model = task.make_model(settings.precision)
        self._evaluation = task.make_evaluation(strategy, self._model) if settings.do_eval else None

    def run(self):
        """Trains, evaluates and predicts as the settings say, and prints a table at the end.

        Returns:
          Dict of "train NAME", "eval NAME" and "predict NAME" to number; only the chief
          predicts. With --layer_mix also the `LayerMix.values`, "layer_mix NAME".
        """
        with self._records as records:
            records.results = self._carried_out()
        return records.results

    def _carried_out(self):
        settings, found, trained = self._settings, {}, {}
        for line in (self._description(), *self._task.notes):
            self._say(line)
        started = time.monotonic()
        if not settings.do_train:
            self._start_records(None)
        if settings.do_train:
            step, trained = self._train()
            found = {f"train {name}": value for name, value in trained.items()}
        if self._evaluation and self._task.reports_best:
            step, trained = self._load(*self._best()), {}
        elif self._evaluation and not settings.do_train:
            step = self._load(*start.newest(self._folder, settings.init_checkpoint))
        if self._evaluation and not settings.do_train:
            self._record_settings("eval.flags")
        if self._evaluation:
            results = self._results(step, trained)
            found = {n: v for n, v in found.items() if not n.startswith("train eval_")}
            found.update({f"eval {name}": value for name, value in results.items()})
        if settings.do_predict:
            found.update({f"predict {name}": value for name, value in self._predict().items()})
        if self._is_chief and not run_folder.has_settings(self._folder):
            output_folder.write_settings(self._folder, self._task)
        mix = self._model.encoder.mixture
        if mix is not None:
            found.update({f"layer_mix {name}": value for name, value in mix.values().items()})
        rows = [(name, result_text(v)) for name, v in found.items() if "trust_ratio/" not in name]
        rows.append(("seconds", f"{time.monotonic() - started:.0f}"))
        self._say(console.table(f"results in {self._folder}", rows))
        if settings.do_train and self._is_chief:
            self._say(model_card.write(self._task, self._description(), found))
        if settings.plot and self._is_chief:
            from nezha_tf.pictures.curves import plot_curves

            self._say(f"curves in {plot_curves(self._folder)}")
        return found

    def _train(self):
        """Trains from random weights, from --init_checkpoint, or from the folder's checkpoint.

        Returns:
          (last step, last log entry).
        """
        clock = clock_of(self._settings, self._strategy)
        with self._strategy.scope():
            parts = recipe.make(self._settings, self._model, self._task.rate_factors, clock)
            objective = self._task.make_training_objective()
            train_step = recipe.make_step(
                self._settings,
                self._strategy,
                self._model,
                objective,
                parts,
                self._task.memory_length,
                self._task.least_compared,
            )
        self.compiled = Compiled(self._model, parts, train_step, self._evaluation)
        self._take_over()
        _, parts, train_step, _ = self.compiled
        checkpoints = self._checkpoints()
        restored = self._restore(checkpoints, parts.moving_average)
        first_step = train_step.step
        checkpoints.go_back(first_step, read_metrics(self._folder))
        if not devices.agree_on(self._strategy, first_step):
            raise UserError(
                f"the workers would continue from different steps (this one from {first_step}): "
                f"--output_dir={self._folder} must be one folder that all of them see"
            )
        self._start_records(first_step)
        plan = recipe.make_plan(self._settings, train_step.clock)
        entry = self._evaluate_restored(checkpoints, plan, first_step) if restored else {}
        has_stalled = checkpoints.has_stalled(first_step, plan.patience_steps)
        has_ended = has_stalled or plan.has_ended(first_step)
        self._note_start(first_step if restored else 0, is_kept=not has_ended)
        if has_ended:
            self._say(f"nothing to train: {restored} is at step {first_step} already")
            return first_step, entry
        checkpoints.clean()
        with StopRequest() as stop:
            with (
                contextlib.closing(self._screen(first_step)) as screen,
                contextlib.closing(checkpoints),
            ):
                loop = self._loop(parts, train_step, plan, checkpoints, screen, stop)
                entry = loop.run(first_step)
            # The other workers read the folder when the chief has written everything. A signal
            # may have come after the last steps, to one of them.
            if not devices.agree_on(self._strategy, int(stop.requested)) or stop.requested:
                raise loop.terminated(train_step.step)
        return train_step.step, entry

    def _evaluate_restored(self, checkpoints, plan, step):
        """Evaluates the restored checkpoint of a run that was killed before it had done so.

        Returns:
          The entry of the log, or {} if nothing is missing.
        """
        entries = [entry for entry in read_metrics(self._folder) if entry["step"] == step]
        is_evaluated = any(name.startswith("eval_") for entry in entries for name in entry)
        if not self._evaluation or not plan.saves(step) or is_evaluated:
            return {}
        self._say(f"evaluating the checkpoint of step {step}, which was not done before")
        results = self._evaluate(self.compiled.recipe.moving_average)
        found = log_evaluation(self._records, step, results)
        checkpoints.note_evaluation(step, results)
        return found

    def _evaluate(self, average):
        if not self._evaluation.is_traced:
            self._say("tracing the evaluation")
        with devices.with_memory_advice("lower --eval_batch_size"):
            return self._evaluation(average)

    def _take_over(self):
        """Uses the variables of the run before again, set to the initial values of this run.

        Tracing and compiling would take longer than training on a small data set.
        """
        before, self._before = self._before, None
        if before is None:
            return
        beginning = self.compiled.state()
        for name, variable in before.state().items():
            variable.assign(beginning[name])
        if self._evaluation:
            self._evaluation.take_over(before.evaluation)
        self._model = before.model
        self.compiled = before._replace(evaluation=self._evaluation)

    def _checkpoints(self):
        settings = self._settings
        return CheckpointsBeside(
            self._folder,
            self.compiled.state(),
            settings.keep_checkpoint_max,
            settings.keep_best,
            self._task.best_metric,
            self._is_chief,
        )

    def _recorders(self):
        """Returns the list of `Record`: the log of a run that trains, and those of --record."""
        settings = self._settings
        own = [MetricsFile(), Summaries(model_card.changed_flags(settings))]
        return [*(own if settings.do_train else ()), *made(settings.record or ())]

    def _start_records(self, step):
        self._records.start(self._folder, flag_history.of_training(self._settings), step)

    def _screen(self, first_step):
        last_step = self._settings.num_train_steps
        return Screen(first_step, last_step) if self._is_chief else SilentScreen()

    def _loop(self, parts, train_step, plan, checkpoints, screen, stop):
        settings, reader = self._settings, self._task.train_reader
        journal = Journal(
            screen,
            self._records,
            Monitor(train_step, parts.optimizer, parts.loss_scale, reader),
            throughput_of(settings, self._strategy, self._task, self._model.compute_dtype),
            DivergenceWatch(
                settings.divergence_factor, settings.divergence_patience, read_metrics(self._folder)
            ),
        )
        feed = Feed(
            self._strategy,
            reader,
            batch_sizes(settings),
            settings.seed,
            settings.input_sharding,
        )
        evaluate = None
        if self._evaluation:
            evaluate = functools.partial(self._evaluate, parts.moving_average)
        return Loop(train_step, feed, plan, checkpoints, journal, stop, evaluate)

    def _restore(self, checkpoints, average):
        """Loads the run's newest checkpoint or --init_checkpoint; returns the former's prefix.

        With adapters it is both, because the run's checkpoints hold only what is trained.
        """
        base = self._load_base() if self._settings.lora_rank else None
        restored = checkpoints.restore_newest(self._say)
        if restored:
            self._say(f"continuing from {restored}")
        elif self._settings.init_checkpoint:
            for line in base or self._load_initial():
                self._say(line)
            if average:
                average.restart()
        devices.part_random_states(self._strategy, random_states(self._model))
        return restored

    def _load_initial(self):
        initial, task = self._settings.init_checkpoint, self._task
        return start.load_initial(self._model, initial, task.fresh_names, task.settings)

    def _load_base(self):
        saved = set(self.compiled.state())
        adapters.note_base(self._settings, self._model, saved, self._is_chief)
        return [*self._load_initial(), adapters.line_on(self._model)]

    def _best(self):
        initial = self._settings.init_checkpoint
        return start.best_or_newest(self._folder, initial, self._task.best_metric)

    def _load(self, step, checkpoint):
        """Loads weights, or their averages with --ema_decay; returns the checkpoint's step."""
        # What the objective does not read, a published model may lack: the pooler, and the head of
        # next sentences where the examples are no pairs.
        parts = {
            "bert/pooler/": self._model.encoder.pooler,
            "cls/seq_relationship/": getattr(self._model, "next_sentence", None),
        }
        unread = tuple(
            name for name, part in parts.items() if part is not None and not part.trainable
        )
        lines, saved_step = start.load(self._model, checkpoint, unread, self._task.settings)
        for line in lines:
            self._say(line)
        return saved_step if step is None else step

    def _predict(self):
        """Predicts with the best checkpoint; returns the metrics."""
        if not (self._evaluation and self._task.reports_best):  # else it is loaded already
            self._load(*self._best())
        self._say("predicting")
        with devices.with_memory_advice("lower --predict_batch_size"):
            return self._task.predict(self._model) if self._is_chief else {}

    def _results(self, step, trained):
        """Returns the final results, which the chief writes."""
        found = {n.removeprefix("eval_"): v for n, v in trained.items() if n.startswith("eval_")}
        found = found or self._evaluate(self._average())
        return self._evaluation.write(step, found) if self._is_chief else found

    def _average(self):
        """Returns the `MovingAverage` of a run that has trained, else None.

        `_load` puts averages in the place of the weights, so there is nothing to replace then.
        """
        is_loaded = self._task.reports_best or not self._settings.do_train
        return None if is_loaded else self.compiled.recipe.moving_average

    def _record_settings(self, name, comments=()):
        """Writes the final flags as a flag file; if the run trains, also the model's files."""
        if not self._is_chief:
            return
        if self._settings.do_train:
            output_folder.write_settings(self._folder, self._task)
        lines = [*comments, *flag_lines(flag_history.kept(self._settings))]
        files.write_text(os.path.join(self._folder, name), "".join(lines))

    def _note_start(self, step, is_kept):
        """Prints the changes of a resumed run's flags; if `is_kept`, writes these and the flags.

        They are not kept where nothing is trained: no step has them.
        """
        if not self._is_chief:
            return
        history = flag_history.FlagHistory(self._folder, step)
        changes = history.take(flag_history.kept(self._settings), self._task.config)
        line = flag_history.note_of(changes)
        if line:
            self._say(line)
        if is_kept:
            self._record_settings(flag_history.FLAGS_FILE, history.comments())
            history.write()

    def _description(self):
        config, replicas = self._task.config, self._strategy.num_replicas_in_sync
        weights = sum(int(np.prod(variable.shape)) for variable in self._model.weights)
        return (
            f"{config.num_hidden_layers} layers of {config.hidden_size}, "
            f"{config.num_attention_heads} heads, {config.position_encoding} positions, "
            f"{weights / 1e6:.1f} M weights, "
            + ("the layers frozen and mixed, " if self._settings.layer_mix else "")
            + f"{self._settings.precision}, on {devices.description()}"
            + (f", {replicas} replicas" if replicas > 1 else "")
        )

    def _say(self, line):
        if self._is_chief:
            console.say(line)


def _check(settings):
    require_read(settings)
    modes = [name for name in MODES if name in flags_of(settings)]
    if not any(getattr(settings, name) for name in modes):
        raise UserError(f"nothing to do: pass {' or '.join(f'--{name}' for name in modes)}")
    require_flag(settings.output_dir, "output_dir")
    require_flag(
        settings.bert_config_file,
        "bert_config_file",
        "or begin with a model that has one: --init_checkpoint=mini is that of the package",
    )
    flag_lines(flags_of(settings))  # what the run's flag file cannot hold is told before the work
    files.require_folder(settings.output_dir, "output_dir")
    made(settings.record or ())  # what is wrong with them is told before the work
    if settings.plot:
        from nezha_tf.pictures.fonts import require_matplotlib

        require_matplotlib()
