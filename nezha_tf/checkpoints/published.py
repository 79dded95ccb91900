"""Finds the settings of a published model in a folder without `task.json`."""

import json
import os
import re

from nezha_tf.checkpoints import hugging_face, loading, task_file
from nezha_tf.checkpoints.hugging_face_settings import Published
from nezha_tf.checkpoints.kinds import LAYER_MIX, kind_of, kind_of_architecture, task_of
from nezha_tf.checkpoints.task_table import TASKS
from nezha_tf.text.vocabulary import Vocabulary
from nezha_tf.util.errors import UserError
from nezha_tf.util.files import read_object

CONFIG_FILE, TOKENIZER_FILE = hugging_face.CONFIG_FILE, "tokenizer_config.json"
# Where older versions of sentence-transformers put the model in their folder.
TRANSFORMER_FOLDER = "0_Transformer"
# Where sentence-transformers says how the vectors of tokens become one of the text.
POOLING_FILE = os.path.join("1_Pooling", CONFIG_FILE)
_POOLINGS = {"cls_token": "cls", "mean_tokens": "mean", "max_tokens": "max"}
# The length of pretraining of published models; relative positions themselves have no bound.
MAX_SEQ_LENGTH = 512
# Tokens that stand for no text, such as [CLS], [unused1] and <S>, have capitals in any vocabulary.
_OF_NO_TEXT = re.compile(r"\[.*\]|<.*>")


def do_lower_case(folder, default=True):
    """Returns `do_lower_case` of Hugging Face's `tokenizer_config.json`, or the default.

    Raises:
      UserError: the file is damaged.
    """
    path = os.path.join(folder, TOKENIZER_FILE)
    values = read_object(path) or {}
    if "do_lower_case" not in values:
        return default
    value = values["do_lower_case"]
    if not isinstance(value, bool):
        raise UserError(f"{path}: do_lower_case must be true or false, not {value!r}")
    return value


def told_reading(folder, vocab_file, lower_cases, is_said):
    """Returns warnings if texts may be cut into tokens otherwise than in the model's training.

    Args:
      folder: the model's folder.
      vocab_file: path of the vocabulary, or None.
      lower_cases: whether texts are lower-cased.
      is_said: whether a file or the user says so; if not, it is assumed.

    Raises:
      UserError: a file is damaged.
    """
    path = os.path.join(folder, TOKENIZER_FILE)
    lines = _told_tokenizer_file(path, lower_cases)
    is_assumed = lower_cases and not is_said
    token = _token_in_capitals(vocab_file) if is_assumed and vocab_file else None
    if token:
        lines.append(
            f"warning: no file says the case of the model in {folder}, so text is lower-cased and "
            f"never has tokens with capitals, such as {token} in {vocab_file}; if the model is "
            f'cased, pass --nodo_lower_case or write {{"do_lower_case": false}} into {path}'
        )
    return lines


def _told_tokenizer_file(path, lower_cases):
    """Returns a warning for each key of `tokenizer_config.json` that asks for other tokens."""
    found, lines = read_object(path) or {}, []
    accents = "are stripped" if lower_cases else "stay"
    for key, ours, meaning in (
        ("strip_accents", lower_cases, f"accents {accents} here, by --do_lower_case alone"),
        ("tokenize_chinese_chars", True, "each Chinese character is a token of its own here"),
    ):
        theirs = found.get(key)
        if theirs not in (None, ours):
            lines.append(
                f"warning: {path} says {key} {json.dumps(theirs)}, but {meaning}; the model may "
                "get other tokens than in its training"
            )
    return lines


def _token_in_capitals(vocab_file):
    """Returns the first token with a capital letter of those that stand for text, or None."""
    tokens = Vocabulary.from_file(vocab_file).tokens
    return next((p for p in tokens if re.search("[A-Z]", p) and not _OF_NO_TEXT.fullmatch(p)), None)


def _pooling(folder):
    """Returns {"pooling": "cls", "mean" or "max"}, or {} if no file says one of these alone.

    Raises:
      UserError: the file is damaged.
    """
    outer, name = os.path.split(folder.rstrip("/"))
    place = outer if name == TRANSFORMER_FOLDER else folder
    found = read_object(os.path.join(place, POOLING_FILE)) or {}
    modes = [
        key.removeprefix("pooling_mode_")
        for key, value in found.items()
        if key.startswith("pooling_mode_") and value is True
    ]
    known = len(modes) == 1 and modes[0] in _POOLINGS
    return {"pooling": _POOLINGS[modes[0]]} if known else {}


def architecture_of(values):
    """Returns the class of transformers that a `config.json`, given as a dict, names; or ""."""
    names = values.get("architectures")
    name = names[0] if isinstance(names, list) and names else ""
    return name if isinstance(name, str) else ""


def settings_of(folder, config, checkpoint, config_file=None):
    """Returns the settings of `task.json`, by the head that the weights have.

    The names of classes come from `id2label` in Hugging Face's `config.json`; without it, they are
    LABEL_0, LABEL_1 and so on, as in transformers. No file says if a classifier is for pairs; it is
    taken to be for single texts.

    Args:
      folder: the model's folder.
      config: `NezhaConfig`.
      checkpoint: see `loading.open_checkpoint`.
      config_file: path of its `config.json`; default: that in the folder.

    Returns:
      Dict as `task_file.read` returns it. For a model without a task's head, {"task": None}, with
      "pooling" if a file of sentence-transformers says it.

    Raises:
      UserError: the checkpoint or the configuration is damaged.
    """
    shapes = loading.open_checkpoint(checkpoint)[1].get_variable_to_shape_map()
    path = config_file or os.path.join(folder, CONFIG_FILE)
    theirs = read_object(path) or {}
    architecture = architecture_of(theirs)
    said = kind_of_architecture(architecture)
    kind = kind_of(shapes, said)
    task = task_of(kind)
    if task is None or TASKS[task].published is None:
        return {"task": None, **_pooling(folder)}
    length = min(MAX_SEQ_LENGTH, config.max_position_embeddings)
    own = TASKS[task].published(Published(path, theirs, kind.num_labels(shapes), length))
    settings = {
        "task": task,
        "do_lower_case": do_lower_case(folder),
        "max_seq_length": length,
        "uses_averages": False,
        **own,
        **kind.settings,
    }
    if any(name.startswith(LAYER_MIX) for name in shapes):
        settings["layer_mix"] = True
    task_file.check(path, settings)
    return settings
