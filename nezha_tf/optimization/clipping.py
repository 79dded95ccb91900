"""Clipping by global norm."""

from keras import ops


def clip_by_global_norm(gradients, clip_norm):
    """Scales gradients down so that their joint norm is at most `clip_norm`.

    Args:
      gradients: list of tensors, already summed over replicas and unscaled.
      clip_norm: the bound.

    Returns:
      (clipped gradients, global norm before clipping as a float32 scalar). As with
      `tf.clip_by_global_norm`, a norm that is not finite makes every gradient NaN.
    """
    squares = [ops.sum(ops.square(ops.cast(gradient, "float32"))) for gradient in gradients]
    global_norm = ops.sqrt(sum(squares))
    scale = clip_norm / ops.maximum(global_norm, clip_norm)
    scale = ops.where(ops.isfinite(global_norm), scale, float("nan"))
    return [gradient * ops.cast(scale, gradient.dtype) for gradient in gradients], global_norm
