"""Adversarial training: a second pass with perturbed word embeddings (FGM)."""

import tensorflow as tf

# The encoder's input that is added to the word embeddings.
PERTURBATION = "embedding_perturbation"


def gradients_of_both(one_pass, shape, epsilon):
    """Returns the gradients of the loss of a batch, plus those of the perturbed batch.

    This is the fast gradient method (Miyato et al., arXiv 1605.07725 §3): the word embeddings of
    each example, all tokens together, are moved by a vector of length `epsilon` along the gradient
    of the loss. As in the paper, the losses of both passes are added. The second pass has its own
    dropout.

    Args:
      one_pass: function of a perturbation, float32 [B, T, E] or [B, C, T, E], that returns (list
        of gradients, with that of the perturbation last; dict of name to `WeightedMean`).
      shape: the shape of the perturbation; E is the width of the word embeddings.
      epsilon: the length, above 0.

    Returns:
      (list of gradients without the perturbation's; dict of `WeightedMean` of the first pass).
    """
    (*gradients, rise), ratios = one_pass(tf.zeros(shape))
    (*more, _), _ = one_pass(perturbation_along(rise, epsilon))
    return [a + b for a, b in zip(gradients, more, strict=True)], ratios


def perturbation_along(rise, epsilon):
    """Returns the gradient [B, ..., E] with each example's part scaled to length epsilon.

    An example's gradient of 0 stays 0. If the gradient is not finite, neither is the result, and
    the step is skipped.
    """
    # Divide by the largest entry first, because squares of small gradients are 0 in float32.
    axes = list(range(1, len(rise.shape)))
    largest = tf.reduce_max(tf.abs(rise), axes, keepdims=True)
    rise = tf.math.divide_no_nan(rise, largest)
    length = tf.sqrt(tf.reduce_sum(tf.square(rise), axes, keepdims=True))
    return epsilon * tf.math.divide_no_nan(rise, length)
