"""Documents of files of any size, and their assignment to shards."""

import gzip
import itertools
import random

import pytest

from nezha_tf.corpus import documents as reading
from nezha_tf.corpus.assignment import (
    HELD_OUT,
    TRAINING,
    Assignment,
    checksum_of,
    default_shards,
    documents_of,
    shards_of,
    spans_of,
)
from nezha_tf.corpus.documents import Documents, measure, raw_documents
from nezha_tf.data.corpus import read_documents
from nezha_tf.data.text_forms import Reading
from nezha_tf.text.characters import is_blank
from nezha_tf.util.errors import UserError

MiB = 1 << 20


def sentences(text):
    return [line.strip() for line in text.decode().split("\n") if not is_blank(line)]


def test_documents_are_those_of_the_line_by_line_reader(tmp_path, monkeypatch):
    """On random texts of all characters that `str.strip` removes, in blocks of a few bytes."""
    rng = random.Random(0)
    parts = ["好", "人。", "é", "\U0001f600", "a", "\n", "\n", "\n\n", "\r\n", " ", "\t", "\x0b"]
    parts += ["\u3000", "\x85", "\xa0", "\u1680", "\u2003", "\u2029", "\x1c", "\ufeff", "\u200b"]
    for trial in range(400):
        path = tmp_path / f"{trial}.txt"
        text = "".join(rng.choice(parts) for _ in range(rng.randint(0, 60)))
        path.write_bytes(rng.choice(["", "\ufeff"]).encode() + text.encode())
        monkeypatch.setattr(reading, "BLOCK_BYTES", rng.randint(4, 40))
        found = [sentences(text) for text, *_ in raw_documents(str(path))]
        assert found == list(read_documents(str(path))), text


def test_compressed_and_remote_files_are_read_alike(tmp_path):
    text = "一。\r\n二。\n\n三。".encode()
    (tmp_path / "a.txt").write_bytes(text)
    (tmp_path / "a.txt.gz").write_bytes(gzip.compress(text))
    # For TensorFlow, file:// is a file system like any other.
    for name in (f"{tmp_path}/a.txt", f"{tmp_path}/a.txt.gz", f"file://{tmp_path}/a.txt.gz"):
        assert [text for text, *_ in raw_documents(name)] == [
            "一。\r\n二。".encode(),
            "三。".encode(),
        ]
    with pytest.raises(UserError, match="cannot read file://"):
        list(raw_documents(f"file://{tmp_path}/none.txt"))


@pytest.mark.parametrize("line", ["长" * 30 + "。\n", "长" * 100], ids=["lines", "one line"])
def test_a_document_without_end_is_cut(tmp_path, monkeypatch, line):
    monkeypatch.setattr(reading, "BLOCK_BYTES", 1000)
    monkeypatch.setattr(reading, "LONGEST_DOCUMENT", 2000)
    path = tmp_path / "a.txt"
    path.write_text(f"首。\n\n{line * 400}\n\n末。", encoding="utf-8")
    parts = list(raw_documents(str(path)))
    assert b"".join(text for text, *_ in parts[1:-1]) == (line * 400).strip().encode()
    assert all(1900 <= len(text) <= 2000 and was_cut for text, _, was_cut in parts[1:-2])
    assert all(text.decode() for text, *_ in parts)  # no character is split
    assert [part.text.decode() for part in (parts[0], parts[-1])] == ["首。", "末。"]
    assert not parts[0].was_cut and not parts[-1].was_cut
    data = path.read_bytes()
    assert all(data[offset : offset + len(text)] == text for text, offset, _ in parts)


def write_corpus(folder, sizes):
    """Writes two files of documents with given lengths; each character encodes its number."""
    documents = [chr(0x4E00 + n) * size for n, size in enumerate(sizes)]
    half = len(sizes) // 2
    for name, part in (("a.txt", documents[:half]), ("b.txt", documents[half:])):
        (folder / name).write_text("\n\n".join(part), encoding="utf-8")
    return [str(folder / "a.txt"), str(folder / "b.txt")]


def numbers(shards, name):
    found = {s.index: [number for number, _ in s.documents] for s in shards if s.set_name == name}
    assert list(found) == sorted(found)
    return list(found.values())


def test_shards_are_consecutive_and_about_equal(tmp_path):
    rng = random.Random(1)
    sizes = [rng.randint(1, 40) for _ in range(600)]
    paths = write_corpus(tmp_path, sizes)
    found = measure(paths, 7, 0)
    assert found.training == Documents(600, 3 * sum(sizes)) and not found.held_out.count
    assert [entry["documents"] for entry in found.inputs] == [300, 300]
    wanted = {(TRAINING, index) for index in range(8)}
    shards = list(shards_of(paths, found, 7, {TRAINING: 8}, wanted))
    parts = numbers(shards, TRAINING)
    assert len(parts) == 8 and list(itertools.chain(*parts)) == list(range(600))
    for part in parts:
        assert sum(sizes[n] for n in part) == pytest.approx(sum(sizes) / 8, abs=40)
    for shard in shards:
        for number, text in shard.documents:
            assert text.decode() == chr(0x4E00 + number) * sizes[number]
    some = list(shards_of(paths, found, 7, {TRAINING: 8}, {(TRAINING, 2), (TRAINING, 7)}))
    assert some == [shards[2], shards[7]]


def test_the_documents_of_a_shard_are_read_again_from_where_they_stand(tmp_path, monkeypatch):
    """On random texts in odd files, some of them cut, in blocks of other sizes."""
    rng = random.Random(3)
    parts = [
        "好",
        "人。",
        "a" * 9,
        "\n",
        "\n\n",
        "\n\n",
        "\r\n\r\n",
        " ",
        "\n\u3000\n",
        "\ufeff",
        "",
    ]
    for trial in range(150):
        paths = []
        for place in range(3):
            text = "".join(rng.choice(parts) for _ in range(rng.randint(0, 80))).encode()
            text = rng.choice(["", "\ufeff", "\n"]).encode() + text
            path = tmp_path / f"{trial}_{place}.{rng.choice(['txt', 'txt.gz'])}"
            path.write_bytes(gzip.compress(text) if path.suffix == ".gz" else text)
            # For TensorFlow, file:// is a file system like any other.
            paths.append("file://" * (not trial % 30) + str(path))
        monkeypatch.setattr(reading, "LONGEST_DOCUMENT", rng.randint(20, 60))
        monkeypatch.setattr(reading, "BLOCK_BYTES", rng.randint(20, 40))
        try:
            found = measure(paths, trial, rng.choice([0, 0.3]))
        except UserError:  # no text, or too little of it
            continue
        sets = {TRAINING: found.training.count, HELD_OUT: found.held_out.count}
        counts = {name: rng.randint(1, min(count, 6)) for name, count in sets.items() if count}
        wanted = {(name, index) for name in counts for index in range(counts[name])}
        arguments = (paths, found, trial, counts, wanted)
        expected = {shard[:2]: shard.documents for shard in shards_of(*arguments)}
        spans = list(spans_of(*arguments))
        assert {span[:2] for span in spans} == set(expected) == wanted
        assert len(spans) == len(wanted)
        some = set(rng.sample(sorted(wanted), 1))
        assert list(spans_of(*arguments[:-1], some)) == [s for s in spans if s[:2] in some]
        monkeypatch.setattr(reading, "BLOCK_BYTES", rng.randint(20, 40))
        for span in spans:
            again = documents_of(span, paths, found.threshold, trial)
            assert [(n, sentences(text)) for n, text in again] == [
                (n, sentences(text)) for n, text in expected[span[:2]]
            ]
            assert checksum_of(again) == span.crc32c
    with pytest.raises(UserError, match="changed while being read"):
        documents_of(span._replace(last=1000), paths, found.threshold, trial)


def test_no_shard_is_without_a_document():
    """Also if a few documents have most of the text."""
    rng = random.Random(2)
    for _ in range(300):
        sizes = [rng.choice([1, 1, 1, 1000, 50]) for _ in range(rng.randint(1, 30))]
        count = rng.randint(1, len(sizes))
        assignment = Assignment(Documents(len(sizes), sum(sizes)), count)
        places = [assignment.shard_of(size) for size in sizes]
        assert places == sorted(places) and sorted(set(places)) == list(range(count))


def test_the_default_number_of_shards_bounds_them():
    for megabytes, expected in ((0.01, 1), (4, 1), (4.9, 2), (8, 2), (80, 32), (100_000, 32_768)):
        assert default_shards(Documents(10**8, int(megabytes * MiB))) == expected
    assert default_shards(Documents(3, 100 * MiB)) == 2


@pytest.mark.parametrize("share", [0.1, 0.9, 0.0001, 1.0])
def test_held_out_documents(tmp_path, share):
    """About the given share, never all or none; a growing corpus does not change the choice."""
    sizes = [5] * 400
    paths = write_corpus(tmp_path, sizes)

    def held_out(paths, seed=3):
        found = measure(paths, seed, share)
        every = {(TRAINING, 0), (HELD_OUT, 0)}
        shards = list(shards_of(paths, found, seed, {TRAINING: 1, HELD_OUT: 1}, every))
        (kept,), (out,) = numbers(shards, TRAINING), numbers(shards, HELD_OUT)
        assert sorted(kept + out) == list(range(found.training.count + found.held_out.count))
        assert (found.training.count, found.held_out.count) == (len(kept), len(out))
        assert found.held_out.bytes == 15 * len(out)
        return out

    out = held_out(paths)
    expected = min(max(share * 400, 1), 399)
    assert len(out) == pytest.approx(expected, abs=4 * (400 * share * (1 - share)) ** 0.5)
    assert out != held_out(paths, seed=4)
    if 0.01 < share < 1:
        assert set(held_out(paths[:1])) == {number for number in out if number < 200}


def test_what_cannot_be_used_is_one_line(tmp_path):
    (tmp_path / "blank.txt").write_bytes("\ufeff\n \u3000\n\r\n".encode())
    (tmp_path / "gbk.txt").write_bytes("好\n\n".encode() * 5 + "坏".encode("gb18030"))
    (tmp_path / "one.txt").write_text("一。")
    blank, gbk, one = (str(tmp_path / f"{name}.txt") for name in ("blank", "gbk", "one"))
    with pytest.raises(UserError, match=r"blank\.txt: no text found"):
        measure([blank], 0, 0)
    assert measure([blank, one], 0, 0).blank_files == 1
    with pytest.raises(UserError, match="at least 2 documents"):
        measure([one], 0, 0.5)
    with pytest.raises(UserError, match=r"gbk\.txt, line 11: not UTF-8"):
        measure([one, gbk], 0, 0)
    assert measure([gbk], 0, 0, Reading(on_invalid="skip")).training.count == 6
    found = measure([one], 0, 0)
    for text in ("一。\n\n二。", "二。", ""):
        (tmp_path / "one.txt").write_text(text)
        for read in (shards_of, spans_of):
            with pytest.raises(UserError, match="changed while being read"):
                list(read([one], found, 0, {TRAINING: 1}, {(TRAINING, 0)}))
