"""Whether XLA compiles a run, where the user does not say."""

import tensorflow as tf

from nezha_tf.training.batch_sizes import batch_sizes
from nezha_tf.training.throughput import flops_per_example

# On two cores with AVX2 the first step came 9 s sooner without XLA for 1 layer of 16, and 12 s for
# 4 layers of 256, and then a step took 1.34 times as long for 2 layers of 128, and up to 1.2 times
# for 4 layers of 256. So compiling pays from 1e12 to 3e12 operations on.
LEAST_COMPILED_FLOPS = 2e12


def pays_to_compile(task):
    """Returns whether XLA compiles the steps of a `Task`: not those of a short run.

    This was measured on processors in float32 alone, so all else is compiled.
    """
    settings = task.settings
    gpus = tf.config.list_logical_devices("GPU")
    on_processor = not gpus and settings.distribution_strategy != "tpu"
    is_short = settings.do_train and task.is_short
    return not (on_processor and settings.precision == "float32" and is_short)


def has_little_arithmetic(task):
    """Returns whether the training of a `Task` ends before the compiler's seconds are won back.

    Of --train_minutes the number of steps is not known, so it counts as long.
    """
    settings = task.settings
    if settings.num_train_steps is None:
        return False
    examples = batch_sizes(settings).examples(settings.num_train_steps)
    return examples * flops_per_example(settings, task) < LEAST_COMPILED_FLOPS
