"""The clock of a run whose length is given in minutes, --train_minutes."""

import math

import keras
import tensorflow as tf


def now():
    """Returns the seconds of the system's clock, a float64 scalar."""
    return tf.timestamp()


class Clock:
    """Counts the minutes of a run, on which its end and its learning rate depend.

    Warmup and decay are tied to the budget of time, because nobody knows the number of steps before
    (Izsak et al., arXiv 2104.07705 §1; Geiping and Goldstein, arXiv 2212.14034 §4.3). All workers
    follow the first one's clock.

    Attributes:
      budget: the minutes of the whole run.
      is_running: whether time passes; if not, `tick` changes nothing.
    """

    is_running = False

    def __init__(self, strategy, budget):
        """Args:
        strategy: the `tf.distribute.Strategy`; this is called outside of its scope.
        budget: minutes, above 0.
        """
        self.budget = budget
        self._strategy = strategy
        with strategy.scope():
            self._minutes = tf.Variable(
                0.0, trainable=False, aggregation=tf.VariableAggregation.ONLY_FIRST_REPLICA
            )
        # When the run would have begun if it had never been stopped. It belongs to this worker.
        self._begun = tf.Variable(math.inf, trainable=False, dtype=tf.float64)
        self.tick = tf.function(self._tick, autograph=False)

    @property
    def minutes(self):
        """The minutes at the last `tick`, a float32 scalar."""
        return tf.convert_to_tensor(self._minutes)

    @property
    def has_time(self):
        """Whether the budget is not used up, as `tick` said it."""
        return bool(self.minutes < self.budget)

    @property
    def left(self):
        """The minutes that are left, a float."""
        return max(0.0, self.budget - float(self.minutes))

    def start(self):
        """Lets time pass from now on, if it does not yet."""
        if not self.is_running:
            self._begun.assign(now() - 60.0 * tf.cast(self.minutes, tf.float64))
            self.is_running = True

    def stop(self):
        """Lets no time pass until the next start."""
        self._begun.assign(math.inf)
        self.is_running = False

    def _tick(self, counts=True):
        """Takes the time; all workers call it together.

        Args:
          counts: bool scalar; if False, the time stays as it was. So a run does not end with a step
            that was skipped.

        Returns:
          Whether the budget is not used up, a bool scalar.
        """
        passed = self._of_first(tf.cast((now() - self._begun) / 60.0, tf.float32))
        # A clock that is set back does not give time back.
        passed = tf.maximum(self.minutes, passed)
        self._minutes.assign(tf.where(counts, passed, self.minutes))
        return self.minutes < self.budget

    def _of_first(self, number):
        """Returns the number of the first worker on all of them."""
        if self._strategy.num_replicas_in_sync == 1:
            return number

        def replica(own):
            together = tf.distribute.get_replica_context()
            is_first = tf.equal(together.replica_id_in_sync_group, 0)
            return together.all_reduce(tf.distribute.ReduceOp.SUM, tf.where(is_first, own, 0.0))

        shared = self._strategy.run(replica, args=(number,))
        return self._strategy.experimental_local_results(shared)[0]

    def state(self):
        """Returns a dict of the name in a checkpoint to the minutes."""
        return {"nezha_tf/train_minutes": self._minutes}


def clock_of(settings, strategy):
    """Returns the `Clock` of the `RunSettings`, or None; its arguments are those of `Clock`."""
    minutes = settings.train_minutes
    return None if minutes is None else Clock(strategy, minutes)


class ByClock(keras.optimizers.schedules.LearningRateSchedule):
    """A schedule in minutes: the rate follows a `Clock`, whatever the step."""

    def __init__(self, schedule, clock):
        """Args:
        schedule: a `WarmupSchedule` whose numbers are minutes.
        clock: the `Clock`.
        """
        self._schedule = schedule
        self._clock = clock

    def __call__(self, step):
        return self._schedule(self._clock.minutes)
