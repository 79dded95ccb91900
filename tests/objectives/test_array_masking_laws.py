"""Property tests of masking on arrays, for any rows, keys, policy and budget."""

import classic
import laws
from hypothesis import given
from hypothesis import strategies as st
from masked_rows import (
    any_policies,
    any_shares,
    any_texts,
    assert_rows_are_masked,
    keys_of,
    make_rows,
)

from nezha_tf.corpus.packing import PackedRows
from nezha_tf.objectives.array_masking import ArrayMasking


@st.composite
def cases(draw):
    """Draws (length, texts, begins, policy, share, most, seed of the keys)."""
    length = draw(st.sampled_from([24, 40]) | st.integers(4, 40))
    share, most = draw(any_shares()), draw(st.just(24) | st.integers(1, 9))
    texts, begins = draw(any_texts(length))
    return length, texts, begins, draw(any_policies()), share, most, draw(st.integers(0, 2**32))


@laws.examples(150)
@given(cases())
def test_rows_are_masked_as_by_hand(vocabulary, case):
    length, texts, begins, policy, share, most, seed = case
    rows, keys = make_rows(texts, vocabulary, length, begins), keys_of(len(texts), seed)
    masked = ArrayMasking(vocabulary, policy, length, share, most)(rows, keys)
    assert_rows_are_masked(rows, masked, policy, share, most)
    for number, key in enumerate(keys.tolist()):
        row = PackedRows(*(array[number] for array in rows))
        budget = min(most, max(1, round(int(row.lengths) * share)))
        ids, labels = classic.mask_by_key(row, key, policy, budget, vocabulary)
        assert masked.ids[number].tolist() == ids
        assert masked.positions[number, : len(labels)].tolist() == list(labels)
        assert masked.labels[number, : len(labels)].tolist() == list(labels.values())
        assert masked.weights[number].sum() == len(labels)
