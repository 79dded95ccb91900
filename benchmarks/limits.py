"""The least time of a step: that of its products, or of reading its weights.

No form in these numbers is faster on this machine, however it computes the rest. A form that
multiplies less than the model's definition says, or in fewer bits, may be.
"""

import time

import numpy as np
from timing import THREADS, import_tensorflow, in_fresh_process

BYTES = {"float32": 4, "bfloat16": 2}


def least(rates, config, lengths, batches, training=False, predictions=0):
    """Returns dict of precision to the least seconds of a step.

    Args:
      rates: what `machine.show` returned.
      config: a `NezhaConfig`.
      lengths: the tokens of each sequence of a step, without padding. With `predictions` all
        places have an output, else the first one.
      batches: how often the weights are read.
      training: whether the step has a backward pass.
      predictions: places whose word is predicted in each sequence.
    """
    from nezha_tf.modeling.flops import training_flops

    outputs = None if predictions else 1
    passes = sum(training_flops(config, n, predictions, num_outputs=outputs) for n in lengths)
    operations = passes if training else passes / 3
    # The operations of one token are two for each weight, forward and twice backward.
    weights = training_flops(config, 1, min(predictions, 1)) / 6
    sizes = {precision: int(weights * size) for precision, size in BYTES.items()}
    reading = in_fresh_process(reading_rates, list(sizes.values()))
    return {
        precision: max(operations / rates[precision], batches * size / rate)
        for (precision, size), rate in zip(sizes.items(), reading, strict=True)
    }


def reading_rates(sizes):
    """Returns the bytes a second at which arrays of some sizes in bytes are summed, each again."""
    tf = import_tensorflow()
    rates = []
    for size in sizes:
        rows = tf.ones([THREADS, max(1, size // 4 // THREADS)])
        total = tf.function(lambda rows=rows: tf.reduce_sum(rows, axis=1), autograph=False)
        total()
        seconds = []
        for _ in range(20):
            start = time.perf_counter()
            total()
            seconds.append(time.perf_counter() - start)
        rates.append(np.prod(rows.shape) * 4 / min(seconds))
    return rates


def of(name, least):
    """Returns the least seconds of a side by its name, or None if its numbers have 8 bits."""
    if "dynamic_range" in name:
        return None
    return least["bfloat16" if "bfloat16" in name else "float32"]
