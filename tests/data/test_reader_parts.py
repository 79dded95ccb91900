"""Batches of parts with weights, against what follows from the records' numbers alone.

A file is a list of numbers: the first id of each record is its number, which tells its part.
"""

import functools
import itertools
from fractions import Fraction

import laws
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from records import LIMITS, encode, flip, write

from nezha_tf.data import record_stream, schema
from nezha_tf.data.reader import ExampleReader
from nezha_tf.util.errors import UserError

LENGTHS = schema.Lengths(8, 2)


def write_parts(folder, parts):
    """Writes the files of parts (lists of sizes): 1000, 1001 ... are the records of the first."""
    found = []
    for part, sizes in enumerate(parts, start=1):
        numbers, files = itertools.count(1000 * part), []
        for place, size in enumerate(sizes):
            records = [encode(number) for number in itertools.islice(numbers, size)]
            files.append(write(folder / f"{part}_{place}.tfrecord", records))
        found.append(files)
    return found


def reader_of(parts, weights, max_corrupt_records=0):
    files = [path for part in parts for path in part]
    parts = list(zip(parts, map(Fraction, weights), strict=True))
    return ExampleReader(files, LENGTHS, LIMITS, max_corrupt_records, parts=parts)


def numbers(batches):
    return [batch["input_ids"].numpy()[:, 0].tolist() for batch in batches]


def flat(batches):
    return [number for batch in numbers(batches) for number in batch]


def of_part(seen, part):
    return [number for number in seen if number // 1000 == part]


PARTS = st.lists(st.lists(st.integers(1, 9), min_size=1, max_size=3), min_size=2, max_size=4)
WEIGHTS = st.sampled_from(["1", "2", "3", "0.5", "7.25", "20"])


@laws.examples(6)
@example([[1], [9, 9, 9]], ["20", "1", "1", "1"], 3, 2, 17, 5)
@given(
    PARTS,
    st.lists(WEIGHTS, min_size=4, max_size=4),
    st.integers(1, 4),
    st.integers(1, 3),
    st.integers(0, 40),
    st.integers(0, 2**32 - 1),
)
def test_parts_share_the_stream(tmp_path_factory, parts, weights, size, workers, skipped, seed):
    """Shares within one example, epochs of each part, workers, and going on at any place."""
    weights = weights[: len(parts)]
    made = functools.partial(reader_of, write_parts(tmp_path_factory.mktemp("parts"), parts))
    whole = numbers(made(weights).training_batches(size * workers, seed).take(skipped + 30))
    seen, total = [number for batch in whole for number in batch], sum(map(Fraction, weights))
    for part, (sizes, weight) in enumerate(zip(parts, weights, strict=True), start=1):
        for count in range(len(seen) + 1):
            share = count * Fraction(weight) / total
            assert abs(len(of_part(seen[:count], part)) - share) < 1
        own, records = of_part(seen, part), sum(sizes)
        for start in range(0, len(own) - records + 1, records):
            epoch = sorted(own[start : start + records])
            assert epoch == list(range(1000 * part, 1000 * part + records))
    shards = [
        numbers(made(weights).training_batches(size, seed, skipped, workers, shard).take(30))
        for shard in range(workers)
    ]
    for batch, own in zip(whole[skipped:], zip(*shards, strict=True), strict=True):
        assert list(itertools.chain(*own)) == batch


@pytest.fixture
def parts(tmp_path):
    return write_parts(tmp_path, [[23, 40, 1, 17], [9, 28]])  # 81 and 37 records


def test_the_order_is_another_in_each_epoch_part_and_seed(tmp_path):
    parts = write_parts(tmp_path, [[30], [30]])
    orders = set()
    for seed in (1, 2):
        seen = flat(reader_of(parts, "11").training_batches(10, seed).take(18))
        for part in (1, 2):
            own = [number - 1000 * part for number in of_part(seen, part)]
            orders |= {tuple(own[start : start + 30]) for start in (0, 30, 60)}
    assert len(orders) == 12 and all(sorted(order) == list(range(30)) for order in orders)


def test_one_weight_for_all_is_no_change_of_what_a_part_gives(parts):
    """A part's own order depends on the seed, not on the weights or the other parts' sizes."""
    most = flat(reader_of(parts, "91").training_batches(10, 3).take(60))
    even = flat(reader_of(parts, "11").training_batches(10, 3).take(60))
    for part in (1, 2):
        one, other = of_part(most, part), of_part(even, part)
        shorter = min(len(one), len(other))
        assert one[:shorter] == other[:shorter] and shorter > 50


def test_skipping_many_epochs_does_not_read_them(parts):
    """Reading 2 ** 40 batches would never end."""
    assert len(numbers(reader_of(parts, "31").training_batches(7, 5, 2**40).take(2))) == 2


def test_file_shards_read_files_of_their_own_of_each_part(parts):
    for shard in range(2):
        own = sorted(
            flat(reader_of([files[shard::2] for files in parts], "31").evaluation_batches(99, 99))
        )
        make = functools.partial(
            reader_of(parts, "31").training_batches, num_shards=2, shard=shard, by="file"
        )
        seen = flat(make(4, 5).take(100))
        assert sorted(set(seen)) == own
        assert len(of_part(seen, 1)) == 300
        assert flat(make(4, 5, skip_batches=50).take(50)) == seen[200:]
    with pytest.raises(UserError, match=r"2 files .* 3 workers.*--input_sharding=element"):
        reader_of(parts, "31").training_batches(4, 1, num_shards=3, shard=0, by="file")


def test_damaged_records_of_a_part_are_as_if_they_had_not_been_there(tmp_path, parts, monkeypatch):
    monkeypatch.setattr(record_stream, "SHUFFLE_BUFFER", 20)  # so damage is met late
    flip(parts[0][1], 30, byte=30)
    flip(parts[1][1], 5, byte=14)
    left = [
        [number for number in range(1000, 1081) if number != 1000 + 23 + 29],
        [number for number in range(2000, 2037) if number != 2000 + 9 + 4],
    ]
    clean = [
        [
            write(tmp_path / f"clean_{part}_{place}", map(encode, left[part][start:end]))
            for place, (start, end) in enumerate(ends)
        ]
        for part, ends in enumerate([[(0, 23), (23, 62), (62, 63), (63, 80)], [(0, 9), (9, 36)]])
    ]
    expected = numbers(reader_of(clean, "32").training_batches(4, 1).take(120))
    for skip in (0, 1, 70):
        reader = reader_of(parts, "32", max_corrupt_records=2)
        iterator = reader.guarded(functools.partial(reader.training_batches, 4, 1), skip)
        assert numbers(next(iterator) for _ in range(50)) == expected[skip : skip + 50]
        assert reader.corrupt_records == 2 or skip == 0
    iterator = reader_of(parts, "32", 1)
    with pytest.raises(UserError, match="--skip_corrupt_records=2"):
        iterator.training_batches(4, 1, skip_batches=9)
