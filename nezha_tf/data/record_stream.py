"""Raw records of many files, as they stand or shuffled epoch by epoch.

Both take a list of (path, stretches): the `damage.Stretch`es of each file that are read.
"""

import tensorflow as tf

from nezha_tf.data import draws
from nezha_tf.data.damage import raw_records

SHUFFLE_BUFFER = 10_000
FILES_AT_ONCE = 8


def in_order(files):
    """Returns a dataset of the records, in the files' order."""
    read_file = _file_reader(files)
    return tf.data.Dataset.range(len(files)).flat_map(read_file)


def shuffled_epochs(files, seed, first_epoch):
    """Returns an endless dataset of the records, each once in an epoch.

    Args:
      files: list of (path, stretches).
      seed: with an epoch's number it alone fixes that epoch's order: no global seed, and
        nothing that was read before, has a part in it.
      first_epoch: number of the epoch to begin with, from 0.
    """
    read_file = _file_reader(files)

    def epoch(number):
        seeds = draws.graph_seeds(tf.stack([seed, number]), 2)
        order = draws.graph_shuffled(tf.range(len(files), dtype=tf.int64), seeds[0])
        records = tf.data.Dataset.from_tensor_slices(order).interleave(
            read_file,
            cycle_length=min(FILES_AT_ONCE, len(files)),
            num_parallel_calls=tf.data.AUTOTUNE,
            deterministic=True,
        )
        return _shuffle(records, seeds[1])

    return tf.data.Dataset.counter(first_epoch).flat_map(epoch)


def endless(batches):
    """Returns a dataset of which tensorflow knows that it does not end.

    Under tf.distribute, of batches that may end each step would ask whether they did.
    """
    return batches.apply(tf.data.experimental.assert_cardinality(tf.data.INFINITE_CARDINALITY))


def _file_reader(files):
    """Returns a function of a file's index, an int64 tensor, to the dataset of its records."""
    paths = tf.constant([path for path, stretches in files for _ in stretches])
    flat = tf.constant([stretch for _, stretches in files for stretch in stretches], tf.int64)
    ends = tf.cumsum(tf.constant([0, *(len(stretches) for _, stretches in files)], tf.int64))

    def read_stretch(index):
        return raw_records(paths[index], flat[index, 0]).take(flat[index, 1])

    return lambda index: tf.data.Dataset.range(ends[index], ends[index + 1]).flat_map(read_stretch)


def _shuffle(records, seeds):
    # Dataset.shuffle would mix the global seed in.
    variant = tf.raw_ops.ShuffleDataset(
        input_dataset=tf.data.experimental.to_variant(records),
        buffer_size=SHUFFLE_BUFFER,
        seed=seeds[0],
        seed2=seeds[1],
        reshuffle_each_iteration=False,
        output_types=[tf.string],
        output_shapes=[[]],
    )
    return tf.data.experimental.from_variant(variant, records.element_spec)
