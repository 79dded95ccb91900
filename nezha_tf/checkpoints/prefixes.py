"""Finds what stands before the names of a model's weights in a file of PyTorch.

Wrappers (DataParallel, Lightning, torch.compile, a class of one's own with a model in it) put their
names before those of the model: `module.bert.…`, `model.encoder.…`, `_orig_mod.…`.
"""

from nezha_tf.config import model_types
from nezha_tf.util.errors import UserError

# Every model has this table, so what stands before it is the prefix of the model.
_ANCHOR = "embeddings.word_embeddings.weight"
# PyTorch's own wrappers may stand at any place of a name.
_WRAPPERS = {"_orig_mod", "_fsdp_wrapped_module", "_checkpoint_wrapped_module"}


def bare_names(names, path):
    """Returns dict of each name to the name that transformers would give the weight.

    The names of the model have the prefix of its kind (`bert.`) if the file has it; names of heads
    are looked for beside the model and beside what it is part of. A name elsewhere stays as it is.

    Args:
      names: the names of all weights in the file or files.
      path: path of the file, for messages.

    Raises:
      UserError: the file holds several models.
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
    """Returns the prefix of the names of the model, or "" if there is no table of words.

    Of several models, the one with the prefix that transformers gives is meant.
    """
    found = {n.removesuffix(_ANCHOR) for n in names if f".{n}".endswith(f".{_ANCHOR}")}
    usual = found & {"", *(f"{model_type}." for model_type in model_types())}
    meant = usual if usual else found
    if len(meant) > 1:
        told = " and ".join(f"{prefix}{_ANCHOR}" for prefix in sorted(meant))
        raise UserError(
            f"checkpoint {path} holds several models ({told}); save the weights of one alone"
        )
    return next(iter(meant), "")


def _bare(name, body, kind, beside):
    """Returns a name without the prefixes.

    Args:
      name: the name, without PyTorch's wrappers.
      body: the prefix of the model's names.
      kind: the part of `body` that transformers gives, or "".
      beside: what `body` begins with, the longest first: where heads may be.
    """
    if body and name.startswith(body):
        return kind + name.removeprefix(body)
    prefix = next(filter(name.startswith, beside), "")
    return name.removeprefix(prefix)
