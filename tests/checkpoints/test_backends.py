"""Checkpoints that models of Keras's other backends write are those of a model on TensorFlow."""

import subprocess
import sys

import numpy as np
import pytest
from commands import start_anew
from helpers import tensors
from waiting import ended

import nezha_tf
from nezha_tf import checkpoints
from nezha_tf.checkpoints.name_table import tf1_names

pytestmark = pytest.mark.processes

PROGRAM = """
import sys
import numpy as np
import nezha_tf
from nezha_tf import checkpoints
from nezha_tf.modeling import lora

folder = sys.argv[1]
_, model = nezha_tf.load("mini")
checkpoints.save_tf1_checkpoint(model, folder + "/plain.ckpt")
nezha_tf.enable_lora(model, 2)
for layer in lora.adapted_layers(model):
    layer.lora_kernel_b.assign(np.full(layer.lora_kernel_b.shape, 0.01))
    layer.lora_kernel_a.assign(np.full(layer.lora_kernel_a.shape, 0.5))
checkpoints.save_adapters(model, folder + "/adapters/model.ckpt", "mini")
checkpoints.save_tf1_checkpoint(model, folder + "/merged.ckpt")
"""


@pytest.mark.parametrize("backend", ["jax", "torch"])
def test_checkpoints_of_another_backend(tmp_path, backend):
    found = subprocess.run([sys.executable, "-c", f"import {backend}"], capture_output=True)
    if found.returncode:
        pytest.skip(f"{backend} is not installed")
    (tmp_path / "save.py").write_text(PROGRAM)
    (tmp_path / "adapters").mkdir()
    result = ended(
        start_anew(
            tmp_path / "save.py",
            tmp_path,
            folder=tmp_path,
            environment={"KERAS_BACKEND": backend, "JAX_PLATFORMS": "cpu"},
        )
    )
    assert result.returncode == 0, result.stderr
    _, model = nezha_tf.load("mini")
    plain, merged = (tensors(tmp_path / f"{name}.ckpt") for name in ("plain", "merged"))
    names = tf1_names(model)
    assert plain.keys() == merged.keys() == names.keys()
    for name, variable in names.items():
        np.testing.assert_array_equal(plain[name], variable)
    changed = [name for name in names if np.any(plain[name] != merged[name])]
    assert changed
    # Of rank 2, with 0.5 in A and 0.01 in B, and as the alpha of Keras is the rank.
    for name in changed:
        np.testing.assert_allclose(merged[name] - plain[name], 0.01, atol=1e-6)
    checkpoints.load(model, tmp_path / "adapters" / "model.ckpt")
    for name in changed:
        np.testing.assert_allclose(names[name], merged[name], atol=1e-6)
