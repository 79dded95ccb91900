"""What Keras promises of every model and layer: to write, read, copy, fit, quantize and export."""

import copy
import pickle
import subprocess
import sys
from typing import NamedTuple

import keras
import numpy as np
import pytest
import tensorflow as tf

import nezha_tf
from nezha_tf import AdamWeightDecay, Lamb, NezhaConfig, NezhaEncoder
from nezha_tf.config import FEED_FORWARDS, POSITION_ENCODINGS
from nezha_tf.modeling import crf, embeddings, feed_forward, heads, layers, positions, residual
from nezha_tf.modeling.attention import SelfAttention
from nezha_tf.modeling.finetuning import (
    NezhaForCrfTagging,
    NezhaForMultipleChoice,
    NezhaForQuestionAnswering,
    NezhaForSequenceClassification,
    NezhaForTokenClassification,
)
from nezha_tf.modeling.pretraining import (
    NezhaForMaskedLM,
    NezhaForPermutationLM,
    NezhaForPreTraining,
)
from nezha_tf.modeling.replaced_tokens import (
    NezhaDiscriminator,
    NezhaForReplacedTokens,
    ReplacedTokenHead,
    Sampler,
    TokenGenerator,
)
from nezha_tf.modeling.sentence_vectors import NezhaForSentenceVectors
from nezha_tf.modeling.transformer_layer import TransformerLayer
from nezha_tf.util.errors import UserError

CONFIG = NezhaConfig(
    vocab_size=40,
    hidden_size=16,
    num_hidden_layers=1,
    num_attention_heads=4,
    intermediate_size=16,
    max_position_embeddings=16,
    type_vocab_size=2,
    initializer_range=0.3,
    hidden_dropout_prob=0.0,
    attention_probs_dropout_prob=0.0,
)
B, T = 8, 6
CROSS_ENTROPY = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
BINARY = keras.losses.BinaryCrossentropy(from_logits=True)


class Case(NamedTuple):
    """A model, and how a user of Keras trains it."""

    model: type
    arguments: tuple = ()
    loss: object = CROSS_ENTROPY
    # The shape of the labels behind B, and the number of classes.
    labels: tuple = ()
    classes: int = 3
    ids: tuple = (T,)

    def make(self):
        keras.utils.set_random_seed(1)
        return self.model(CONFIG, *self.arguments)

    def inputs(self):
        ids = np.random.default_rng(0).integers(1, 40, (B, *self.ids)).astype("int32")
        ids[..., -1] = np.where(np.arange(B) % 2, 0, ids[..., -1].T).T  # padding
        return {"input_ids": ids, "input_mask": (ids > 0).astype("int32"), "segment_ids": 0 * ids}

    def targets(self):
        drawn = np.random.default_rng(1).integers(0, self.classes, (B, *self.labels))
        if isinstance(self.loss, dict):
            return dict.fromkeys(self.loss, drawn)
        return drawn


CASES = {
    case.model.__name__: case
    for case in (
        Case(NezhaForSequenceClassification, (3,)),
        Case(NezhaForTokenClassification, (3,), labels=(T,)),
        Case(
            NezhaForQuestionAnswering,
            loss=dict.fromkeys(("start_logits", "end_logits"), CROSS_ENTROPY),
            classes=T,
        ),
        Case(NezhaForMultipleChoice, classes=2, ids=(2, T)),
        Case(NezhaForMaskedLM, labels=(T,), classes=40),
        Case(
            NezhaForPreTraining,
            loss={"masked_lm_logits": CROSS_ENTROPY, "next_sentence_logits": None},
            labels=(T,),
            classes=40,
        ),
        Case(NezhaDiscriminator, loss=BINARY, labels=(T,), classes=2),
    )
}
# Models that are written, read and copied, but whose loss is no function of logits and labels.
OTHERS = {
    case.model.__name__: case
    for case in (
        Case(NezhaEncoder, (None, False, True)),
        Case(NezhaForSentenceVectors),
        Case(NezhaForCrfTagging, (3,)),
        Case(NezhaForPermutationLM),
        Case(NezhaForReplacedTokens),
    )
}
EVERY = pytest.mark.parametrize("case", (CASES | OTHERS).values(), ids=CASES | OTHERS)
TRAINED = pytest.mark.parametrize("case", CASES.values(), ids=CASES)


def arrays(outputs):
    return [keras.ops.convert_to_numpy(value) for value in keras.tree.flatten(outputs)]


def assert_same(found, expected):
    for one, other in zip(arrays(found), arrays(expected), strict=True):
        np.testing.assert_array_equal(one, other)


@EVERY
def test_a_file_and_copies_compute_the_same(case, tmp_path):
    model, inputs = case.make(), case.inputs()
    expected = model(inputs)
    model.save(tmp_path / "model.keras")
    made = type(model).from_config(model.get_config())
    assert made.get_config() == model.get_config()
    assert [w.shape for w in made.weights] == [w.shape for w in model.weights]
    model.save_weights(tmp_path / "model.weights.h5")
    made.load_weights(tmp_path / "model.weights.h5")
    cloned = keras.models.clone_model(model)
    cloned.set_weights(model.get_weights())
    copies = [keras.models.load_model(tmp_path / "model.keras"), made, cloned]
    if case is CASES["NezhaForPreTraining"]:  # both are made of the file's bytes
        copies += [copy.deepcopy(model), pickle.loads(pickle.dumps(model))]
    for each in copies:
        assert type(each) is type(model)
        assert_same(each(inputs), expected)


class Sequence(keras.utils.PyDataset):
    def __init__(self, inputs, targets):
        super().__init__()
        self.all = inputs, targets

    def __len__(self):
        return 2

    def __getitem__(self, index):
        rows = slice(index * B // 2, (index + 1) * B // 2)
        return keras.tree.map_structure(lambda values: values[rows], self.all)


@TRAINED
def test_fit_evaluate_and_predict_take_every_form_of_data(case):
    inputs, targets = case.inputs(), case.targets()
    forms = {
        "arrays": ({"x": inputs, "y": targets, "batch_size": B // 2}),
        "tf.data": {"x": tf.data.Dataset.from_tensor_slices((inputs, targets)).batch(B // 2)},
        "PyDataset": {"x": Sequence(inputs, targets)},
    }
    if case.model is not NezhaForSequenceClassification:
        forms = {"arrays": forms["arrays"]}
    found = []
    for form in forms.values():
        model = case.make()
        model.compile(AdamWeightDecay(1e-2), loss=case.loss)
        losses = model.fit(**form, epochs=3, shuffle=False, verbose=0).history["loss"]
        assert losses[-1] < losses[0]
        predicted = model.predict(inputs, verbose=0)
        assert_same(keras.tree.map_structure(np.shape, predicted), map_shapes(model(inputs)))
        found.append(losses)
    np.testing.assert_allclose(found, [found[0]] * len(found), rtol=1e-4)


def map_shapes(outputs):
    return keras.tree.map_structure(lambda value: tuple(value.shape), outputs)


@pytest.mark.parametrize("policy", ("mixed_bfloat16", "mixed_float16"))
@TRAINED
def test_logits_are_float32_under_every_policy(case, policy):
    exact = case.make()
    model = type(exact)(CONFIG, *case.arguments, dtype=policy)
    model.set_weights(exact.get_weights())
    for found, expected in zip(
        arrays(model(case.inputs())), arrays(exact(case.inputs())), strict=True
    ):
        assert found.dtype == np.float32
        assert 0 < np.abs(found - expected).max() < 0.1 * np.abs(expected).max()


@pytest.mark.parametrize(
    "case, mode, most",
    [
        *((case, "int8", 0.05) for case in CASES.values()),
        (CASES["NezhaForMaskedLM"], "int4", 0.7),
        (CASES["NezhaForSequenceClassification"], "float8", 0.2),
    ],
)
def test_quantized_models_are_near_and_can_be_written(case, mode, most, tmp_path):
    model, inputs = case.make(), case.inputs()
    before = arrays(model(inputs))
    dense = [layer for layer in model._flatten_layers() if isinstance(layer, layers.Dense)]
    model.quantize(mode)
    assert {layer.quantization_mode for layer in dense} == {mode}
    after = arrays(model(inputs))
    for one, other in zip(before, after, strict=True):
        assert 0 < np.abs(one - other).max() < most * np.abs(one).max()
    if mode == "int8":
        model.save(tmp_path / "model.keras")
        assert_same(keras.models.load_model(tmp_path / "model.keras")(inputs), after)


def test_quantization_collects_no_garbage_of_others():
    """Keras collects after each kernel that it replaces, which takes seconds beside TensorFlow."""
    program = """
import gc, sys
import nezha_tf
config = nezha_tf.NezhaConfig(vocab_size=40, hidden_size=16, num_attention_heads=2)
model = nezha_tf.NezhaEncoder(config)
seen = []
gc.callbacks.append(lambda phase, info: seen.append(len(gc.get_objects())))
is_frozen = sys.argv[1] == "frozen"
if is_frozen:
    gc.freeze()
    theirs = gc.get_freeze_count()
model.quantize("int8")
assert len(seen) > 2 * 6 * 12 and max(seen) < 50_000, (len(seen), max(seen))
left = gc.get_freeze_count()
assert 0.9 * theirs < left <= theirs if is_frozen else left == 0, left
assert (len(gc.get_objects()) > 200_000) is not is_frozen
"""
    for name in ("frozen", "not"):
        subprocess.run([sys.executable, "-c", program, name], check=True)


def test_mini_in_int8_gives_the_same_answer_and_nearly_the_same_loss():
    """The mean loss of the characters of some sentences, each masked by itself."""
    tokenizer, model = nezha_tf.load("mini")
    losses, guesses = [], []
    sentences = ("今天的天气很好", "学而时习之不亦说乎", "床前明月光疑是地上霜")
    for is_quantized in (False, True):
        if is_quantized:
            model.quantize("int8")
        found = []
        for sentence in sentences:
            tokens = ["[CLS]", *tokenizer.tokenize(sentence), "[SEP]"]
            ids = np.array([tokenizer.convert_tokens_to_ids(tokens)] * (len(tokens) - 2))
            places = np.arange(1, len(tokens) - 1)
            labels = ids[0, places]
            ids[np.arange(len(places)), places] = tokenizer.vocabulary.mask_id
            logits = model({"input_ids": ids, "masked_lm_positions": places[:, None]})
            logits = logits["masked_lm_logits"][:, 0]
            found.extend(keras.losses.sparse_categorical_crossentropy(labels, logits, True))
            guesses.append(int(np.argmax(logits[0])))
        losses.append(np.mean(found))
    assert abs(losses[1] - losses[0]) < 0.02
    assert guesses[:3] == guesses[3:]


@pytest.mark.parametrize("case", list(CASES.values())[2:4], ids=list(CASES)[2:4])
def test_an_export_of_keras_computes_the_same(case, tmp_path):
    model, inputs = case.make(), case.inputs()
    model.export(tmp_path / "export", verbose=False)
    loaded = tf.saved_model.load(tmp_path / "export")
    few = {name: tf.constant(value[:3]) for name, value in inputs.items()}
    for found, expected in zip(arrays(loaded.serve(few)), arrays(model(few)), strict=True):
        np.testing.assert_allclose(found, expected, atol=1e-5)


def test_lora_of_keras_is_part_of_every_product():
    """After a change of the adapters, the model is that with the merged kernels."""
    case = CASES["NezhaForTokenClassification"]
    model, inputs = case.make(), case.inputs()
    merged = case.make()
    rng = np.random.default_rng(0)
    for layer, other in zip(model._flatten_layers(), merged._flatten_layers(), strict=True):
        if isinstance(layer, layers.Dense):
            kernel = np.array(layer.kernel)
            layer.enable_lora(2, lora_alpha=3)
            a, b = (rng.normal(size=w.shape) for w in (layer.lora_kernel_a, layer.lora_kernel_b))
            layer.lora_kernel_a.assign(a)
            layer.lora_kernel_b.assign(b)
            other.kernel.assign(kernel + 1.5 * a @ b)
    np.testing.assert_allclose(model(inputs), merged(inputs), atol=1e-4)


class Pooled(keras.Model):
    """A model of a user, which is not built before it sees data."""

    def __init__(self):
        super().__init__()
        self.encoder = NezhaEncoder(CONFIG)
        self.head = keras.layers.Dense(3)

    def call(self, inputs, training=False):
        return self.head(self.encoder(inputs, training=training)["pooled_output"])


@pytest.mark.parametrize("num_replicas, optimizer", [(1, Lamb), (2, AdamWeightDecay)])
def test_the_encoder_is_part_of_a_users_model(num_replicas, optimizer):
    case = CASES["NezhaForSequenceClassification"]
    devices = [f"CPU:{number}" for number in range(num_replicas)]
    # Sums that wait for each other have numbers that each strategy of a process begins anew.
    sums = tf.distribute.ReductionToOneDevice()
    with tf.distribute.MirroredStrategy(devices, sums).scope():
        model = Pooled()
        model.compile(optimizer(1e-2, epsilon=1e-3), loss=CROSS_ENTROPY)
    losses = model.fit(case.inputs(), case.targets(), epochs=4, verbose=0).history["loss"]
    assert losses[-1] < losses[0]


def test_a_functional_model_is_written_and_its_summary_is_short(tmp_path):
    inputs = {n: keras.Input((None,), dtype="int32", name=n) for n in ("input_ids", "input_mask")}
    outputs = keras.layers.Dense(3)(NezhaEncoder(CONFIG)(inputs)["pooled_output"])
    model, given = keras.Model(inputs, outputs), CASES["NezhaForSequenceClassification"].inputs()
    del given["segment_ids"]
    model.save(tmp_path / "model.keras")
    assert_same(keras.models.load_model(tmp_path / "model.keras")(given), model(given))
    lines = []
    model.summary(print_fn=lines.append)
    assert len("\n".join(lines).splitlines()) < 30


def test_ids_alone_are_enough():
    model, inputs = NezhaEncoder(CONFIG), CASES["NezhaForSequenceClassification"].inputs()
    assert_same(model(inputs["input_ids"]), model(inputs))
    assert_same(model(inputs["input_ids"].astype("int64")), model(inputs))


IDS = np.ones((1, 3), "int32")


@pytest.mark.parametrize(
    "inputs, message",
    [
        ({"input_ids": IDS, "token_type_ids": IDS}, "token_type_ids; the name here is segment_ids"),
        ({"token_ids": IDS}, "token_ids; the name here is input_ids"),
        ({"input_ids": IDS, "padding_mask": IDS}, "the name here is input_mask"),
        ({"input_ids": IDS, "attention_mask": IDS}, "its name here is input_mask"),
        ({"ids": IDS}, "no input_ids, but ids"),
    ],
)
def test_inputs_of_other_libraries_are_named(inputs, message):
    with pytest.raises(UserError, match=message):
        NezhaEncoder(CONFIG)(inputs)


LAYERS = {
    "Dense": lambda: layers.dense(3, CONFIG, hidden_act="gelu_erf"),
    "LayerNorm": lambda: layers.norm(CONFIG),
    "RMSNorm": lambda: layers.RMSNorm(epsilon=1e-3),
    "LayerMix": lambda: layers.LayerMix(3),
    "SelfAttention": lambda: SelfAttention(CONFIG),
    "TransformerLayer": lambda: TransformerLayer(CONFIG, dtype="mixed_bfloat16"),
    "PostNorm": lambda: residual.PostNorm(CONFIG),
    "PreNorm": lambda: residual.PreNorm(CONFIG),
    "Embeddings": lambda: embeddings.Embeddings(CONFIG),
    "MaskedLMHead": lambda: heads.MaskedLMHead(CONFIG),
    "LinearHead": lambda: heads.LinearHead(CONFIG, 5),
    "LinearChain": lambda: crf.LinearChain(4),
    "ReplacedTokenHead": lambda: ReplacedTokenHead(CONFIG),
    "TokenGenerator": lambda: TokenGenerator(CONFIG),
    "Sampler": lambda: Sampler(seed=3),
    **{
        name: lambda name=name: feed_forward.of(NezhaConfig(vocab_size=9, feed_forward=name))(
            CONFIG
        )
        for name in FEED_FORWARDS
    },
    **{
        name: lambda name=name: positions.of(NezhaConfig(vocab_size=9, position_encoding=name))(
            CONFIG, 7
        )
        for name in POSITION_ENCODINGS
    },
}


@pytest.mark.parametrize("name", LAYERS)
def test_layers_are_made_again_of_what_they_say(name):
    layer = LAYERS[name]()
    made = keras.saving.deserialize_keras_object(keras.saving.serialize_keras_object(layer))
    assert type(made) is type(layer)
    assert made.get_config() == layer.get_config()
    for each in (layer, made):
        each.build((None, None, 16))
    assert [w.shape for w in made.weights] == [w.shape for w in layer.weights]
