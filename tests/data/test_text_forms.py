"""Corpora in every form, compression and encoding: the text is that of the plain file."""

import bz2
import gzip
import io
import json
import lzma
import re
import tarfile
import unicodedata
import zipfile

import numpy as np
import pytest
from conftest import RESOURCES
from hypothesis import given
from hypothesis import strategies as st

from nezha_tf.corpus.assignment import TRAINING, documents_of, shards_of
from nezha_tf.corpus.documents import measure, raw_documents
from nezha_tf.data.corpus import open_text, read_documents, read_lines
from nezha_tf.data.encodings import likeliest
from nezha_tf.data.text_forms import Reading, split_sentences
from nezha_tf.text.characters import INVISIBLE_RANGES, is_blank
from nezha_tf.util.errors import UserError

DOCUMENTS = [["早上好。", "豆浆是新磨的。"], ["“趁热喝！”"], ["第三篇，é🙂。", "  尾。"]]
PLAIN = "".join("\n".join(lines) + "\n\n" for lines in DOCUMENTS)
ROWS = [{"id": n, "text": "\n".join(lines)} for n, lines in enumerate(DOCUMENTS)]
SAMPLE = (RESOURCES / "sample_corpus.txt").read_text(encoding="utf-8")


def as_lines(rows, **options):
    return "".join(json.dumps(row, **options) + "\n" for row in rows).encode()


def titled():
    return [{"title": d[0], "body": d[1:], "n": None} for d in DOCUMENTS]


def in_frames(data):
    zstandard = pytest.importorskip("zstandard")
    return zstandard.compress(data[:40]) + zstandard.compress(data[40:])


def as_parquet(rows):
    parquet, pyarrow = pytest.importorskip("pyarrow.parquet"), pytest.importorskip("pyarrow")
    file = io.BytesIO()
    parquet.write_table(pyarrow.Table.from_pylist(rows), file, row_group_size=2)
    return file.getvalue()


# (name, function that returns the bytes, reading)
FORMS = {
    "lines": ("a.jsonl", lambda: as_lines(ROWS), {}),
    "lines by their content": ("a.txt", lambda: as_lines(ROWS, ensure_ascii=False), {}),
    "blank lines, CR LF, a mark": (
        "a.json",
        lambda: b"\xef\xbb\xbf" + as_lines(ROWS).replace(b"\n", b"\r\n\r\n \r\n"),
        {},
    ),
    "content": ("a.ndjson", lambda: as_lines(ROWS).replace(b'"text"', b'"content"'), {}),
    "fields": ("a.jsonl", lambda: as_lines(titled()), {"text_fields": ("title", "body", "n")}),
    "blank lines within": (
        "a.jsonl",
        lambda: as_lines([{"text": row["text"].replace("\n", "\r\n\n\u200b\n")} for row in ROWS]),
        {},
    ),
    "array": ("a.json", lambda: json.dumps(ROWS, indent=1).encode(), {}),
    "packed lines": ("a.JSONL.gz", lambda: gzip.compress(as_lines(ROWS)), {}),
    "parquet": ("a.parquet", lambda: as_parquet(ROWS), {}),
    "parquet fields": ("a", lambda: as_parquet(titled()), {"text_fields": ("title", "body")}),
    "two members": ("a", lambda: b"".join(gzip.compress(p.encode()) for p in halves()), {}),
    "bzip2": ("a.bz2", lambda: b"".join(bz2.compress(p.encode()) for p in halves()), {}),
    "xz": ("a.txt", lambda: b"".join(lzma.compress(p.encode()) for p in halves()), {}),
    "zstd": ("a.zst", lambda: in_frames(PLAIN.encode()), {}),
    "gb18030": ("a.txt", lambda: PLAIN.encode("gb18030"), {"encoding": "gb18030"}),
    "utf-16": ("a.txt", lambda: PLAIN.encode("utf-16"), {"encoding": "utf-16"}),
    "gb18030 lines": (
        "a.jsonl.xz",
        lambda: lzma.compress(as_lines(ROWS, ensure_ascii=False).decode().encode("gb18030")),
        {"encoding": "gb18030"},
    ),
    "paragraphs": (
        "a.txt",
        lambda: "\n\n".join("".join(lines) for lines in DOCUMENTS).encode(),
        {"split_sentences": True},
    ),
    "invisible blank lines": (
        "a.txt",
        lambda: PLAIN.replace("\n\n", "\n\u200b\ufeff\n").encode(),
        {},
    ),
}


def halves():
    return PLAIN[:9], PLAIN[9:]


@pytest.mark.parametrize("name", FORMS)
def test_documents_are_those_of_the_plain_text(tmp_path, name):
    file, write, reading = FORMS[name]
    path, reading = tmp_path / file, Reading(**reading)
    path.write_bytes(write())
    found = list(raw_documents(str(path), 0, reading))
    assert [document.text.decode().rstrip().split("\n") for document in found] == DOCUMENTS
    # From the place of each document on, as the workers of engines read.
    for number, document in enumerate(found):
        rest = raw_documents(str(path), document.offset, reading)
        assert [d.text for d in rest] == [d.text for d in found[number:]]
    plain = tmp_path / "plain"
    plain.write_text(PLAIN, encoding="utf-8")
    paths = [str(path), str(plain)]
    measured = measure(paths[:1], 1, 0, reading)
    if reading == Reading():  # the same checksum, so the same bytes of examples
        assert measured.crc32c == measure(paths[1:], 1, 0).crc32c
    (shard,) = shards_of(paths[:1], measured, 1, {TRAINING: 1}, {(TRAINING, 0)}, reading)
    assert len(documents_of(shard.span, paths[:1], 0, 1, reading)) == len(DOCUMENTS)


def packed_tar():
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w:gz") as archive:
        archive.addfile(tarfile.TarInfo("a.txt"), io.BytesIO())
    return file.getvalue()


def zipped():
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("a.txt", PLAIN)
    return file.getvalue()


def array_file():
    file = io.BytesIO()
    np.save(file, np.zeros(3))
    return file.getvalue()


@pytest.mark.parametrize(
    "name, data, reading, told",
    (
        ("a.jsonl", as_lines(ROWS) + b"\n{oops\n", {}, "line 5: not JSON"),
        ("a.jsonl", as_lines(ROWS) + b"[1]\n", {}, "line 4: not a JSON object"),
        ("a.json", b'{\n "a": 1}\n', {}, "line 1: not JSON .* an object with a text on each line"),
        ("a.txt", b'[{"text": "a"}, {', {}, "not JSON"),
        (
            "a.jsonl",
            as_lines([{"txt": "a"}]),
            {},
            "line 1: no field 'text' or 'content', but 'txt'",
        ),
        ("a.jsonl", as_lines(ROWS), {"text_fields": ("id",)}, "line 1: 'id' is neither a text"),
        ("a.jsonl", as_lines(ROWS), {"text_fields": ("text", "b")}, "line 1: no field 'b', but"),
        ("a.jsonl", as_lines([{"text": "\ud800"}]), {}, "line 1: the text has half a character"),
        ("a.jsonl", '{"text": "坏的行"}'.encode("gb18030"), {}, "line 1: not UTF-8 .*=gb18030"),
        ("a.txt", SAMPLE[:900].encode("gb18030"), {}, "line 1: not UTF-8 .* --encoding=gb18030"),
        ("a.txt", "好\n坏".encode() + b"\xff", {}, "line 2: not UTF-8 .* --on_invalid=replace"),
        ("a.txt", PLAIN.encode(), {"encoding": "gb18030"}, "line 1: not gb18030, but most likely"),
        ("a.txt", SAMPLE[:900].encode("gb18030"), {"encoding": "big5"}, "gb18030"),
        (
            "a.txt",
            "好\n".encode("gb18030") * 20_000 + b"\xff",
            {"encoding": "gb18030"},
            "line 20001",
        ),
        ("a.gz", gzip.compress(PLAIN.encode())[:-9], {}, r"a\.gz: damaged gzip file"),
        ("a.bz2", bz2.compress(PLAIN.encode())[:-9], {}, "damaged bzip2 file"),
        ("a.xz", lzma.compress(PLAIN.encode())[:-9], {}, "damaged xz file"),
        (
            "a.gz",
            gzip.compress(gzip.compress(b"a")),
            {},
            "is compressed twice, .* decompress it once",
        ),
        ("a.txt", zipped(), {}, "a zip file, which is not read here; unpack it"),
        ("a.tar.gz", packed_tar(), {}, "a tar file, which is not read here; unpack it"),
        ("a.txt", array_file(), {"on_invalid": "replace"}, "a NumPy array"),
        ("a.parquet", b"PAR1" + bytes(30), {}, "damaged Parquet file|needs pyarrow"),
    ),
    # Compressed bytes hold the time, and all workers must see the same names.
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_cannot_be_read_is_one_line(tmp_path, name, data, reading, told):
    path = tmp_path / name
    path.write_bytes(data)
    with pytest.raises(UserError, match=told) as caught:
        measure([str(path)], 1, 0, Reading(**reading))
    assert str(path) in str(caught.value) and "\n" not in str(caught.value)


def test_documents_are_parted_by_blank_lines(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("\ufeff一。\n  二。\r\n\n\n \n三。", encoding="utf-8")
    assert list(read_documents(str(path))) == [["一。", "二。"], ["三。"]]
    path.write_bytes("好\n\n".encode() + "坏".encode("gb18030"))
    with pytest.raises(UserError, match=r"a\.txt, line 3: not UTF-8"):
        list(read_documents(str(path)))


def test_a_cut_zstd_file_is_refused(tmp_path):
    (tmp_path / "a.zst").write_bytes(in_frames(PLAIN.encode())[:-9])
    with pytest.raises(UserError, match="damaged zstd file"):
        list(read_lines(str(tmp_path / "a.zst")))


def test_invalid_bytes_reach_those_who_count_them(tmp_path):
    """Of JSON and of another encoding, too: as bytes that are not UTF-8."""
    for name, data, encoding in (
        ("a.jsonl", as_lines(ROWS, ensure_ascii=False).replace("好".encode(), b"\xe5"), "utf-8"),
        ("b.jsonl", as_lines(ROWS).replace(b"\\u597d", b"\\ud800"), "utf-8"),
        ("c.txt", PLAIN.encode("gb18030").replace("好".encode("gb18030"), b"\xff"), "gb18030"),
    ):
        (tmp_path / name).write_bytes(data)
        reading = Reading(encoding=encoding, on_invalid="skip")
        with open_text(str(tmp_path / name), reading) as file:
            lines = file.read().rstrip(b"\n").split(b"\n")
        assert lines[0].decode("utf-8", "replace").replace("\ufffd", "好") == DOCUMENTS[0][0]
        with pytest.raises(UnicodeDecodeError):
            lines[0].decode()
        assert b"\n".join(lines[1:]).decode().split("\n\n")[1:] == PLAIN.strip().split("\n\n")[1:]


def test_json_of_tasks_stays_as_it_is(tmp_path):
    """Only a corpus is read as plain text."""
    (tmp_path / "a.jsonl").write_bytes(as_lines(ROWS))
    assert [json.loads(line) for line in read_lines(str(tmp_path / "a.jsonl"))] == ROWS
    (tmp_path / "a.parquet").write_bytes(b"PAR1" + bytes(40))
    with pytest.raises(UserError, match="a Parquet file, which is not read here"):
        list(read_documents(str(tmp_path / "a.parquet")))


@pytest.mark.parametrize("encoding", ("utf-8", "gb18030", "big5", "utf-16-le", "utf-16-be"))
def test_the_encoding_of_a_text_is_known(encoding):
    text = SAMPLE[:400] if encoding != "big5" else "漢字與繁體，早上好。這裡的豆漿是新磨的！" * 3
    data = text.encode(encoding)
    for cut in (0, 1, 2, 3):  # samples end anywhere
        assert likeliest(data[: len(data) - cut]) == encoding
    assert likeliest(b"plain ASCII") is None and likeliest(bytes(range(128, 256))) is None


def test_sentences():
    for parts in (
        ["豆浆是新磨的。", "趁热喝！", "“好喝吗？”", "她问。"],
        ["他说“好！”。", "走了"],
        ["“好！”，他说。"],
        ["我……", "不知道！！？"],
        ['"好。"', '他说"走。"'],
        ["（是吗？）", "对；", "好…"],
        ["他说：“好！”。", "走吧……"],
        ["……", "好吧。"],
        ["看a.cn/?b=1，Yahoo!3版。", "OK?", " 3.14和v2.0."],
        ["『「一。」』", "二。 "],
        ["没有"],
        ["。"],
    ):
        assert split_sentences("".join(parts)) == parts


@given(st.text("一二。！？；…!?\"'”』），a", max_size=30))
def test_no_character_is_lost_and_no_sentence_is_only_an_end(text):
    parts = split_sentences(text)
    assert "".join(parts) == text
    for part in parts[:-1]:
        assert re.search("[。！？；…!?][\"'”』）。！？；…!?]*$", part), parts
    for part in parts[1:]:
        assert part.strip("。！？；…!?\"'”』）") or part[0] in "\"'!?", parts


def test_invisible_characters_are_those_of_unicode():
    """Characters that a later version of Unicode adds may be among them."""
    ranges = {code for low, high in INVISIBLE_RANGES for code in range(low, high + 1)}
    kinds = {code: unicodedata.category(chr(code)) for code in range(0x110000)}
    invisible = {c for c, kind in kinds.items() if kind in ("Zs", "Zl", "Zp", "Cc", "Cf")}
    assert invisible <= ranges
    assert {kinds[code] for code in ranges - invisible} <= {"Cn"}
    assert is_blank("\u200b \n") and not is_blank("\u200b。")
