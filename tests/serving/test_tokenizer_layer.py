"""`TokenizerLayer` in a model, in `tf.data` and by itself, against `Tokenizer`."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from conftest import RESOURCES
from export_folders import INVALID, ODD_TEXTS
from natural_texts import NATURAL

from nezha_tf import NezhaConfig, NezhaEncoder, Tokenizer, TokenizerLayer
from nezha_tf.util.errors import UserError

LENGTH = 16
TEXTS = [*NATURAL, *ODD_TEXTS]
PAIRS = [text[: 3 * number] for number, text in enumerate(reversed(TEXTS))]


@pytest.fixture(scope="module")
def tokenizer():
    return Tokenizer(RESOURCES / "vocab.txt")


@pytest.fixture(scope="module")
def expected(tokenizer):
    return tokenizer(TEXTS, PAIRS, LENGTH)


def assert_equal(found, expected):
    assert list(found) == list(expected)
    for name, values in expected.items():
        assert found[name].dtype == tf.int32
        np.testing.assert_array_equal(found[name], values, name)


def test_lists_tensors_and_one_text(tokenizer, expected):
    layer = TokenizerLayer(tokenizer, LENGTH)
    for make in (list, np.array, tf.constant):
        assert_equal(layer(make(TEXTS), make(PAIRS)), expected)
    one = {name: values[0] for name, values in tokenizer(TEXTS[0], None, LENGTH).items()}
    for text in (TEXTS[0], tf.constant(TEXTS[0])):
        assert_equal(layer(text), one)
    assert_equal(layer([], []), tokenizer([], []))
    assert_equal(layer(tf.constant([INVALID])), tokenizer(INVALID.decode("utf-8", "ignore")))
    as_model = TokenizerLayer(tokenizer)
    assert as_model("好" * 600)["input_ids"].shape == (512,)


def test_a_pipeline_before_and_after_batch(tokenizer, expected):
    data = tf.data.Dataset.from_tensor_slices((TEXTS, PAIRS))
    layer = TokenizerLayer(tokenizer, LENGTH)
    assert_equal(next(iter(data.batch(len(TEXTS)).map(layer))), expected)
    padded = data.map(layer).padded_batch(len(TEXTS))
    assert_equal(next(iter(padded)), expected)
    whole = TokenizerLayer(tokenizer, LENGTH, padding="max_length")
    for mapped in (data.map(whole).batch(len(TEXTS)), data.batch(len(TEXTS)).map(whole)):
        assert_equal(next(iter(mapped)), expected)
        assert mapped.element_spec["input_ids"] == tf.TensorSpec([None, LENGTH], tf.int32)


def model_of(layer, body, is_pair=False):
    """Returns a functional model from strings to logits."""
    strings = [keras.Input((), dtype="string", name=name) for name in ("a", "b")[: 1 + is_pair]]
    return keras.Model(
        strings if is_pair else strings[0], keras.layers.Dense(3)(body(layer(*strings)))
    )


def small_body(inputs):
    vectors = keras.layers.Embedding(9103, 4)(inputs["input_ids"])
    segments = keras.layers.Embedding(2, 4)(inputs["segment_ids"])
    mask = keras.ops.cast(inputs["input_mask"], "float32")[..., None]
    return keras.layers.GlobalMaxPooling1D()((vectors + segments) * mask)


@pytest.mark.parametrize("padding", ("longest", "max_length"))
def test_a_model_comes_back_without_other_files(tokenizer, expected, tmp_path, padding):
    layer = TokenizerLayer(tokenizer, LENGTH, padding, name="reader")
    model = model_of(layer, small_body, is_pair=True)
    inputs = model.get_layer("reader").output
    assert [tensor.shape for tensor in inputs] == [(None, layer._length)] * 3
    texts = [tf.constant(TEXTS), tf.constant(PAIRS)]
    found = model.predict(texts, batch_size=5, verbose=0)
    of_inputs = keras.Model(inputs, model.output)
    np.testing.assert_allclose(of_inputs([*expected.values()]), found, atol=1e-6)
    model.save(tmp_path / "model.keras")
    opened = keras.models.load_model(tmp_path / "model.keras")
    assert opened.get_layer("reader").get_config() == layer.get_config()
    copied = keras.models.clone_model(model)
    copied.set_weights(model.get_weights())
    for other in (opened, copied):
        np.testing.assert_allclose(other(texts), found, atol=1e-6)
    model.export(tmp_path / "export", verbose=False)
    exported = tf.saved_model.load(tmp_path / "export")
    np.testing.assert_allclose(exported.serve(texts), found, atol=1e-6)


def test_strings_to_the_encoder_to_logits_are_trained(tokenizer, tmp_path):
    keras.utils.set_random_seed(0)
    sizes = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2}
    dropout = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    config = NezhaConfig(vocab_size=9103, intermediate_size=16, **sizes, **dropout)
    encoder = NezhaEncoder(config)
    model = model_of(TokenizerLayer(tokenizer, LENGTH), lambda x: encoder(x)["pooled_output"])
    model.compile(keras.optimizers.Adam(0.01), keras.losses.SparseCategoricalCrossentropy(True))
    assert not model.jit_compile
    labels = np.arange(len(TEXTS)) % 3
    data = tf.data.Dataset.from_tensor_slices((TEXTS, labels)).batch(8)
    history = model.fit(data, epochs=10, verbose=0).history["loss"]
    assert history[-1] < 0.7 * history[0]
    found = model.predict(tf.constant(TEXTS), verbose=0)
    inputs = tokenizer(TEXTS, max_length=LENGTH)
    logits = model.layers[-1](encoder(inputs)["pooled_output"])
    np.testing.assert_allclose(found, logits, atol=1e-5)
    model.save(tmp_path / "model.keras")
    opened = keras.models.load_model(tmp_path / "model.keras")
    np.testing.assert_allclose(opened(tf.constant(TEXTS)), found, atol=1e-5)
    model.export(tmp_path / "export", verbose=False)
    exported = tf.saved_model.load(tmp_path / "export")
    np.testing.assert_allclose(exported.serve(tf.constant(TEXTS)), found, atol=1e-5)


@pytest.mark.parametrize(
    "call, message",
    (
        (lambda layer: layer(["a", 3]), r"texts\[1\] is int, not str"),
        (lambda layer: layer(None), "texts is NoneType: give a str"),
        (lambda layer: layer(tf.constant([1])), r"texts are a tensor of int32 with shape \(1,\):"),
        (lambda layer: layer(keras.Input(())), r"texts are a tensor of float32 with shape \(None,"),
        (
            lambda layer: layer(keras.Input((1,), dtype="string")),
            r"texts are .* \(None, 1\): give strings \[B\]; in a model, keras.Input\(\(\), dtype=",
        ),
        (lambda layer: layer(["a"], ["b", "c"]), r"texts have the shape \(1,\), but pairs \(2,\)"),
        (lambda layer: layer("a", ["b"]), r"texts have the shape \(\), but pairs \(1,\)"),
        (lambda layer: layer(["a"], ["b"]), "max_length=4: give a whole number of at least 5"),
        (lambda layer: TokenizerLayer(layer._tokenizer, 2), "max_length=2: give a whole number"),
        (lambda layer: TokenizerLayer(layer._tokenizer, 9, "no"), "padding='no': give 'longest'"),
        (lambda layer: TokenizerLayer("mini"), "tokenizer is a str: give a nezha_tf.Tokenizer"),
    ),
)
def test_mistakes_are_one_line(tokenizer, call, message):
    with pytest.raises(UserError, match=f"^{message}") as error:
        call(TokenizerLayer(tokenizer, 4))
    assert len(str(error.value).splitlines()) == 1


def test_another_backend(tokenizer, monkeypatch):
    monkeypatch.setattr(keras.backend, "backend", lambda: "jax")
    with pytest.raises(UserError, match=r"^TokenizerLayer needs KERAS_BACKEND=tensorflow, as jax"):
        TokenizerLayer(tokenizer)
