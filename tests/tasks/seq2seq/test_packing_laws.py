"""Property tests of pairs: both sides equal the Python tokenizer's tokens, cut at the right end."""

import laws
import pytest
from any_texts import texts
from hypothesis import given
from hypothesis import strategies as st

from nezha_tf import FullTokenizer
from nezha_tf.data.rows import Row
from nezha_tf.tasks.seq2seq.packing import Packing
from nezha_tf.util.errors import UserError

ENDS = st.sampled_from(("tail", "head"))
# The graph's libraries know more characters, from a newer Unicode version than Python's.
TEXTS = texts(st.characters(exclude_categories=["Cs", "Cn"]))


@pytest.fixture(scope="module")
def tokenizer(vocabulary):
    return FullTokenizer(vocabulary=vocabulary)


@laws.examples(40)
@given(
    pairs=st.lists(st.tuples(TEXTS, TEXTS | st.none()), max_size=5),
    lengths=st.tuples(st.integers(3, 12), st.integers(2, 8)),
    ends=st.tuples(ENDS, ENDS),
)
def test_pairs(tokenizer, pairs, lengths, ends):
    values = [dict(zip(("src", "tgt"), pair, strict=True)) for pair in pairs]
    values = [{name: text for name, text in row.items() if text is not None} for row in values]
    rows = [Row(row, "pairs.tsv", line) for line, row in enumerate(values, start=1)]
    tokens = [[tokenizer.tokenize(text) for text in pair if text is not None] for pair in pairs]
    packing = Packing(tokenizer, *lengths, *ends)
    if not all(map(all, tokens)):
        with pytest.raises(UserError, match=r"pairs.tsv, line \d: (src|tgt) has no tokens"):
            packing.pack(rows)
        return
    packed = packing.pack(rows)
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
        assert start == starts[0] and len(ids) <= packing.max_seq_length == sum(lengths)
    assert len(packed) == len(pairs) and list(packed.truncated.values()) == num_cut
