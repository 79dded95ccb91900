"""Reads the weights of PyTorch files, which are pickles, without running what they hold."""

import os
import re
import warnings
import zipfile

from nezha_tf.checkpoints.refusals import FLOATS, UnreadableCheckpoint, no_float
from nezha_tf.util import storage
from nezha_tf.util.errors import UserError, install_command

# In older versions a pickle can run code in spite of `weights_only` (CVE-2025-32434).
_SAFE_TORCH = (2, 6)
# Endings of PyTorch's files; those of other files are known by their first bytes: a zip file, or
# the pickle of a number by which PyTorch before 1.6 marked its files.
ENDINGS = (".bin", ".pt", ".pth")
_BEGINNINGS = (b"PK\x03\x04", b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19.")
# What training programs call the weights in a file that has more: Lightning and many scripts;
# Megatron, DeepSpeed and many scripts. Of several the first is taken.
_WRAPPERS = ("state_dict", "model_state_dict", "model", "module")
# Classes of what lies beside the weights. Their objects are made of the class `_Ignored` instead,
# which does nothing.
_BESIDE = (
    "argparse.Namespace",
    "lightning.fabric.utilities.data.AttributeDict",
    "lightning_fabric.utilities.data.AttributeDict",
    "lightning.pytorch.utilities.parsing.AttributeDict",
    "pytorch_lightning.utilities.parsing.AttributeDict",
    "numpy.core.multiarray._reconstruct",
    "numpy._core.multiarray._reconstruct",
    "numpy.core.multiarray.scalar",
    "numpy._core.multiarray.scalar",
    "numpy.ndarray",
    "numpy.dtype",
    "pathlib.PosixPath",
)


def is_pickle(path):
    """Whether a path is one of a PyTorch file, by its ending or by its first bytes.

    `model.ckpt` may be a file of PyTorch Lightning, or no file but the prefix of TF1's files.
    """
    if path.endswith(ENDINGS):
        return True
    if storage.is_remote(path) or not os.path.isfile(path):
        return False
    with open(path, "rb") as file:
        return file.read(max(map(len, _BEGINNINGS))).startswith(_BEGINNINGS)


class Pickle:
    """A PyTorch file; only its named tensors are used."""

    def __init__(self, path):
        self._path = path
        self._tensors = _unpickled(path)

    def names(self):
        return self._tensors.keys()

    def shape(self, name):
        return tuple(self._tensors[name].shape)

    def tensor(self, name):
        # A parameter of PyTorch carries its gradient's history, which NumPy refuses.
        tensor = self._tensors[name].detach()
        layout = str(tensor.layout).removeprefix("torch.")
        kind = layout if layout != "strided" else str(tensor.dtype).removeprefix("torch.")
        try:
            # One number can be shown as any number of them, so a small file could fill the memory.
            there = 0 if tensor.is_meta else tensor.untyped_storage().nbytes()
            if tensor.numel() * tensor.element_size() > there:
                raise UnreadableCheckpoint(
                    f"checkpoint {self._path}: {name} has fewer values than its shape "
                    f"{list(tensor.shape)} needs; save a whole copy of it (.contiguous())"
                )
            # NumPy has no bfloat16.
            return (tensor.float() if kind in FLOATS else tensor).numpy()
        except (TypeError, RuntimeError) as error:  # no array of NumPy can be made of it
            raise no_float(self._path, name, kind) from error


def _unpickled(path):
    """Returns the weights of a pickle by name; a pickle that would run code is refused."""
    try:
        import torch
    except ImportError as error:
        raise missing_library("torch", path, error) from error
    if tuple(map(int, re.findall(r"\d+", torch.__version__)[:2])) < _SAFE_TORCH:
        raise UserError(
            f"{path} is a pickle, which torch {torch.__version__} cannot read safely: update "
            "torch, or use model.safetensors"
        )
    _check_size(path)
    beside = [(_Ignored, name) for name in _BESIDE]
    try:
        with warnings.catch_warnings(), torch.serialization.safe_globals(beside):
            warnings.simplefilter("ignore")
            content = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # Any kind of error: the bytes come from anywhere.
        raise UnreadableCheckpoint(f"checkpoint {path} {_reason(error)}") from error
    weights = _weights_in(path, content, torch.Tensor)
    if not weights:
        raise UnreadableCheckpoint(f"checkpoint {path} has no named weights")
    unnamed = [name for name in weights if not isinstance(name, str)]
    if unnamed:
        raise UnreadableCheckpoint(
            f"checkpoint {path} has weights under {unnamed[0]!r}, which is no name"
        )
    return weights


def _check_size(path):
    """Refuses a zip file that becomes larger when it is unpacked; PyTorch's are not compressed."""
    try:
        with zipfile.ZipFile(path) as file:
            size = sum(part.file_size for part in file.infolist())
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError):
        return  # It is an older kind of file, or PyTorch says what is wrong with it.
    if size > os.path.getsize(path):
        raise UnreadableCheckpoint(f"checkpoint {path} is compressed, as PyTorch writes no file")


def _reason(error):
    if "TorchScript" in str(error):
        return "is a program (TorchScript), not weights; save the state_dict() of its model"
    wanted = re.search(
        r"unsupported (?:global|operand)\W+(?:global )?([\w.]+)", str(error), re.IGNORECASE
    )
    detail = f" ({wanted[0]})" if wanted else ""
    return (
        f"is damaged, or a pickle of more than weights{detail}, which is not loaded because it "
        "could run code; save the model's state_dict() alone"
    )


def _weights_in(path, content, tensor, deepest=2):
    """Returns {name: tensor} of a file's weights; `deepest` levels of dicts are looked at."""
    if not isinstance(content, dict) or isinstance(content, _Ignored):
        return {}
    inner = {
        key: weights
        for key, value in (content.items() if deepest else ())
        if isinstance(key, str) and (weights := _weights_in(path, value, tensor, deepest - 1))
    }
    for wrapper in _WRAPPERS:
        if wrapper in inner:
            return inner[wrapper]
    weights = {name: value for name, value in content.items() if isinstance(value, tensor)}
    # A number beside the weights may be a tensor, too.
    if not inner or any(value.shape for value in weights.values()):
        return weights
    if len(inner) > 1:
        raise UnreadableCheckpoint(
            f"checkpoint {path} holds weights under several names ({', '.join(inner)}); save one "
            "of them alone"
        )
    return next(iter(inner.values()))


class _Ignored(dict):
    """Stands for an object of `_BESIDE`, whatever it is made from."""

    def __new__(cls, *_arguments):
        return super().__new__(cls)

    def __init__(self, *_arguments):
        super().__init__()

    def __setstate__(self, state):
        """Takes no state."""


def missing_library(library, path, error):
    return UserError(
        f"{path} needs {library} ({error}): {install_command(library)}, or pip install {library}"
    )
