"""Small models with random weights, and their checkpoints as a run writes them."""

import dataclasses
import json

import numpy as np
import tensorflow as tf
from conftest import GOLDEN

from nezha_tf import NezhaConfig, NezhaForMaskedLM, NezhaForPreTraining, checkpoints
from nezha_tf.checkpoints import tf1
from nezha_tf.checkpoints.convert import convert_checkpoint
from nezha_tf.checkpoints.kinds import kinds
from nezha_tf.checkpoints.name_table import tf1_names
from nezha_tf.checkpoints.settings import ConversionSettings
from nezha_tf.modeling.finetuning import NezhaForMultipleChoice
from nezha_tf.text.vocabulary import SPECIAL_TOKENS

POOLER = ("bert/pooler/dense/kernel", "bert/pooler/dense/bias")
TASK = {
    "do_lower_case": False,
    "max_seq_length": 16,
    "uses_averages": False,
    "labels": ["差", "中", "好"],
}
CLASSIFICATION = {**TASK, "task": "classification", "label_type": "multi", "is_pair": False}
TAGGING = {**TASK, "task": "tagging", "scheme": "BIO", "crf": False, "window_stride": 8}
MULTIPLE_CHOICE = {
    **{name: value for name, value in TASK.items() if name != "labels"},
    "task": "multiple_choice",
    "has_blanks": False,
}

UNILM = {  # like bert-base-cased's bert_config.json, with other sizes
    "vocab_size": 30,
    "hidden_size": 8,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 12,
    "max_position_embeddings": 24,
    "type_vocab_size": 6,
    "hidden_act": "gelu",
}


def config_of(rng, **changes):
    """Returns a random configuration of a small model, with the given changes."""
    heads = int(rng.integers(1, 4))
    values = {
        "vocab_size": int(rng.integers(20, 40)),
        "hidden_size": heads * 2 * int(rng.integers(1, 4)),
        "num_hidden_layers": int(rng.integers(1, 3)),
        "num_attention_heads": heads,
        "intermediate_size": int(rng.integers(3, 20)),
        "max_position_embeddings": int(rng.integers(8, 40)),
        "type_vocab_size": 2,
        "hidden_act": str(rng.choice(["gelu", "relu"])),
        "position_encoding": str(rng.choice(["functional_relative", "absolute"])),
    }
    return NezhaConfig.from_dict({**values, **changes})


def weights_like(rng, kind, config, num_labels=3):
    """Returns random weights of a model as {TF1 name: float32 array}."""
    names = tf1_names(kinds()[kind].model(config, num_labels))
    return {
        name: rng.normal(size=variable.shape, scale=0.3).astype("float32")
        for name, variable in names.items()
    }


def write_model(folder, config, weights, task=None, name="model.ckpt-7"):
    """Writes a folder as a run does, with slots, averages of other values and state."""
    state = {"global_step": np.int64(7), "nezha_tf/random_state_0": np.arange(2)}
    for weight, value in weights.items():
        slots = ("lamb_m", "lamb_v", "ExponentialMovingAverage")
        state |= {f"{weight}/{slot}": value + 1 for slot in slots}
    folder.mkdir(parents=True, exist_ok=True)
    tf1.write_tensors(folder / name, {**weights, **state})
    config.to_json_file(folder / "bert_config.json")
    write_vocabulary(folder / "vocab.txt", config.vocab_size)
    if task:
        (folder / "task.json").write_text(json.dumps(task))


def write_random(folder, kind="encoder", task=None, seed=0, **changes):
    """Writes a random model as a run does; returns (its configuration, its weights)."""
    rng = np.random.default_rng(seed)
    config = config_of(rng, **changes)
    weights = weights_like(rng, kind, config)
    write_model(folder, config, weights, task)
    return config, weights


def write_vocabulary(path, tokens):
    names = [*SPECIAL_TOKENS, *(f"w{index}" for index in range(tokens))][:tokens]
    path.write_text("".join(f"{name}\n" for name in names))


def convert(source, target, layout, **changes):
    """Runs the conversion with its flags; returns the report."""
    values = {"source": str(source), "to": str(target), "format": layout, **changes}
    return convert_checkpoint(ConversionSettings(**values))


def weights_in(prefix):
    """Returns {name: array} of a TF1 checkpoint, read by TensorFlow without our code."""
    reader = tf.train.load_checkpoint(str(prefix))
    return {name: reader.get_tensor(name) for name in reader.get_variable_to_shape_map()}


def weights_of_originals(name):
    """Returns the weights of a golden checkpoint, without Adam's and LAMB's slots and the step."""
    found = weights_in(GOLDEN / name / "model.ckpt")
    endings = ("_m", "_v")
    return {n: v for n, v in found.items() if n != "global_step" and not n.endswith(endings)}


def assert_equal(found, expected):
    """Asserts that two dicts of arrays have equal names, types and bits."""
    assert sorted(found) == sorted(expected)
    for name, value in expected.items():
        assert found[name].dtype == value.dtype, name
        np.testing.assert_array_equal(found[name], value, err_msg=name)


def unilm_weights(rng, config, old):
    """Returns random weights with the names of unilm1-base-cased.bin, from its modeling.py."""
    hidden, inner = config["hidden_size"], config["intermediate_size"]
    weight, bias = ("gamma", "beta") if old else ("weight", "bias")
    shapes = {
        "bert.embeddings.word_embeddings.weight": (config["vocab_size"], hidden),
        "bert.embeddings.position_embeddings.weight": (config["max_position_embeddings"], hidden),
        "bert.embeddings.token_type_embeddings.weight": (6, hidden),
        "bert.pooler.dense.weight": (hidden, hidden),
        "bert.pooler.dense.bias": (hidden,),
        "cls.predictions.bias": (config["vocab_size"],),
        "cls.predictions.transform.dense.weight": (hidden, hidden),
        "cls.predictions.transform.dense.bias": (hidden,),
        "cls.seq_relationship.weight": (2, hidden),
        "cls.seq_relationship.bias": (2,),
    }
    norms = ["bert.embeddings.LayerNorm", "cls.predictions.transform.LayerNorm"]
    for index in range(config["num_hidden_layers"]):
        layer = f"bert.encoder.layer.{index}"
        for name, out, width in (
            ("attention.self.query", hidden, hidden),
            ("attention.self.key", hidden, hidden),
            ("attention.self.value", hidden, hidden),
            ("attention.output.dense", hidden, hidden),
            ("intermediate.dense", inner, hidden),
            ("output.dense", hidden, inner),
        ):
            shapes[f"{layer}.{name}.weight"] = (out, width)
            shapes[f"{layer}.{name}.bias"] = (out,)
        norms += [f"{layer}.attention.output.LayerNorm", f"{layer}.output.LayerNorm"]
    for norm in norms:
        shapes |= {f"{norm}.{weight}": (hidden,), f"{norm}.{bias}": (hidden,)}
    weights = {
        name: rng.normal(size=shape, scale=0.2).astype("float32") for name, shape in shapes.items()
    }
    table = weights["bert.embeddings.word_embeddings.weight"]
    return {**weights, "cls.predictions.decoder.weight": table.copy()}


def peer_inputs(figures):
    """Returns the inputs of `hugging_face_peer.write_peer` by our names."""
    ids = figures["in.input_ids"]
    return {
        "input_ids": ids,
        "input_mask": figures["in.attention_mask"],
        "segment_ids": figures["in.token_type_ids"],
        "masked_lm_positions": np.tile(np.arange(0, ids.shape[1], 20), (len(ids), 1)),
    }


def assert_computes_the_same(folder, model=None):
    """Asserts that a model computes transformers' figures of a folder, or the folder's model."""
    with np.load(folder / "forward.npz") as file:
        figures = dict(file)
    outputs = (model or model_of_peer(folder))(peer_inputs(figures), all_outputs=True)
    names = [name for name in figures if not name.startswith("in.")]
    assert len(names) == (5 if "pooled_output" in figures else 3)
    for name in names:
        np.testing.assert_allclose(outputs[name], figures[name], atol=1e-5, rtol=0, err_msg=name)


def model_of_peer(folder, **changes):
    """Returns the model of a folder of `write_peer`, with changes of its configuration."""
    config = NezhaConfig.from_json_file(folder / "config.json")
    has_pooler = config.hugging_face_model.has_pooler
    model_class = NezhaForPreTraining if has_pooler else NezhaForMaskedLM
    model = model_class(dataclasses.replace(config, **changes))
    report = checkpoints.load(model, folder, may_be_missing=() if has_pooler else POOLER)
    assert report == ([] if has_pooler else list(POOLER), [], "")
    return model


def logits_and_figures(model, peer):
    """Returns (a model's logits for the inputs of a peer, the peer's figures).

    They are [B, ...], also of questions, whose choices the sequences are, and of the two ends of
    answers, which are the last axis.
    """
    with np.load(peer / "forward.npz") as file:
        figures = dict(file)
    inputs = peer_inputs(figures)
    del inputs["masked_lm_positions"]
    if isinstance(model, NezhaForMultipleChoice):
        return model({name: value[None] for name, value in inputs.items()})[0], figures
    outputs = model(inputs, all_outputs=True)
    if "logits" in outputs:
        return outputs["logits"], figures
    return np.stack([outputs["start_logits"], outputs["end_logits"]], axis=-1), figures
