"""The choices of a layer's norms, feed-forward layers and biases, against NumPy by hand."""

import itertools
import math

import keras
import numpy as np
import pytest
import tensorflow as tf
from small_encoders import SIZES, batch_of

from nezha_tf import NezhaConfig, NezhaEncoder, attention_mask
from nezha_tf.checkpoints import load_tf1_checkpoint, save_tf1_checkpoint
from nezha_tf.checkpoints.name_table import tf1_names
from nezha_tf.modeling.replaced_tokens import NezhaForReplacedTokens
from nezha_tf.util.errors import UserError

# Each value of each key with each value of every other one, in four rows.
PAIRS = (
    {"norm_position": "pre", "norm": "rms_norm", "feed_forward": "swiglu", "use_bias": False},
    {"norm_position": "pre", "norm": "layer_norm", "feed_forward": "geglu", "use_bias": True},
    {"norm_position": "post", "norm": "rms_norm", "feed_forward": "geglu", "use_bias": False},
    {"norm_position": "pre", "norm": "layer_norm", "feed_forward": "dense", "use_bias": False},
)


def encoder_of(changes, encoding="absolute", model=NezhaEncoder, **sizes):
    """Returns a model with random biases and scales, too."""
    keras.utils.set_random_seed(1)
    sizes = {**SIZES, "initializer_range": 0.3, **changes, **sizes}
    made = model(NezhaConfig(position_encoding=encoding, **sizes))
    rng = np.random.default_rng(2)
    for variable in made.trainable_variables:
        if len(variable.shape) == 1:
            variable.assign(rng.normal(1.0, 0.3, variable.shape))
    return made


def by_hand(weights, config, inputs):
    """The encoder of BERT with these choices, in float64, from its weights by TF1's names."""

    def norm(x, prefix):
        if config.norm == "rms_norm":
            size = np.sqrt((x**2).mean(-1, keepdims=True) + config.layer_norm_eps)
            return x / size * weights[f"{prefix}RMSNorm/scale"]
        x = x - x.mean(-1, keepdims=True)
        x = x / np.sqrt((x**2).mean(-1, keepdims=True) + config.layer_norm_eps)
        return x * weights[f"{prefix}LayerNorm/gamma"] + weights[f"{prefix}LayerNorm/beta"]

    def dense(x, name):
        return x @ weights[f"{name}/kernel"] + weights.get(f"{name}/bias", 0.0)

    def gelu(x):
        return x / 2 * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))

    def feed_forward(x, layer):
        raised = dense(x, f"{layer}/intermediate/dense")
        if config.feed_forward == "swiglu":
            raised = raised / (1 + np.exp(-raised)) * dense(x, f"{layer}/linear/dense")
        elif config.feed_forward == "geglu":
            raised = gelu(raised) * dense(x, f"{layer}/linear/dense")
        else:
            raised = gelu(raised)
        return dense(raised, f"{layer}/output/dense")

    def attention(x, layer):
        shape = (*x.shape[:2], config.num_attention_heads, config.head_size)
        query, key, value = (
            dense(x, f"{layer}/attention/self/{name}").reshape(shape).swapaxes(1, 2)
            for name in ("query", "key", "value")
        )
        scores = query @ key.swapaxes(2, 3) / math.sqrt(config.head_size)
        scores = np.exp(np.where(inputs["input_mask"][:, None, None] > 0, scores, -np.inf))
        probs = scores / scores.sum(-1, keepdims=True)
        context = (probs @ value).swapaxes(1, 2).reshape(x.shape)
        return dense(context, f"{layer}/attention/output/dense")

    table = "bert/embeddings"
    x = weights[f"{table}/word_embeddings"][inputs["input_ids"]]
    x = x + weights[f"{table}/token_type_embeddings"][inputs["segment_ids"]]
    x = norm(x + weights[f"{table}/position_embeddings"][: x.shape[1]], f"{table}/")
    for index in range(config.num_hidden_layers):
        layer = f"bert/encoder/layer_{index}"
        for sublayer, place in (
            (attention, f"{layer}/attention/output/"),
            (feed_forward, f"{layer}/output/"),
        ):
            if config.norm_position == "pre":
                x = x + sublayer(norm(x, place), layer)
            else:
                x = norm(x + sublayer(x, layer), place)
    if config.norm_position == "pre":
        x = norm(x, "bert/encoder/final_")
    return x


@pytest.mark.parametrize("changes", PAIRS, ids=str)
def test_the_encoder_by_hand(changes, tmp_path):
    """Also after a way through a checkpoint of TF1, and in training, with fewer products."""
    changes = {**changes, "hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    encoder = encoder_of(changes)
    save_tf1_checkpoint(encoder, tmp_path / "model.ckpt")
    other = encoder_of(changes, initializer_range=0.1)
    report = load_tf1_checkpoint(other, tmp_path / "model.ckpt")
    assert not report.missing and not report.unused
    inputs = batch_of(9)
    weights = {name: v.numpy().astype("float64") for name, v in tf1_names(encoder).items()}
    assert any("/bias" in name for name in weights if "layer_0" in name) == changes["use_bias"]
    expected = by_hand(weights, encoder.config, inputs)
    is_token = inputs["input_mask"] > 0
    for each, training in itertools.product((encoder, other), (False, True)):
        output = each(inputs, training=training)["sequence_output"].numpy()
        np.testing.assert_allclose(output[is_token], expected[is_token], atol=2e-5)


@pytest.mark.parametrize("changes", PAIRS[:2], ids=str)
def test_a_token_sees_what_its_mask_shows_in_one_pass_and_in_steps(changes):
    """Gradients of the left alone; a pass over cached keys gives the same states."""
    encoder = encoder_of(changes, "functional_relative")
    ids = tf.constant(batch_of(6)["input_ids"])
    ones = tf.ones_like(ids)
    inputs = {"input_ids": ids, "input_mask": ones, "segment_ids": 0 * ids}
    inputs["attention_mask"] = attention_mask.left_to_right(ones)
    with tf.GradientTape() as tape:
        outputs = encoder(inputs, all_outputs=True)
    states, start = outputs["sequence_output"], outputs["embedding_output"]
    depends = tape.batch_jacobian(states, start).numpy()
    depends = np.abs(depends).max(axis=(0, 2, 4)) > 0
    np.testing.assert_array_equal(depends, np.tri(6, dtype=bool))

    first = {name: value[..., :4] for name, value in inputs.items() if name != "attention_mask"}
    first["attention_mask"] = inputs["attention_mask"][..., :4, :4]
    cached = encoder(first, all_outputs=True)
    later = {
        "input_ids": ids[:, 4:],
        "input_mask": ones[:, 4:],
        "segment_ids": 0 * ids[:, 4:],
        "position_ids": tf.range(4, 6),
        "attention_mask": inputs["attention_mask"][..., 4:, :],
        "past_key_values": [(pair,) for pair in cached["keys_and_values"]],
    }
    positions = encoder.positions.between(tf.range(4, 6), tf.range(6))
    found = encoder(later, positions=positions)["sequence_output"]
    np.testing.assert_allclose(found, states[:, 4:], atol=2e-5)


def test_the_generator_has_the_same_layers():
    sizes = {"hidden_size": 16, "num_attention_heads": 4, "intermediate_size": 40}
    model = encoder_of(PAIRS[0], model=NezhaForReplacedTokens, **sizes)
    names = [name for name in tf1_names(model) if name.startswith("generator/")]
    parts = ("layer_0/linear/kernel", "final_RMSNorm/scale", "layer_2/attention/RMSNorm/scale")
    assert {f"generator/{part}" for part in parts} <= {
        n.replace("feed_forward/", "") for n in names
    }
    assert not any("bias" in name for name in names if "layer_" in name)


def test_what_no_model_has():
    with pytest.raises(UserError, match="norm must be one of layer_norm, rms_norm, not 'batch'"):
        NezhaConfig(vocab_size=9, norm="batch")
    with pytest.raises(UserError, match="use_bias must be true or false, not 1"):
        NezhaConfig(vocab_size=9, use_bias=1)
    config = NezhaConfig(vocab_size=9, **PAIRS[0])
    assert NezhaConfig.from_dict(config.to_dict()) == config
    assert not {*PAIRS[0]} & {*NezhaConfig(vocab_size=9).to_dict()}
    said = (
        r"with norm_position 'pre' and norm 'rms_norm' and .* and use_bias False has no counterpart"
    )
    with pytest.raises(UserError, match=said):
        config.to_hugging_face()
    with pytest.raises(
        UserError, match="--layer_mix mixes the states of all layers, and with norm"
    ):
        NezhaEncoder(config, layer_mix=True)
