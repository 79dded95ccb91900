"""What holds for every position encoding of the table, and what its row must have."""

import json

import keras
import numpy as np
import pytest
import tensorflow as tf
from small_encoders import SIZES, batch_of

from nezha_tf import NezhaConfig, NezhaEncoder
from nezha_tf.config import POSITION_ENCODINGS, PositionEncoding
from nezha_tf.modeling import positions
from nezha_tf.modeling.flops import training_flops
from nezha_tf.util.errors import UserError


def encoder_of(encoding, **settings):
    """Returns an encoder whose outputs depend strongly on positions."""
    config = NezhaConfig(
        **SIZES,
        position_encoding=encoding,
        max_relative_position=4,
        max_position_embeddings=60,
        initializer_range=0.4,
    )
    keras.utils.set_random_seed(0)
    return NezhaEncoder(config, **settings)


@pytest.mark.parametrize(
    "encoding, by_example",
    [("functional_relative", False), *((encoding, True) for encoding in POSITION_ENCODINGS)],
)
def test_position_ids_say_where_tokens_are(encoding, by_example):
    """Tokens in another order, with their positions, have the same outputs in that order."""
    encoder, batch = encoder_of(encoding), batch_of(17)
    rng = np.random.default_rng(0)
    order = np.stack([rng.permutation(17)] * 2)
    if by_example:
        order[1] = rng.permutation(17)
    moved = {name: np.take_along_axis(values, order, 1) for name, values in batch.items()}
    position_ids = tf.constant(order if by_example else order[0], tf.int32)
    expected, found = (
        encoder(batch, all_outputs=True),
        encoder({**moved, "position_ids": position_ids}, all_outputs=True),
    )
    expected_probs = encoder.attention_probabilities(batch)
    found_probs = encoder.attention_probabilities({**moved, "position_ids": position_ids})
    for row in range(2):
        np.testing.assert_allclose(
            found["sequence_output"][row],
            np.array(expected["sequence_output"])[row, order[row]],
            atol=2e-5,
        )
        for one, other in zip(found_probs, expected_probs, strict=True):
            other = np.array(other)[row][:, order[row]][:, :, order[row]]
            np.testing.assert_allclose(one[row], other, atol=2e-5)
    # Without the positions, the order is another one.
    different = encoder(moved)["pooled_output"] - found["pooled_output"]
    assert np.abs(different).max() > 1e-2


@pytest.mark.parametrize("encoding", POSITION_ENCODINGS)
def test_whether_distances_alone_count(encoding):
    encoder, batch = encoder_of(encoding), batch_of(17)
    outputs = [
        encoder({**batch, "position_ids": tf.range(17) + start})["sequence_output"]
        for start in (0, 40)
    ]
    difference = np.abs(outputs[0] - outputs[1]).max()
    assert difference < 2e-5 if encoder.positions.is_relative else difference > 1e-2


@pytest.mark.parametrize(
    "encoding, given",
    [
        ("functional_relative", None),
        ("absolute", [17]),
        *((encoding, [2, 17]) for encoding in POSITION_ENCODINGS),
    ],
)
def test_the_first_token_alone(encoding, given):
    batch = batch_of(17)
    if given:
        batch["position_ids"] = np.random.default_rng(1).integers(0, 60, given).astype("int32")
    whole, first = (encoder_of(encoding, pooled_only=only) for only in (False, True))
    expected = whole(batch)["pooled_output"]
    np.testing.assert_allclose(first(batch)["pooled_output"], expected, atol=2e-5)


def test_how_far_positions_reach():
    config = NezhaConfig(vocab_size=9, position_encoding="absolute", max_position_embeddings=20)
    absolute = positions.of(config)
    assert absolute.longest(config) == 20
    absolute.check_length(config, 20, "--max_seq_length=20")
    with pytest.raises(UserError) as error:
        absolute.check_length(config, 21, "--max_seq_length=21", where="config.json")
    for part in ("--max_seq_length=21 is past", "(max_position_embeddings 20 in config.json)"):
        assert part in str(error.value)
    for encoding in set(POSITION_ENCODINGS) - {"absolute"}:
        config = NezhaConfig(vocab_size=9, position_encoding=encoding, max_position_embeddings=20)
        assert positions.of(config).longest(config) is None
        positions.of(config).check_length(config, 10**6, "a text")


@pytest.mark.parametrize(
    "implementation, message",
    (
        ("no_such_module:Positions", "cannot import no_such_module:Positions"),
        ("nezha_tf.modeling.positions.rotary:None", "rotary:None is not a subclass of"),
        ("nezha_tf.modeling.encoder:NezhaEncoder", "NezhaEncoder is not a subclass of"),
        ("", "cannot import"),
    ),
)
def test_a_row_without_its_class_is_refused(tmp_path, monkeypatch, implementation, message):
    """The message is one line, and comes before any computation."""
    monkeypatch.setitem(POSITION_ENCODINGS, "odd", PositionEncoding(implementation))
    (tmp_path / "config.json").write_text(json.dumps({**SIZES, "position_encoding": "odd"}))
    config = NezhaConfig.from_json_file(tmp_path / "config.json")
    for use in (NezhaEncoder, lambda config: training_flops(config, 3, 1)):
        with pytest.raises(UserError, match=message) as error:
            use(config)
        assert "position_encoding 'odd'" in str(error.value) and "\n" not in str(error.value)
