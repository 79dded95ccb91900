"""From flags to what a training step is made of."""

import dataclasses

from nezha_tf.errors import UserError
from nezha_tf.optimization.adamw import AdamWeightDecay
from nezha_tf.optimization.lamb import Lamb
from nezha_tf.optimization.schedules import WarmupPolynomialDecay
from nezha_tf.training.loop import Plan
from nezha_tf.training.moving_average import MovingAverage
from nezha_tf.training.precision import DynamicLossScale
from nezha_tf.training.step import TrainStep


@dataclasses.dataclass
class Recipe:
    """The parts that a step changes beside the model; any of the last two may be None."""

    optimizer: object
    loss_scale: object
    moving_average: object


def check(flags):
    """Raises a `UserError` for flags that do not go together."""
    if flags["clip_norm"] <= 0:
        raise UserError(f"--clip_norm={flags['clip_norm']} must be above 0")
    if not flags["do_train"]:
        return
    if warmup_steps(flags) >= flags["num_train_steps"]:
        raise UserError(
            f"--num_warmup_steps={warmup_steps(flags)} must be less than "
            f"--num_train_steps={flags['num_train_steps']}"
        )
    if flags["early_stopping_patience"] and not flags["do_eval"]:
        raise UserError("--early_stopping_patience counts evaluations; pass --do_eval, too")
    _profile_steps(flags)


def warmup_steps(flags):
    """Returns the steps of warm-up, by whichever flag they are given."""
    if flags["warmup_proportion"] is None:
        return flags["num_warmup_steps"]
    return int(flags["num_train_steps"] * flags["warmup_proportion"])


def make(flags, model):
    """Returns the `Recipe` of the flags; to be called in the scope of the strategy."""
    freeze_layers(model.encoder, flags["freeze_layers"])
    optimizer = _optimizer(flags)
    optimizer.build(model.trainable_variables)
    loss_scale = moving_average = None
    if flags["precision"] == "mixed_float16":
        loss_scale = DynamicLossScale(
            flags["initial_loss_scale"],
            flags["loss_scale_growth_steps"],
            flags["loss_scale_growth_factor"],
            flags["loss_scale_backoff_factor"],
        )
    if flags["ema_decay"]:
        moving_average = MovingAverage(model, optimizer.iterations, flags["ema_decay"])
    return Recipe(optimizer, loss_scale, moving_average)


def make_step(flags, strategy, model, objective, recipe):
    """Returns the `TrainStep` of the flags.

    Raises:
      UserError: a replica's part of the batch does not divide into micro-batches.
    """
    part = flags["train_batch_size"] // strategy.num_replicas_in_sync
    if part % flags["gradient_accumulation_steps"]:
        raise UserError(
            f"--gradient_accumulation_steps={flags['gradient_accumulation_steps']} must divide "
            f"the {part} examples of a replica (--train_batch_size={flags['train_batch_size']})"
        )
    return TrainStep(
        strategy,
        model,
        objective,
        recipe.optimizer,
        clip_norm=flags["clip_norm"],
        loss_scale=recipe.loss_scale,
        accumulation_steps=flags["gradient_accumulation_steps"],
        adversarial_epsilon=flags["adversarial_epsilon"],
        moving_average=recipe.moving_average,
        jit_compile=flags["jit_compile"],
    )


def make_plan(flags):
    """Returns the `Plan` of the flags."""
    return Plan(
        flags["num_train_steps"],
        flags["save_checkpoints_steps"],
        flags["log_steps"],
        flags["steps_per_loop"],
        flags["max_skipped_steps"],
        _profile_steps(flags),
        flags["early_stopping_patience"] * flags["save_checkpoints_steps"],
    )


def freeze_layers(encoder, count):
    """Keeps the embeddings and the first `count` layers of an encoder as they are; 0: none.

    The output table of the masked LM is that of the embeddings, so it stays too.

    Raises:
      UserError: the encoder has fewer layers.
    """
    layers = encoder.transformer_layers
    if count > len(layers):
        raise UserError(f"--freeze_layers={count}: the model has {len(layers)} layers")
    if count:
        for layer in (encoder.embeddings, *layers[:count]):
            layer.trainable = False


def _optimizer(flags):
    schedule = WarmupPolynomialDecay(
        flags["learning_rate"],
        flags["num_train_steps"],
        warmup_steps(flags),
        flags["schedule"],
        flags["decay_power"],
    )
    settings = {name: flags[name] for name in ("weight_decay_rate", "layer_decay")}
    if "crf_learning_rate_factor" in flags:
        settings["rate_factors"] = {"/crf/": flags["crf_learning_rate_factor"]}
    if flags["optimizer"] == "lamb":
        return Lamb(schedule, flags["lamb_variant"], **settings)
    return AdamWeightDecay(schedule, flags["adamw_variant"], **settings)


def _profile_steps(flags):
    if not flags["profile_steps"]:
        return None
    try:
        first, last = map(int, flags["profile_steps"])
    except ValueError:
        first = last = 0
    if not 0 <= first < last:
        text = ",".join(flags["profile_steps"])
        raise UserError(f"--profile_steps={text} must be two steps, the first one smaller")
    return first, last
