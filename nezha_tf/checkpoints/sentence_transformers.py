"""The files by which sentence-transformers makes one vector of a text: read and written.

The library runs the modules that `modules.json` names, one after the other. Those that are known
here are Transformer, the model itself; Pooling, which makes one vector of those of the tokens,
[CLS] and [SEP] among them; and Normalize, which divides it by its length. WordWeights is written,
because it takes [CLS] and [SEP] out of a mean.
"""

import json
import os

from nezha_tf.checkpoints.hugging_face import CONFIG_FILE, TOKENIZER_FILE
from nezha_tf.checkpoints.places import TRANSFORMER_FOLDER
from nezha_tf.checkpoints.task_row import at_least
from nezha_tf.text.vocabulary import CLS, SEP
from nezha_tf.util import storage
from nezha_tf.util.errors import UserError
from nezha_tf.util.files import read_object

# The hubs' names of the library, and of what its models do.
LIBRARY, PIPELINE_TAG = "sentence-transformers", "sentence-similarity"
MODULES_FILE, LENGTH_FILE = "modules.json", "sentence_bert_config.json"
POOLING_FILE = os.path.join("1_Pooling", CONFIG_FILE)
_MODEL_FILE = "config_sentence_transformers.json"
_TYPE = "sentence_transformers.models."
_KNOWN = ("Transformer", "Pooling", "Normalize")
# Our poolings to the library's, by the names in its files up to version 5.
_MODES = {"cls": "cls_token", "mean_all": "mean_tokens", "max_all": "max_tokens"}
# Its mean after WordWeights, which leaves [CLS] and [SEP] out.
_WEIGHTED = "mean"


def read(folder, longest):
    """Returns what the files beside a model say of a text's vector, settings as in `task.json`.

    Args:
      folder: the folder of the model.
      longest: the number of its positions.

    Returns:
      Dict with "pooling", "max_seq_length", and if it is there "normalize" (True); {} if no file
      says one known pooling alone.

    Raises:
      UserError: a file is damaged.
    """
    modes = _modes(folder)
    poolings = [ours for ours, theirs in _MODES.items() if modes == [theirs]]
    if not poolings:
        return {}
    settings = {"pooling": poolings[0], "max_seq_length": _length(folder, longest)}
    return settings | ({"normalize": True} if "Normalize" in _modules(folder) else {})


def notes(folder):
    """Returns lines on what the library would compute of a text's vector, and this project not."""
    modes = _modes(folder)
    unknown = [name for name in _modules(folder) if name not in _KNOWN]
    if modes and modes not in [[theirs] for theirs in _MODES.values()]:
        unknown.append(f"Pooling with {' and '.join(modes)}")
    return [
        f"warning: {_outer(folder)}: vectors differ from those of sentence-transformers: {name} is "
        "not computed here"
        for name in unknown
    ]


def files_of(settings, width, vocabulary):
    """Returns the files with which sentence-transformers makes the same vectors as `TextEncoder`.

    Args:
      settings: dict with "pooling", "max_seq_length", and what else `read` returns.
      width: the size of the vectors.
      vocabulary: the model's `Vocabulary`.

    Returns:
      {path in the folder: JSON value}.
    """
    pooling = settings["pooling"]
    mode = _MODES.get(pooling, _MODES["mean_all"])
    configs = {
        "WordWeights": {
            "vocab": list(vocabulary.tokens),
            "word_weights": {CLS: 0.0, SEP: 0.0},
            "unknown_word_weight": 1.0,
        },
        "Pooling": {
            "word_embedding_dimension": width,
            **{f"pooling_mode_{name}": name == mode for name in _MODES.values()},
            "pooling_mode_mean_sqrt_len_tokens": False,
        },
        "Normalize": {},
    }
    names = ["Transformer", *["WordWeights"] * (pooling == _WEIGHTED), "Pooling"]
    names += ["Normalize"] * settings.get("normalize", False)
    paths = ["", *(f"{index}_{name}" for index, name in enumerate(names) if index)]
    # Texts are lower-cased by the tokenizer, or not at all.
    lengths = {"max_seq_length": settings["max_seq_length"], "do_lower_case": False}
    return {
        MODULES_FILE: [
            {"idx": index, "name": str(index), "path": path, "type": _TYPE + name}
            for index, (name, path) in enumerate(zip(names, paths, strict=True))
        ],
        LENGTH_FILE: lengths,
        _MODEL_FILE: {"model_type": "SentenceTransformer", "similarity_fn_name": "cosine"},
        **{
            os.path.join(path, CONFIG_FILE): configs[name]
            for name, path in zip(names, paths, strict=True)
            if path
        },
    }


def _length(folder, longest):
    """Returns at how many tokens the library cuts texts: what it says, else its tokenizer."""
    path, kind = os.path.join(folder, LENGTH_FILE), at_least(3)
    length = (read_object(path) or {}).get("max_seq_length")
    if length is None:
        path = os.path.join(folder, TOKENIZER_FILE)
        of_tokenizer = (read_object(path) or {}).get("model_max_length")
        # There, 1e30 stands for no bound.
        return min(of_tokenizer, longest) if kind.fits(of_tokenizer) else longest
    if not kind.fits(length):
        raise UserError(f"{path}: max_seq_length must be {kind.words}, not {length!r}")
    return length


def _modes(folder):
    """Returns the names of the poolings that the library joins, [] if no file says them."""
    values = read_object(os.path.join(_outer(folder), POOLING_FILE)) or {}
    named = values.get("pooling_mode")  # from version 6 on, without "_token" and "_tokens"
    if named is not None:
        whole = {theirs.partition("_")[0]: theirs for theirs in _MODES.values()}
        named = named if isinstance(named, list) else [named]
        return [whole.get(str(name), str(name)) for name in named]
    return [
        key.removeprefix("pooling_mode_")
        for key, value in values.items()
        if key.startswith("pooling_mode_") and value is True
    ]


def _modules(folder):
    """Returns the names of the classes in `modules.json`; [] without it."""
    path = os.path.join(_outer(folder), MODULES_FILE)
    try:
        with storage.open_text(path, "utf-8-sig") as file:
            rows = json.load(file)
        return [row["type"].rpartition(".")[2] for row in rows]
    except FileNotFoundError:
        return []
    except (OSError, ValueError, RecursionError, LookupError, TypeError, AttributeError) as error:
        raise UserError(
            f"{path} is no list of modules with their types; restore or remove the file"
        ) from error


def _outer(folder):
    """Returns the folder of `modules.json` by that of the model."""
    outer, name = os.path.split(folder.rstrip("/"))
    return outer if name == TRANSFORMER_FOLDER else folder
