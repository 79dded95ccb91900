"""Reads a sorted table of keys and values, the format of the `.index` file of a TF1 checkpoint.

It is LevelDB's table: blocks of entries, a block that says where they are, and a footer that says
where that block is (tensorflow/core/lib/io/format.cc and block.cc). Whatever the bytes are, reading
ends with the entries or with a `ValueError`, in time and memory that grow with the file.
"""

import struct

from nezha_tf.data.framing import masked_crc

_FOOTER_BYTES = 48
_MAGIC = struct.pack("<Q", 0xDB4775248B80FB57)
_TRAILER = struct.Struct("<BI")  # kind of compression; masked CRC-32C of the block and the kind
_MOST_VARINT_BYTES = 10
# The keys of an entry repeat the beginning of the key before, so they may be longer than the file;
# those of weights are so by a small factor.
_MOST_KEY_BYTES_PER_BYTE = 100


def read_entries(content):
    """Returns the entries of a table.

    Args:
      content: the bytes of the file.

    Returns:
      Dict of key to value, both bytes, in the order of the keys.

    Raises:
      ValueError: the bytes are damaged, or no table.
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
