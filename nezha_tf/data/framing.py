"""Frames of TFRecord files, without tensorflow.

A frame is the length of its record (8 bytes, little-endian), the masked CRC-32C of that length
(4), the record, and the masked CRC-32C of the record (4).
"""

import struct

import google_crc32c

HEADER = struct.Struct("<QI")
FRAME_BYTES = HEADER.size + 4


def frame(record):
    """Returns a record (bytes) as it stands in a file."""
    length = struct.pack("<Q", len(record))
    return b"".join((length, _little_endian(length), record, _little_endian(record)))


def masked_crc(data):
    """Returns the masked CRC-32C of bytes, an int."""
    crc = google_crc32c.value(data)
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def _little_endian(data):
    return masked_crc(data).to_bytes(4, "little")
