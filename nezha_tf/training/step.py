"""One training step and one evaluation step, for any objective."""

from typing import NamedTuple

import tensorflow as tf

from nezha_tf.optimization.clipping import clip_by_global_norm


class StepResult(NamedTuple):
    """What one training step reports; scalars, float32 unless said otherwise.

    Attributes:
      loss: the total loss before the step.
      ratios: dict of the losses and metrics, each a `Ratio`.
      gradient_norm: global norm before clipping.
      learning_rate: the rate that the step used.
      tokens: pieces in the batch that are no padding.
      is_finite: bool; False where the step was skipped.
    """

    loss: tf.Tensor
    ratios: dict
    gradient_norm: tf.Tensor
    learning_rate: tf.Tensor
    tokens: tf.Tensor
    is_finite: tf.Tensor


def make_train_step(model, objective, optimizer, clip_norm=1.0, loss_scale=None, training=True):
    """Returns a compiled function: batch -> `StepResult`, which updates the model.

    In the originals' order: gradients, unscaling, clipping by global norm, update. A step
    whose gradients are not finite changes nothing but the loss scale.

    Args:
      model: a Keras model.
      objective: gives `inputs(batch)`, `losses(outputs, batch)` and `metrics(outputs, batch)`.
      optimizer: a Keras optimizer that takes clipped gradients.
      clip_norm: bound of the global norm.
      loss_scale: a `DynamicLossScale`, or None.
      training: whether dropout is on.
    """
    variables = model.trainable_variables
    optimizer.build(variables)

    @tf.function
    def step(batch):
        scale = 1.0 if loss_scale is None else loss_scale.scale
        with tf.GradientTape() as tape:
            outputs = model(objective.inputs(batch), training=training)
            losses = objective.losses(outputs, batch)
            loss = total_loss(losses)
            scaled_loss = loss * scale
        gradients = tape.gradient(scaled_loss, [variable.value for variable in variables])
        gradients = [tf.convert_to_tensor(gradient) / scale for gradient in gradients]
        gradients, gradient_norm = clip_by_global_norm(gradients, clip_norm)
        is_finite = tf.math.is_finite(gradient_norm)
        learning_rate = tf.identity(optimizer.learning_rate)
        tf.cond(is_finite, lambda: _apply(optimizer, gradients, variables), lambda: False)
        if loss_scale is not None:
            loss_scale.update(is_finite)
        return StepResult(
            loss,
            {**losses, **objective.metrics(outputs, batch)},
            gradient_norm,
            learning_rate,
            tf.reduce_sum(batch["input_mask"]),
            is_finite,
        )

    return step


def make_eval_step(model, objective):
    """Returns a compiled function: batch -> dict of losses and metrics, each a `Ratio`."""

    @tf.function
    def step(batch):
        outputs = model(objective.inputs(batch), training=False)
        return {**objective.losses(outputs, batch), **objective.metrics(outputs, batch)}

    return step


def total_loss(losses):
    """Returns the sum of the divided losses."""
    return sum(loss.sum / (loss.weight + loss.epsilon) for loss in losses.values())


def _apply(optimizer, gradients, variables):
    optimizer.apply(gradients, variables)
    return True
