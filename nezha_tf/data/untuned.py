"""Data sets that do not tune themselves while they are read."""

import tensorflow as tf


def untuned(dataset):
    """Returns a dataset without autotuning, whose thread can delay an iterator's end by a minute.

    Functions that run in parallel then use as many threads as there are cores, up to 16.
    """
    options = tf.data.Options()
    options.autotune.enabled = False
    return dataset.with_options(options)
