"""Reads weights of Hugging Face's BERT, Nezha, RoFormer, ALBERT and ELECTRA with TF1 names."""

import json
import os

import numpy as np

from nezha_tf.checkpoints.name_table import model_type_of, tf1_name_of
from nezha_tf.checkpoints.pickles import Pickle, is_pickle, missing_library
from nezha_tf.checkpoints.refusals import FLOATS, UnreadableCheckpoint, no_float
from nezha_tf.config import model_types
from nezha_tf.hub import WEIGHT_FILES as FILE_NAMES
from nezha_tf.util import storage
from nezha_tf.util.errors import UserError, first_line
from nezha_tf.util.files import read_object

CONFIG_FILE, TOKENIZER_FILE = "config.json", "tokenizer_config.json"
SAFETENSORS, INDEX = ".safetensors", ".index.json"
_SAFETENSORS_FLOATS = ("F16", "BF16", "F32", "F64")
# Some versions store these, which are not weights: consecutive ids, and sinusoids.
_BUFFERS = {"position_ids", "token_type_ids", "positions_encoding", "embed_positions"}
# The output table equals the word table; some files store it under both names.
_WORD_TABLE, _OUTPUT_TABLE = "bert/embeddings/word_embeddings", "cls/predictions/decoder/kernel"
# Files may have it under two names, as the same tensor.
_OUTPUT_BIAS = "cls/predictions/output_bias"
# ERNIE adds the row of the kind of task to every token, which is row 0 where nobody says a kind.
_SEGMENT_TABLE = "bert/embeddings/token_type_embeddings"
_TASK_TABLE = "bert/embeddings/task_type_embeddings"
# Every model has this table, so what stands before it is the prefix of the model.
_ANCHOR = "embeddings.word_embeddings.weight"
# PyTorch's own wrappers may stand at any place of a name.
_WRAPPERS = {"_orig_mod", "_fsdp_wrapped_module", "_checkpoint_wrapped_module"}


def find_weights(path):
    """Returns the file of weights for a path, or None if it is not Hugging Face's.

    The path is a folder to which transformers has saved a model, or a file: `.safetensors`, one of
    PyTorch (see `is_pickle`), or the `.index.json` of a model in several files.
    """
    if not storage.isdir(path):
        return path if path.endswith((SAFETENSORS, INDEX)) or is_pickle(path) else None
    if storage.exists(os.path.join(path, "checkpoint")):
        return None  # The file `checkpoint` is TF1's, which names the newest one.
    files = (os.path.join(path, name) for name in FILE_NAMES)
    return next(filter(storage.exists, files), None)


class HuggingFaceReader:
    """Reads tensors by TF1 name in TF1's layout, with `tf.train.CheckpointReader`'s interface.

    Its `model_type` is the kind of model whose prefix the names have, or None.
    """

    def __init__(self, path):
        """`path` is the result of `find_weights`; `UnreadableCheckpoint`: a file is damaged."""
        self._path = path
        paths = _parts(path) if path.endswith(INDEX) else [path]
        files = {
            name: file
            for file in map(_open, paths)
            for name in file.names()
            if _BUFFERS.isdisjoint(name.split("."))
        }
        self._places = {}  # TF1 name -> (file, name in it)
        self._bare = _bare_names(files, path)
        self.model_type = model_type_of(self._bare.values())
        for theirs, bare in self._bare.items():
            self._place(tf1_name_of(bare, self.model_type), files[theirs], theirs)
        self._drop_tied_table()
        self._tasks = self._places.pop(_TASK_TABLE) if self._adds_task() else None

    def get_variable_to_shape_map(self):
        """Returns {TF1 name: shape, a list of int}."""
        return {
            name: _turned(name, file.shape(theirs)) for name, (file, theirs) in self._places.items()
        }

    def get_tensor(self, name):
        """Returns a tensor as a NumPy array; bfloat16 becomes float32, other types are errors."""
        value = self._tensor(*self._places[name])
        if name == _SEGMENT_TABLE and self._tasks:
            value = np.add(value, self._tensor(*self._tasks)[0], dtype=np.float32)
        return value.T if name.endswith("/kernel") else value

    def _tensor(self, file, theirs):
        value = file.tensor(theirs)
        if value.dtype.name not in FLOATS:
            raise no_float(self._path, theirs, value.dtype)
        if value.dtype.name == "bfloat16":  # NumPy has no such type
            value = value.astype(np.float32)
        return value

    def tensors(self, prefix=""):
        """Returns {name in a model of transformers: NumPy array} for the tensors but buffers.

        The names of the encoder get the prefix, such as "bert.".
        """
        places = {**self._places, **({_TASK_TABLE: self._tasks} if self._tasks else {})}
        tensors = {}
        for name, (file, theirs) in places.items():
            kind, _, below = self._bare[theirs].partition(".")
            has_kind = kind in model_types()
            bare = below if has_kind else self._bare[theirs]
            # Of a bare encoder the names have no prefix.
            is_body = has_kind if self.model_type else name.startswith("bert/")
            tensors[prefix + bare if is_body else bare] = file.tensor(theirs)
        return tensors

    def _place(self, name, file, theirs):
        """Notes where a weight is; two weights of one name are a `UserError`."""
        _, other = self._places.get(name, (file, theirs))
        if other != theirs and name != _OUTPUT_BIAS:
            raise UserError(
                f"checkpoint {self._path} has {other} and {theirs}, which are both {name}; save "
                "the weights of one model alone"
            )
        self._places[name] = (file, theirs)

    def _adds_task(self):
        """Whether the table of kinds of tasks is used: if the file is there, as it says."""
        if _TASK_TABLE not in self._places or _SEGMENT_TABLE not in self._places:
            return False
        values = read_object(os.path.join(os.path.dirname(self._path), CONFIG_FILE))
        # The default of transformers' class; a model that does not use the table does not save it.
        return values is None or values.get("use_task_id", False) is True

    def _drop_tied_table(self):
        if _WORD_TABLE in self._places and _OUTPUT_TABLE in self._places:
            output_table = self.get_tensor(_OUTPUT_TABLE).T
            if np.array_equal(output_table, self.get_tensor(_WORD_TABLE)):
                del self._places[_OUTPUT_TABLE]


def _turned(name, shape):
    return list(shape[::-1] if name.endswith("/kernel") else shape)


def _parts(path):
    try:
        with storage.open_text(path, "utf-8-sig") as file:
            names = set(json.load(file)["weight_map"].values())
        outside = [name for name in names if {"", ".."} & set(name.split("/"))]
        if outside:
            raise UnreadableCheckpoint(
                f"checkpoint {path} names the file {outside[0]!r}, which is not in its folder"
            )
        return [os.path.join(os.path.dirname(path), name) for name in sorted(names)]
    except OSError as error:
        raise UserError(f"cannot read checkpoint {path}: {error.strerror}") from error
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise UnreadableCheckpoint(
            f"checkpoint {path} is not an index of a model in several files: it has no weight_map "
            "that says in which file each weight is"
        ) from error


def _open(path):
    if storage.is_remote(path):
        raise UserError(f"{path} is not on this machine; copy it here, where its reader finds it")
    if not os.path.isfile(path):
        raise UserError(f"no checkpoint at {path}: no such file")
    return _Safetensors(path) if path.endswith(SAFETENSORS) else Pickle(path)


class _Safetensors:
    """A safetensors file, with the interface of `Pickle`; tensors are read when needed."""

    def __init__(self, path):
        try:
            from safetensors import SafetensorError, safe_open
        except ImportError as error:
            raise missing_library("safetensors", path, error) from error
        self._path = path
        try:
            self._file = safe_open(path, framework="np")
        except (SafetensorError, OSError) as error:
            raise UnreadableCheckpoint(
                f"checkpoint {path} is damaged or not a safetensors file: {first_line(error)}"
            ) from error

    def names(self):
        return self._file.keys()

    def shape(self, name):
        return self._file.get_slice(name).get_shape()

    def tensor(self, name):
        try:
            return self._file.get_tensor(name)
        except Exception as error:  # Several kinds of errors, if NumPy lacks the type (FP8).
            kind = self._file.get_slice(name).get_dtype()
            if kind in _SAFETENSORS_FLOATS:
                raise UnreadableCheckpoint(
                    f"checkpoint {self._path} is damaged at {name}: {first_line(error)}"
                ) from error
            raise no_float(self._path, name, kind) from error


def write_safetensors(path, tensors):
    """Writes a dict of name to contiguous NumPy array as transformers does."""
    try:
        from safetensors import SafetensorError
        from safetensors.numpy import save_file
    except ImportError as error:
        raise missing_library("safetensors", path, error) from error
    try:
        save_file(tensors, path, metadata={"format": "pt"})
    except (SafetensorError, OSError) as error:
        raise UserError(f"cannot write {path}: {first_line(error)}") from error


def _bare_names(names, path):
    """Returns dict of each name to the name that transformers would give the weight.

    Wrappers (DataParallel, Lightning, torch.compile, a class of one's own) put their names before
    those of the model: `module.bert.…`, `model.encoder.…`. The names of the model keep the prefix
    of its kind (`bert.`); heads are looked for beside the model and beside what it is part of.
    """
    cleaned = {name: _without_wrappers(name) for name in names}
    body = _prefix_of_body(cleaned.values(), path)
    parts = body.split(".")[:-1]
    beside = [".".join([*parts[:count], ""]) for count in range(len(parts) - 1, 0, -1)]
    kind = f"{parts[-1]}." if parts and parts[-1] in model_types() else ""
    return {name: _bare(own, body, kind, beside) for name, own in cleaned.items()}


def _without_wrappers(name):
    return ".".join(part for part in name.split(".") if part not in _WRAPPERS)


def _prefix_of_body(names, path):
    # Of several models, the one with the prefix that transformers gives is meant.
    prefixes = {n.removesuffix(_ANCHOR) for n in names if f".{n}".endswith(f".{_ANCHOR}")}
    usual = prefixes & {"", *(f"{model_type}." for model_type in model_types())}
    prefixes = usual or prefixes
    if len(prefixes) > 1:
        tables = " and ".join(f"{prefix}{_ANCHOR}" for prefix in sorted(prefixes))
        raise UserError(
            f"checkpoint {path} holds several models ({tables}); save the weights of one alone"
        )
    return next(iter(prefixes), "")


def _bare(name, body, kind, beside):
    """Returns a name without prefixes: of the model's own (`body`), all but its `kind` goes."""
    if body and name.startswith(body):
        return kind + name.removeprefix(body)
    prefix = next(filter(name.startswith, beside), "")
    return name.removeprefix(prefix)
