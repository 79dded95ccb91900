"""A Transformer layer with only what lies between its products compiled by XLA.

XLA computes bfloat16 in float32 on a CPU, while the products of TensorFlow's graph mode are
oneDNN's, which has bfloat16. So the model's form for bfloat16 on processors is: products in graph
mode, and what lies between them (bias, heads, softmax, dropout, residual, LayerNorm, GELU) in small
compiled functions (`nezha_tf/modeling/compiled_parts.py`). Here the idea stands alone: layers in
plain TensorFlow, against the same layers compiled as a whole, and not at all.
"""

import functools
import math

import machine
from absl import app, flags
from timing import import_tensorflow, milliseconds, ratio, run_in_turns

tf = import_tensorflow()
# After TensorFlow, which gets its threads first.
from nezha_tf.modeling.compiled_parts import compiled_parts, fused  # noqa: E402

FLAGS = flags.FLAGS
flags.DEFINE_multi_string(
    "size",
    ["2,768,12,3072,128,8", "4,256,4,1024,128,32"],
    "layers,hidden,heads,intermediate,length,batch",
)
flags.DEFINE_integer("rounds", 6, "turns that each side gets")
flags.DEFINE_integer("steps", 3, "steps in a turn")
FORMS = ("whole", "between products", "not compiled")
DROPOUT = 0.1


def main(_):
    machine.show()
    print("| size | form | dtype | ms (least) | ratio to float32, whole |\n" + "| --- " * 5 + "|")
    for size in FLAGS.size:
        sides = [(form, dtype) for dtype in ("float32", "bfloat16") for form in FORMS]
        makers = {side: (make_step, size, *side) for side in sides}
        times = run_in_turns(makers, FLAGS.rounds, FLAGS.steps)
        for form, dtype in sides:
            own = times[form, dtype]
            against = ratio(own, times["whole", "float32"])
            print(f"| {size} | {form} | {dtype} | {milliseconds(own)} | {against} |", flush=True)


def make_step(size, form, dtype):
    """Returns a callable: a forward and backward pass, which returns the gradients' norm."""
    tf.random.set_seed(1)
    layers, hidden, heads, intermediate, length, batch = map(int, size.split(","))
    dtype = tf.as_dtype(dtype)
    shapes = {"qkv": (hidden, 3 * hidden), "attended": (hidden, hidden)}
    shapes |= {"up": (hidden, intermediate), "down": (intermediate, hidden)}
    weights = [
        {
            name: (tf.Variable(tf.random.normal(shape) * 0.02), tf.Variable(tf.zeros(shape[1])))
            for name, shape in shapes.items()
        }
        for _ in range(layers)
    ]
    variables = tf.nest.flatten(weights)
    parts = {
        "heads": functools.partial(_heads, (batch, length, 3, heads, hidden // heads)),
        "softmax": _softmax,
        "joined": _joined,
        "normed": _normed,
        "gelu": _gelu,
    }
    parts = {name: fused(part) for name, part in parts.items()}
    states = tf.random.normal((batch * length, hidden))
    distances = tf.random.normal((length, length, hidden // heads))

    @functools.partial(tf.function, jit_compile=form == "whole", autograph=False)
    @compiled_parts(form == "between products")
    def step(key):
        with tf.GradientTape() as tape:
            output = tf.cast(states, dtype)
            for number, own in enumerate(weights):
                own = tf.nest.map_structure(lambda weight: tf.cast(weight, dtype), own)
                keys = [key + tf.constant(3 * number + use, tf.uint32) for use in range(3)]
                output = _layer(parts, output, own, tf.cast(distances, dtype), keys)
            loss = tf.reduce_mean(states * tf.cast(output, tf.float32))
        return tf.linalg.global_norm(tape.gradient(loss, variables))

    return lambda: step(tf.constant(5, tf.uint32)).numpy()


def _layer(parts, states, weights, distances, keys):
    """Returns the states after a layer; products stand here, all else is in `parts`."""
    kernel, bias = weights["qkv"]
    query, key, value = parts["heads"](tf.matmul(states, kernel), bias)
    scores = tf.matmul(query, key, transpose_b=True)
    probs = parts["softmax"](scores, tf.einsum("bnth,tsh->bnts", query, distances), keys[0])
    context = tf.matmul(probs, value), tf.einsum("bnts,tsh->bnth", probs, distances)
    kernel, bias = weights["attended"]
    attended = parts["normed"](tf.matmul(parts["joined"](*context), kernel), bias, states, keys[1])
    kernel, bias = weights["up"]
    raised = parts["gelu"](tf.matmul(attended, kernel), bias)
    kernel, bias = weights["down"]
    return parts["normed"](tf.matmul(raised, kernel), bias, attended, keys[2])


def _heads(shape, states, bias):
    states = tf.transpose(tf.reshape(states + bias, shape), (2, 0, 3, 1, 4))
    return states[0] * tf.cast(1 / math.sqrt(shape[-1]), states.dtype), states[1], states[2]


def _softmax(scores, of_distances, key):
    probs = tf.nn.softmax(tf.cast(scores + of_distances, tf.float32))
    return _dropped(tf.cast(probs, scores.dtype), key)


def _joined(context, of_distances):
    batch, heads, length, size = context.shape
    context = tf.transpose(context + of_distances, (0, 2, 1, 3))
    return tf.reshape(context, (batch * length, heads * size))


def _gelu(states, bias):
    return tf.nn.gelu(states + bias, approximate=True)


def _normed(states, bias, residual, key):
    total = tf.cast(_dropped(states + bias, key) + residual, tf.float32)
    mean, variance = tf.nn.moments(total, -1, keepdims=True)
    return tf.cast((total - mean) * tf.math.rsqrt(variance + 1e-12), states.dtype)


def _dropped(states, key):
    """Dropout by a hash of each entry's index, as `nezha_tf.modeling.dropout` has it."""
    bits = tf.bitwise.bitwise_xor(tf.cast(tf.range(states.shape.num_elements()), tf.uint32), key)
    for shift, factor in ((16, 0x7FEB352D), (15, 0x846CA68B)):
        shifted = tf.bitwise.right_shift(bits, tf.constant(shift, tf.uint32))
        bits = tf.bitwise.bitwise_xor(bits, shifted)
        bits *= tf.constant(factor, tf.uint32)
    keep = tf.reshape(bits, tf.shape(states)) >= tf.constant(round(DROPOUT * 2**32), tf.uint32)
    return tf.where(keep, states / tf.cast(1 - DROPOUT, states.dtype), tf.zeros_like(states))


if __name__ == "__main__":
    app.run(main)
