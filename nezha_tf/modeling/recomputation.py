"""Computes activations again for the backward pass, instead of keeping them."""

import copy

import keras
from keras import ops, tree


def recomputed(function, positions, tensors):
    """Calls a function of whose inside only the arguments and results are kept.

    What lies between is computed a second time when the gradient is (gradient checkpointing, Chen
    et al., arXiv 1604.06174 §4.1). Both times must give the same, so the function may draw nothing
    and change no variable; it may read weights.

    Args:
      function: function of `AttentionPositions` and of keyword arguments, which returns a tuple of
        tensors.
      positions: the `AttentionPositions`; the tensors that it computes with are its attributes.
      tensors: dict of the keyword arguments: tensors, None, or tuples and lists of these.

    Returns:
      The tuple that the function returns.
    """
    arguments = [vars(positions), tensors]
    leaves = tree.flatten(arguments)
    # TensorFlow passes no gradient to what the function finds without being given it.
    is_given = [_may_have_gradient(leaf) for leaf in leaves]

    def with_given(*given):
        given = iter(given)
        found = [next(given) if own else leaf for leaf, own in zip(leaves, is_given, strict=True)]
        of_positions, own_tensors = tree.pack_sequence_as(arguments, found)
        own_positions = copy.copy(positions)
        vars(own_positions).update(of_positions)
        return function(own_positions, **own_tensors)

    given = [leaf for leaf, own in zip(leaves, is_given, strict=True) if own]
    return keras.remat(with_given)(*given)


def _may_have_gradient(leaf):
    return ops.is_tensor(leaf) and keras.backend.is_float_dtype(
        keras.backend.standardize_dtype(leaf.dtype)
    )
