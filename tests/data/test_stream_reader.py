"""Records as streams: in the order of the text, whatever the batch size, and from any batch on."""

import laws
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from records import LIMITS, flip, write_numbers

from nezha_tf.data import schema
from nezha_tf.data.stream_reader import StreamReader
from nezha_tf.util.errors import UserError

LENGTHS = schema.Lengths(8, 2)


def rows_of(batches, count):
    """Returns (numbers of the records, whether they begin a stream), both [batches, B]."""
    found = [(b["input_ids"][:, 0].numpy(), b["stream_starts"][:, 0].numpy()) for b in batches]
    assert len(found) == count
    return [np.stack(part) for part in zip(*found, strict=True)]


@laws.examples(8)
@given(st.lists(st.integers(1, 9), min_size=1, max_size=4), st.integers(1, 5), st.integers(0, 25))
def test_rows_go_on_where_they_ended(tmp_path_factory, sizes, batch_size, skipped):
    """B streams of equal length, one after another in the files; then the same again."""
    paths = write_numbers(tmp_path_factory.mktemp("streams"), *sizes)
    records = [1000 * n + k for n, size in enumerate(sizes, start=1) for k in range(size)]
    length = len(records) // batch_size
    reader = StreamReader(paths, LENGTHS, LIMITS)
    if not length:
        with pytest.raises(UserError, match="cannot fill"):
            reader.training_batches(batch_size, 1)
        return
    streams = np.array(records[: length * batch_size]).reshape(batch_size, length).T
    count = length + 2
    expected = np.concatenate([streams] * (skipped // length + 3))[skipped : skipped + count]
    batches = reader.training_batches(batch_size, 1, skip_batches=skipped)
    numbers, starts = rows_of(batches.take(count), count)
    np.testing.assert_array_equal(numbers, expected)
    is_start = (skipped + np.arange(count)) % length == 0
    np.testing.assert_array_equal(starts, np.repeat(is_start[:, None], batch_size, axis=1))
    most = min(length, 3)
    numbers, starts = rows_of(reader.evaluation_batches(batch_size, 3), most)
    np.testing.assert_array_equal(numbers, streams[:most])
    assert starts[0].all() and not starts[1:].any()


@pytest.mark.parametrize("record, byte", ((3, 20), (5, 9)))
def test_a_damaged_record_is_named(tmp_path, record, byte):
    """Its data, or the check sum of its length."""
    paths = write_numbers(tmp_path, 4, 8)
    flip(paths[1], record, byte)
    reader = StreamReader(paths, LENGTHS, LIMITS)
    for batches in (reader.training_batches, reader.evaluation_batches):
        with pytest.raises(UserError, match=f"^{paths[1]}, record {record} is damaged, and a st"):
            batches(2, 1)


def test_workers_cannot_share_streams(tmp_path):
    reader = StreamReader(write_numbers(tmp_path, 8), LENGTHS, LIMITS)
    with pytest.raises(UserError, match="use one worker"):
        reader.training_batches(2, 1, num_shards=2)
