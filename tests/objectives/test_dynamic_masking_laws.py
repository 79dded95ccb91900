"""Property tests of masking in the graph, for any rows, keys, policy and budget."""

import laws
import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from masked_rows import (
    any_policies,
    any_shares,
    any_texts,
    as_masked,
    assert_rows_are_masked,
    batch_of,
    keys_of,
    make_rows,
)

from nezha_tf.data import schema
from nezha_tf.objectives.array_masking import ArrayMasking
from nezha_tf.objectives.dynamic_masking import DynamicMasking

LENGTH = 24


@laws.examples(25)
@given(
    any_texts(LENGTH),
    any_policies(),
    any_shares(),
    st.just(LENGTH) | st.integers(1, 9),
    st.integers(0, 2**32),
)
def test_rows_are_masked_as_on_arrays(vocabulary, rows, policy, share, most, seed):
    """The same keys give the same masks. It runs eagerly, to save the tracing of graphs."""
    rows = make_rows(rows[0], vocabulary, LENGTH, rows[1])
    keys = keys_of(len(rows.ids), seed)
    masking = DynamicMasking(vocabulary, policy, schema.Lengths(LENGTH, most), share)
    batch = batch_of(rows)
    found = masking.mask(batch, keys)
    masked = as_masked(found)
    assert_rows_are_masked(rows, masked, policy, share, most)
    expected = ArrayMasking(vocabulary, policy, schema.Lengths(LENGTH, most), share)(rows, keys)
    for value, other in zip(masked, expected, strict=True):
        np.testing.assert_array_equal(value, other)
    for name in ("input_mask", "segment_ids", "next_sentence_labels"):
        assert found[name] is batch[name]
