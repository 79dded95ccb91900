"""Reads the files beside published weights: configuration, case of the texts, task."""

import json
import os
import re

from nezha_tf.checkpoints import (
    electra,
    hugging_face,
    loading,
    run_folder,
    sentence_transformers,
    tf1,
)
from nezha_tf.checkpoints.hugging_face_settings import Published
from nezha_tf.checkpoints.kinds import LAYER_MIX, kind_of, kind_of_architecture, task_of
from nezha_tf.checkpoints.task_table import TASKS
from nezha_tf.checkpoints.tf1 import SEGMENT_TABLE
from nezha_tf.config import (
    UNILM_SEGMENTS,
    NezhaConfig,
    encoding_of_tf1,
    hugging_face_model,
    note_on_defaults,
    read_values,
)
from nezha_tf.text.vocabulary import Vocabulary
from nezha_tf.util import storage
from nezha_tf.util.errors import UserError
from nezha_tf.util.files import read_object, same_bytes

CONFIG_FILE, TOKENIZER_FILE = hugging_face.CONFIG_FILE, hugging_face.TOKENIZER_FILE
# The name in the folders of ALBERT that Google published.
_ALBERT_CONFIG_FILE = "albert_config.json"
# The end of the name in HFL's folders of ELECTRA.
_DISCRIMINATOR_CONFIG_FILE = "_discriminator_config.json"
# The epsilon of UniLM's LayerNorm (modeling.py of UniLM v1); its configuration does not say it.
_UNILM_LAYER_NORM_EPS = 1e-5
_ELECTRA = "electra"
# The length of pretraining of published models; relative positions themselves have no bound.
_MAX_SEQ_LENGTH = 512
# Tokens that stand for no text, such as [CLS], [unused1] and <S>, have capitals in any vocabulary.
_OF_NO_TEXT = re.compile(r"\[.*\]|<.*>")


def config_file_in(folder, checkpoint):
    """Returns the path of the configuration (`UserError`: none); of two, of the weights' layout."""
    names = [run_folder.CONFIG_FILE, _ALBERT_CONFIG_FILE, CONFIG_FILE]
    is_hugging_face = hugging_face.find_weights(checkpoint)
    if is_hugging_face:
        names.reverse()
    # HFL's folders of ELECTRA have one for each of its two models; the generator's is not taken.
    names += sorted(n for n in storage.listdir(folder) if n.endswith(_DISCRIMINATOR_CONFIG_FILE))
    for path in (os.path.join(folder, name) for name in names):
        if storage.exists(path):
            return path
    advice = "" if is_hugging_face else _configurations_of_electra(checkpoint)
    advice = advice or "copy the model's file there, or name it (--bert_config_file, --config_file)"
    raise UserError(f"no {run_folder.CONFIG_FILE} or {CONFIG_FILE} in {folder}; {advice}")


def _configurations_of_electra(checkpoint):
    _, reader = tf1.open_checkpoint(checkpoint)
    if not electra.is_electra(reader.get_variable_to_shape_map()):
        return ""
    texts = [json.dumps(electra.configuration(model)) for model in electra.models_of(reader)]
    generator = "".join(f" (the generator: {text})" for text in texts[1:])
    return f"ELECTRA's programs write none: write one with {texts[0]}{generator}"


def read_config(path, checkpoint, is_trained=False):
    """Reads the configuration of the model whose weights are in a checkpoint.

    A configuration of weights of PyTorch is read as PyTorch's code reads it, even if it has no
    `model_type`: its "gelu" is the exact function. So is that of a TF1 checkpoint of ELECTRA.

    Args:
      path: a `bert_config.json`, or a `config.json` of Hugging Face.
      checkpoint: the weights; or a folder, which may have none.
      is_trained: whether the model will be trained.

    Returns:
      (`NezhaConfig`, list of lines that tell the user what was assumed of missing keys).
    """
    values = read_values(path)
    assumed, notes = {}, []
    if "model_type" not in values and "position_encoding" not in values:
        weights = hugging_face.find_weights(os.fspath(checkpoint))
        assumed, notes = (
            _assumed(path, values, weights) if weights else _assumed_of_tf1(path, checkpoint)
        )
    try:
        config = NezhaConfig.from_dict({**values, **assumed})
    except UserError as error:
        raise UserError(f"config {path}: {error}") from error
    defaults = note_on_defaults(path, config, is_trained)
    return config, notes + ([defaults] if defaults else [])


def _assumed(path, values, weights):
    # The keys that PyTorch's code takes for granted.
    encoding = encoding_of_tf1(values.get("use_relative_position"))
    groups = values.get("num_hidden_groups")
    model = hugging_face_model(encoding, groups) or hugging_face_model(encoding)
    _, reader = loading.open_checkpoint(weights)
    model_type = _ELECTRA if reader.model_type == _ELECTRA else model.model_type
    assumed, notes = {"model_type": model_type}, [_read_as(path, f"{model_type} in PyTorch")]
    if "layer_norm_eps" in values:
        return assumed, notes
    shapes = reader.get_variable_to_shape_map()
    if shapes.get(SEGMENT_TABLE, [0])[0] == UNILM_SEGMENTS:
        assumed["layer_norm_eps"] = _UNILM_LAYER_NORM_EPS
        notes.append(
            "the model has six segment rows: read as a UniLM, whose LayerNorm has an epsilon of "
            f"{_UNILM_LAYER_NORM_EPS} (layer_norm_eps)"
        )
    return assumed, notes


def _assumed_of_tf1(path, checkpoint):
    prefix = os.fspath(checkpoint)
    if storage.isdir(prefix):
        prefixes = tf1.prefixes_in(prefix)
        prefix = prefixes[0] if len(prefixes) == 1 else ""
    try:
        shapes = tf1.open_checkpoint(prefix)[1].get_variable_to_shape_map()
    except UserError:
        return {}, []  # There are no weights yet, or whoever loads them tells what is wrong.
    is_electra = electra.is_electra(shapes)
    return ({"model_type": _ELECTRA}, [_read_as(path, "ELECTRA")]) if is_electra else ({}, [])


def _read_as(path, whose):
    return (
        f"{path} has no model_type: read as the configuration of {whose}, "
        'where "gelu" is the exact function (gelu_erf)'
    )


def do_lower_case(folder):
    """Returns `do_lower_case` of `task.json`, else of `tokenizer_config.json`, else None."""
    task = run_folder.read_task(folder)
    if task:
        return task["do_lower_case"]
    path = os.path.join(folder, TOKENIZER_FILE)
    value = (read_object(path) or {}).get("do_lower_case", ...)
    if value is ...:
        return None
    if not isinstance(value, bool):
        raise UserError(f"{path}: do_lower_case must be true or false, not {value!r}")
    return value


def reading_warnings(folder, vocab_file, lower_cases, is_stated=False):
    """Returns warnings if texts may be cut into tokens otherwise than in the model's training.

    Args:
      folder: the folder of the weights.
      vocab_file: path of the vocabulary that is used; None: that in the folder, if any.
      lower_cases: whether texts are lower-cased.
      is_stated: whether the user says so; if no file says it either, it is assumed.
    """
    lines, path = [], os.path.join(folder, TOKENIZER_FILE)
    beside = run_folder.vocabulary_in(folder)
    if beside and vocab_file and not same_bytes(beside, vocab_file):
        lines.append(
            f"warning: {beside}, beside the weights, is another vocabulary than "
            f"--vocab_file={vocab_file}; if ids mean other tokens, the weights are useless; "
            "pass the vocabulary beside them"
        )
    case = do_lower_case(folder)
    if case not in (None, lower_cases):
        flag = "--do_lower_case" if case else "--nodo_lower_case"
        lines.append(f"warning: the weights are of a model with {flag}; pass this flag too")
    lines += _tokenizer_warnings(path, lower_cases)
    vocab_file = vocab_file or beside
    is_assumed = lower_cases and not is_stated and case is None
    token = _token_in_capitals(vocab_file) if is_assumed and vocab_file else None
    if token:
        lines.append(
            f"warning: no file says the case of the model in {folder}, so text is lower-cased and "
            f"never has tokens with capitals, such as {token} in {vocab_file}; if the model is "
            f'cased, pass --nodo_lower_case or write {{"do_lower_case": false}} into {path}'
        )
    return lines


def _tokenizer_warnings(path, lower_cases):
    values, lines = read_object(path) or {}, []
    accents = "accents are stripped" if lower_cases else "accents stay"
    for key, ours, meaning in (
        ("strip_accents", lower_cases, f"{accents} here, by --do_lower_case alone"),
        ("tokenize_chinese_chars", True, "each Chinese character is a token of its own here"),
    ):
        theirs = values.get(key)
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


def architecture_of(values):
    """Returns the class of transformers that a `config.json`, given as a dict, names; or ""."""
    names = values.get("architectures")
    name = names[0] if isinstance(names, list) and names else ""
    return name if isinstance(name, str) else ""


def settings_of(folder, config, checkpoint, config_file=None):
    """Returns the settings of `task.json`, by the head that the weights have.

    For a model without a task's head it is {"task": None}, with what the files of
    sentence-transformers say. `config_file` replaces the `config.json` in the folder.
    """
    shapes = loading.open_checkpoint(checkpoint)[1].get_variable_to_shape_map()
    path = config_file or os.path.join(folder, CONFIG_FILE)
    theirs = read_object(path) or {}
    kind = kind_of(shapes, kind_of_architecture(architecture_of(theirs)))
    task = task_of(kind)
    if task is None or TASKS[task].published is None:
        return {"task": None, **sentence_transformers.read(folder, config.max_position_embeddings)}
    length = min(_MAX_SEQ_LENGTH, config.max_position_embeddings)
    own = TASKS[task].published(Published(path, theirs, kind.num_labels(shapes), length))
    settings = {
        "task": task,
        "do_lower_case": do_lower_case(folder) is not False,
        "max_seq_length": length,
        "uses_averages": False,
        **own,
        **kind.settings,
    }
    if any(name.startswith(LAYER_MIX) for name in shapes):
        settings["layer_mix"] = True
    run_folder.check_task(path, settings)
    return settings
