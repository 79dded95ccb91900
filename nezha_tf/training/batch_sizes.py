"""The number of examples in each batch of a run, which may grow."""

import math
from typing import NamedTuple

import keras
from keras import ops

from nezha_tf.util.errors import UserError


class Stage(NamedTuple):
    """The batches of one size.

    Attributes:
      size: the number of examples in a batch.
      first: the number of the first of these batches, from 0.
      end: the number after the last of them; math.inf: they go on to the end of the run.
      skipped: so many batches of this size have the examples of all batches before.
    """

    size: int
    first: int
    end: float
    skipped: int


class BatchSizes:
    """The sizes of the batches: always the same, or doubled again and again up to the last one.

    Small batches teach more for an example at first, when all gradients point in the same
    direction, and large ones later (Smith et al., arXiv 1711.00489; Geiping and Goldstein,
    arXiv 2212.14034 §4.3; in steps of doubling as there are few compiled shapes). Which examples a
    batch has depends on its number alone, so a run that goes on finds its place.

    Attributes:
      stages: list of `Stage`.
    """

    def __init__(self, size, initial_size=None, growth_steps=0):
        """Args:
        size: examples in a batch, at last.
        initial_size: examples in the first batches: `size` divided by 2 once or more; None: `size`.
        growth_steps: the number of batches before the first one of `size`. Each size has the same
          number of batches, rounded up so that its examples fill batches of the later sizes.

        Raises:
          UserError: the sizes do not fit.
        """
        factor = size // initial_size if initial_size else 1
        if initial_size and (factor < 2 or size != factor * initial_size or factor & (factor - 1)):
            raise UserError(
                f"--initial_batch_size={initial_size} does not come to --train_batch_size={size} "
                "by doubling; pass the half, the quarter and so on of it"
            )
        doublings = factor.bit_length() - 1
        each = math.ceil(growth_steps / max(doublings, 1) / factor) * factor
        self.stages, examples = [], 0
        for number in range(doublings + 1):
            now, first = size // factor << number, number * each
            end = first + each if number < doublings else math.inf
            self.stages.append(Stage(now, first, end, examples // now))
            examples += now * each

    def of(self, batch):
        """Returns the `Stage` of a batch, by its number from 0."""
        return next(stage for stage in self.stages if batch < stage.end)

    def examples(self, count):
        """Returns the number of examples in the first `count` batches."""
        return sum(
            stage.size * (min(count, stage.end) - stage.first)
            for stage in self.stages
            if stage.first < count
        )

    def full_batches(self, count):
        """Returns how many batches of the last size have the examples of the first `count`.

        `count` is a number, or a tensor, whose result is float32.
        """
        if not ops.is_tensor(count):
            return self.examples(count) / self.stages[-1].size
        count = ops.cast(count, "float32")
        parts = [
            ops.clip(count - stage.first, 0.0, stage.end - stage.first) * stage.size
            for stage in self.stages
        ]
        return sum(parts) / self.stages[-1].size


class ByExamples(keras.optimizers.schedules.LearningRateSchedule):
    """A schedule that follows the examples, as if all batches were of the last size.

    By steps, the small batches would use up most of the schedule with few examples.
    """

    def __init__(self, schedule, sizes):
        """Args:
        schedule: a `WarmupSchedule` whose numbers are of batches of the last size.
        sizes: the `BatchSizes`.
        """
        self._schedule = schedule
        self._sizes = sizes

    def __call__(self, step):
        return self._schedule(self._sizes.full_batches(ops.convert_to_tensor(step)))


def batch_sizes(settings):
    """Returns the `BatchSizes` of the `RunSettings`.

    Raises:
      UserError: the flags of the batch do not fit one another.
    """
    initial, steps = settings.initial_batch_size, settings.batch_growth_steps
    if initial is None:
        return BatchSizes(settings.train_batch_size)
    if steps is None and settings.train_minutes is not None:
        raise UserError(
            f"--initial_batch_size={initial} with --train_minutes={settings.train_minutes:g}: the "
            "number of steps is not known; pass --batch_growth_steps"
        )
    if steps is None:
        steps = settings.num_train_steps // 2
    return BatchSizes(settings.train_batch_size, initial, steps)


def smallest_batch(settings):
    """Returns (its number of examples, its flag's name); raises as `batch_sizes`.

    What divides it divides all larger ones, which are its doubles.
    """
    size = batch_sizes(settings).stages[0].size
    return size, "train_batch_size" if settings.initial_batch_size is None else "initial_batch_size"
