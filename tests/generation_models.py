"""Small random models, and their logits from full passes over single examples."""

import functools

import keras
import numpy as np
import tensorflow as tf

from nezha_tf import NezhaConfig, Vocabulary
from nezha_tf.config import POSITION_ENCODINGS, TARGET_PREDICTIONS
from nezha_tf.generation.target_format import MODES, TargetFormat
from nezha_tf.modeling.pretraining import NezhaForMaskedLM
from nezha_tf.text.vocabulary import SPECIAL_TOKENS

ENCODINGS = tuple(POSITION_ENCODINGS)
# Each encoding with both modes and both predictions.
FORMATS_OF_ENCODINGS = [
    (encoding, TargetFormat(mode=mode, target_prediction=prediction))
    for number, encoding in enumerate(ENCODINGS)
    for mode, prediction in zip(MODES, TARGET_PREDICTIONS[:: 1 - 2 * (number % 2)], strict=True)
]
PAD, UNK, CLS, SEP, MASK = range(5)

# Of the model of `generation/conftest.py`.
TOKENS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"甲乙丙丁戊己"]
CONFIG = {
    "vocab_size": 12,
    "hidden_size": 16,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "intermediate_size": 16,
    "type_vocab_size": 6,
    "max_position_embeddings": 24,
    "initializer_range": 0.5,
}
BARE = ("bert_config_file", "vocab_file", "init_checkpoint")
SOURCES = ["甲乙丙", "丁", "戊己甲乙丙丁戊己", "甲甲"]


def name_of(value):
    """Returns the name of a test's argument, an encoding or a `TargetFormat`."""
    return value if isinstance(value, str) else f"{value.mode}-{value.target_prediction}"


@functools.cache
def as_graph(model):
    """Returns a function as the model, in a graph for inputs of any shape."""
    names = ("input_ids", "input_mask", "segment_ids", "masked_lm_positions")
    specs = {name: tf.TensorSpec([None, None], tf.int32) for name in names}
    specs["attention_mask"] = tf.TensorSpec([1, None, None], tf.bool)
    in_graph = tf.function(lambda inputs: model(inputs, all_outputs=True), [specs], autograph=False)
    return lambda inputs, all_outputs: in_graph(inputs)


def vocabulary_of(size):
    return Vocabulary([*SPECIAL_TOKENS, *(f"p{index}" for index in range(5, size))])


def random_model(
    encoding="functional_relative",
    vocab_size=30,
    scale=0.3,
    seed=0,
    layers=1,
    layer_mix=False,
    **sizes,
):
    """Returns a random model of width 16 whose distributions are far from uniform.

    `sizes` are further keys of the configuration.
    """
    config = NezhaConfig(
        vocab_size=vocab_size,
        hidden_size=16,
        num_hidden_layers=layers,
        num_attention_heads=2,
        intermediate_size=24,
        type_vocab_size=6,
        max_position_embeddings=40,
        position_encoding=encoding,
        max_relative_position=4,
        **sizes,
    )
    keras.utils.set_random_seed(seed)
    model = NezhaForMaskedLM(config, layer_mix)
    rng = np.random.default_rng(seed)
    for variable in model.weights:
        noise = rng.normal(size=variable.shape) * scale
        variable.assign(variable.numpy() + noise)
    return model


def random_sources(vocab_size=30, lengths=(3, 7, 5), seed=1):
    """Returns random sources [CLS] tokens [SEP] of several lengths, as lists of ids."""
    rng = np.random.default_rng(seed)
    return [[CLS, *rng.integers(5, vocab_size, n - 2).tolist(), SEP] for n in lengths]


def next_logits(model, source, targets, target_format):
    """Returns the logits [n, V] of the token after a source and each of n equally long targets.

    They come from full passes over [source; target] without padding.
    """
    first, second = target_format.segment_ids
    targets = np.asarray(targets, int)
    ids = np.array([[*source, *target] + [MASK] * target_format.is_masked for target in targets])
    length = ids.shape[1]
    visible = np.tril(np.ones((length, length), bool))
    if target_format.mode == "seq2seq":
        visible[: len(source), : len(source)] = True
    segments = [first] * len(source) + [second] * (length - len(source))
    outputs = model(
        {
            "input_ids": tf.constant(ids, tf.int32),
            "input_mask": tf.ones(ids.shape, tf.int32),
            "segment_ids": tf.constant([segments] * len(ids)),
            "attention_mask": tf.constant(visible[None]),
            "masked_lm_positions": tf.fill((len(ids), 1), length - 1),
        },
        all_outputs=True,
    )
    return outputs["masked_lm_logits"][:, 0].numpy()
