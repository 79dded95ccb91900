"""Tokens a second of a pretraining step on a GPU: ours on JAX against PyTorch, without TensorFlow.

KERAS_BACKEND=jax python gpu_throughput.py --peak_tflops=67,495,989

Each side runs alone in a process of its own. Sides whose library is missing are left out and named.
"""

import importlib.util
import os
import time
from typing import NamedTuple

import numpy as np
from absl import app, flags
from contenders import Size, our_config, peer_config, peer_train_step, random_batch
from forms import Form, wanted
from timing import import_torch, in_fresh_process, milliseconds

# (JAX's name of the precision of products, PyTorch's, Keras's policy)
PRECISIONS = {
    "float32": ("highest", "highest", "float32"),
    "tensorfloat32": ("tensorfloat32", "high", "float32"),
    "bfloat16": ("tensorfloat32", "high", "mixed_bfloat16"),
}
COLUMNS = ("side", "precision", "ms", "tokens a second", "of the product rate", "of the peak")
COLUMNS += ("peak GB", "ours, tokens / it")
FLAGS = flags.FLAGS
flags.DEFINE_multi_string(
    "size",
    ["12,768,12,3072,128,256,20", "12,768,12,3072,512,64,76", "24,1024,16,4096,128,128,20"],
    "layers,hidden,heads,intermediate,length,batch,predictions; may be repeated; by default base "
    "at two lengths, and large",
)
flags.DEFINE_list("precisions", list(PRECISIONS), "precisions of products, some of the default's")
flags.DEFINE_list("peak_tflops", None, "the device's nominal peak in each of --precisions")
flags.DEFINE_integer("rounds", 5, "times that the steps are timed, after one that is not")
flags.DEFINE_integer("steps", 10, "steps that are timed together")


class Measured(NamedTuple):
    """What a side reached.

    Attributes:
      seconds: of a step, float [rounds].
      peak_bytes: the most memory of the device in use, or None if it does not tell.
    """

    seconds: np.ndarray
    peak_bytes: int | None


def main(_):
    if os.environ.get("KERAS_BACKEND") != "jax":
        raise app.UsageError("set KERAS_BACKEND=jax: Keras reads it when it is imported")
    unknown = set(FLAGS.precisions) - set(PRECISIONS)
    if unknown or len(FLAGS.peak_tflops or FLAGS.precisions) != len(FLAGS.precisions):
        raise app.UsageError(f"--precisions are among {', '.join(PRECISIONS)}; a peak for each")
    peaks = dict(zip(FLAGS.precisions, map(float, FLAGS.peak_tflops or ()), strict=False))
    # Otherwise JAX takes most of the memory at once, and what a step needs would not show.
    os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false"
    print("device, versions: " + in_fresh_process(jax_device))
    sides = wanted({"ours": (make_our_step, "functional_relative"), **_peers()})
    rates = {name: in_fresh_process(product_rate, name) for name in FLAGS.precisions}
    shown = (f"{name} {rate / 1e12:.1f}" for name, rate in rates.items())
    print("TFLOP/s of products, in JAX: " + ", ".join(shown), flush=True)
    for text in FLAGS.size:
        print(f"\n{text}\n\n| {' | '.join(COLUMNS)} |\n{'| --- ' * len(COLUMNS)}|", flush=True)
        size = Size(*map(int, text.split(",")))
        for precision in FLAGS.precisions:
            _show_sides(size, precision, sides, rates[precision], peaks.get(precision))


def _show_sides(size, precision, sides, product_rate, peak_tflops):
    """Prints the rows of a size and a precision."""
    ours = None
    for name, (make, *options) in sides.items():
        arguments = (FLAGS.rounds, FLAGS.steps, make, size, precision, *options)
        try:
            found = in_fresh_process(measure, *arguments)
        except RuntimeError as error:  # out of memory, say; the other rows are worth having
            print(f"| {name} | {precision} | failed: {str(error).splitlines()[0]} |", flush=True)
            continue
        ours = found if name == "ours" else ours
        encoding = "absolute" if "BERT" in name else "functional_relative"
        shown = row(size, encoding, found, ours, product_rate, peak_tflops)
        print(f"| {name} | {precision} | {' | '.join(shown)} |", flush=True)


def row(size, position_encoding, found, ours, product_rate, peak_tflops):
    """Returns what the table tells of a side, a list of texts.

    Args:
      size: `Size`.
      position_encoding: that of the side's model, whose products count.
      found: `Measured` of this side.
      ours: that of ours, or None.
      product_rate: FLOP/s of a product of large matrices.
      peak_tflops: the nominal peak, or None.
    """
    from nezha_tf.modeling.flops import training_flops

    config = our_config(size, position_encoding)
    seconds = np.median(found.seconds)
    flops = size.batch * training_flops(config, size.length, size.predictions) / seconds
    return [
        milliseconds(found.seconds),
        f"{size.batch * size.length / seconds:,.0f}",
        f"{flops / product_rate:.1%}",
        f"{flops / (peak_tflops * 1e12):.1%}" if peak_tflops else "",
        f"{found.peak_bytes / 1e9:.1f}" if found.peak_bytes is not None else "",
        f"{seconds / np.median(ours.seconds):.2f}" if ours else "",
    ]


def measure(rounds, steps, make, *arguments):
    """Returns the `Measured` of a side.

    Args:
      rounds, steps: see the flags.
      make: function of a module; it returns (step, wait, peak). `step()` starts a step, `wait()`
        waits until all are done, `peak()` returns the most bytes in use so far, or None.
      arguments: those of `make`.
    """
    step, wait, peak = make(*arguments)
    seconds = []
    for _ in range(rounds + 1):
        start = time.perf_counter()
        for _ in range(steps):
            step()
        wait()
        seconds.append((time.perf_counter() - start) / steps)
    return Measured(np.array(seconds[1:]), peak())


def make_our_step(size, precision, position_encoding):
    """Returns ours on JAX: forward, backward, clipping and AdamW in one compiled function."""
    import jax

    jax.config.update("jax_default_matmul_precision", PRECISIONS[precision][0])
    update, state = our_update(size, PRECISIONS[precision][2], position_encoding)
    update = jax.jit(update, donate_argnums=0)
    batch = jax.device_put(random_batch(size))
    kept = {"state": state}

    def step():
        kept["state"], kept["loss"] = update(kept["state"], batch)
        return kept["loss"]

    def peak():
        return (jax.local_devices()[0].memory_stats() or {}).get("peak_bytes_in_use")

    return step, lambda: jax.block_until_ready(kept["loss"]), peak


def our_update(size, policy, position_encoding):
    """Returns (a pure function of (state, batch) to (state, loss), the first state)."""
    import jax

    from nezha_tf import AdamWeightDecay, NezhaForPreTraining
    from nezha_tf.objectives.bert import Bidirectional
    from nezha_tf.optimization.clipping import clip_by_global_norm

    model = NezhaForPreTraining(our_config(size, position_encoding), dtype=policy)
    optimizer, objective = AdamWeightDecay(1e-4), Bidirectional().loss()
    optimizer.build(model.trainable_variables)

    def loss_of(trainable, others, batch):
        inputs = objective.inputs(batch)
        outputs, others = model.stateless_call(trainable, others, inputs, training=True)
        losses = objective.losses(outputs, batch).values()
        return sum(loss.scale * loss.over(loss.weight) for loss in losses), others

    def update(state, batch):
        trainable, others, moments = state
        of_loss = jax.value_and_grad(loss_of, has_aux=True)
        (loss, others), gradients = of_loss(trainable, others, batch)
        gradients, _ = clip_by_global_norm(gradients, 1.0)
        trainable, moments = optimizer.stateless_apply(moments, gradients, trainable)
        return (trainable, others, moments), loss

    groups = (model.trainable_variables, model.non_trainable_variables, optimizer.variables)
    return update, tuple([variable.value for variable in group] for group in groups)


def make_peer_step(size, precision, kind, is_compiled):
    """Returns a model of transformers on PyTorch, scored at the masked positions as ours.

    Args:
      size, precision: as for ours.
      kind: "nezha", or "bert": BERT with PyTorch's scaled_dot_product_attention.
      is_compiled: whether torch.compile compiles it.
    """
    torch = import_torch()
    torch.set_float32_matmul_precision(PRECISIONS[precision][1])
    form = Form("bfloat16" if precision == "bfloat16" else "float32", is_compiled)
    step = peer_train_step(_peer_model(size, kind), size, form, False, "cuda")
    return step, torch.cuda.synchronize, torch.cuda.max_memory_allocated


def _peer_model(size, kind):
    import_torch()
    import transformers

    if kind == "nezha":
        return transformers.NezhaForPreTraining(peer_config(size))
    config = peer_config(size, "BertConfig")
    maker = transformers.AutoModelForPreTraining
    return maker.from_config(config, attn_implementation="sdpa")


def _peers():
    """Returns the sides of PyTorch that can run here; prints why others cannot."""
    if not all(map(importlib.util.find_spec, ("torch", "transformers"))):
        print("PyTorch or transformers is missing: its sides are left out")
        return {}
    reason = in_fresh_process(why_no_cuda)
    if reason:
        print(f"{reason}: the sides of PyTorch are left out")
        return {}
    sides = {}
    for name, kind in {"PyTorch, Nezha": "nezha", "PyTorch, BERT with SDPA": "bert"}.items():
        reason = in_fresh_process(why_no_peer, kind)
        if reason:
            print(f"{name} is left out: {reason}")
            continue
        for form, is_compiled in {"eager": False, "compiled": True}.items():
            sides[f"{name}, {form}"] = (make_peer_step, kind, is_compiled)
    return sides


def why_no_cuda():
    """Returns why PyTorch has no GPU here, or None."""
    import torch

    return None if torch.cuda.is_available() else f"PyTorch {torch.__version__} has no GPU here"


def why_no_peer(kind):
    """Returns why transformers cannot make this model, or None."""
    try:
        _peer_model(Size(1, 8, 1, 8, 8, 1, 1, 16), kind)
    except (ImportError, AttributeError, RuntimeError, ValueError) as error:
        return str(error).splitlines()[0]
    return None


def jax_device():
    """Returns the device and the versions as text."""
    import jax
    import keras

    kind = jax.local_devices()[0].device_kind
    return f"{kind}; jax {jax.__version__}, keras {keras.__version__}"


def product_rate(precision, side=8192):
    """Returns FLOP/s of the fastest of ten products of two square matrices in JAX."""
    import jax
    from jax import numpy as jnp

    jax.config.update("jax_default_matmul_precision", PRECISIONS[precision][0])
    dtype = "bfloat16" if precision == "bfloat16" else "float32"
    if jax.local_devices()[0].platform == "cpu":
        side //= 8
    matrix = jax.random.normal(jax.random.key(0), (side, side), dtype)
    product = jax.jit(jnp.matmul)
    seconds = []
    for _ in range(11):
        start = time.perf_counter()
        product(matrix, matrix).block_until_ready()
        seconds.append(time.perf_counter() - start)
    return 2 * side**3 / min(seconds[1:])


if __name__ == "__main__":
    app.run(main)
