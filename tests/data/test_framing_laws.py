"""Property tests of framing: any records, against TensorFlow's reader; all damage is reported."""

import laws
import tensorflow as tf
from hypothesis import example, given
from hypothesis import strategies as st

from nezha_tf.data import damage, record_stream
from nezha_tf.data.framing import HEADER, frame, masked_crc, read_frames, record_of

RECORDS = st.lists(st.binary(max_size=40), max_size=5)


def read(path):
    """Returns (complete records, faults of the others)."""
    found = list(read_frames(str(path)))
    assert [number for number, _, _ in found] == list(range(1, len(found) + 1))
    whole = [record_of(frame) for _, frame, fault in found if not fault]
    return whole, [fault for _, _, fault in found if fault]


@laws.examples(25)
@given(RECORDS)
def test_frames_are_read_by_tensorflow_and_by_us(tmp_path, records):
    path = tmp_path / "a.tfrecord"
    path.write_bytes(b"".join(map(frame, records)))
    assert [record.numpy() for record in tf.data.TFRecordDataset(str(path))] == records
    assert read(path) == (records, [])
    with tf.io.TFRecordWriter(str(path)) as writer:
        for record in records:
            writer.write(record)
    assert path.read_bytes() == b"".join(map(frame, records))


@st.composite
def damaged(draw):
    """Draws (kind of damage, bytes of a file with it, records before it, records after it)."""
    records = draw(RECORDS.filter(bool))
    frames = [frame(record) for record in records]
    place = draw(st.integers(0, len(records) - 1))
    within = draw(st.integers(0, len(frames[place]) - 1))
    start = sum(map(len, frames[:place])) + within
    data = b"".join(frames)
    before, behind = records[:place], records[place + 1 :]
    if draw(st.booleans()):
        # A file that is truncated at the end of a frame is a complete file.
        return "truncated", data[:start] if within else data[: start + 1], before, []
    flipped = data[start] ^ draw(st.integers(1, 255))
    # After a damaged length, the start of the next frame is unknown.
    data = data[:start] + bytes([flipped]) + data[start + 1 :]
    return "corrupt", data, before, behind * (within >= HEADER.size)


@laws.examples(60)
@given(damaged())
@example(("corrupt", b"\5" + frame(b"1234")[1:] + frame(b"5678"), [], []))  # a length higher by one
def test_no_damage_is_passed_over_in_silence(tmp_path, case):
    """TensorFlow reads the other records by what a survey tells of them."""
    kind, data, before, behind = case
    path = tmp_path / "a.tfrecord"
    path.write_bytes(data)
    found, faults = read(path)
    assert found == before + behind and len(faults) == 1
    assert faults[0].startswith(kind)
    assert sum(len(frame) for _, frame, _ in read_frames(str(path))) == len(data)
    survey = damage.survey(str(path))
    assert survey.records == len(found)
    (place,) = survey.damage
    assert (place.path, place.record) == (str(path), len(before) + 1)
    records = record_stream.in_order([(str(path), survey.stretches)]) if found else []
    assert [record.numpy() for record in records] == found


def lying(length, records=(b"1", b"22"), rest=b"333"):
    """Returns the bytes of a file whose last record says that it is longer than the file."""
    header = length.to_bytes(8, "little")
    crc = masked_crc(header).to_bytes(4, "little")
    return b"".join(map(frame, records)) + header + crc + rest


def test_a_length_that_no_file_has_is_told(tmp_path):
    """With a right checksum. TensorFlow's reader and Python's would make room for the record."""
    path = tmp_path / "a.tfrecord"
    for length in (100, 2**63 - 9, 2**64 - 1):
        path.write_bytes(lying(length))
        found, (fault,) = read(path)
        assert found == [b"1", b"22"]
        assert fault == f"truncated: only 15 of {length + 16:,} bytes are there"
        survey = damage.survey(str(path))
        assert survey.stretches == [(0, 2)]
        assert survey.damage == [damage.Damage(str(path), 3, lost_bytes=15)]
    # Also behind a record with a wrong checksum.
    first = bytearray(frame(b"4444"))
    first[-1] ^= 1
    path.write_bytes(bytes(first) + lying(2**50))
    survey = damage.survey(str(path))
    assert survey.stretches == [(20, 2)] and len(survey.damage) == 2
