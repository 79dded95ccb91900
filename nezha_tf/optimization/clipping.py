"""Clipping by global norm."""

from keras import ops


def clip_by_global_norm(gradients, clip_norm, loss_scale=1.0):
    """Scales gradients down so that their joint norm is at most `clip_norm`.

    They are summed over replicas, and divided by `loss_scale`, the factor of the loss, first.

    Returns:
      (clipped gradients, norm of each before clipping, float32 [number of gradients]). The
      global norm is the norm of these norms. As in `tf.clip_by_global_norm`, a global norm that is
      not finite makes every gradient NaN.
    """
    squares = [ops.sum(ops.square(ops.cast(gradient, "float32"))) for gradient in gradients]
    norms = ops.sqrt(ops.stack(squares)) / loss_scale
    norm = global_norm(norms)
    factor = clip_norm / ops.maximum(norm, clip_norm) / loss_scale
    factor = ops.where(ops.isfinite(norm), factor, float("nan"))
    return [gradient * ops.cast(factor, gradient.dtype) for gradient in gradients], norms


def global_norm(norms):
    """Returns the global norm of tensors with the given norms [n]."""
    return ops.sqrt(ops.sum(ops.square(norms)))
