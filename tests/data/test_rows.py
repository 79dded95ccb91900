"""Labelled text from files, and one line for each fault."""

import csv
import gzip
import json

import pytest

from nezha_tf.data.lines import BadRows
from nezha_tf.data.rows import read_rows
from nezha_tf.util.errors import UserError


def read(path, content, **options):
    data = content if isinstance(content, bytes) else content.encode()
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return list(read_rows(str(path), ("src", "tgt"), **options))


PAIRS = [{"src": "今天 天气", "tgt": "好"}, {"src": "a\u2028b", "tgt": "丙"}]


def test_a_first_line_with_the_names_tells_their_order(tmp_path):
    lines = "".join(f"{pair['tgt']}\t7\t{pair['src']}\n" for pair in PAIRS)
    for file_columns in (None, ("src", "tgt"), ("tgt", "src"), ()):
        rows = read(tmp_path / "a.tsv", "tgt\tid\tsrc \n" + lines, file_columns=file_columns)
        assert [row.values for row in rows] == PAIRS and rows[0].line == 2
    # Of those that are optional, it may lack some.
    rows = read(tmp_path / "a.tsv", "id\tsrc\n7\t甲\n", file_columns=None, optional=("tgt",))
    assert [row.values for row in rows] == [{"src": "甲"}]


@pytest.mark.parametrize(
    "name, content, fault",
    (
        ("a.json", '{"src": "甲", "tgt": ""}', "line 1: tgt is empty"),
        ("a.json", '{"src": " \u3000", "tgt": "乙"}', "line 1: src is empty"),
        ("a.json", '{"src": "甲"}', 'line 1: "tgt" is missing'),
        ("a.json", '{"src": null, "tgt": "乙"}', "line 1: src is empty"),
        ("a.json", '{"src": ["甲"], "tgt": "乙"}', 'line 1: "src" must be a string, not ["'),
        ("a.json", '{"src": "甲", "tgt": "乙"}\n{"src": "甲"', "line 2: not JSON ("),
        ("a.json", '"甲"', "line 1: not a JSON object"),
        ("a.json", "[" * 100_000, "line 1: not JSON ("),
        ("a.json", '{"src": "\\ud83d", "tgt": "乙"}', 'line 1: "src" holds half a character'),
        ("a.json", b'{"src": "\xff", "tgt": "a"}', "line 1: not UTF-8 at byte 9"),
        ("a.json", "", "has no line"),
        ("a.tsv", "甲\t乙\n甲\t", "line 2: tgt is empty"),
        ("a.tsv", "甲\t乙\n\t乙", "line 2: src is empty"),
        ("a.tsv", "甲", "line 1: 1 columns separated by tabs, not 2 (src, tgt)"),
        ("a.tsv", "甲\t乙\t丙", "line 1: 3 columns"),
        ("a.csv", "甲,乙\n甲,乙,丙", "line 2: 3 columns separated by commas, not 2 (src, tgt)"),
        ("a.csv", '甲,乙\n甲,"乙\n丙"丁', "line 2: not CSV ("),
        ("a.csv", '甲,乙\n甲,"乙\n丙', "line 2: not CSV ("),
        ("a.xml", "甲,乙", "the name must end in"),
    ),
)
def test_faults_are_one_line_with_their_place(tmp_path, name, content, fault):
    with pytest.raises(UserError) as error:
        read(tmp_path / name, content)
    assert name in str(error.value) and fault in str(error.value)
    assert len(str(error.value).splitlines()) == 1


# The lines of a file, of which those in brackets show nothing, and their end.
WITH_BLANKS = (
    (
        "a.tsv",
        ["src\ttgt", ["", " ", "\u200b\ufeff", "\t"], "甲\t乙", [""], "丙\t丁", ["", "\0"]],
        "\n",
    ),
    (
        "a.csv",
        ["src,tgt", [",", "", '""'], '"甲",乙', [" ,\u200b"], "丙,丁", [",,", ""]],
        "\r",
    ),
    (
        "a.jsonl",
        [["", "\u3000"], '{"src": "甲", "tgt": "乙"}', [""], '{"src": "丙", "tgt": "丁"}', [""]],
        "\r\n",
    ),
)


@pytest.mark.parametrize("name, lines, end", WITH_BLANKS)
def test_blank_lines_are_passed_over_and_counted(tmp_path, name, lines, end):
    filled, numbers, blank, count = [], [], [], 0
    for part in lines:
        many = part if isinstance(part, list) else [part]
        (filled if many is not part else blank).extend(many)
        numbers += [count + 1] * (many is not part)
        count += len(many)
    content = end.join(
        [line for part in lines for line in ([part] if isinstance(part, str) else part)]
    )
    bad_rows = BadRows()
    rows = read(tmp_path / name, content + end, file_columns=(), bad_rows=bad_rows)
    plain = read(tmp_path / f"plain_{name}", end.join(filled), file_columns=())
    assert [row.values for row in rows] == [row.values for row in plain]
    # A row is found again by its number.
    assert [row.line for row in rows] == numbers[-2:]
    first = numbers[0] + 1 if name != "a.jsonl" else 1
    assert (bad_rows.num_blank, bad_rows.count) == (len(blank), 0)
    assert bad_rows.note() == (
        f"; blank lines passed over: {len(blank)} (the first: {tmp_path / name}, line {first})"
    )


def test_objects_over_several_lines(tmp_path):
    content = "\n".join(json.dumps(pair, indent=1) for pair in PAIRS)
    rows = read(tmp_path / "a.json", content)
    assert [row.values for row in rows] == PAIRS and [row.line for row in rows] == [1, 5]


def test_faults_of_arrays_and_tables(tmp_path):
    table = '{"src": {"0": "甲", "1": null}, "tgt": {"0": "乙"}}'
    for content, fault in (
        ('[{"src": "甲", "tgt": "乙"}, {"src": "丙"}]', 'a.json, item 2: "tgt" is missing'),
        ('[\n{"src": "甲", "tgt": "乙"}\n\n{"src": "丙"}]', "a.json, line 4: not JSON (Expecting"),
        ('[["甲", "乙"]]', "a.json, item 1: not a JSON object"),
        ("[]", "a.json, line 1: not a JSON object"),
        ('{"src": ["甲"], "tgt": ["乙"]}', 'a.json, line 1: "src" must be a string'),
        (table, "a.json, item 2: "),
        ('{"columns": [["src"], "src"], "data": [[1, 2]]}', '"src" is missing'),
        ('{"columns": ["src"], "data": 3}', '"src" is missing'),
    ):
        with pytest.raises(UserError) as error:
            read(tmp_path / "a.json", content)
        assert fault in str(error.value) and len(str(error.value).splitlines()) == 1


def test_files_as_programs_leave_them(tmp_path):
    """Cells without a bound, a header before each of several files, and endings in any case."""
    long = "甲" * 140_000
    content = f'\ufeffsrc,tgt\n{long},"{long}"\n\ufeffsrc,tgt\n丙,丁\n'
    rows = read(tmp_path / "a.CSV", content, file_columns=())
    assert [row.values["src"] for row in rows] == [long, "丙"] and rows[1].line == 4
    for name in ("a.TSV", "a.Txt", "a.data", "a.tsv.GZ"[:5]):
        assert len(read(tmp_path / name, "甲\t乙\n丙\t丁\n")) == 2


def test_a_file_that_is_cut_short(tmp_path):
    path = tmp_path / "a.tsv.gz"
    path.write_bytes(gzip.compress("甲\t乙\n".encode() * 100)[:-9])
    with pytest.raises(UserError, match="damaged gzip file"):
        list(read_rows(str(path), ("src", "tgt")))
    with pytest.raises(UserError, match="cannot read"):
        list(read_rows(str(tmp_path / "none.tsv"), ("src", "tgt")))


VALUES = [
    {"src": 'say "好", 乙', "tgt": "a\tb"},
    {"src": "一\n二", "tgt": "c"},
    {"src": "x\u2028,", "tgt": "d e"},
]


def test_csv_as_python_writes_it(tmp_path):
    """RFC 4180: commas, quotes and line breaks in quotes; line numbers are those of the file."""
    with open(tmp_path / "a.csv", "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerows([("id", "tgt", "src"), *((1, v["tgt"], v["src"]) for v in VALUES)])
    rows = list(read_rows(str(tmp_path / "a.csv"), ("src", "tgt"), file_columns=()))
    assert [row.values for row in rows] == VALUES
    assert [row.line for row in rows] == [2, 3, 5]


def test_columns_are_found_by_their_names(tmp_path):
    with_header = "\ufeffid\ttgt\t src \textra\n1\t乙\t甲\t\n2\t丁\t丙\tx\n"
    rows = read(tmp_path / "a.tsv", with_header, file_columns=())
    assert [tuple(row.values.values()) for row in rows] == [("甲", "乙"), ("丙", "丁")]
    names = ("id", "tgt", "src", "extra")
    without = with_header.partition("\n")[2]
    assert [row.line for row in read(tmp_path / "a.tsv", without, file_columns=names)] == [1, 2]
    # If the caller names the columns, a header with other names is a row.
    rows = read(tmp_path / "a.tsv", with_header, file_columns=names)
    assert [row.values["src"] for row in rows] == ["甲", "丙"] and rows[0].line == 2
    # An optional column may be missing in the whole file.
    rows = read(tmp_path / "b.csv", "src\n甲\n乙", optional=("tgt",), file_columns=())
    assert [row.values for row in rows] == [{"src": "甲"}, {"src": "乙"}]


def test_columns_that_are_not_there(tmp_path):
    for header, fault in (
        ("src\tlabel", "line 1: there is no column 'tgt'; the columns are src, label"),
        ("src\ttgt\tsrc", "line 1: 2 columns 'src'"),
        (
            "好" * 50 + "\t1",
            f"the columns are {'好' * 30}…, 1; if this line is an example, write a",
        ),
        ("src\ttgt", "has no line with an example"),
    ):
        with pytest.raises(UserError) as error:
            read(tmp_path / "a.tsv", header, file_columns=(), bad_rows=BadRows(skip=True))
        assert fault in str(error.value)
    with pytest.raises(UserError, match=r"line 3: 1 columns separated by tabs, not 2 \(src, tgt\)"):
        read(tmp_path / "a.tsv", "src\ttgt\n甲\t乙\n丙", file_columns=())


def test_bad_rows_are_counted_and_passed_over(tmp_path):
    for name, content in (
        ("a.tsv", "甲\t乙\n甲\n\t乙\n丙\t丁"),
        ("a.csv", '甲,乙\n甲\n"a"b,乙\n丙,丁'),
        ("a.json", '{"src": "甲", "tgt": "乙"}\n{\n[]\n{"src": "丙", "tgt": "丁"}'),
    ):
        bad_rows = BadRows(skip=True)
        rows = read(tmp_path / name, content, bad_rows=bad_rows)
        assert [(row.values["src"], row.line) for row in rows] == [("甲", 1), ("丙", 4)]
        assert bad_rows.count == 2
        assert bad_rows.note().startswith("; bad rows skipped: 2 (the first: ")
        assert f"{name}, line 2: " in bad_rows.note()
    assert BadRows().note() == ""
