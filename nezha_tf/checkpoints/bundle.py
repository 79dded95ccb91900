"""Reads the tensors of a TF1 Saver checkpoint (V2): `.index` and `.data-00000-of-00001`.

TensorFlow's own reader takes a path with `[`, `*`, `?` or a backslash for a pattern, and some
damaged files end its process. The format is that of tensorflow/core/util/tensor_bundle.
"""

import math
import struct
from typing import NamedTuple

import numpy as np
import tensorflow as tf
from google.protobuf.message import DecodeError
from tensorflow.core.framework import types_pb2
from tensorflow.core.protobuf import tensor_bundle_pb2

from nezha_tf.checkpoints.refusals import UnreadableCheckpoint, no_float
from nezha_tf.data.framing import masked_crc
from nezha_tf.util import storage
from nezha_tf.util.errors import first_line

# The version of the format that this module reads; TensorFlow has written no other.
_VERSION = 1
# NumPy has no arrays of more dimensions in its older versions.
_MOST_DIMENSIONS = 32
# The types whose bytes in a file are those of NumPy's arrays; not texts and quantised numbers.
_TYPES = {
    tf.dtypes.as_dtype(name).as_datatype_enum: np.dtype(tf.dtypes.as_dtype(name).as_numpy_dtype)
    for name in (
        *("float16", "bfloat16", "float32", "float64", "complex64", "complex128", "bool"),
        *("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    )
}
_FOOTER_BYTES = 48
_MAGIC = struct.pack("<Q", 0xDB4775248B80FB57)
_TRAILER = struct.Struct("<BI")  # kind of compression; masked CRC-32C of the block and the kind
_MOST_VARINT_BYTES = 10
# The keys of an entry repeat the beginning of the key before, so they may be longer than the file;
# those of weights are so by a small factor.
_MOST_KEY_BYTES_PER_BYTE = 100
_PART = b"\0"  # the beginning of the keys of parts of tensors


class _Entry(NamedTuple):
    """What the index says of a tensor."""

    type: int
    shape: tuple
    file: int
    offset: int
    size: int
    crc: int
    in_parts: bool  # by a `partitioner` of tf.compat.v1.get_variable


class BundleReader:
    """Reads tensors by name, with the interface of `tf.train.CheckpointReader`."""

    def __init__(self, prefix):
        """`prefix` is a path without ending; `UnreadableCheckpoint`: the index is damaged."""
        self._prefix = prefix
        try:
            with storage.open_binary(f"{prefix}.index", "rb") as file:
                values = _read_entries(file.read())
            self._num_files = _number_of_files(values.pop(b"", None))
            self._entries = {key: self._entry(key, value) for key, value in values.items()}
            self._names = {key.decode(): key for key in values if not key.startswith(_PART)}
        except (OSError, ValueError) as error:
            raise UnreadableCheckpoint(
                f"checkpoint {prefix} is unreadable: {_reason(error)}"
            ) from error

    def get_variable_to_shape_map(self):
        """Returns {name: shape, a list of int}."""
        return {name: list(self._entries[key].shape) for name, key in self._names.items()}

    def get_tensor(self, name):
        """Returns a tensor as a NumPy array.

        Raises:
          UnreadableCheckpoint: its bytes are damaged or missing.
          UserError: its type has no counterpart in NumPy, as texts and quantised numbers.
        """
        entry = self._entries[self._names[name]]
        if entry.type not in _TYPES:
            kind = types_pb2.DataType.Name(entry.type).removeprefix("DT_").lower()
            raise no_float(self._prefix, name, kind)
        try:
            if entry.in_parts:  # Few files have such tensors, so TensorFlow puts them together.
                return tf.train.load_checkpoint(self._prefix).get_tensor(name)
            return self._read(entry)
        except (OSError, ValueError, tf.errors.OpError) as error:
            raise UnreadableCheckpoint(
                f"checkpoint {self._prefix} is damaged at {name}: {_reason(error)}"
            ) from error

    def _entry(self, key, value):
        """Returns the `_Entry` of a key; `ValueError`: there can be no such tensor."""
        shown = ascii(key.decode(errors="replace"))
        if not key.startswith(_PART) and not key.decode().isprintable():
            raise ValueError(f"the name {shown} has control characters")
        proto = _parsed(tensor_bundle_pb2.BundleEntryProto, value, shown)
        entry = _Entry(
            type=proto.dtype,
            shape=tuple(dimension.size for dimension in proto.shape.dim),
            file=proto.shard_id,
            offset=proto.offset,
            size=proto.size,
            crc=proto.crc32c,
            in_parts=bool(proto.slices),
        )
        if not entry.type or entry.type not in types_pb2.DataType.values():
            raise ValueError(f"{shown} is of the type {entry.type}, which TensorFlow does not have")
        if proto.shape.unknown_rank or min(entry.shape, default=0) < 0:
            raise ValueError(f"{shown} has no shape, or one below zero")
        if len(entry.shape) > _MOST_DIMENSIONS:
            raise ValueError(f"{shown} has {len(entry.shape)} dimensions")
        if not 0 <= entry.file < self._num_files or min(entry.offset, entry.size) < 0:
            raise ValueError(f"{shown} lies in no file")
        if entry.type in _TYPES and not entry.in_parts and entry.size != _bytes_of(entry):
            raise ValueError(
                f"{shown} has {entry.size} bytes, but the shape {list(entry.shape)} needs "
                f"{_bytes_of(entry)}"
            )
        return entry

    def _read(self, entry):
        path = f"{self._prefix}.data-{entry.file:05d}-of-{self._num_files:05d}"
        if entry.offset + entry.size > storage.size(path):
            raise ValueError(f"{path} is cut short")
        with storage.open_binary(path, "rb") as file:
            file.seek(entry.offset)
            content = file.read(entry.size)
        if masked_crc(content) != entry.crc:
            raise ValueError(f"a checksum in {path} is wrong")
        return np.frombuffer(content, _TYPES[entry.type]).reshape(entry.shape)


def _reason(error):
    return error.strerror if isinstance(error, OSError) else first_line(error)


def _number_of_files(value):
    if value is None:
        raise ValueError("its index has no header")
    header = _parsed(tensor_bundle_pb2.BundleHeaderProto, value, "the header of its index")
    version = header.version
    if version.min_consumer > _VERSION or _VERSION in version.bad_consumers:
        raise ValueError("it is of a newer version of TensorFlow's format")
    if header.endianness != header.LITTLE:
        raise ValueError("it was written by a machine with the other order of bytes")
    return header.num_shards


def _parsed(kind, value, shown):
    try:
        return kind.FromString(value)
    except DecodeError as error:
        raise ValueError(f"{shown} cannot be decoded") from error


def _bytes_of(entry):
    return math.prod(entry.shape) * _TYPES[entry.type].itemsize


def _read_entries(content):
    """Returns dict of key to value, both bytes, of the bytes of LevelDB's sorted table.

    It has blocks of entries, a block that says where they are, and a footer that says where that
    block is (tensorflow/core/lib/io/format.cc and block.cc). Whatever the bytes are, reading ends
    with the entries or with a `ValueError`, in time and memory that grow with the file.
    """
    footer = content[-_FOOTER_BYTES:]
    if len(footer) < _FOOTER_BYTES or not footer.endswith(_MAGIC):
        raise ValueError("it is cut short, or no index of a checkpoint")
    _, place = _pair(footer, 0)  # of a block about blocks, which is empty in checkpoints
    handle, _ = _pair(footer, place)
    entries, last, key_bytes = {}, None, 0
    for _, block in _entries_of_block(content, *handle):
        for key, value in _entries_of_block(content, *_pair(block, 0)[0]):
            key_bytes += len(key)
            if key_bytes > _MOST_KEY_BYTES_PER_BYTE * len(content):
                raise ValueError("its names are too long")
            if last is not None and key <= last:
                raise ValueError("its names are not in order")
            entries[key], last = value, key
    return entries


def _entries_of_block(content, offset, size):
    """Yields (key, value) of the block at a place; a key is given as what differs from the last."""
    end = offset + size
    if end + _TRAILER.size > len(content):
        raise ValueError("a part of it lies behind its end")
    block = content[offset:end]
    kind, crc = _TRAILER.unpack_from(content, end)
    if crc != masked_crc(content[offset : end + 1]):
        raise ValueError("a checksum is wrong")
    if kind:
        raise ValueError("it is compressed, as no release of TensorFlow writes it by itself")
    # Behind the entries are places where a search may begin, and their number.
    restarts = int.from_bytes(block[-4:], "little")
    end_of_entries = size - 4 * (restarts + 1)
    if size < 4 or end_of_entries < 0:
        raise ValueError("a block of it is too short")
    place, key = 0, b""
    while place < end_of_entries:
        shared, place = _varint(block, place)
        unshared, place = _varint(block, place)
        value_size, place = _varint(block, place)
        value_place = place + unshared
        end_of_value = value_place + value_size
        if shared > len(key) or end_of_value > end_of_entries:
            raise ValueError("an entry of it is impossible")
        key = key[:shared] + block[place:value_place]
        yield key, block[value_place:end_of_value]
        place = end_of_value


def _pair(data, place):
    """Returns ((offset, size) of a block, the place behind this pair)."""
    offset, place = _varint(data, place)
    size, place = _varint(data, place)
    return (offset, size), place


def _varint(data, place):
    """Returns (a number written in groups of seven bits, the place behind it)."""
    value = 0
    for index, byte in enumerate(data[place : place + _MOST_VARINT_BYTES]):
        value |= (byte & 0x7F) << (7 * index)
        if byte < 0x80:
            return value, place + index + 1
    raise ValueError("a number in it has no end")
