"""The training loop of all tasks."""

import contextlib
import functools
import time
from typing import NamedTuple

import tensorflow as tf

from nezha_tf.data import record_stream
from nezha_tf.data.reader import FAILURES
from nezha_tf.training import devices
from nezha_tf.training.log import Averages, brief, scores_of
from nezha_tf.util import endings
from nezha_tf.util.errors import Terminated, UserError


class Plan(NamedTuple):
    """When a run saves, logs and ends; all numbers are steps.

    Attributes:
      num_train_steps: total number of updates; None: the clock ends the run.
      save_checkpoints_steps: updates between two checkpoints; the last step saves too.
      log_steps: updates between two log entries.
      steps_per_loop: most steps between two returns to Python.
      max_skipped_steps: number of consecutive skipped steps that ends the run.
      profile_steps: None, or (first, last): the steps between them are profiled.
      patience_steps: number of updates after the best checkpoint that ends the run early; 0:
        never.
      clock: None, or the `Clock` whose time ends the run.
    """

    num_train_steps: int | None
    save_checkpoints_steps: int
    log_steps: int
    steps_per_loop: int = 1
    max_skipped_steps: int = 100
    profile_steps: tuple | None = None
    patience_steps: int = 0
    clock: object = None

    def count_from(self, step):
        """Returns how many steps can be made without a return to Python after a step."""
        if self.clock and not self.clock.is_running:
            return 1
        ends = [self.num_train_steps] if self.num_train_steps else []
        ends += [(step // n + 1) * n for n in (self.save_checkpoints_steps, self.log_steps)]
        ends += [end for end in self.profile_steps or () if end > step]
        return min(self.steps_per_loop, min(ends) - step)

    def next_save(self, step):
        """Returns the first step after a step at which a checkpoint is due."""
        each = self.save_checkpoints_steps
        following = (step // each + 1) * each
        return min(following, self.num_train_steps) if self.num_train_steps else following

    def is_last(self, step):
        """Whether the run ends at a step, to which it has come."""
        return not self.clock.has_time if self.clock else step == self.num_train_steps

    def has_ended(self, step):
        """Whether a run that is at a step, or beyond the plan's last one, has nothing to train."""
        return self.is_last(step) or (not self.clock and step > self.num_train_steps)

    def saves(self, step):
        """Whether a checkpoint is due at a step."""
        return step % self.save_checkpoints_steps == 0 or self.is_last(step)

    def logs(self, step):
        """Whether a log entry is due at a step."""
        return step % self.log_steps == 0 or self.saves(step)


class Loop:
    """Trains to the end of the plan."""

    def __init__(
        self,
        train_step,
        feed,
        plan,
        checkpoints,
        journal,
        stop,
        evaluate=None,
    ):
        """Args:
        train_step: `TrainStep`.
        feed: `Feed`.
        plan: `Plan`.
        checkpoints: `RunCheckpoints`.
        journal: `Journal`.
        stop: `StopRequest`.
        evaluate: None, or a function that is called after each save and returns a dict of name
          to float, which is logged as `eval_<name>`.
        """
        self._train_step = train_step
        self._feed = feed
        self._plan = plan
        self._checkpoints = checkpoints
        self._journal = journal
        self._stop = stop
        self._evaluate = evaluate
        self._started = time.monotonic()

    def run(self, first_step):
        """Trains until the plan ends.

        Args:
          first_step: updates made so far.

        Returns:
          The last log entry.

        Raises:
          UserError: too many consecutive steps were skipped, the loss diverged, or the data is
            damaged.
          Terminated: this process or another worker was asked to end (see `endings`); the
            checkpoint is saved.
        """
        step, averages, last_report, entry = first_step, Averages(), None, {}
        clock = self._plan.clock
        if clock:
            clock.stop()
        profile = _Profile(self._plan.profile_steps, self._checkpoints.folder)
        read = self._train_step.count("batches_read")
        stage, batches = self._feed.sizes.of(read), self._feed.batches(read)
        self._trace(batches)
        self._journal.restart()
        with profile:
            while not self._is_over(step):
                if read == stage.end:
                    stage, batches = self._feed.sizes.of(read), self._feed.batches(read)
                    self._journal.say(f"step {step}: from here on {stage.size} examples in a batch")
                profile.at(step)
                count = min(self._plan.count_from(step), stage.end - read)
                try:
                    report = self._train_step.run(batches, count, self._stop.requested)
                except FAILURES as error:
                    self._journal.say(self._feed.explain(error))
                    read = self._train_step.count("batches_read")
                    stage, batches = self._feed.sizes.of(read), self._feed.batches(read)
                    step = self._train_step.step
                    continue
                if clock:
                    clock.start()  # The first step is not counted: it compiles.
                count = int(report.steps)
                made = count - int(report.skipped)
                step, read = step + made, read + count
                self._journal.advance(made, report)
                averages.add(report.ratios)
                if made and last_report is None and not self._plan.saves(step):
                    self._say_begun(step, averages)
                last_report = report if made else last_report
                self._check_skipped(step, report)
                if made and self._plan.logs(step):
                    entry = self._journal.log(step, averages, last_report)
                    averages = Averages()
                    # Compiling a batch of a new length, at any step, leaves freed memory behind.
                    devices.give_back_memory()
                if made and self._plan.saves(step):
                    entry = self._save(step, first_step, entry)
                if report.stop > 0:
                    raise self.terminated(step)
        return entry

    def _trace(self, batches):
        """Traces the step if no run before has done so, and says what the first step waits for."""
        if self._train_step.is_traced:
            return
        self._journal.say("tracing the training step")
        self._train_step.trace(batches)
        if self._train_step.is_compiled:
            self._journal.say("compiling it with XLA, and making the first steps")

    def _say_begun(self, step, averages):
        seconds, clock = time.monotonic() - self._started, self._plan.clock
        if clock:
            self._journal.say(
                f"step {step}  loss {averages.results()['loss']:.4g}  after {seconds:.0f} s; the "
                f"next line comes at step {self._plan.next_save(step)}, or when the "
                f"{clock.budget:g} minutes are over"
            )
            return
        self._journal.say(
            f"step {step}/{self._plan.num_train_steps}  loss {averages.results()['loss']:.4g}  "
            f"after {seconds:.0f} s; the next line comes at step {self._plan.next_save(step)}"
        )

    def _is_over(self, step):
        if self._plan.is_last(step):
            return True
        if not self._checkpoints.has_stalled(step, self._plan.patience_steps):
            return False
        best = self._checkpoints.best()["global_step"]
        self._journal.say(f"stopped early at step {step}: no result since step {best} was better")
        return True

    def _save(self, step, first_step, entry):
        pause, scores = time.monotonic(), {}
        self._checkpoints.save(step)
        if self._evaluate is not None:
            results = self._evaluate()
            devices.give_back_memory()
            found = self._journal.log_evaluation(step, results)
            entry = {**entry, **found}
            self._checkpoints.note_evaluation(step, results)
            scores = scores_of(results)
        self._journal.leave_out(time.monotonic() - pause)
        place, minutes_left = self._place_and_left(step, first_step)
        shown = {"step": place, **brief(entry), **scores}
        columns = [f"{name} {value}" for name, value in shown.items()]
        self._journal.say("  ".join([*columns, f"left {minutes_left:.1f} min"]))
        return entry

    def _place_and_left(self, step, first_step):
        """Returns (the step as a text, the minutes that are left) after a save."""
        clock, last = self._plan.clock, self._plan.num_train_steps
        if not clock:
            seen, now, all_of_them = map(self._feed.sizes.examples, (first_step, step, last))
            seconds = (time.monotonic() - self._started) / (now - seen) * (all_of_them - now)
            return f"{step}/{last}", seconds / 60
        if clock.has_time and not clock.tick():
            # It ended while the run evaluated. Otherwise the next start would train the rest.
            self._checkpoints.save(step)
        return f"{step}", clock.left

    def _check_skipped(self, step, report):
        in_a_row = self._train_step.count("skipped_in_a_row")
        if in_a_row >= self._plan.max_skipped_steps:
            name = self._train_step.variables[int(report.bad_gradient)].path
            raise UserError(
                f"{in_a_row} steps in a row were skipped after step {step}: the gradient of "
                f"{name} is not finite; lower --learning_rate or warm up longer "
                f"({self._checkpoints.newest()})"
            )

    def terminated(self, step):
        """Returns the `Terminated` of a run that ends at a step, whose checkpoint is saved."""
        if step not in self._checkpoints.steps():
            self._checkpoints.save(step)
        name = self._stop.signal or "a signal to another worker"
        return Terminated(
            f"stopped by {name} at step {step}; the checkpoint is {self._checkpoints.path(step)}; "
            "the same command continues from it"
        )


class _Profile(contextlib.ExitStack):
    """A TensorFlow profile of the steps between two steps, in the run's folder `profile`."""

    def __init__(self, steps, folder):
        super().__init__()
        self._first, self._last = steps or (-1, -1)
        self._folder = f"{folder}/profile"
        self._has_started = False

    def at(self, step):
        """Starts or ends the profile at the right steps; a skipped step comes again."""
        if step == self._first and not self._has_started:
            self._has_started = True
            tf.profiler.experimental.start(self._folder)
            self.callback(tf.profiler.experimental.stop)
        elif step >= self._last:
            self.close()


class Feed:
    """Makes training batches, beginning at any batch of the sequence.

    Attributes:
      sizes: the `BatchSizes`.
    """

    def __init__(self, strategy, reader, sizes, seed, sharding="element"):
        """Args:
        strategy: a `tf.distribute.Strategy`.
        reader: `ExampleReader`.
        sizes: the `BatchSizes` of global batches, all multiples of the replicas.
        seed: seed of the order of examples.
        sharding: how workers share the examples: see `ExampleReader.training_batches`.
        """
        self._strategy = strategy
        self._reader = reader
        self.sizes = sizes
        self._seed = seed
        self._sharding = sharding

    def batches(self, batches_read):
        """Returns an iterator of global batches of one size, each split over the replicas.

        Args:
          batches_read: number of batches to leave out at the start. The size is that of the batch
            behind them; no more batches may be taken than there are of it.
        """
        stage = self.sizes.of(batches_read)
        replica_batch_size = stage.size // self._strategy.num_replicas_in_sync

        def dataset(context):
            replicas = self._strategy.num_replicas_in_sync // context.num_input_pipelines
            batches = self._reader.training_batches(
                replica_batch_size * replicas,
                self._seed,
                stage.skipped + batches_read - stage.first,
                num_shards=context.num_input_pipelines,
                shard=context.input_pipeline_id,
                by=self._sharding,
            )
            if replicas == 1:
                return batches
            batches = batches.flat_map(functools.partial(_parts, count=replicas))
            # flat_map loses the mark that the dataset is endless.
            return record_stream.prefetched(record_stream.endless(batches))

        return iter(self._strategy.distribute_datasets_from_function(dataset))

    def explain(self, error):
        """Returns a line on damaged records that are skipped, or raises the error's cause."""
        if isinstance(error, tf.errors.ResourceExhaustedError):
            advice = "lower --train_batch_size or raise --gradient_accumulation_steps"
            raise devices.out_of_memory(error, advice) from error
        return self._reader.explain(error)


@record_stream.traced_as_is
def _parts(batch, count):
    """Returns a dataset of `count` equal parts of a batch."""
    return tf.data.Dataset.from_tensor_slices(
        {name: tf.stack(tf.split(values, count)) for name, values in batch.items()}
    )


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
