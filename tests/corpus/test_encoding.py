"""Property tests of encoding: any values, against protobuf's bytes and TensorFlow's parser."""

import laws
import numpy as np
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from nezha_tf.corpus.encoding import encode_block
from nezha_tf.data import schema

# Numbers of all sizes of varints, with their limits.
INTEGERS = st.integers(0, 2) | st.integers(0, 2**31 - 1) | st.sampled_from([127, 128, 2**14, 2**28])


@st.composite
def blocks(draw):
    """Draws (features, lengths, dict of values)."""
    features = draw(st.sampled_from([schema.FEATURES, schema.UNMASKED_FEATURES]))
    lengths = schema.Lengths(draw(st.integers(1, 9)), draw(st.integers(1, 5)))
    count, values = draw(st.integers(1, 4)), {}
    for feature in features:
        shape = count, lengths.of(feature)
        if feature.dtype is np.float32:
            numbers = draw(arrays.arrays(np.uint32, shape, elements=st.integers(0, 2**32 - 1)))
            values[feature.name] = numbers.view(np.float32)  # any bits: nan, inf, -0.0
        else:
            dtype = draw(st.sampled_from([np.int32, np.int64]))
            values[feature.name] = draw(arrays.arrays(dtype, shape, elements=INTEGERS))
    return features, lengths, values


def encoded_by_protobuf(features, values):
    """Returns the deterministic serialization of one example's values, lists of numbers by name."""
    example = tf.train.Example()
    for feature in features:
        named = example.features.feature[feature.name]
        numbers = named.float_list if feature.dtype is np.float32 else named.int64_list
        numbers.value.extend(values[feature.name])
    return example.SerializeToString(deterministic=True)


@laws.examples(100)
@given(blocks())
def test_records_are_those_of_protobuf_and_read_back(block):
    features, lengths, values = block
    records = encode_block(features, values)
    for number, record in enumerate(records):
        row = {name: array[number].tolist() for name, array in values.items()}
        assert record == encoded_by_protobuf(features, row)
    parsed = tf.io.parse_example(records, schema.parsing_spec(lengths, features))
    assert len(records) == len(values["input_ids"]) and parsed.keys() == values.keys()
    for feature in features:
        found, expected = parsed[feature.name].numpy(), values[feature.name]
        assert found.dtype == feature.dtype
        assert found.tobytes() == expected.astype(feature.dtype).tobytes()
