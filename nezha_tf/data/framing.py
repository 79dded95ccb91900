"""Writes and reads the frames of TFRecord files without TensorFlow.

A frame is the record's length (8 bytes, little-endian), the masked CRC-32C of the length
(4), the record, and the masked CRC-32C of the record (4).
"""

import mmap
import os
import struct

import google_crc32c

from nezha_tf.util import storage
from nezha_tf.util.errors import UserError

HEADER = struct.Struct("<QI")
FRAME_BYTES = HEADER.size + 4
# The only fault after which the next frame can be read.
WRONG_CHECKSUM = "corrupt: its checksum is wrong"
# A record's length may be a lie, so no more than this is made room for before it is read.
_READ_AT_ONCE = 1 << 24


def frame(record):
    """Returns the frame of a record, both bytes."""
    length = struct.pack("<Q", len(record))
    return b"".join((length, _little_endian(length), record, _little_endian(record)))


def record_of(frame):
    """Returns the record inside a complete frame, both bytes."""
    return frame[HEADER.size : -4]


def read_frames(path):
    """Yields (number of the record from 1, its frame as bytes, its fault or "").

    Reading continues after a record with a wrong checksum. If a length is damaged or the file is
    truncated, the rest of the file is the last frame.

    Raises:
      UserError: the file cannot be read.
    """
    try:
        with storage.open_binary(path, "rb") as file:
            number = 0
            while header := file.read(HEADER.size):
                number += 1
                read, fault = _rest_of_frame(file, header)
                yield number, read, fault
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}") from error


def has_lying_length(path):
    """Whether a frame is longer than its file, though the checksum of its length is right.

    TensorFlow makes room for such a record, and its process ends if there is not so much memory.
    Nothing is found in a remote file.

    Raises:
      UserError: the file cannot be read.
    """
    if storage.is_remote(path) or not os.path.isfile(path) or not os.path.getsize(path):
        return False
    try:
        with (
            open(path, "rb") as file,
            mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content,
        ):
            place, size = 0, len(content)
            while place + HEADER.size <= size:
                length, crc = HEADER.unpack_from(content, place)
                if length > size and crc == masked_crc(content[place : place + 8]):
                    return True
                place += FRAME_BYTES + length
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}") from error
    return False


def _rest_of_frame(file, header):
    if len(header) < HEADER.size:
        return header, f"truncated: only {len(header)} bytes of its header are there"
    length, crc = HEADER.unpack(header)
    if crc != masked_crc(header[:8]):
        read = header + file.read()
        return read, (
            "corrupt, or not a TFRecord: the checksum of its length is wrong, so the "
            f"{len(read):,} bytes from here to the end cannot be read"
        )
    read = header + _read(file, length + 4)
    if len(read) < length + FRAME_BYTES:
        return read, f"truncated: only {len(read):,} of {length + FRAME_BYTES:,} bytes are there"
    is_right = read[-4:] == _little_endian(record_of(read))
    return read, "" if is_right else WRONG_CHECKSUM


def _read(file, size):
    parts = []
    while part := file.read(min(size, _READ_AT_ONCE)):
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def masked_crc(data):
    """Returns the masked CRC-32C of bytes, an int."""
    crc = google_crc32c.value(data)
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def _little_endian(data):
    return masked_crc(data).to_bytes(4, "little")
