"""Packed pairs against the Python tokenizer and by hand; columns of a file in either role."""

import json
import random

import laws
import pytest
from any_texts import texts
from hypothesis import given
from hypothesis import strategies as st

from nezha_tf import FullTokenizer
from nezha_tf.data.rows import Row, read_pairs
from nezha_tf.generation.sources import Packing, Side
from nezha_tf.text.graph_tokenizer import TOKENIZED_AT_ONCE
from nezha_tf.util.errors import UserError

ENDS = st.sampled_from(("tail", "head"))
# The graph's libraries know more characters, from a newer Unicode version than Python's.
TEXTS = texts(st.characters(exclude_categories=["Cs", "Cn"]))


@pytest.fixture(scope="module")
def tokenizer(vocabulary):
    return FullTokenizer(vocabulary=vocabulary)


def rows_of(*pairs):
    rows = [dict(zip(("src", "tgt"), pair, strict=False)) for pair in pairs]
    return [Row(values, "pairs.tsv", number) for number, values in enumerate(rows, start=1)]


def packing(tokenizer, source, target, source_end="tail", target_end="tail"):
    source, target = Side("source", 2, source, source_end), Side("target", 1, target, target_end)
    return Packing(tokenizer, source, target)


def test_pairs_sources_and_prompts_are_packed(tokenizer):
    rows = rows_of(("今天天气", "很好"), ("明天",))
    pairs = packing(tokenizer, 16, 8).pack(rows)
    expected = ["[CLS] 今 天 天 气 [SEP] 很 好 [SEP]".split(), "[CLS] 明 天 [SEP]".split()]
    assert [tokenizer.convert_ids_to_tokens(ids.tolist()) for ids in pairs.ids] == expected
    assert pairs.target_starts == [6, 4] and len(pairs) == 2
    assert pairs.truncated == {"source": 0, "target": 0}
    assert [tuple(map(len, sides)) for sides in pairs.sides()] == [(6, 3), (4, 0)]
    prompts = Packing(tokenizer, Side("prompt", 1, 4, "head")).pack(rows)
    expected = ["[CLS] 天 天 气".split(), "[CLS] 明 天".split()]
    assert [tokenizer.convert_ids_to_tokens(ids.tolist()) for ids in prompts.ids] == expected
    assert prompts.target_starts == [4, 3] and prompts.truncation().endswith(" 1 prompt")


@laws.examples(40)
@given(
    pairs=st.lists(st.tuples(TEXTS, TEXTS | st.none()), max_size=5),
    lengths=st.tuples(st.integers(3, 12), st.integers(2, 8)),
    ends=st.tuples(ENDS, ENDS),
)
def test_both_sides_are_the_python_tokenizers_cut_at_the_right_end(tokenizer, pairs, lengths, ends):
    pairs = [pair if pair[1] is not None else pair[:1] for pair in pairs]
    tokens = [[tokenizer.tokenize(text) for text in pair] for pair in pairs]
    pack = packing(tokenizer, *lengths, *ends).pack
    if not all(map(all, tokens)):
        with pytest.raises(UserError, match=r"pairs.tsv, line \d: (src|tgt) has no tokens"):
            pack(rows_of(*pairs))
        return
    packed = pack(rows_of(*pairs))
    rooms, num_cut = (lengths[0] - 2, lengths[1] - 1), [0, 0]
    for row, ids, start in zip(tokens, packed.ids, packed.target_starts, strict=True):
        expected, starts = ["[CLS]"], []
        for side, (part, room, end) in enumerate(zip(row, rooms, ends, strict=False)):
            dropped = max(0, len(part) - room)
            num_cut[side] += dropped > 0
            # One token after another from the end that is cut off.
            for _ in range(dropped):
                part.pop(-1 if end == "tail" else 0)
            expected += [*part, "[SEP]"]
            starts.append(len(expected))
        assert tokenizer.convert_ids_to_tokens(ids.tolist()) == expected
        assert start == starts[0]
    assert len(packed) == len(pairs) and list(packed.truncated.values()) == num_cut


def test_more_pairs_than_are_tokenized_at_once(tokenizer):
    rng = random.Random(1)
    texts = ["".join(rng.choices("今天 Tensor flow,，3.5龘é\t", k=9)) + "天" for _ in range(2054)]
    assert len(texts) > 2 * TOKENIZED_AT_ONCE
    examples = list(zip(texts[0::2], texts[1::2], strict=True))
    pairs = packing(tokenizer, 64, 64).pack(rows_of(*examples))
    for (source, target), ids in zip(examples, pairs.ids, strict=True):
        expected = ["[CLS]", *tokenizer.tokenize(source), "[SEP]"]
        expected += [*tokenizer.tokenize(target), "[SEP]"]
        assert tokenizer.convert_ids_to_tokens(ids.tolist()) == expected


def test_lengths_without_room(tokenizer):
    for lengths, message in (
        ((2, 8), r"--max_source_length=2 leaves no room .* at least 3"),
        ((8, 1), r"--max_target_length=1 leaves no room .* at least 2"),
    ):
        with pytest.raises(UserError, match=message):
            packing(tokenizer, *lengths)


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
    # A table with these two names would be ambiguous without a first line of names.
    endings = (".jsonl",) if names == ("tgt", "src") else (".jsonl", ".tsv")
    path = tmp_path_factory.mktemp("pairs") / f"pairs{ending.draw(st.sampled_from(endings))}"
    paths = written(path, names, pairs)
    forward = [(row.values["src"], row.values["tgt"]) for row in read_pairs(paths, names)]
    backward = [(row.values["tgt"], row.values["src"]) for row in read_pairs(paths, names[::-1])]
    assert forward == backward == pairs


def test_targets_may_be_missing_in_either_column_and_one_column_is_not_both(tmp_path):
    path = tmp_path / "pairs.jsonl"
    path.write_text('{"今": "白话"}\n{"今": "甲", "古": "乙"}\n', encoding="utf-8")
    rows = read_pairs([str(path)], ("今", "古"), optional=("tgt",))
    assert [row.values for row in rows] == [{"src": "白话"}, {"src": "甲", "tgt": "乙"}]
    with pytest.raises(UserError, match='line 1: "古" is missing'):
        read_pairs([str(path)], ("古", "今"), optional=("tgt",))
    with pytest.raises(UserError, match="are both 古"):
        read_pairs([str(path)], ("古", "古"))
