"""Checkpoints that hold adapters (LoRA) and a head alone, and the model of them and their base.

A run with --lora_rank does not save the weights that it leaves as they were. A file beside its
checkpoints says which model has them.
"""

import hashlib
import json
import os
import re
from typing import NamedTuple

import numpy as np

from nezha_tf.checkpoints.name_table import AVERAGE_SUFFIX
from nezha_tf.checkpoints.tf1 import is_weight
from nezha_tf.modeling.lora import PREFIX
from nezha_tf.util import forms
from nezha_tf.util.errors import UserError
from nezha_tf.util.files import read_object, write_text

FILE_NAME = "adapters.json"
_FORM = {
    "base": forms.is_text,
    "fingerprint": forms.is_text,
    "rank": lambda value: forms.is_count(value) and value > 0,
    "alpha": lambda value: forms.is_finite(value) and value > 0,
}
# The name of A, and that of its moving average.
_A = re.compile(rf"(.*/){PREFIX}kernel_a((?:/{AVERAGE_SUFFIX})?)")


class Adapters(NamedTuple):
    """What the file beside the checkpoints says.

    Attributes:
      base: the model that they change: a path, or a name as `places.weights_of` takes it.
      fingerprint: `fingerprint` of its weights.
      rank, alpha: see `lora.enable_lora`.
    """

    base: str
    fingerprint: str
    rank: int
    alpha: float


def read(folder):
    """Returns the `Adapters` of a run's folder, or None; a damaged file is a `UserError`."""
    path = os.path.join(folder, FILE_NAME)
    values = read_object(path)
    if values is None:
        return None
    forms.require(values, _FORM, path)
    return Adapters(*(values[name] for name in Adapters._fields))


def write(folder, adapters):
    """Writes the file, whole or not at all."""
    text = json.dumps(adapters._asdict(), indent=2, ensure_ascii=False)
    write_text(os.path.join(folder, FILE_NAME), text + "\n")


def are_in(names):
    """Whether a checkpoint with these names of TF1 holds adapters."""
    return any(map(_A.fullmatch, names))


def fingerprint(base, own):
    """Returns the SHA-256 of the weights of a base that a run leaves as they were, in hexadecimal.

    It is the same in every layout of the same numbers.

    Args:
      base: a reader of the base, by TF1 name.
      own: the names that the run saves itself.
    """
    digest = hashlib.sha256()
    for name, shape in sorted(_frozen(base, own).items()):
        digest.update(f"{name} {list(shape)}\n".encode())
        digest.update(np.ascontiguousarray(base.get_tensor(name), "<f4"))
    return digest.hexdigest()


def _frozen(base, own):
    """Returns {name: shape} of the encoder's weights in a base that are not among the own names."""
    shapes = base.get_variable_to_shape_map()
    names = (name for name in shapes if name.startswith("bert/") and name not in own)
    return {name: shapes[name] for name in names if is_weight(name, shapes)}


class MergedReader:
    """A base with the adapters of a checkpoint in its kernels: W + alpha / rank * A B.

    It has the interface of `tf.train.CheckpointReader`, and the names of the whole model. Moving
    averages of adapters become those of kernels.
    """

    def __init__(self, path, own, base, adapters):
        """Args:
        path: that of the checkpoint, for messages.
        own, base: readers of the checkpoint and of its base.
        adapters: the `Adapters` beside the checkpoint.

        Raises:
          UserError: the base lacks a kernel, or has it in another shape; or, once a weight of it is
            read: its weights are not those of the fingerprint.
        """
        self._path, self._own, self._base, self._adapters = path, own, base, adapters
        shapes = own.get_variable_to_shape_map()
        frozen = _frozen(base, shapes)
        self._merged = {}
        for a in filter(None, map(_A.fullmatch, shapes)):
            layer, ending = a.groups()
            kernel, b = f"{layer}kernel", f"{layer}{PREFIX}kernel_b{ending}"
            if list(frozen.get(kernel, ())) != [shapes[a.string][0], shapes[b][1]]:
                raise self._of_another_base()
            self._merged[kernel + ending] = (kernel, a.string, b)
        self._of_base = set(frozen)
        kept = {name: shape for name, shape in shapes.items() if f"/{PREFIX}" not in name}
        self._shapes = kept | frozen
        self._shapes |= {name: frozen[kernel] for name, (kernel, _, _) in self._merged.items()}
        self._is_compared = False

    def get_variable_to_shape_map(self):
        """Returns {name: shape, a list of int}."""
        return self._shapes

    def get_tensor(self, name):
        """Returns a tensor as a NumPy array; of the frozen weights and of kernels it is float32."""
        if name in self._merged:
            kernel, a, b = self._merged[name]
            scale = np.float32(self._adapters.alpha / self._adapters.rank)
            return self._frozen(kernel) + scale * (
                self._own.get_tensor(a) @ self._own.get_tensor(b)
            )
        return self._frozen(name) if name in self._of_base else self._own.get_tensor(name)

    def _frozen(self, name):
        if not self._is_compared:
            own = self._own.get_variable_to_shape_map()
            if fingerprint(self._base, own) != self._adapters.fingerprint:
                raise self._of_another_base()
            self._is_compared = True
        return np.asarray(self._base.get_tensor(name), np.float32)

    def _of_another_base(self):
        file = os.path.join(os.path.dirname(self._path), FILE_NAME)
        return UserError(
            f"checkpoint {self._path} holds adapters of another model: the weights in "
            f"{self._adapters.base} are not those that they were trained on; put the right model "
            f'there, or write its place as "base" in {file}'
        )
