"""Frames of TFRecord files, without tensorflow.

A frame is the length of its record (8 bytes, little-endian), the masked CRC-32C of that length
(4), the record, and the masked CRC-32C of the record (4).
"""

import struct

import google_crc32c

from nezha_tf import storage
from nezha_tf.errors import UserError

HEADER = struct.Struct("<QI")
FRAME_BYTES = HEADER.size + 4


def frame(record):
    """Returns a record (bytes) as it stands in a file."""
    length = struct.pack("<Q", len(record))
    return b"".join((length, _little_endian(length), record, _little_endian(record)))


def record_of(frame):
    """Returns the record of a whole frame."""
    return frame[HEADER.size : -4]


def read_frames(path):
    """Yields (number of the record from 1, bytes of its frame, what is wrong with it or "").

    A record whose checksum is wrong is passed over; where a length is damaged, or the file is
    cut, the rest of the file is the last frame.

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


def _rest_of_frame(file, header):
    """Returns (bytes of a frame, what is wrong with it) after its header was read."""
    if len(header) < HEADER.size:
        return header, f"truncated: only {len(header)} bytes of it are there"
    length, crc = HEADER.unpack(header)
    if crc != masked_crc(header[:8]):
        read = header + file.read()
        return read, (
            "corrupt or no TFRecord: the checksum of its length is wrong, and the "
            f"{len(read):,} bytes from it on cannot be read"
        )
    read = header + file.read(length + 4)
    if len(read) < length + FRAME_BYTES:
        return read, f"truncated: only {len(read):,} of {length + FRAME_BYTES:,} bytes are there"
    is_right = read[-4:] == _little_endian(record_of(read))
    return read, "" if is_right else "corrupt: its checksum is wrong"


def masked_crc(data):
    """Returns the masked CRC-32C of bytes, an int."""
    crc = google_crc32c.value(data)
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def _little_endian(data):
    return masked_crc(data).to_bytes(4, "little")
