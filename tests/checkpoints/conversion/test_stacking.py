"""Models of copied layers: weight by weight, computed by hand, and as the beginning of a run."""

import re

import numpy as np
import pytest
import small_runs
from checkpoint_models import assert_equal, convert, weights_in, write_random
from safetensors.numpy import load_file

import nezha_tf
from nezha_tf import NezhaConfig
from nezha_tf.util.errors import UserError


@pytest.mark.parametrize("position_encoding", ("functional_relative", "absolute"))
@pytest.mark.parametrize("factor", (2, 3))
def test_layer_i_and_layer_i_plus_l_are_copies(tmp_path, position_encoding, factor):
    """The rule of the paper, for each weight, and nothing else changes."""
    changes = {"num_hidden_layers": 2, "position_encoding": position_encoding}
    config, weights = write_random(tmp_path / "one", "pretraining", seed=factor, **changes)
    report = convert(tmp_path / "one", tmp_path / "two", "nezha_tf", num_hidden_layers=2 * factor)
    assert f"2 are copied to make {2 * factor}: layer i begins as layer i mod 2" in report
    expected = {}
    for name, value in weights.items():
        if "/layer_0/" in name or "/layer_1/" in name:
            for copy in range(factor):
                number = int(re.search(r"layer_(\d)", name)[1]) + 2 * copy
                expected[re.sub(r"layer_\d", f"layer_{number}", name)] = value
        else:
            expected[name] = value
    assert len(expected) > len(weights)
    assert_equal(weights_in(tmp_path / "two" / "model.ckpt-7"), expected)
    deeper = NezhaConfig.from_json_file(tmp_path / "two" / "bert_config.json")
    assert deeper.to_dict() == {**config.to_dict(), "num_hidden_layers": 2 * factor}


def path_in(variable):
    """Returns a variable's path without the name of its model."""
    return variable.path.partition("/")[2]


def test_a_stacked_layer_computes_as_layers_that_share_their_weights(tmp_path):
    """One layer, stacked, is ALBERT's model of one group: other code, the same numbers."""
    config, _ = write_random(tmp_path / "one", seed=5, num_hidden_layers=1)
    convert(tmp_path / "one", tmp_path / "three", "nezha_tf", num_hidden_layers=3)
    _, one = nezha_tf.load(tmp_path / "one")
    _, stacked = nezha_tf.load(tmp_path / "three")
    values = {**config.to_dict(), "num_hidden_layers": 3, "num_hidden_groups": 1}
    albert = nezha_tf.NezhaEncoder(NezhaConfig.from_dict(values))
    own = {path_in(variable): variable for variable in one.weights}
    for variable in albert.weights:
        variable.assign(own[path_in(variable).replace("group_0/", "layer_0/")])
    inputs = {"input_ids": np.arange(12).reshape(2, 6) % config.vocab_size}
    found, expected, shallow = (
        model(inputs, all_outputs=True)["sequence_output"].numpy()
        for model in (stacked, albert, one)
    )
    np.testing.assert_allclose(found, expected, atol=1e-5)
    assert np.abs(found - shallow).max() > 0.1


def test_a_run_begins_with_the_stacked_model(tmp_path):
    """A shallow run, then a deeper one from its copied layers; in Hugging Face's layout, too."""
    small_runs.write_data(tmp_path)
    flags = ("--dynamic_masking=token", "--num_train_steps=10", "--save_checkpoints_steps=10")
    small_runs.train(tmp_path, "shallow", "bidirectional", *flags)
    convert(tmp_path / "shallow", tmp_path / "stacked", "nezha_tf", num_hidden_layers=2)
    config_file = f"--bert_config_file={tmp_path}/stacked/bert_config.json"
    start = f"--init_checkpoint={tmp_path}/stacked"
    small_runs.train(tmp_path, "deep", "bidirectional", *flags, config_file, start)
    names = weights_in(tmp_path / "deep" / "model.ckpt-10")
    assert any("/layer_1/" in name for name in names)
    assert not any("/layer_2/" in name for name in names)
    convert(tmp_path / "shallow", tmp_path / "hf", "hugging_face", num_hidden_layers=2)
    tensors = load_file(tmp_path / "hf" / "model.safetensors")
    copies = {name: name.replace("layer.0.", "layer.1.") for name in tensors if ".layer.0." in name}
    assert copies and all(np.array_equal(tensors[a], tensors[b]) for a, b in copies.items())
    # What transformers reads is stacked without transformers, and compared with our own code.
    report = convert(tmp_path / "hf", tmp_path / "back", "hugging_face", num_hidden_layers=4)
    assert "nezha_tf before" in report


@pytest.mark.parametrize(
    "changes, layers, message",
    (
        ({}, 3, "--num_hidden_layers=3: the model has 2 layers, .* take a multiple of 2"),
        ({}, 1, "--num_hidden_layers=1: the model has 2 layers"),
        ({"num_hidden_groups": 1}, 4, "--num_hidden_layers=4: only layers that have weights of th"),
    ),
)
def test_what_cannot_be_stacked(tmp_path, changes, layers, message):
    write_random(tmp_path / "run", num_hidden_layers=2, **changes)
    with pytest.raises(UserError, match=message):
        convert(tmp_path / "run", tmp_path / "new", "nezha_tf", num_hidden_layers=layers)
    assert not (tmp_path / "new").exists()
