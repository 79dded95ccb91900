"""Makes the parts of a training step from settings."""

import contextlib
import dataclasses

import tensorflow as tf

from nezha_tf.checkpoints.name_table import AVERAGE_SUFFIX, tf1_name
from nezha_tf.modeling.lora import enable_lora
from nezha_tf.optimization.schedules import SCHEDULES, make_schedule
from nezha_tf.optimization.table import make_optimizer, row_of
from nezha_tf.training import adapters
from nezha_tf.training.batch_sizes import ByExamples, batch_sizes, smallest_batch
from nezha_tf.training.clock import ByClock
from nezha_tf.training.loop import Plan
from nezha_tf.training.memory import Memory
from nezha_tf.training.step import TrainStep
from nezha_tf.util.errors import UserError
from nezha_tf.util.settings import changed

# That of the defaults in steps, and of BERT: 10,000 of 100,000.
_WARMUP_OF_MINUTES = 0.1


@dataclasses.dataclass(frozen=True)
class Recipe:
    """How a step changes a model.

    Attributes:
      optimizer: a `RunOptimizer`.
      clip_norm: bound of the gradients' global norm.
      loss_scale: a `DynamicLossScale`, or None.
      moving_average: a `MovingAverage`, or None.
      accumulation_steps: number of micro-batches into which a replica's part of a batch is divided.
      adversarial_epsilon: L2 size of the adversarial perturbation of an example's word embeddings;
        0: off. See `gradients_of_both`.
      clock: the `Clock` that the learning rate follows, or None: it follows the steps.
    """

    optimizer: object
    clip_norm: float = 1.0
    loss_scale: object = None
    moving_average: object = None
    accumulation_steps: int = 1
    adversarial_epsilon: float = 0.0
    clock: object = None


def check(settings):
    """Raises a `UserError` for settings that contradict one another."""
    if settings.clip_norm <= 0:
        raise UserError(f"--clip_norm={settings.clip_norm} must be above 0")
    if not settings.do_train:
        return
    adapters.check(settings)
    _check_warmup(settings)
    row_of(settings.optimizer)
    if settings.schedule not in SCHEDULES:
        raise UserError(f"--schedule={settings.schedule} is none of {', '.join(SCHEDULES)}")
    (length, warmup), share = course(settings), settings.decay_proportion
    if settings.schedule == "trapezoid" and length * (1 - share) < warmup:
        raise UserError(
            f"--decay_proportion={share:g} begins the decay in the warmup, which is "
            f"{warmup / length:.3g} of the run; pass a smaller share"
        )
    if settings.early_stopping_patience and not settings.do_eval:
        raise UserError("--early_stopping_patience counts evaluations; pass --do_eval too")
    _profile_steps(settings)


def warmup_steps(settings):
    """Returns the number of warmup steps.

    A --warmup_proportion that was given replaces --num_warmup_steps. One that is a default (in
    fine-tuning) is replaced by it.
    """
    proportion, steps = settings.warmup_proportion, settings.num_warmup_steps
    is_default = "warmup_proportion" not in changed(settings)
    if proportion is None or (steps is not None and is_default):
        return steps
    return int(settings.num_train_steps * proportion)


def _check_warmup(settings):
    length, warmup = course(settings)
    if length <= 0:
        raise UserError(f"--train_minutes={length:g} must be above 0")
    if warmup < length:
        return
    if settings.train_minutes is not None:
        share = settings.warmup_proportion
        raise UserError(f"--warmup_proportion={share:g} leaves no time to train; pass less than 1")
    raise UserError(f"--num_warmup_steps={warmup} must be less than --num_train_steps={length}")


def course(settings):
    """Returns (length of the run, length of its warmup), in steps or, as given, in minutes.

    Where the batch grows, steps are those of the last size with as many examples.
    """
    if settings.train_minutes is None:
        steps = settings.num_train_steps, warmup_steps(settings)
        if settings.initial_batch_size is None:
            return steps
        return tuple(map(batch_sizes(settings).full_batches, steps))
    share = settings.warmup_proportion
    share = _WARMUP_OF_MINUTES if share is None else share
    return settings.train_minutes, settings.train_minutes * share


def make(settings, model, rate_factors, clock=None):
    """Returns the `Recipe` of the settings; call it in the scope of the strategy.

    Args:
      settings: `RunSettings`.
      model: a Keras model with an `encoder`.
      rate_factors: see `Task.rate_factors`.
      clock: the `Clock` of --train_minutes, or None.
    """
    if settings.lora_rank:
        enable_lora(model, settings.lora_rank, settings.lora_alpha)
    freeze_layers(model.encoder, settings.freeze_layers)
    if settings.recompute:
        recompute_layers(model)
    schedule = make_schedule(settings, *course(settings))
    if clock is not None:
        schedule = ByClock(schedule, clock)
    elif settings.initial_batch_size is not None:
        schedule = ByExamples(schedule, batch_sizes(settings))
    optimizer = make_optimizer(settings, schedule, rate_factors)
    optimizer.build(model.trainable_variables)
    loss_scale = moving_average = None
    if settings.precision == "mixed_float16":
        loss_scale = DynamicLossScale(
            settings.initial_loss_scale,
            settings.loss_scale_growth_steps,
            settings.loss_scale_growth_factor,
            settings.loss_scale_backoff_factor,
        )
    if settings.ema_decay:
        moving_average = MovingAverage(model, optimizer.iterations, settings.ema_decay)
    return Recipe(
        optimizer,
        settings.clip_norm,
        loss_scale,
        moving_average,
        settings.gradient_accumulation_steps,
        settings.adversarial_epsilon,
        clock,
    )


def make_step(settings, strategy, model, objective, recipe, memory_length=0, least_compared=1):
    """Returns the `TrainStep` of the settings.

    Args:
      settings: `RunSettings`.
      strategy: the `tf.distribute.Strategy`.
      model: a Keras model with an `encoder`.
      objective: a `Loss`.
      recipe: the `Recipe` of `make`.
      memory_length, least_compared: see `Task`.

    Raises:
      UserError: a replica's part of the batch does not divide into micro-batches, or these have too
        few examples, or see `Memory`.
    """
    _check_micro_batches(settings, strategy.num_replicas_in_sync, least_compared)
    memory = None
    if memory_length:
        memory = Memory(strategy, model, settings.train_batch_size, memory_length)
    return TrainStep(
        strategy, model, objective, recipe, jit_compile=settings.jit_compile, memory=memory
    )


def make_plan(settings, clock=None):
    """Returns the `Plan` of the settings; `clock` is the `Clock` of --train_minutes, or None."""
    return Plan(
        settings.num_train_steps if clock is None else None,
        settings.save_checkpoints_steps,
        settings.log_steps,
        settings.steps_per_loop,
        settings.max_skipped_steps,
        _profile_steps(settings),
        settings.early_stopping_patience * settings.save_checkpoints_steps,
        clock,
    )


def freeze_layers(encoder, count):
    """Freezes the embeddings and the first `count` layers of an encoder; 0: freezes nothing.

    The output table of the masked LM is that of the embeddings, so it is frozen too, and so are
    tables of positions, which all layers read.

    Raises:
      UserError: the encoder has fewer layers, or a layer that is not frozen shares the weights of
        a frozen one.
    """
    layers = encoder.transformer_layers
    if count > len(layers):
        raise UserError(f"--freeze_layers={count}: the model has {len(layers)} layers")
    if 0 < count < len(layers) and layers[count] is layers[count - 1]:
        raise UserError(
            f"--freeze_layers={count}: layers {count} and {count + 1} share their weights "
            f"(num_hidden_groups {encoder.config.num_hidden_groups}); freeze whole groups"
        )
    if count:
        for layer in (encoder.embeddings, encoder.positions, *layers[:count]):
            layer.trainable = False


def recompute_layers(model):
    """Sets that no layer keeps its inside for the backward pass; see `TransformerLayer`.

    Raises:
      UserError: all layers are frozen.
    """
    layers = model.encoder.transformer_layers
    if not any(layer.trainable for layer in layers):
        raise UserError(
            "--recompute does nothing with --freeze_layers of all layers: no gradient goes through "
            "them; leave one of them out"
        )
    if hasattr(model, "generator"):
        layers = [*layers, *model.generator.transformer_layers]
    for layer in layers:
        layer.recompute = True


def _check_micro_batches(settings, num_replicas, least):
    (size, name), count = smallest_batch(settings), settings.gradient_accumulation_steps
    part = size // num_replicas
    if part % count:
        raise UserError(
            f"--gradient_accumulation_steps={count} must divide the {part} examples of a replica "
            f"(--{name}={size})"
        )
    if part // count < least:
        needed = least * count * num_replicas
        raise UserError(
            f"--{name}={size} leaves {part // count} example for "
            f"each micro-batch (of {num_replicas} replicas x --gradient_accumulation_steps="
            f"{count}), which has no other one to differ from; pass at least {needed}"
        )


def _profile_steps(settings):
    if not settings.profile_steps:
        return None
    try:
        first, last = map(int, settings.profile_steps)
    except ValueError:
        first = last = 0
    if not 0 <= first < last:
        text = ",".join(settings.profile_steps)
        raise UserError(f"--profile_steps={text} must be two steps, the first one smaller")
    if settings.train_minutes is None and last > settings.num_train_steps:
        raise UserError(
            f"--profile_steps={first},{last} end after the last step, "
            f"--num_train_steps={settings.num_train_steps}"
        )
    return first, last


class MovingAverage:
    """An exponential moving average of each weight, like tf.train.ExponentialMovingAverage.

    As there with `num_updates`, the decay is at most (1 + s) / (10 + s) at step s, so the random
    initial weights soon lose their influence.
    """

    def __init__(self, model, iterations, decay):
        """Args:
        model: a Keras model; its trainable variables are averaged.
        iterations: variable that counts the steps.
        decay: share of the old average that a step keeps.
        """
        self._variables = [variable.value for variable in model.trainable_variables]
        self._names = [tf1_name(variable.path) for variable in model.trainable_variables]
        self._averages = [tf.Variable(v, trainable=False) for v in self._variables]
        self._iterations = iterations
        self._decay = decay

    def update(self, strategy):
        """Updates the averages; call it in cross-replica context."""
        step = tf.cast(tf.convert_to_tensor(self._iterations), tf.float32)
        share = 1.0 - tf.minimum(self._decay, (1.0 + step) / (10.0 + step))
        for average, variable in zip(self._averages, self._variables, strict=True):
            strategy.extended.update(
                average,
                lambda a, v: a.assign_sub(share * (a - v)),
                args=(variable,),
                group=False,
            )

    def restart(self):
        """Sets the averages to the current weights."""
        for average, variable in zip(self._averages, self._variables, strict=True):
            average.assign(variable)

    @contextlib.contextmanager
    def in_place(self):
        """Replaces the weights by their averages while the block runs."""
        kept = [tf.identity(variable) for variable in self._variables]
        for average, variable in zip(self._averages, self._variables, strict=True):
            variable.assign(average)
        try:
            yield
        finally:
            for value, variable in zip(kept, self._variables, strict=True):
                variable.assign(value)

    def state(self):
        """Returns a dict of names in a checkpoint to the averages."""
        return dict(zip(self.names(self._names), self._averages, strict=True))

    @staticmethod
    def names(names):
        """Returns the names of the averages in a checkpoint, given the names of weights."""
        return [f"{name}/{AVERAGE_SUFFIX}" for name in names]


class DynamicLossScale:
    """Keeps float16 gradients within range (Micikevicius et al., arXiv 1710.03740 §3.2).

    The scale grows after `growth_steps` good steps in a row and backs off at each step whose
    gradients are not finite, down to 1. The original backs off only after two such steps.
    """

    def __init__(
        self,
        initial_scale,
        growth_steps,
        growth_factor=2.0,
        backoff_factor=0.5,
    ):
        """Raises a `UserError` if scale or growth is below 1, or the backoff is not in (0, 1)."""
        if initial_scale < 1 or growth_factor < 1 or not 0 < backoff_factor < 1:
            raise UserError(
                f"--initial_loss_scale={initial_scale:g} and --loss_scale_growth_factor="
                f"{growth_factor:g} must be at least 1, and --loss_scale_backoff_factor="
                f"{backoff_factor:g} between 0 and 1"
            )
        self._growth_steps = growth_steps
        self._growth_factor = growth_factor
        self._backoff_factor = backoff_factor
        self.scale = tf.Variable(initial_scale, trainable=False, dtype=tf.float32)
        self._good_steps = tf.Variable(0, trainable=False, dtype=tf.int64)

    def update(self, is_finite):
        """Updates the scale after a step; `is_finite` is a bool scalar."""
        good_steps = tf.where(is_finite, self._good_steps + 1, 0)
        grows = good_steps >= self._growth_steps
        good = tf.where(grows, self._growth_factor, 1.0)
        factor = tf.where(is_finite, good, self._backoff_factor)
        self.scale.assign(tf.maximum(self.scale * factor, 1.0))
        self._good_steps.assign(tf.where(grows, tf.zeros_like(good_steps), good_steps))

    def state(self):
        """Returns a dict of names in a checkpoint to the variables."""
        return {"nezha_tf/loss_scale": self.scale, "nezha_tf/loss_scale_steps": self._good_steps}
