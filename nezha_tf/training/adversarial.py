"""Adversarial training: a second pass with perturbed word embeddings (FGM)."""

import tensorflow as tf

# The encoder's input that is added to the word embeddings.
PERTURBATION = "embedding_perturbation"


def gradients_of_both(one_pass, shape, epsilon):
    """Returns the gradients of the loss of a batch, plus those of the perturbed batch.

    The fast gradient method (Miyato et al., arXiv 1605.07725 §3): the word embeddings of each
    example, all of its pieces together, move by a vector of length `epsilon` along the gradient
    of the loss. As there, the losses of both passes are added. Dropout is drawn anew for the
    second.

    Args:
      one_pass: function of a perturbation, float32 [B, T, H] -> (list of gradients, the
        perturbation's last; dict of `WeightedMean`).
      shape: (B, T, H).
      epsilon: the length, above 0.

    Returns:
      (list of gradients, without the perturbation's; the ratios of the first pass).
    """
    (*gradients, rise), ratios = one_pass(tf.zeros(shape))
    (*more, _), _ = one_pass(perturbation_along(rise, epsilon))
    return [a + b for a, b in zip(gradients, more, strict=True)], ratios


def perturbation_along(rise, epsilon):
    """Returns the gradient [B, T, H] with each example's part at length epsilon, or at 0.

    Where the gradient is not finite the result is not either, and the step is skipped.
    """
    # Divided by the largest entry first: in float32 the squares of small gradients are 0.
    largest = tf.reduce_max(tf.abs(rise), axis=(1, 2), keepdims=True)
    rise = tf.math.divide_no_nan(rise, largest)
    length = tf.sqrt(tf.reduce_sum(tf.square(rise), axis=(1, 2), keepdims=True))
    return epsilon * tf.math.divide_no_nan(rise, length)
