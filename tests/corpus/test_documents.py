"""Documents and shards of a corpus: any text, against a split of the whole text by definition."""

import gzip
import itertools
import unicodedata
from collections import Counter

import laws
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from nezha_tf.corpus import documents as reading
from nezha_tf.corpus.assignment import (
    HELD_OUT,
    TRAINING,
    Assignment,
    default_shards,
    documents_of,
    shards_of,
)
from nezha_tf.corpus.documents import (
    Documents,
    checksum_of,
    draw_of,
    measure,
    raw_documents,
    sentences_of,
)
from nezha_tf.data.text_forms import Reading
from nezha_tf.util.errors import UserError

# Characters that `str.strip` removes, with the line feed, and others.
SPACE = [chr(code) for code in range(0x3001) if chr(code).isspace()]
PARTS = ["好", "人。", "é", "\U0001f600", "a", "\ufeff", "\u200b", "长" * 9]
ENDS = ["\n", "\n\n", "\r\n", "\r\n\r\n", "\n\u3000\n", "\n \t\n\x85\n"]
MARK = "\ufeff"


def texts(most=30):
    part = st.sampled_from(PARTS) | st.sampled_from(ENDS) | st.sampled_from([*SPACE, "\n"])
    text = st.lists(part, max_size=most).map("".join)
    return st.tuples(st.sampled_from(["", "", MARK, "\n" + MARK]), text).map("".join)


@laws.examples(100)
@given(st.lists(st.integers(1, reading.LONGEST_DOCUMENT), min_size=1, max_size=70))
def test_the_default_shards_have_the_text_that_the_pages_say(lengths):
    count = default_shards(Documents(len(lengths), sum(lengths)))
    assert count <= len(lengths) and count.bit_count() == 1
    mean, is_few = sum(lengths) / count / 2**20, 2 * count > len(lengths)
    assert mean < 8 if is_few else mean <= 4
    assert count == 1 or sum(lengths) / (count // 2) > 4 * 2**20  # half as many are too few


def is_blank(line):
    return all(unicodedata.category(char) in ("Zs", "Zl", "Zp", "Cc", "Cf") for char in line)


def split(text):
    """Returns a text's documents, lists of sentences; a document ends at a line without text."""
    documents = [[]]
    for line in text.removeprefix(MARK).split("\n"):
        if not is_blank(line):
            documents[-1].append(line.strip())
        else:
            documents.append([])
    return [document for document in documents if document]


def sentences(text):
    return sentences_of(text, "error", None)


@laws.examples(300)
@given(texts(), st.booleans())
def test_documents_are_those_of_the_whole_text(tmp_path, text, packed):
    """From the start and from each document on."""
    path = tmp_path / ("a.txt.gz" if packed else "a.txt")
    data = text.encode()
    path.write_bytes(gzip.compress(data) if packed else data)
    documents = list(raw_documents(str(path)))
    assert [sentences(document.text) for document in documents] == split(text)
    for number, (found, offset, was_cut) in enumerate(documents):
        assert data[offset : offset + len(found)] == found and not was_cut
        if offset:  # 0 is the start of the file
            rest = list(raw_documents(str(path), offset))
            assert [(sentences(d.text), d.offset) for d in rest] == [
                (sentences(d.text), d.offset) for d in documents[number:]
            ]


@laws.examples(500)
@given(texts(60), st.integers(8, 16))
@example("\u3000" * 6 + "\n\n", 8)  # white space that is longer than a document
@example("好\n" + "\u3000" * 6 + "\n好", 8)
@example("好\n好好好人。\n\t\u1680\n", 15)
def test_a_long_document_is_cut_and_nothing_is_lost(tmp_path, monkeypatch, text, longest):
    """At the end of a line if there is one."""
    path = tmp_path / "a.txt"
    path.write_text(text, encoding="utf-8", newline="")
    monkeypatch.setattr(reading, "LONGEST_DOCUMENT", longest)
    found = list(raw_documents(str(path)))
    for part, _, was_cut in found:
        assert len(part) <= longest and not is_blank(part.decode())
        assert not was_cut or part.endswith(b"\n") or b"\n" not in part
    # Ends of documents in characters without white space; a cut inside a line keeps all of them.
    parts = [("".join(sentences(part)), was_cut) for part, _, was_cut in found]
    documents = ["".join(document) for document in split(text)]
    assert visible("".join(part for part, _ in parts)) == visible("".join(documents))
    ends = set(itertools.accumulate(len(visible(document)) for document in documents))
    ends_of_parts = list(itertools.accumulate(len(visible(part)) for part, _ in parts))
    assert ends <= set(ends_of_parts)
    assert all(
        was_cut or end in ends for end, (_, was_cut) in zip(ends_of_parts, parts, strict=True)
    )


def visible(text):
    """Returns a text without what is invisible."""
    return "".join(char for char in text if not is_blank(char))


@laws.examples(300)
@given(st.lists(st.integers(1, 9) | st.integers(1, 1000), min_size=1, max_size=30), st.data())
def test_each_shard_has_documents_and_begins_where_its_bytes_do(sizes, data):
    """Document by document: shard floor(b n / B), but no shard is skipped or left empty."""
    count = data.draw(st.integers(1, len(sizes)))
    assignment = Assignment(Documents(len(sizes), sum(sizes)), count)
    shards = [assignment.shard_of(size) for size in sizes]
    assert set(shards) == set(range(count)) and shards == sorted(shards)
    for place, shard in enumerate(shards):
        wanted = sum(sizes[:place]) * count // sum(sizes)
        if shard > wanted:  # each remaining document is the first one of a shard
            assert len(sizes) - place == count - shard
        if shard < wanted:  # the one before it is the first that may be followed by it
            assert shards[place - 1] == shard - 1


def write_files(folder, texts):
    """Writes a file for each text, every second one compressed; returns their paths."""
    paths = []
    for number, text in enumerate(texts):
        data, is_packed = text.encode(), number % 2
        path = folder / f"{number}.txt{'.gz' * is_packed}"
        path.write_bytes(gzip.compress(data) if is_packed else data)
        paths.append(str(path))
    return paths


@laws.examples(100)
@given(
    st.lists(texts(), min_size=1, max_size=3),
    st.sampled_from([0, 0.01, 0.4, 0.99]),
    st.integers(0, 99),
    st.tuples(st.integers(1, 5), st.integers(1, 5)),
)
def test_shards_part_the_documents(tmp_path, texts, share, seed, counts):
    """Each document is in one shard of its set, in order, and can be read again from its offset."""
    paths = write_files(tmp_path, texts)
    expected = dict(enumerate(document for text in texts for document in split(text)))
    assume(len(expected) > (share > 0))
    found = measure(paths, seed, share)
    held_out = {number for number in expected if draw_of(seed, number) < found.threshold}
    numbers = {TRAINING: sorted(expected.keys() - held_out), HELD_OUT: sorted(held_out)}
    if share:
        assert numbers[TRAINING] and numbers[HELD_OUT]
    if share and found.threshold != share:  # a set would be empty, so it got one
        assert min(map(len, numbers.values())) == 1
    assert [found.training.count, found.held_out.count] == [len(n) for n in numbers.values()]
    shards = {
        name: min(count, len(numbers[name]))
        for name, count in zip(numbers, counts, strict=True)
        if numbers[name]
    }
    wanted = {(name, index) for name, count in shards.items() for index in range(count)}
    arguments = (paths, found, seed, shards, wanted)
    found_shards = list(shards_of(*arguments))
    made = {shard[:2]: shard.documents for shard in found_shards}
    assert made.keys() == wanted
    for name, count in shards.items():
        documents = [document for index in range(count) for document in made[name, index]]
        assert [number for number, _ in documents] == numbers[name]
        assert [sentences(text) for _, text in documents] == [expected[n] for n in numbers[name]]
    some = {next(iter(wanted))}
    assert list(shards_of(*arguments[:-1], some)) == [s for s in found_shards if s[:2] in some]
    spans = [shard.span for shard in found_shards]
    for span in spans:
        again = documents_of(span, paths, found.threshold, seed)
        assert [(n, sentences(text)) for n, text in again] == [
            (n, sentences(text)) for n, text in made.pop(span[:2])
        ]
        assert checksum_of(again) == span.crc32c
    assert not made


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


def test_draws_are_uniform_and_of_the_seed():
    draws = [draw_of(3, number) for number in range(10_000)]
    for share in (0.1, 0.5, 0.9):
        bound = 4 * (share * (1 - share) / len(draws)) ** 0.5
        assert sum(draw < share for draw in draws) / len(draws) == pytest.approx(share, abs=bound)
    assert 0 <= min(draws) and max(draws) < 1
    assert draws[:9] != [draw_of(4, number) for number in range(9)]


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
        with pytest.raises(UserError, match="changed while being read"):
            list(shards_of([one], found, 0, {TRAINING: 1}, {(TRAINING, 0)}))


def test_odd_lines_are_counted():
    bad = "好".encode("gb18030")
    lines = "\ufeff一".encode(), "坏".encode() + b"\xff" + bad, b"\t \r", "二\r".encode()
    text = b"\n".join(lines)
    for how, kept in (("skip", []), ("replace", ["坏\ufffd\ufffd\ufffd"])):
        counts = Counter()
        assert sentences_of(text, how, counts) == ["\ufeff一", *kept, "二"]
        assert +counts == {"invalid_lines": 1}
    with pytest.raises(UnicodeDecodeError):
        sentences_of(text, "error", counts)
    counts = Counter()
    line = "长" * (2 * reading.LONGEST_LINE + 1)
    assert list(map(len, sentences_of(line.encode(), "error", counts))) == [
        reading.LONGEST_LINE
    ] * 2 + [1]
    assert sentences_of(bad, "skip", counts) == []
    assert +counts == {"long_lines": 1, "invalid_lines": 1}
