"""The encoder: lengths, masks, outputs and other precisions."""

import numpy as np
import pytest
import tensorflow as tf
from small_encoders import SIZES, batch_of

from nezha_tf import NezhaConfig, NezhaEncoder, NezhaForPreTraining, attention_mask
from nezha_tf.objectives.table import OBJECTIVES
from nezha_tf.util.errors import UserError


@pytest.mark.parametrize("pooled_only", (False, True))
def test_attention_probabilities_of_each_layer(pooled_only):
    """Against a softmax in NumPy of each layer's input, also for models that read only [CLS]."""
    config = NezhaConfig(**SIZES, position_encoding="absolute", initializer_range=0.5)
    encoder = NezhaEncoder(config, pooled_only=pooled_only)
    batch = batch_of(9)
    batch["attention_mask"] = attention_mask.seq2seq(batch["input_mask"], batch["segment_ids"])
    outputs = encoder(batch, all_outputs=True)
    states = [outputs["embedding_output"], *outputs["encoder_outputs"][:-1]]
    found = encoder.attention_probabilities(batch)
    assert len(found) == 3
    for layer, its_states, probs in zip(encoder.transformer_layers, states, found, strict=True):
        weights = layer.attention.get_weights()
        q, k = (
            (np.array(its_states) @ weights[2 * n] + weights[2 * n + 1]).reshape(2, 9, 3, 8)
            for n in range(2)
        )
        scores = np.einsum("bind,bjnd->bnij", q, k) / np.sqrt(8)
        shares = np.where(batch["attention_mask"], np.exp(scores - scores.max()), 0.0)
        assert probs.dtype == "float32"
        np.testing.assert_allclose(probs, shares / shares.sum(-1, keepdims=True), atol=1e-5)


@pytest.mark.parametrize("encoding", ("learned_relative", "rotary"))
def test_any_length(encoding):
    """Padding changes nothing: a sequence has the same outputs alone and in a longer batch."""
    encoder = NezhaEncoder(NezhaConfig(**SIZES, position_encoding=encoding))
    long = batch_of(600)
    long["input_mask"][:] = np.arange(600) < 300
    short = {name: values[:, :300] for name, values in long.items()}
    outputs = [encoder(batch)["sequence_output"][:, :300] for batch in (long, short)]
    np.testing.assert_allclose(*outputs, atol=2e-5)


def test_absolute_positions_end_with_their_table():
    config = NezhaConfig(**SIZES, position_encoding="absolute", max_position_embeddings=20)
    encoder = NezhaEncoder(config)
    encoder(batch_of(20), all_outputs=True)
    with pytest.raises(UserError, match=r"21 tokens is past the table of absolute.*20"):
        encoder(batch_of(21), all_outputs=True)


def test_parts_of_the_public_surface():
    model = NezhaForPreTraining(NezhaConfig(**SIZES))
    inputs = {**batch_of(30), "masked_lm_positions": np.array([[1, 5, 0], [2, 3, 4]], "int32")}
    outputs = model(inputs, all_outputs=True)
    assert outputs["sequence_output"].shape == (2, 30, 24)
    assert outputs["pooled_output"].shape == (2, 24)
    assert [o.shape for o in outputs["encoder_outputs"]] == [(2, 30, 24)] * 3
    assert outputs["embedding_output"].shape == (2, 30, 24)
    assert outputs["masked_lm_logits"].shape == (2, 3, 97)
    assert outputs["next_sentence_logits"].shape == (2, 2)
    # Dropout draws again at each call in training, and is off otherwise.
    pooled = [
        np.array(model(inputs, training=True, all_outputs=True)["pooled_output"]) for _ in range(2)
    ]
    assert np.abs(pooled[0] - pooled[1]).max() > 1e-3
    np.testing.assert_array_equal(
        model(inputs, all_outputs=True)["pooled_output"], outputs["pooled_output"]
    )


@pytest.mark.parametrize("precision", ("mixed_float16", "mixed_bfloat16"))
def test_mixed_precision_stays_near_float32(precision):
    config = NezhaConfig(**SIZES)
    models = [NezhaForPreTraining(config, dtype=dtype) for dtype in ("float32", precision)]
    models[1].set_weights(models[0].get_weights())
    assert {v.dtype for v in models[1].trainable_variables} == {"float32"}
    inputs = {**batch_of(30), "masked_lm_positions": np.array([[1, 5, 0], [2, 3, 4]], "int32")}
    outputs = [model(inputs, all_outputs=True) for model in models]
    for name in ("masked_lm_logits", "next_sentence_logits"):
        assert outputs[1][name].dtype == tf.float32
        np.testing.assert_allclose(outputs[0][name], outputs[1][name], atol=0.05)
    assert outputs[1]["sequence_output"].dtype == precision.removeprefix("mixed_")


def test_attention_masks_by_hand():
    """Four tokens and one of padding; tokens 2 and 3 are the target."""
    input_mask = np.array([[1, 1, 1, 1, 0]])
    segment_ids = np.array([[4, 4, 5, 5, 0]])
    padding_query = [1, 1, 1, 1, 0]
    expected = {
        "bidirectional": [[1, 1, 1, 1, 0]] * 4,
        "left_to_right": [[1, 0, 0, 0, 0], [1, 1, 0, 0, 0], [1, 1, 1, 0, 0], [1, 1, 1, 1, 0]],
        "right_to_left": [[1, 1, 1, 1, 0], [0, 1, 1, 1, 0], [0, 0, 1, 1, 0], [0, 0, 0, 1, 0]],
        "seq2seq": [[1, 1, 0, 0, 0], [1, 1, 0, 0, 0], [1, 1, 1, 0, 0], [1, 1, 1, 1, 0]],
    }
    for name, rows in expected.items():
        segments = (segment_ids,) if name == "seq2seq" else ()
        found = getattr(attention_mask, name)(input_mask, *segments)
        ranks = OBJECTIVES[name].ranks({"input_mask": input_mask, "segment_ids": segment_ids})
        np.testing.assert_array_equal(attention_mask.from_ranks(ranks, input_mask), found, name)
        assert found.dtype == tf.bool and found.shape == (1, 1, 5, 5)
        np.testing.assert_array_equal(found[0, 0], np.array([*rows, padding_query], bool), name)
