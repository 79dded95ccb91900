"""Reads the tensors of a TF1 Saver checkpoint (V2): `.index` and `.data-00000-of-00001`.

TensorFlow's own reader takes a path with `[`, `*`, `?` or a backslash for a pattern, and some
damaged files end its process. The format is that of tensorflow/core/util/tensor_bundle: the index
is a sorted table of `BundleEntryProto`, which say in which file and where a tensor's bytes are.
"""

import math
from typing import NamedTuple

import numpy as np
import tensorflow as tf
from google.protobuf.message import DecodeError
from tensorflow.core.framework import types_pb2
from tensorflow.core.protobuf import tensor_bundle_pb2

from nezha_tf.checkpoints.refusals import UnreadableCheckpoint, no_float
from nezha_tf.checkpoints.sorted_table import read_entries
from nezha_tf.data.framing import masked_crc
from nezha_tf.util import storage

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
# What the keys of parts begin with; names have no such character.
_PART = b"\0"


class _Entry(NamedTuple):
    """What the index says of a tensor, or of a part of one that was saved in parts.

    Attributes:
      type: number of its `DataType`.
      shape: tuple of int.
      file, offset, size: in which file, where and how many bytes it is.
      crc: the masked CRC-32C of its bytes.
      parts: for each part, a list of its (first index, length) in each dimension; length -1: all.
    """

    type: int
    shape: tuple
    file: int
    offset: int
    size: int
    crc: int
    parts: list


class BundleReader:
    """Reads tensors by name, with the interface of `tf.train.CheckpointReader`."""

    def __init__(self, prefix):
        """Args:
          prefix: path without ending.

        Raises:
          UnreadableCheckpoint: the index is damaged, or says what cannot be.
        """
        self._prefix = prefix
        try:
            with storage.open_binary(f"{prefix}.index", "rb") as file:
                values = read_entries(file.read())
            self._num_files = _number_of_files(values.pop(b"", None))
            self._entries = {key: self._entry(key, value) for key, value in values.items()}
            self._names = {key.decode(): key for key in values if not key.startswith(_PART)}
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else error
            raise UnreadableCheckpoint(f"checkpoint {prefix} is unreadable: {reason}") from error

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
            return self._from_parts(name, entry) if entry.parts else self._read(entry)
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else error
            raise UnreadableCheckpoint(
                f"checkpoint {self._prefix} is damaged at {name}: {reason}"
            ) from error

    def _entry(self, key, value):
        """Returns the `_Entry` of a key; `ValueError`: there can be no such tensor."""
        told = ascii(key.decode(errors="replace"))
        if not key.startswith(_PART) and not key.decode().isprintable():
            raise ValueError(f"the name {told} has control characters")
        proto = _parsed(tensor_bundle_pb2.BundleEntryProto, value, told)
        entry = _Entry(
            type=proto.dtype,
            shape=tuple(dimension.size for dimension in proto.shape.dim),
            file=proto.shard_id,
            offset=proto.offset,
            size=proto.size,
            crc=proto.crc32c,
            parts=[[_extent(one) for one in part.extent] for part in proto.slices],
        )
        if not entry.type or entry.type not in types_pb2.DataType.values():
            raise ValueError(f"{told} is of the type {entry.type}, which TensorFlow does not have")
        if proto.shape.unknown_rank or min(entry.shape, default=0) < 0:
            raise ValueError(f"{told} has no shape, or one below zero")
        if len(entry.shape) > _MOST_DIMENSIONS:
            raise ValueError(f"{told} has {len(entry.shape)} dimensions")
        if not 0 <= entry.file < self._num_files or min(entry.offset, entry.size) < 0:
            raise ValueError(f"{told} lies in no file")
        if entry.type in _TYPES and not entry.parts and entry.size != _bytes_of(entry):
            raise ValueError(
                f"{told} has {entry.size} bytes, but the shape {list(entry.shape)} needs "
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

    def _from_parts(self, name, entry):
        """Returns a tensor that was saved in parts (`partitioner` of tf.compat.v1.get_variable)."""
        values = []
        for extents in entry.parts:
            part = self._entries.get(_key_of_part(name, extents))
            if part is None or part.parts or part.type != entry.type:
                raise ValueError("a part of it is missing")
            places = _places(extents, entry.shape)
            if part.shape != tuple(place.stop - place.start for place in places):
                raise ValueError("a part of it has another shape than its place")
            values.append((places, self._read(part)))
        if sum(value.size for _, value in values) != math.prod(entry.shape):
            raise ValueError("its parts do not make up the whole")
        whole, is_set = np.empty(entry.shape, _TYPES[entry.type]), np.zeros(entry.shape, bool)
        for places, value in values:
            whole[places], is_set[places] = value, True
        if not is_set.all():
            raise ValueError("its parts overlap")
        return whole


def _number_of_files(value):
    """Returns the number of data files that the index's header says."""
    if value is None:
        raise ValueError("its index has no header")
    header = _parsed(tensor_bundle_pb2.BundleHeaderProto, value, "the header of its index")
    version = header.version
    if version.min_consumer > _VERSION or _VERSION in version.bad_consumers:
        raise ValueError("it is of a newer version of TensorFlow's format")
    if header.endianness != header.LITTLE:
        raise ValueError("it was written by a machine with the other order of bytes")
    return header.num_shards


def _parsed(kind, value, told):
    try:
        return kind.FromString(value)
    except DecodeError as error:
        raise ValueError(f"{told} cannot be decoded") from error


def _bytes_of(entry):
    return math.prod(entry.shape) * _TYPES[entry.type].itemsize


def _extent(proto):
    """Returns (first index, length) of a part in a dimension; (0, -1): the whole dimension."""
    return (proto.start, proto.length) if proto.HasField("length") else (0, -1)


def _places(extents, shape):
    """Returns the slices of a part within its tensor."""
    if len(extents) != len(shape):
        raise ValueError("a part of it has other dimensions")
    places = []
    for (start, length), size in zip(extents, shape, strict=True):
        length = size if length < 0 else length
        if not 0 <= start <= start + length <= size:
            raise ValueError("a part of it lies outside")
        places.append(slice(start, start + length))
    return tuple(places)


def _key_of_part(name, extents):
    """Returns the key of a part in the index (saved_tensor_slice_util.cc)."""
    # The bytes 0 and 255 of a name would be written otherwise, but no name has them.
    numbers = b"".join(_ordered(number) for extent in extents for number in extent)
    return _PART + name.encode() + b"\0\1" + bytes([1, len(extents)]) + numbers


def _ordered(number):
    """Returns bytes in the numbers' order (WriteSignedNumIncreasing, ordered_code.cc).

    As many bits at the beginning as there are bytes are the opposite of the sign's.
    """
    length = (number if number >= 0 else ~number).bit_length() // 7 + 1
    bits = number & ((1 << 8 * length) - 1)
    return (bits ^ (((1 << length) - 1) << 7 * length)).to_bytes(length, "big")
