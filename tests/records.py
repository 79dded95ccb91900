"""Files of small records: each has its number as its first id."""

import tensorflow as tf

from nezha_tf.data import schema

LIMITS = schema.Limits(vocab_size=20_000, type_vocab_size=2)


def encode(number, **changes):
    values = {
        "input_ids": [number] * 8,
        "input_mask": [1] * 8,
        "segment_ids": [0] * 4 + [1] * 4,
        "masked_lm_positions": [1, 2],
        "masked_lm_ids": [3, 4],
        "masked_lm_weights": [1.0, 1.0],
        "next_sentence_labels": [0],
    }
    return schema.encode({**values, **changes})


def write(path, records):
    with tf.io.TFRecordWriter(str(path)) as writer:
        for record in records:
            writer.write(record)
    return str(path)


def write_numbers(folder, *sizes):
    """Writes files of 1000, 1001 ..., 2000, 2001 ... and so on; returns their paths."""
    return [
        write(folder / f"{n}.tfrecord", [encode(1000 * n + k) for k in range(size)])
        for n, size in enumerate(sizes, start=1)
    ]
