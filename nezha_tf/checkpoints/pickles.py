"""Reads the weights of PyTorch files, which are pickles, without running what they hold."""

import re
import warnings

from nezha_tf.checkpoints.refusals import UnreadableCheckpoint
from nezha_tf.errors import UserError

# In older versions a pickle can run code in spite of `weights_only` (CVE-2025-32434).
_SAFE_TORCH = (2, 6)


class Pickle:
    """A PyTorch file; only its named tensors are used."""

    def __init__(self, path):
        self._tensors = _unpickled(path)

    def names(self):
        return self._tensors.keys()

    def shape(self, name):
        return tuple(self._tensors[name].shape)

    def tensor(self, name):
        # A parameter of PyTorch carries its gradient's history, which NumPy refuses.
        tensor = self._tensors[name].detach()
        # NumPy has no bfloat16.
        return (tensor.float() if tensor.is_floating_point() else tensor).numpy()


def _unpickled(path):
    """Returns the tensors of a pickle by name; a pickle that would run code is refused."""
    try:
        import torch
    except ImportError as error:
        raise missing_library("torch", path, error) from error
    if tuple(map(int, re.findall(r"\d+", torch.__version__)[:2])) < _SAFE_TORCH:
        raise UserError(
            f"{path} is a pickle, which torch {torch.__version__} cannot read safely: update "
            "torch, or use model.safetensors"
        )
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # Any kind of error: the bytes come from anywhere.
        wanted = re.search(
            r"unsupported (?:global|operand)\W+(?:global )?([\w.]+)", str(error), re.IGNORECASE
        )
        detail = f" ({wanted[0]})" if wanted else ""
        raise UnreadableCheckpoint(
            f"checkpoint {path} is damaged, or a pickle of more than weights{detail}, which is "
            "not loaded because it could run code"
        ) from error
    tensors = found if isinstance(found, dict) else {}
    tensors = {name: value for name, value in tensors.items() if isinstance(value, torch.Tensor)}
    if not tensors:
        raise UnreadableCheckpoint(f"checkpoint {path} has no named weights")
    return tensors


def missing_library(library, path, error):
    return UserError(
        f"{path} needs {library} ({error}): pip install -e '.[interop]' in the clone, or "
        f"pip install {library}"
    )
