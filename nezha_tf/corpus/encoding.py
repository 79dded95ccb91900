"""Encodes many examples at once as protobuf records, without a loop over values."""

import numpy as np

# Protobuf tags: field number << 3 | 2, followed by a length and that many bytes. A tf.train.Example
# has Features (1), a map with entries (1) of key (1) and value (2); a Feature has a float_list (2)
# or an int64_list (3), and these have packed values (1).
_FIRST, _SECOND, _THIRD = b"\x0a", b"\x12", b"\x1a"


def encode_block(features, values):
    """Encodes examples as `tf.train.Example`s, with the features in the order of their names.

    Each record is first a row of bytes in which every number has room for the longest number of
    its feature; then the unused bytes are removed from all rows at once.

    Args:
      features: the `schema.Feature`s.
      values: dict of their names to arrays [B, length]: integers from 0 to 2**31 - 1 if the
        feature's dtype is int64, else floats.

    Returns:
      List of B bytes.
    """
    columns = _Columns(len(values[features[0].name]))
    for feature in sorted(features, key=lambda feature: feature.name):
        of_list = _Columns(columns.rows)
        if feature.dtype is np.float32:
            of_list.add_floats(values[feature.name])
        else:
            of_list.add_varints(values[feature.name])
        of_list.wrap(_FIRST)
        of_list.wrap(_SECOND if feature.dtype is np.float32 else _THIRD)
        of_list.wrap(_SECOND)
        name = feature.name.encode()
        of_list.add_before(_FIRST + bytes([len(name)]) + name)
        of_list.wrap(_FIRST)
        columns.add(of_list)
    columns.wrap(_FIRST)
    return columns.records()


class _Columns:
    """Rows of bytes with a mask of the used ones; built from the innermost field outwards."""

    def __init__(self, rows):
        self.rows = rows
        self._parts = []  # (bytes [rows, width] or [width], mask of the used ones or True)
        self._sizes = np.zeros(rows, np.int64)

    def add(self, columns):
        self._parts += columns._parts
        self._sizes += columns._sizes

    def add_floats(self, values):
        array = np.ascontiguousarray(values, "<f4").view(np.uint8)
        self._parts.append((array, True))
        self._sizes += array.shape[1]

    def add_varints(self, values):
        """Appends varints: seven bits per byte, lowest first; the top bit says that more follow."""
        array, kept = _varints(values)
        self._parts.append((array, kept))
        self._sizes += array.shape[1] if kept is True else np.count_nonzero(kept, axis=1)

    def wrap(self, tag):
        """Prepends a tag and the row's length to every row."""
        lengths = _Columns(self.rows)
        lengths.add_varints(self._sizes[:, None])
        self._parts[:0] = lengths._parts
        self._sizes += lengths._sizes
        self.add_before(tag)

    def add_before(self, constant):
        self._parts.insert(0, (np.frombuffer(constant, np.uint8), True))
        self._sizes += len(constant)

    def records(self):
        shape = self.rows, sum(array.shape[-1] for array, _ in self._parts)
        joined, kept, place = np.empty(shape, np.uint8), np.ones(shape, bool), 0
        for array, is_there in self._parts:
            end = place + array.shape[-1]
            joined[:, place:end] = array
            if is_there is not True:
                kept[:, place:end] = is_there
            place = end
        flat = joined[kept].tobytes()
        ends = np.cumsum(self._sizes).tolist()
        return [flat[start:end] for start, end in zip([0, *ends], ends, strict=False)]


def _varints(values):
    """Returns (bytes, mask of the used ones): uint8 and bool (or True), [rows, columns * most]."""
    values = np.asarray(values)
    most = max(1, -(-int(values.max(initial=0)).bit_length() // 7))
    if most == 1:
        return values.astype(np.uint8), True
    values = values.astype(np.uint32)
    array = np.empty((*values.shape, most), np.uint8)
    kept = np.empty(array.shape, bool)
    for place in range(most):
        kept[..., place] = values > 0 if place else True
        array[..., place] = values & 0x7F
        values = values >> 7
        array[..., place] |= (values > 0).astype(np.uint8) << 7
    return array.reshape(len(values), -1), kept.reshape(len(values), -1)
