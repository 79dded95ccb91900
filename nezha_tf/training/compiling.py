"""Whether XLA compiles a run, where the user does not say."""

import tensorflow as tf

from nezha_tf.training.batch_sizes import batch_sizes
from nezha_tf.training.throughput import flops_per_example

# Without XLA a step of two models took 1.34 and 1.2 times as long on two cores, but the first one
# came 9 and 12 s sooner. So compiling paid from 1.3e12 operations on for 2 layers of 128, and from
# 3.3e12 on for 4 layers of 256.
LEAST_COMPILED_FLOPS = 2e12


def pays_to_compile(task):
    """Returns whether XLA is worth its time: a short run in float32 on a processor is not.

    Other devices, and bfloat16, gain more, and an evaluation alone is compiled once.
    """
    settings = task.settings
    gpus = tf.config.list_logical_devices("GPU")
    on_processor = not gpus and settings.distribution_strategy != "tpu"
    is_short = settings.do_train and task.is_short
    return not (on_processor and settings.precision == "float32" and is_short)


def has_little_arithmetic(settings, task):
    """Returns whether a training is over before the compiler's seconds are won back.

    Of --train_minutes the number of steps is not known, so it counts as long.
    """
    if settings.num_train_steps is None:
        return False
    examples = batch_sizes(settings).examples(settings.num_train_steps)
    return examples * flops_per_example(settings, task) < LEAST_COMPILED_FLOPS
