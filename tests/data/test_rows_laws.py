"""Property tests of labelled text: other writers' files, and at most one line for any bytes."""

import csv
import gzip
import json
import unicodedata

import laws
from hypothesis import assume, given
from hypothesis import strategies as st

from nezha_tf.data.lines import BadRows
from nezha_tf.data.rows import read_rows
from nezha_tf.util.errors import UserError

NAMES = ("src", "tgt")
# All kinds of white space, quotes, line ends, and separators of columns.
CHARACTERS = st.sampled_from(" \t\n\r\u2028\x85\x1c\u3000\ufeff\",'\\\0甲乙ab") | st.characters(
    exclude_categories=["Cs"]
)
TEXTS = st.text(CHARACTERS, max_size=10)


def is_invisible(text):
    return all(unicodedata.category(c) in ("Cc", "Cf", "Zs", "Zl", "Zp") for c in text)


def expected_of(table, optional, has_blank_rows=False):
    """Returns the expected rows of a table: without white space at the ends, without a header."""
    if not has_blank_rows:
        table = [row for row in table if not all(map(is_invisible, row))]
    rows = [{n: v.strip() for n, v in zip(NAMES, row, strict=True)} for row in table]
    rows = [row for row in rows if tuple(row.values()) != NAMES]
    return [{n: v for n, v in row.items() if v or n not in optional} for row in rows]


def assert_read(path, table, **options):
    """Asserts that a file is read as a table, or that an empty value in it is reported."""
    expected = expected_of(table, options.get("optional", ()), ".tsv" not in path.name)
    try:
        found = list(read_rows(str(path), NAMES, **options))
    except UserError as error:
        message = str(error)
        assert len(message.splitlines()) == 1 and path.name in message
        is_empty = any("" in row.values() or "src" not in row for row in expected)
        assert (is_empty and "is empty" in message) or (not expected and "has no line" in message)
        return
    assert [row.values for row in found] == expected and expected


TABLES = st.lists(st.tuples(TEXTS, TEXTS), min_size=1, max_size=5)
QUOTING = st.sampled_from((csv.QUOTE_MINIMAL, csv.QUOTE_NONNUMERIC, csv.QUOTE_ALL))
OPTIONAL = st.sampled_from(((), ("tgt",)))


@laws.examples(250)
@given(TABLES, OPTIONAL, st.sampled_from(("\n", "\r\n")), QUOTING, st.booleans())
def test_what_csv_writes_comes_back(tmp_path, table, optional, end, quoting, has_header):
    if quoting == csv.QUOTE_MINIMAL:  # Python 3.11 does not quote it; RFC 4180 does
        table = [tuple(value.replace("\r", "\n") for value in row) for row in table]
    path = tmp_path / "a.csv"
    with open(path, "w", encoding="utf-8-sig", newline="") as file:
        writer = csv.writer(file, lineterminator=end, quoting=quoting)
        rows = [(text, number, target) for number, (text, target) in enumerate(table)]
        writer.writerows([("src", "id", "tgt")] * has_header + rows)
    columns = () if has_header else ("src", "id", "tgt")
    assert_read(path, table, optional=optional, file_columns=columns)


@laws.examples(250)
@given(TABLES, OPTIONAL, st.sampled_from(("\n", "\r\n")), st.booleans())
def test_columns_parted_by_tabs_come_back(tmp_path, table, optional, end, is_compressed):
    """Optional empty values may be left out at the end of a row."""
    table = [tuple(v.replace("\t", " ").replace("\n", " ") for v in row) for row in table]
    rows = [row[:1] if optional and not row[1] else row for row in table]
    content = ("\ufeff" + "".join("\t".join(row) + end for row in rows)).encode()
    path = tmp_path / ("a.tsv.gz" if is_compressed else "a.tsv")
    path.write_bytes(gzip.compress(content, 1) if is_compressed else content)
    assert_read(path, table, optional=optional)


@laws.examples(250)
@given(TABLES, OPTIONAL, st.booleans(), st.sampled_from(("\n", "\r\n")))
def test_what_json_writes_comes_back(tmp_path, table, optional, is_ascii, end):
    # JSON lines have no header.
    assume(all(tuple(value.strip() for value in row) != NAMES for row in table))
    rows = [{"id": 1, **dict(zip(NAMES, row, strict=True))} for row in table]
    content = "".join(json.dumps(row, ensure_ascii=is_ascii) + end for row in rows)
    path = tmp_path / "a.jsonl"
    path.write_bytes(content.encode())
    assert_read(path, table, optional=optional)


BLANK = st.sampled_from(("", " \t", "\u3000\u200b", "\ufeff"))


@laws.examples(100)
@given(TABLES, st.sampled_from(("records", "columns", "index", "split", "table")), st.data())
def test_every_form_of_json_gives_the_same_rows(tmp_path, table, form, data):
    rows = [dict(zip(NAMES, (f"甲{value}" for value in row), strict=True)) for row in table]
    blanks = [data.draw(BLANK) for _ in rows]
    lines = "".join(
        f"{json.dumps(row)}\n{blank}\n" for row, blank in zip(rows, blanks, strict=True)
    )
    (tmp_path / "a.jsonl").write_text(lines, encoding="utf-8", newline="")
    cells = [list(row.values()) for row in rows]
    whole = {
        "records": rows,
        "columns": {n: {str(i): row[n] for i, row in enumerate(rows)} for n in NAMES},
        "index": {str(i): row for i, row in enumerate(rows)},
        "split": {"columns": NAMES, "index": [*range(len(rows))], "data": cells},
        "table": {"schema": {"fields": []}, "data": rows},
    }[form]
    indent = data.draw(st.sampled_from((None, 0, 3)))
    content = json.dumps(whole, ensure_ascii=data.draw(st.booleans()), indent=indent)
    (tmp_path / "a.json").write_text(content, encoding="utf-8", newline="")
    expected = [{name: value.strip() for name, value in row.items()} for row in rows]
    by_line, by_item = (list(read_rows(str(tmp_path / n), NAMES)) for n in ("a.jsonl", "a.json"))
    assert [row.values for row in by_line] == [row.values for row in by_item] == expected
    assert [row.line for row in by_line] == [2 * row.line - 1 for row in by_item]
    assert by_item[-1].place == f"{tmp_path}/a.json, item {len(rows)}"


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=6,
)


@laws.examples(250)
@given(VALUES)
def test_values_of_json_come_as_json(tmp_path, value):
    path = tmp_path / "a.json"
    path.write_text(json.dumps({"src": "甲", "tgt": value}))
    options = {"optional": ("tgt",), "json_columns": ("tgt",)}
    (row,) = read_rows(str(path), NAMES, **options)
    if isinstance(value, str):
        assert row.values.get("tgt", "") == value.strip()
    elif value is None:
        assert "tgt" not in row.values
    else:
        assert json.loads(row.values["tgt"]) == value


ROWS = [b'{"src": "a", "tgt": "b"}\n', b'{"src": 1}\n', b"a\tb\n", b"a,b\n", b'"a\n', b"src\ttgt\n"]
ROWS += [b"src\x0bx\ttgt\n", b'src,"a\nb",tgt\n', b'"src\rx",tgt\n', b"a\tb\tc\n"]
ROWS += [b"[\n", b"]", b",\n", b'{"src": {"0": "a"}, "tgt": {"0": "b"}}', b"\xe2\x80\x8b\n", b"\n"]
ROWS += [b"\xff", b"\r", b"\0", b"[" * 3000, b'{"src": "\\ud800", "tgt": "b"}', "甲\t乙".encode()]
ENDINGS = (".json", ".jsonl", ".tsv", ".txt", ".csv")


@laws.examples(400)
@given(
    st.lists(st.sampled_from(ROWS) | st.binary(max_size=8), max_size=6).map(b"".join),
    st.sampled_from([*ENDINGS, *(f"{ending}.gz" for ending in ENDINGS)]),
    st.booleans(),
    st.sampled_from((None, (), ("src", "id", "tgt"))),
    st.data(),
)
def test_any_bytes_are_rows_or_an_error(tmp_path, content, ending, skip, file_columns, data):
    path = tmp_path / f"a{ending}"
    if ending.endswith(".gz") and data.draw(st.booleans()):
        content = gzip.compress(content, 1)[: data.draw(st.integers(0, len(content) + 30))]
    path.write_bytes(content)
    bad_rows = BadRows(skip)
    try:
        options = {"file_columns": file_columns, "bad_rows": bad_rows}
        for row in read_rows(str(path), NAMES, **options):
            assert set(row.values) == set(NAMES)
            assert all(v and v == v.strip() and v.encode() for v in row.values.values())
            lines = content.count(b"\n") or content.count(b"\r")
            assert 1 <= row.line <= lines + 1 or ending.endswith(".gz")
    except UserError as error:
        assert path.name in str(error) and len(str(error).splitlines()) == 1
    assert skip or not bad_rows.count
