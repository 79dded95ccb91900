"""Labelled text from files, and one line for each fault."""

import gzip
import json

import pytest

from nezha_tf.data.rows import read_rows
from nezha_tf.errors import UserError


def read(path, content, **options):
    data = content if isinstance(content, bytes) else content.encode()
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return list(read_rows(str(path), ("src", "tgt"), **options))


PAIRS = [{"src": "今天 天气", "tgt": "好"}, {"src": "a\u2028b", "tgt": "丙"}]


@pytest.mark.parametrize("suffix", ("", ".gz"))
@pytest.mark.parametrize("end", ("\n", "\r\n"))
def test_both_kinds_of_file(tmp_path, suffix, end):
    lines = "".join(json.dumps({**pair, "id": 3}, ensure_ascii=False) + end for pair in PAIRS)
    columns = "".join(f" {pair['src']}\t{pair['tgt']}{end}" for pair in PAIRS)
    for name, content in (("a.jsonl", lines), ("a.json", lines), ("a.tsv", "\ufeff" + columns)):
        rows = read(tmp_path / (name + suffix), content)
        assert [row.values for row in rows] == PAIRS
        assert rows[1].place == f"{tmp_path / (name + suffix)}, line 2"


def test_an_optional_column(tmp_path):
    for name, content in (
        ("a.json", '{"src": "甲"}\n{"src": "乙", "tgt": null}\n{"src": "丙", "tgt": "丁"}'),
        ("a.tsv", "甲\n乙\t\n丙\t丁"),
    ):
        values = [row.values for row in read(tmp_path / name, content, optional=("tgt",))]
        assert values == [{"src": "甲"}, {"src": "乙"}, {"src": "丙", "tgt": "丁"}]


@pytest.mark.parametrize(
    "name, content, fault",
    (
        ("a.json", '{"src": "甲", "tgt": ""}', "line 1: tgt is empty"),
        ("a.json", '{"src": " \u3000", "tgt": "乙"}', "line 1: src is empty"),
        ("a.json", '{"src": "甲"}', 'line 1: "tgt" is missing'),
        ("a.json", '{"src": null, "tgt": "乙"}', "line 1: src is empty"),
        ("a.json", '{"src": ["甲"], "tgt": "乙"}', 'line 1: "src" is no text but ["'),
        ("a.json", '{"src": "甲", "tgt": "乙"}\n{"src": "甲"', "line 2: no JSON ("),
        ("a.json", '{"src": "甲", "tgt": "乙"}\n\n', "line 2: no JSON ("),
        ("a.json", '"甲"', "line 1: no JSON object"),
        ("a.json", "[" * 100_000, "line 1: no JSON ("),
        ("a.json", '{"src": "\\ud83d", "tgt": "乙"}', 'line 1: "src" holds half a character'),
        ("a.json", b'{"src": "\xff", "tgt": "a"}', "line 1: not UTF-8 at byte 9"),
        ("a.json", "", "holds no line"),
        ("a.tsv", "甲\t乙\n甲\t", "line 2: tgt is empty"),
        ("a.tsv", "甲\t乙\n\t乙", "line 2: src is empty"),
        ("a.tsv", "甲", "line 1: 1 columns parted by tabs, not 2 (src, tgt)"),
        ("a.tsv", "甲\t乙\t丙", "line 1: 3 columns"),
        ("a.csv", "甲,乙", "the name must end in"),
    ),
)
def test_faults_are_one_line_with_their_place(tmp_path, name, content, fault):
    with pytest.raises(UserError) as error:
        read(tmp_path / name, content)
    assert name in str(error.value) and fault in str(error.value)
    assert len(str(error.value).splitlines()) == 1


def test_a_file_that_is_cut_short(tmp_path):
    path = tmp_path / "a.tsv.gz"
    path.write_bytes(gzip.compress("甲\t乙\n".encode() * 100)[:-9])
    with pytest.raises(UserError, match="damaged gzip file"):
        list(read_rows(str(path), ("src", "tgt")))
    with pytest.raises(UserError, match="cannot read"):
        list(read_rows(str(tmp_path / "none.tsv"), ("src", "tgt")))
