"""Compiles what lies between a model's products, and leaves the products to TensorFlow.

On a processor, XLA computes products of bfloat16 in float32. The products of TensorFlow's graph
mode are oneDNN's, which are up to twice as fast in bfloat16 as in float32 where the processor has
instructions for it (AVX512-BF16, AMX). But everything else is slow in graph mode: each operation is
a pass over memory. So a step can be traced without XLA, and each `fused` part of it, which has no
product, is compiled by itself.
"""

import contextlib
import contextvars
import functools

from keras import ops

_compiles_parts = contextvars.ContextVar("compiles_parts", default=False)


@contextlib.contextmanager
def compiled_parts(is_on=True):
    """Within it, `fused` functions are compiled; not so if `is_on` is False."""
    token = _compiles_parts.set(is_on)
    try:
        yield
    finally:
        _compiles_parts.reset(token)


def fused(function):
    """Decorates a function whose operations XLA shall make one pass of.

    Outside of `compiled_parts` it is called as it is. Within, it is compiled once for all calls
    with the same options and shapes. It then computes in float32 and rounds its results once:
    processors have no arithmetic in bfloat16 but products, so XLA would round after each operation.
    For the backward pass only its arguments are kept, and its inside is computed again.

    Args:
      function: a module's function of positional tensors, variables or None, and of keyword options
        that can be hashed. It returns a tensor or a tuple of tensors, and reads nothing else.
    """

    @functools.wraps(function)
    def call(*tensors, **options):
        if not _compiles_parts.get():
            return function(*tensors, **options)
        is_given = tuple(tensor is not None for tensor in tensors)
        compiled = _compiled(function, is_given, tuple(sorted(options.items())))
        return compiled(*(tensor for tensor in tensors if tensor is not None))

    return call


@functools.cache
def _compiled(function, is_given, options):
    import tensorflow as tf  # not at the top: the model runs on JAX, too

    def called(*given):
        given = iter(given)
        tensors = [next(given) if is_there else None for is_there in is_given]
        with compiled_parts(False):
            return function(*tensors, **dict(options))

    def inside(*given):
        expected = tf.function(called, autograph=False).get_concrete_function(*given)
        wide = [tf.cast(each, "float32") if each.dtype == "bfloat16" else each for each in given]
        return tf.nest.map_structure(
            lambda result, spec: tf.cast(result, spec.dtype),
            called(*wide),
            expected.structured_outputs,
        )

    forward = tf.function(inside, jit_compile=True, autograph=False)

    @tf.function(jit_compile=True, autograph=False)
    def backward(tensors, upstream):
        sources = [tensor for tensor in tensors if tensor.dtype.is_floating]
        with tf.GradientTape() as tape:
            tape.watch(sources)
            results = inside(*tensors)
        return tape.gradient(results, sources, upstream, unconnected_gradients="zero")

    @tf.custom_gradient
    def with_gradient(*tensors):
        results = forward(*tensors)

        def gradient(*upstream):
            upstream = upstream if isinstance(results, tuple) else upstream[0]
            found = iter(backward(tensors, upstream))
            return [next(found) if tensor.dtype.is_floating else None for tensor in tensors]

        return results, gradient

    # Keras returns a variable itself as a tensor, and its gradient would be lost.
    return lambda *given: with_gradient(
        *(tf.convert_to_tensor(ops.convert_to_tensor(each)) for each in given)
    )
