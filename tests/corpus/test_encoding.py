"""Records of many examples against protobuf's own encoding."""

import numpy as np
import pytest
from records import encode_values

from nezha_tf.corpus.encoding import encode_block
from nezha_tf.data import schema


@pytest.mark.parametrize("highest", [1, 127, 128, 2**14 - 1, 2**14, 21_127, 2**21, 2**31 - 1])
def test_records_are_those_of_protobuf(highest):
    rng = np.random.default_rng(highest)
    lengths = schema.Lengths(*rng.integers(5, 90, 2).tolist())
    values = {}
    for feature in schema.FEATURES:
        shape = 60, lengths.of(feature)
        if feature.dtype is np.float32:
            values[feature.name] = rng.choice([0.0, 1.0, -2.5e-3], shape).astype(np.float32)
        else:
            # All sizes of numbers up to the highest, and rows of zeros only.
            most = 2.0 ** rng.uniform(0, np.log2(highest + 1), shape)
            values[feature.name] = (most * (rng.random((60, 1)) < 0.9)).astype(np.int64)
            values[feature.name][:2, 0] = highest
    found = encode_block(schema.FEATURES, values)
    assert len(found) == 60
    for row, record in enumerate(found):
        assert record == encode_values({name: v[row].tolist() for name, v in values.items()})


def test_no_example_gives_no_record():
    values = {f.name: np.zeros((0, 5), np.int32) for f in schema.FEATURES}
    assert encode_block(schema.FEATURES, values) == []
