"""Writes files of small records; the first id of each record is its number."""

import numpy as np
import tensorflow as tf

from nezha_tf.data import schema

LIMITS = schema.Limits(vocab_size=20_000, type_vocab_size=2)
# A small model that reads what `write_numbers` writes.
CONFIG_OF_NUMBERS = {
    "vocab_size": 2100,
    "hidden_size": 8,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "intermediate_size": 16,
    "type_vocab_size": 6,
    "use_relative_position": True,
}


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
    return encode_values({**values, **changes})


def encode_values(values, features=schema.FEATURES):
    """Returns a `tf.train.Example` of a dict of name to numbers, serialized by protobuf."""
    example = tf.train.Example()
    for feature in features:
        value = example.features.feature[feature.name]
        numbers = value.float_list if feature.dtype is np.float32 else value.int64_list
        numbers.value.extend(values[feature.name])
    return example.SerializeToString(deterministic=True)


def write(path, records):
    with tf.io.TFRecordWriter(str(path)) as writer:
        for record in records:
            writer.write(record)
    return str(path)


def write_numbers(folder, *sizes):
    """Writes files with the records 1000, 1001 ...; 2000, 2001 ...; returns their paths."""
    return [
        write(folder / f"{n}.tfrecord", [encode(1000 * n + k) for k in range(size)])
        for n, size in enumerate(sizes, start=1)
    ]


def frame_start(path, record):
    """Returns the byte offset of a record, numbered from 1."""
    data, offset = open(path, "rb").read(), 0
    for _ in range(record - 1):
        offset += 8 + 4 + int.from_bytes(data[offset : offset + 8], "little") + 4
    return offset


def flip(path, record, byte):
    """Damages one byte of a record: 0 to 7 its length, 8 to 11 the length's CRC, then its data."""
    data = bytearray(open(path, "rb").read())
    data[frame_start(path, record) + byte] ^= 0x10
    open(path, "wb").write(data)
