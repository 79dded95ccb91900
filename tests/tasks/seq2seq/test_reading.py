"""Columns of a file in either role, however the file is written."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nezha_tf.tasks.seq2seq.reading import read_pairs
from nezha_tf.util.errors import UserError

WORDS = st.text("甲乙丙ab", min_size=1, max_size=3)
# Each name of a column at its place in the file.
NAMES = st.sampled_from((("src", "tgt"), ("古", "今"), ("tgt", "src"), ("src", "今")))


def written(path, names, pairs):
    rows = [dict(zip(names, pair, strict=True)) for pair in pairs]
    if path.suffix == ".jsonl":
        lines = [json.dumps({"doc": "史记", **row}, ensure_ascii=False) for row in rows]
    else:
        header = [] if names == ("src", "tgt") else ["\t".join(names)]
        lines = header + ["\t".join(row.values()) for row in rows]
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return [str(path)]


@given(names=NAMES, pairs=st.lists(st.tuples(WORDS, WORDS), min_size=1), ending=st.data())
def test_swapped_columns_are_swapped_texts(tmp_path_factory, names, pairs, ending):
    if names == ("tgt", "src"):  # a table without a first line of names would be ambiguous
        path = tmp_path_factory.mktemp("pairs") / "pairs.jsonl"
    else:
        suffix = ending.draw(st.sampled_from((".jsonl", ".tsv")))
        path = tmp_path_factory.mktemp("pairs") / f"pairs{suffix}"
    paths = written(path, names, pairs)
    forward = [(row.values["src"], row.values["tgt"]) for row in read_pairs(paths, names)]
    backward = [(row.values["tgt"], row.values["src"]) for row in read_pairs(paths, names[::-1])]
    assert forward == backward == pairs


def test_targets_may_be_missing_in_either_column(tmp_path):
    path = tmp_path / "pairs.jsonl"
    path.write_text('{"今": "白话"}\n{"今": "甲", "古": "乙"}\n', encoding="utf-8")
    rows = read_pairs([str(path)], ("今", "古"), optional=("tgt",))
    assert [row.values for row in rows] == [{"src": "白话"}, {"src": "甲", "tgt": "乙"}]
    with pytest.raises(UserError, match='line 1: "古" is missing'):
        read_pairs([str(path)], ("古", "今"), optional=("tgt",))


def test_one_column_is_not_both(tmp_path):
    with pytest.raises(UserError, match="are both 古"):
        read_pairs([str(tmp_path / "none.jsonl")], ("古", "古"))
