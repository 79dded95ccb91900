"""Datasets of the records of many files, in order or shuffled in each epoch.

`files` are everywhere a list of (path, stretches to read); see `damage.Survey`.
"""

import numpy as np
import tensorflow as tf

from nezha_tf.data import draws

SHUFFLE_BUFFER = 10_000
READ_BUFFER_BYTES = 256 * 1024
FILES_AT_ONCE = 8
# A decorator for functions of a pipeline. Otherwise AutoGraph would convert all code that they
# call, which takes longer than tracing it, although none of it needs this.
traced_as_is = tf.autograph.experimental.do_not_convert


def untuned(dataset):
    """Returns a dataset without autotuning, whose thread can delay an iterator's end by a minute.

    Functions that run in parallel then use as many threads as there are cores, up to 16.
    """
    options = tf.data.Options()
    options.autotune.enabled = False
    return dataset.with_options(options)


def prefetched(batches):
    """Returns a dataset that has its next batches ready.

    TensorFlow does not rewrite it first, which takes half of an iterator's start: there is nothing
    in these pipelines that its rewriting would fuse or remove.
    """
    options = tf.data.Options()
    options.experimental_optimization.apply_default_optimizations = False
    return untuned(batches.prefetch(tf.data.AUTOTUNE)).with_options(options)


def endless(batches):
    """Marks a dataset as endless, or tf.distribute would check before each step if it has ended."""
    return batches.apply(tf.data.experimental.assert_cardinality(tf.data.INFINITE_CARDINALITY))


def in_order(files):
    """Returns a dataset of the records, in the files' order."""
    return tf.data.Dataset.range(len(files)).flat_map(_file_reader(files))


def shuffled_epochs(files, seed, first_epoch):
    """Returns an endless shuffled dataset with each record once per epoch.

    An epoch's order depends only on the seed (int) and the epoch's number (from 0), not on the
    global seed or on what was read before.
    """
    read_file = _file_reader(files)

    @traced_as_is
    def epoch(number):
        seeds = draws.graph_seeds(tf.stack([seed, number]), 2)
        order = draws.graph_shuffled(tf.range(len(files), dtype=tf.int64), seeds[0])
        records = tf.data.Dataset.from_tensor_slices(order).interleave(
            read_file,
            cycle_length=min(FILES_AT_ONCE, len(files)),
            num_parallel_calls=tf.data.AUTOTUNE,
            deterministic=True,
        )
        return _shuffled(records, seeds[1])

    return tf.data.Dataset.counter(first_epoch).flat_map(epoch)


def in_turns(streams, turns, first):
    """Returns an endless dataset that takes each record from one of several endless datasets.

    Args:
      streams: the datasets, each from its own place on.
      turns: the stream that gives each record of a period, int64 [n]; see `shares.Shares`.
      first: the number of the first record, from 0.
    """
    order = np.roll(turns, -(first % len(turns)))
    choices = tf.data.Dataset.from_tensor_slices(order).repeat()
    return tf.data.Dataset.choose_from_datasets(streams, choices)


def raw_records(path, offset):
    """Returns a dataset of a file's records from a byte offset on; both arguments are tensors.

    Use it inside a function of `flat_map` only: `reduce` and iterators serialize a dataset that is
    outside a function, and TensorFlow cannot serialize a TFRecordDatasetV2 with an offset.
    """
    variant = tf.raw_ops.TFRecordDatasetV2(
        filenames=[path],
        compression_type="",
        buffer_size=READ_BUFFER_BYTES,
        byte_offsets=[offset],
    )
    return tf.data.experimental.from_variant(variant, tf.TensorSpec([], tf.string))


def _file_reader(files):
    """Returns a function from a file's index, an int64 tensor, to the dataset of its records."""
    paths = tf.constant([path for path, stretches in files for _ in stretches])
    flat = tf.constant([stretch for _, stretches in files for stretch in stretches], tf.int64)
    ends = tf.cumsum(tf.constant([0, *(len(stretches) for _, stretches in files)], tf.int64))

    def read_stretch(index):
        return raw_records(paths[index], flat[index, 0]).take(flat[index, 1])

    @traced_as_is
    def read_file(index):
        return tf.data.Dataset.range(ends[index], ends[index + 1]).flat_map(read_stretch)

    return read_file


def _shuffled(records, seeds):
    # Dataset.shuffle would use the global seed too.
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
