"""Weights in another arrangement give the numbers of the original: ERNIE, albert_zh."""

import dataclasses
import json
import re

import numpy as np
import pytest
from checkpoint_models import assert_computes_the_same, convert, weights_in
from conftest import GOLDEN
from hugging_face_peer import needs_transformers, write_peer_anew
from safetensors.numpy import load_file, save_file

from nezha_tf import NezhaConfig, NezhaForPreTraining, checkpoints
from nezha_tf.checkpoints import loading, tf1
from nezha_tf.checkpoints.folder import open_folder
from nezha_tf.checkpoints.name_table import tf1_names
from nezha_tf.util.errors import UserError

SEGMENTS, TASKS = (f"bert.embeddings.{name}_type_embeddings.weight" for name in ("token", "task"))
SIZES = {
    "vocab_size": 30,
    "hidden_size": 16,
    "num_attention_heads": 2,
    "intermediate_size": 32,
    "max_position_embeddings": 12,
    "type_vocab_size": 2,
}


def write_ernie(folder, uses_task_id, has_config=True):
    """Writes transformers' golden BERT as an ERNIE whose row 0 of tasks is a part of the segments.

    In ERNIE every token gets that row, so that the outputs are those of the BERT.
    """
    peer = GOLDEN / "hugging_face_bert"
    values = json.loads((peer / "config.json").read_text())
    weights = load_file(peer / "model.safetensors")
    rows = np.random.default_rng(0).normal(size=(3, weights[SEGMENTS].shape[1])).astype("float32")
    weights |= {SEGMENTS: weights[SEGMENTS] - rows[0], TASKS: rows}
    weights = {name.replace("bert.", "ernie."): value for name, value in weights.items()}
    save_file(weights, folder / "model.safetensors")
    values |= {"model_type": "ernie", "task_type_vocab_size": 3, "use_task_id": uses_task_id}
    (folder / "config.json").write_text(json.dumps(values))
    (folder / "forward.npz").write_bytes((peer / "forward.npz").read_bytes())
    return rows


def test_ernie_adds_the_row_of_the_first_task_to_every_token(tmp_path):
    """To transformers' stored figures; a table that the class does not use is left and told."""
    rows = write_ernie(tmp_path, uses_task_id=True)
    assert_computes_the_same(tmp_path)
    (tmp_path / "config.json").rename(tmp_path / "elsewhere.json")
    segments, tasks = (f"bert/embeddings/{name}_type_embeddings" for name in ("token", "task"))
    reader = loading.open_checkpoint(tmp_path)[1]
    assert tasks not in reader.get_variable_to_shape_map()
    folded = reader.get_tensor(segments)
    write_ernie(tmp_path, uses_task_id=False)
    reader = loading.open_checkpoint(tmp_path)[1]
    assert tasks in reader.get_variable_to_shape_map()
    left = folded - reader.get_tensor(segments)
    np.testing.assert_allclose(left, np.tile(rows[0], (2, 1)), atol=1e-6)


@needs_transformers
@pytest.mark.processes
@pytest.mark.parametrize(
    "kind, sizes",
    [
        ("ernie", {"use_task_id": True, "task_type_vocab_size": 3, "type_vocab_size": 4}),
        ("nezha", {"embedding_size": 6, "num_hidden_groups": 1, "inner_group_num": 1}),
    ],
)
def test_outputs_are_those_of_transformers_now(tmp_path, kind, sizes):
    write_peer_anew(kind, tmp_path, 3, sizes=sizes)
    saved = json.loads((tmp_path / "config.json").read_text())
    assert sizes.items() <= saved.items()
    assert_computes_the_same(tmp_path)


def test_groups_of_layers_are_those_of_the_original():
    """google-research/albert's formula, for sizes at which its rounding is exact."""
    for layers in (1, 2, 4, 6, 12, 24):
        for groups in (1, 2, 3, 4, 6, 12, 24):
            config = NezhaConfig(vocab_size=9, num_hidden_layers=layers, num_hidden_groups=groups)
            theirs = [f"group_{int(layer / layers * groups)}" for layer in range(layers)]
            assert config.layer_names == theirs
            written = config.to_hugging_face() if config.hugging_face_model else {}
            assert written.get("num_hidden_groups", 0) in (0, len(set(theirs)))


def weights_of_albert(config, groups, width):
    """Returns random weights of an ALBERT with TF1's names; `width` is that of the embeddings."""
    rng = np.random.default_rng(groups)
    changed = dataclasses.replace(config, num_hidden_groups=groups, embedding_size=width)
    model = NezhaForPreTraining(changed)
    return {
        name: rng.normal(size=variable.shape, scale=0.3).astype("float32")
        for name, variable in tf1_names(model).items()
    }


def write_folder(folder, values, weights):
    tf1.write_tensors(folder / "model.ckpt", weights)
    (folder / "bert_config.json").write_text(json.dumps(values))


def test_albert_zh_opens_with_the_product_of_its_tables(tmp_path):
    """Embedding and output, which multiply by one table after the other, are those of a product."""
    config = NezhaConfig(**SIZES, num_hidden_layers=3, position_encoding="absolute")
    weights = weights_of_albert(config, groups=1, width=None)
    rng = np.random.default_rng(0)
    tables = [rng.normal(size=shape).astype("float32") for shape in ((30, 5), (5, 16))]
    group = "bert/encoder/transformer/group_0/inner_group_0/"
    theirs = {
        "attention_1/self/": "attention/self/",
        "attention_1/output/": "attention/output/",
        "LayerNorm/": "attention/output/LayerNorm/",
        "ffn_1/intermediate/output/": "output/",
        "ffn_1/intermediate/": "intermediate/",
        "LayerNorm_1/": "output/LayerNorm/",
    }
    named = {}
    for name, value in weights.items():
        below = name.removeprefix(group)
        start = max(filter(below.startswith, theirs), key=len, default="")
        if below != name:
            name = "bert/encoder/layer_shared/" + theirs[start] + below.removeprefix(start)
        named[name] = value
        named[f"{name}/adam_m"] = value + 1
    words = "bert/embeddings/word_embeddings"
    named |= {words: tables[0], f"{words}_2": tables[1], f"{words}_2/adam_m": tables[1]}
    write_folder(
        tmp_path, {**SIZES, "num_hidden_layers": 3, "embedding_size": 5, "ln_type": "postln"}, named
    )
    opened = open_folder(tmp_path)
    model = opened.make_model()
    assert checkpoints.load(model, tmp_path / "model.ckpt") == ([], [], "")
    found = {name: variable.numpy() for name, variable in tf1_names(model).items()}
    np.testing.assert_allclose(found.pop(words), tables[0] @ tables[1], atol=1e-5)
    del weights[words]
    assert found.keys() == weights.keys()
    for name, value in weights.items():
        np.testing.assert_array_equal(found[name], value, err_msg=name)


def dense_layer_2d(inputs, kernel, bias):
    """The sums of `dense_layer_2d` in albert_zh's modeling_google_fast.py, one by one."""
    groups, width, outputs = kernel.shape
    by_group = inputs.reshape(*inputs.shape[:2], width, groups)
    found = np.zeros((*inputs.shape[:2], groups * outputs))
    for group in range(groups):
        for output in range(outputs):
            column = by_group[..., group] @ kernel[group, :, output] + bias[group, output]
            found[..., group * outputs + output] = column
    return found


def test_layers_in_groups_of_albert_zh_are_written_out(tmp_path):
    """Twelve groups of four layers; the dense layers have four groups of inputs and outputs."""
    config = NezhaConfig(**SIZES, num_hidden_layers=4, position_encoding="absolute")
    weights = weights_of_albert(config, groups=12, width=8)
    rng = np.random.default_rng(1)
    layer = "bert/encoder/transformer/group_9/inner_group_0/ffn_1/intermediate/"
    parts = {"dense": (4, 4, 8), "output/dense": (4, 8, 4)}
    for part, shape in parts.items():
        for group in (0, 3, 6, 9):
            stem = f"{layer.replace('group_9', f'group_{group}')}{part}/"
            weights[f"{stem}kernel"] = rng.normal(size=shape).astype("float32")
            weights[f"{stem}bias"] = rng.normal(size=(4, shape[-1])).astype("float32")
    values = {**SIZES, "num_hidden_layers": 4, "num_hidden_groups": 12, "embedding_size": 8}
    write_folder(tmp_path, {**values, "inner_group_num": 1, "net_structure_type": 0}, weights)
    model = open_folder(tmp_path).make_model()
    assert checkpoints.load(model, tmp_path / "model.ckpt") == ([], [], "")
    found = {name: variable.numpy() for name, variable in tf1_names(model).items()}
    for part, (groups, width, _) in parts.items():
        kernel, bias = (f"{layer}{part}/{name}" for name in ("kernel", "bias"))
        inputs = rng.normal(size=(2, 3, groups * width))
        expected = dense_layer_2d(inputs, weights[kernel], weights[bias])
        np.testing.assert_allclose(inputs @ found[kernel] + found[bias], expected, atol=1e-5)
    # transformers has no groups without a layer: there the groups get the numbers of the layers.
    convert(tmp_path, tmp_path / "hf", "hugging_face")
    convert(tmp_path / "hf", tmp_path / "back", "tf1")
    back = weights_in(tmp_path / "back" / "bert_model.ckpt")
    assert len(back) == len(found)
    for name, value in found.items():
        number = re.search(r"(?<=/group_)\d+", name)
        name = (
            name.replace(f"group_{number[0]}", f"group_{int(number[0]) // 3}") if number else name
        )
        np.testing.assert_array_equal(back[name], value, err_msg=name)


@pytest.mark.parametrize(
    "names, told",
    [
        (
            {
                "embedding.word.embedding.weight",
                "encoder.transformer.0.self_attn.linear_layers.0.bias",
            },
            "has encoder.transformer.0.self_attn.* the names of UER-py: convert it with",
        ),
        (
            {"nezha.encoder.layers.0.self_attn.q_proj.weight"},
            "has nezha.encoder.layers.0.self_attn.q_proj.weight .* the names of PaddleNLP",
        ),
        (
            {"transformer.wte.weight", "transformer.h.0.attn.bias"},
            "names of BERT, NEZHA or ALBERT, but transformer.h.0.attn.bias and 1 more",
        ),
    ],
)
def test_a_file_of_unknown_names_is_told_by_one_of_them(tmp_path, names, told):
    save_file({name: np.ones(1, np.float32) for name in names}, tmp_path / "model.safetensors")
    model = NezhaForPreTraining(NezhaConfig(**SIZES, num_hidden_layers=1))
    with pytest.raises(UserError, match=re.escape(str(tmp_path)) + f".*{told}") as error:
        checkpoints.load(model, tmp_path)
    assert "\n" not in str(error.value)


def test_a_roformer_without_the_key_is_told_of_it(tmp_path):
    """bert4keras writes BERT's names and configuration, without a table of positions."""
    config = NezhaConfig(**SIZES, num_hidden_layers=1, position_encoding="rotary")
    model = NezhaForPreTraining(config)
    tf1.save_tf1_checkpoint(model, tmp_path / "bert_model.ckpt")
    values = {**SIZES, "num_hidden_layers": 1}
    path = tmp_path / "bert_config.json"
    path.write_text(json.dumps(values))
    with pytest.raises(UserError, match=r'no table of positions.*"rotary" \(RoFormer\) into it'):
        open_folder(tmp_path).make_model()
    path.write_text(json.dumps({**values, "position_encoding": "rotary"}))
    assert open_folder(tmp_path).make_model().config == config
