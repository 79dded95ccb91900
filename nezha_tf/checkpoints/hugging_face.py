"""Weights of Hugging Face's BERT, Nezha and RoFormer, read under TF1 names."""

import json
import os
import re
import warnings

import numpy as np

from nezha_tf.checkpoints.name_table import tf1_name_of
from nezha_tf.checkpoints.tf1 import UnreadableCheckpoint
from nezha_tf.errors import UserError, first_line

SAFETENSORS, PICKLE, INDEX = ".safetensors", ".bin", ".index.json"
# In a folder, the first that is there.
FILE_NAMES = (
    "model.safetensors",
    "model.safetensors.index.json",
    "pytorch_model.bin",
    "pytorch_model.bin.index.json",
)
# No weights: ids that are counted up, and sinusoids, which some versions store.
_BUFFERS = {"position_ids", "token_type_ids", "positions_encoding", "embed_positions"}
# The output table is the word table, and stored under both names, or not.
_WORD_TABLE, _OUTPUT_TABLE = "bert/embeddings/word_embeddings", "cls/predictions/decoder/kernel"
_FLOATS = ("float16", "bfloat16", "float32", "float64")
# Before this version a pickle could get round `weights_only` (CVE-2025-32434).
_SAFE_TORCH = (2, 6)


def find_weights(path):
    """Returns the file of weights that a path means, or None where it is not Hugging Face's.

    Args:
      path: a folder as transformers saves a model to, or a file in it: `.safetensors`, `.bin`, or
        the `.index.json` of a model in several files.
    """
    if not os.path.isdir(path):
        return path if path.endswith((SAFETENSORS, PICKLE, INDEX)) else None
    if os.path.exists(os.path.join(path, "checkpoint")):
        return None  # TF1's file that names the newest one.
    files = (os.path.join(path, name) for name in FILE_NAMES)
    return next(filter(os.path.exists, files), None)


class HuggingFaceReader:
    """Gives tensors by TF1 name and in TF1's layout, as `tf.train.CheckpointReader` does."""

    def __init__(self, path):
        """Args:
          path: as of `find_weights`.

        Raises:
          UserError: a file is not there, or the library that reads it; `UnreadableCheckpoint`
            for one that is damaged or of another kind.
        """
        self._path = path
        paths = _parts(path) if path.endswith(INDEX) else [path]
        self._places = {}  # TF1 name -> (file, name in it)
        for file in map(_open, paths):
            for name in file.names():
                if _BUFFERS.isdisjoint(name.split(".")):
                    self._places[tf1_name_of(name)] = (file, name)
        self._drop_tied_table()

    def get_variable_to_shape_map(self):
        """Returns {TF1 name: shape, a list of int}."""
        return {
            name: _turned(name, file.shape(theirs)) for name, (file, theirs) in self._places.items()
        }

    def get_tensor(self, name):
        """Returns a tensor as a NumPy array; bfloat16 as float32.

        Raises:
          UserError: it is not of floating-point numbers.
        """
        file, theirs = self._places[name]
        value = file.tensor(theirs)
        if value.dtype.name not in _FLOATS:
            raise _no_float(self._path, theirs, value.dtype)
        if value.dtype.name == "bfloat16":  # no type of NumPy's own
            value = value.astype(np.float32)
        return value.T if name.endswith("/kernel") else value

    def tensors(self):
        """Returns {Hugging Face's name: NumPy array} of what is in the files, but for buffers."""
        return {theirs: file.tensor(theirs) for file, theirs in self._places.values()}

    def _drop_tied_table(self):
        """Passes over an output table that is the word table."""
        if _WORD_TABLE in self._places and _OUTPUT_TABLE in self._places:
            output_table = self.get_tensor(_OUTPUT_TABLE).T
            if np.array_equal(output_table, self.get_tensor(_WORD_TABLE)):
                del self._places[_OUTPUT_TABLE]


def _no_float(path, name, dtype):
    return UserError(
        f"checkpoint {path}: {name} is of {dtype}; only floating-point weights can be loaded, not "
        "quantised ones"
    )


def _turned(name, shape):
    return list(shape[::-1] if name.endswith("/kernel") else shape)


def _parts(path):
    """Returns the files that an index names; each is read whole."""
    try:
        with open(path, encoding="utf-8-sig") as file:
            names = set(json.load(file)["weight_map"].values())
        return [os.path.join(os.path.dirname(path), name) for name in sorted(names)]
    except OSError as error:
        raise UserError(f"cannot read checkpoint {path}: {error.strerror}") from error
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise UnreadableCheckpoint(
            f"checkpoint {path} is no index of a model in several files (its weight_map says in "
            "which file each weight is)"
        ) from error


def _open(path):
    if not os.path.isfile(path):
        raise UserError(f"no checkpoint at {path}: no such file")
    return _Safetensors(path) if path.endswith(SAFETENSORS) else _Pickle(path)


class _Safetensors:
    """A file whose tensors are read when they are asked for."""

    def __init__(self, path):
        try:
            from safetensors import SafetensorError, safe_open
        except ImportError as error:
            raise _missing("safetensors", path, error) from error
        self._path = path
        try:
            self._file = safe_open(path, framework="np")
        except (SafetensorError, OSError) as error:
            raise UnreadableCheckpoint(
                f"checkpoint {path} is damaged or no safetensors file: {first_line(error)}"
            ) from error

    def names(self):
        return self._file.keys()

    def shape(self, name):
        return self._file.get_slice(name).get_shape()

    def tensor(self, name):
        try:
            return self._file.get_tensor(name)
        except Exception as error:  # Of several kinds, where NumPy has no such type: FP8 and less.
            kind = self._file.get_slice(name).get_dtype()
            raise _no_float(self._path, name, kind) from error


class _Pickle:
    """A file of PyTorch's, of which nothing but tensors by name is taken."""

    def __init__(self, path):
        self._tensors = _unpickled(path)

    def names(self):
        return self._tensors.keys()

    def shape(self, name):
        return tuple(self._tensors[name].shape)

    def tensor(self, name):
        tensor = self._tensors[name]
        # NumPy has no bfloat16.
        return (tensor.float() if tensor.is_floating_point() else tensor).numpy()


def _unpickled(path):
    """Returns the tensors of a pickle by name; one that wants to run code is refused."""
    try:
        import torch
    except ImportError as error:
        raise _missing("torch", path, error) from error
    if tuple(map(int, re.findall(r"\d+", torch.__version__)[:2])) < _SAFE_TORCH:
        raise UserError(
            f"{path} is a pickle, which torch {torch.__version__} cannot read safely: update it, "
            "or take model.safetensors"
        )
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # Of whatever kind: the bytes are anybody's.
        wanted = re.search(
            r"unsupported (?:global|operand)\W+(?:global )?([\w.]+)", str(error), re.IGNORECASE
        )
        detail = f" ({wanted[0]})" if wanted else ""
        raise UnreadableCheckpoint(
            f"checkpoint {path} is damaged, or a pickle of more than weights{detail}, which is "
            "not loaded, as it could run code"
        ) from error
    tensors = found if isinstance(found, dict) else {}
    tensors = {name: value for name, value in tensors.items() if isinstance(value, torch.Tensor)}
    if not tensors:
        raise UnreadableCheckpoint(f"checkpoint {path} holds no weights by name")
    return tensors


def _missing(library, path, error):
    return UserError(
        f"{path} needs {library} ({error}): pip install -e '.[interop]' in the clone, or "
        f"pip install {library}"
    )


def write_safetensors(path, tensors):
    """Writes named tensors as transformers does.

    Args:
      path: of the file.
      tensors: dict of name to contiguous NumPy array.

    Raises:
      UserError: it cannot be written, or the library is not there.
    """
    try:
        from safetensors import SafetensorError
        from safetensors.numpy import save_file
    except ImportError as error:
        raise _missing("safetensors", path, error) from error
    try:
        save_file(tensors, path, metadata={"format": "pt"})
    except (SafetensorError, OSError) as error:
        raise UserError(f"cannot write {path}: {first_line(error)}") from error
