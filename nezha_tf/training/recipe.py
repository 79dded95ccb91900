"""Makes the parts of a training step from settings."""

from nezha_tf.optimization.schedules import SCHEDULES, make_schedule
from nezha_tf.optimization.table import make_optimizer, row_of
from nezha_tf.training.loop import Plan
from nezha_tf.training.memory import Memory
from nezha_tf.training.moving_average import MovingAverage
from nezha_tf.training.precision import DynamicLossScale
from nezha_tf.training.step import Recipe, TrainStep
from nezha_tf.util.errors import UserError
from nezha_tf.util.settings import changed

# What needs an encoder that is trained, or one with dropout.


def check(settings):
    """Raises a `UserError` for settings that contradict one another."""
    if settings.clip_norm <= 0:
        raise UserError(f"--clip_norm={settings.clip_norm} must be above 0")
    if not settings.do_train:
        return
    if warmup_steps(settings) >= settings.num_train_steps:
        raise UserError(
            f"--num_warmup_steps={warmup_steps(settings)} must be less than "
            f"--num_train_steps={settings.num_train_steps}"
        )
    row_of(settings.optimizer)
    if settings.schedule not in SCHEDULES:
        raise UserError(f"--schedule={settings.schedule} is none of {', '.join(SCHEDULES)}")
    share = settings.decay_proportion
    decay_begins = settings.num_train_steps * (1 - share)
    if settings.schedule == "trapezoid" and decay_begins < warmup_steps(settings):
        raise UserError(
            f"--decay_proportion={share:g} begins the decay in the warmup, which has "
            f"{warmup_steps(settings)} of {settings.num_train_steps} steps; pass a smaller share"
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


def make(settings, model, rate_factors):
    """Returns the `Recipe` of the settings; call it in the scope of the strategy.

    Args:
      settings: `RunSettings`.
      model: a Keras model with an `encoder`.
      rate_factors: see `Task.rate_factors`.
    """
    freeze_layers(model.encoder, settings.freeze_layers)
    if settings.recompute:
        recompute_layers(model)
    schedule = make_schedule(settings, warmup_steps(settings))
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


def make_plan(settings):
    """Returns the `Plan` of the settings."""
    return Plan(
        settings.num_train_steps,
        settings.save_checkpoints_steps,
        settings.log_steps,
        settings.steps_per_loop,
        settings.max_skipped_steps,
        _profile_steps(settings),
        settings.early_stopping_patience * settings.save_checkpoints_steps,
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
    part, count = settings.train_batch_size // num_replicas, settings.gradient_accumulation_steps
    if part % count:
        raise UserError(
            f"--gradient_accumulation_steps={count} must divide the {part} examples of a replica "
            f"(--train_batch_size={settings.train_batch_size})"
        )
    if part // count < least:
        needed = least * count * num_replicas
        raise UserError(
            f"--train_batch_size={settings.train_batch_size} leaves {part // count} example for "
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
    if last > settings.num_train_steps:
        raise UserError(
            f"--profile_steps={first},{last} end after the last step, "
            f"--num_train_steps={settings.num_train_steps}"
        )
    return first, last
