"""Writes a model in one of three layouts, each a folder with all files of the model."""

import json
import os

import numpy as np

from nezha_tf.checkpoints import hugging_face, run_folder, sentence_transformers, tf1
from nezha_tf.checkpoints.kinds import LAYER_MIX, POOLER, kind_of_settings
from nezha_tf.checkpoints.name_table import OTHER_NAMES, hugging_face_name
from nezha_tf.checkpoints.published import CONFIG_FILE as HUGGING_FACE_CONFIG_FILE
from nezha_tf.checkpoints.published import TOKENIZER_FILE
from nezha_tf.checkpoints.run_folder import CONFIG_FILE, VOCAB_FILE
from nezha_tf.checkpoints.task_table import TASKS
from nezha_tf.config import POSITION_ENCODINGS, NezhaConfig
from nezha_tf.text.tokenizer_json import tokenizer_json
from nezha_tf.text.vocabulary import PAD
from nezha_tf.util.errors import UserError
from nezha_tf.util.files import write_text

# Two of the three layouts; the third is "tf1".
OURS, HUGGING_FACE = "nezha_tf", "hugging_face"
# The name in the models that Google published.
_TF1_NAME = "bert_model.ckpt"
# The activations that the original programs have. With others they fail or compute wrong numbers.
_TF1_ACTIVATIONS = ("gelu", "relu", "tanh", "linear")
_PROBLEM_TYPES = {
    "single": "single_label_classification",
    "multi": "multi_label_classification",
    "regression": "regression",
}


def check_format(layout, weights, config, dtype):
    """Raises `UserError` if the programs of a layout have no model with these `Weights`."""
    if layout == OURS:
        return
    if layout == HUGGING_FACE:
        config.to_hugging_face()
        theirs = config.hugging_face_model
        _check_names(weights, "Hugging Face's models", theirs)
        return
    if dtype != "float32":
        raise UserError(
            f"--dtype={dtype}: with --format=tf1 take float32; TF1's programs read nothing else"
        )
    positions = POSITION_ENCODINGS[config.position_encoding].use_relative_position
    in_groups = config.num_hidden_groups is not None
    originals = NezhaConfig(vocab_size=1)  # what the programs take for granted
    for key, fits in (
        ("position_encoding", positions is not None),
        # ALBERT's program has absolute positions. It takes 128 where embedding_size is missing, and
        # where it is hidden_size, it has no layer that maps the embeddings.
        ("num_hidden_groups", not (in_groups and positions)),
        ("pooler_act", config.pooler_act == originals.pooler_act),
        ("embedding_size", in_groups == (config.embedding_width != config.hidden_size)),
        ("hidden_act", config.hidden_act in _TF1_ACTIVATIONS),
        ("layer_norm_eps", config.layer_norm_eps == originals.layer_norm_eps),
        # NEZHA's modeling.py has no key for it: attention_layer sets it to 64.
        (
            "max_relative_position",
            not positions or config.max_relative_position == originals.max_relative_position,
        ),
    ):
        if not fits:
            raise UserError(
                f"{key} {getattr(config, key)!r} has no counterpart in TF1's programs; take "
                "--format=nezha_tf, or pass a --config_file with another value"
            )
    _check_names(weights, "TF1's programs")


def _check_names(weights, reader, theirs=None):
    """Raises a `UserError` that names all weights without a counterpart.

    `reader` says who would read them; `theirs` is their `HuggingFaceModel`; None: TF1's programs.
    """
    own_names = OTHER_NAMES.get(theirs and theirs.class_name(weights.kind.architecture or ""), ())
    without_pooler = theirs and not theirs.has_pooler and not own_names
    why = {}  # Prefix of weights to the reason why they have no place.
    if weights.has_layer_mix:
        # Without the mixture, the head would read what it was not trained on.
        mixed = (
            "a model whose head reads a mixture of layers (--layer_mix) has no counterpart in "
            f"{reader}"
        )
        why |= dict.fromkeys((LAYER_MIX, *weights.kind.prefixes), mixed)
    needs_pooler = (POOLER, *(h.prefix for h in weights.kind.heads if h.from_pooler))
    for name in weights.values:
        if without_pooler and name.startswith(needs_pooler):
            reason = (
                f"{name} has no counterpart in Hugging Face's {theirs.name}, which has no pooler"
            )
            why = {**dict.fromkeys(needs_pooler, reason), **why}
        elif hugging_face_name(name, theirs and theirs.model_type) is None:
            lacking = f"{name} has no counterpart in {reader}"
            why.setdefault("".join(name.partition("/")[:2]), lacking)
    if why:
        reason = next(iter(why.values()))
        raise UserError(f"{reason}; leave such weights out with --drop={','.join(why)}")


def write(folder, layout, source, weights, config):
    """Writes a model into an empty folder; returns the path of its weights.

    Args:
      folder, layout: path, and format of `ConversionSettings`.
      source: `Source`, the original.
      weights, config: `Weights` of the dtype to write, and their `NezhaConfig`.
    """
    if layout == HUGGING_FACE:
        path = _write_hugging_face(folder, source, weights, config)
    else:
        config.to_json_file(os.path.join(folder, CONFIG_FILE))
        name = _TF1_NAME
        if layout == OURS:
            name = f"model.ckpt-{tf1.global_step_of(source.reader)}"
        path = os.path.join(folder, name)
        tf1.write_tensors(path, weights.values)
        if layout == OURS:
            tf1.name_newest(folder, [name])
    if source.tokens:
        # Not the bytes of the file: to other readers a byte order mark would be part of a token.
        lines = (f"{token}\n" for token in source.tokens)
        write_text(os.path.join(folder, VOCAB_FILE), "".join(lines))
    task = _task(source, weights, config)
    if task:
        run_folder.write_task(folder, task)
    elif source.stated_case is not None and layout != HUGGING_FACE:
        _write_json(folder, TOKENIZER_FILE, {"do_lower_case": source.stated_case})
    return path


def _task(source, weights, config):
    """Returns the dict for the new `task.json`, or None if weights of its model are left out."""
    if not source.task:
        return None
    task = {**source.task, "uses_averages": False}
    # A tagger without its CRF is still a tagger.
    is_of_task = weights.kind in TASKS[task["task"]].kinds
    task |= (weights.kind if is_of_task else source.kind).settings
    if not weights.has_layer_mix:
        task.pop("layer_mix", None)
    kind = kind_of_settings(task, config)
    optional = () if kind.reads_pooler else (POOLER,)
    is_whole = all(name.startswith(optional) for name in weights.missing)
    return task if is_whole and kind.heads == weights.kind.heads else None


def _write_hugging_face(folder, source, weights, config):
    """Writes weights, `config.json` and the tokenizer's files; returns the weights' path."""
    values = config.to_hugging_face()
    prefix = "" if not weights.kind.heads else f"{values['model_type']}."
    architecture = config.hugging_face_model.class_name(weights.kind.architecture)
    own_names = [ours for ours, _ in OTHER_NAMES.get(architecture, ())]
    tensors = {}
    for name, value in weights.values.items():
        theirs = hugging_face_name(
            _in_used_groups(name, config), values["model_type"], architecture
        )
        is_of_body = name.startswith("bert/") and not name.startswith(tuple(own_names))
        theirs = prefix + theirs if is_of_body else theirs
        turned = value.T if name.endswith("/kernel") else value
        tensors[theirs] = np.ascontiguousarray(turned)
    path = os.path.join(folder, hugging_face.FILE_NAMES[0])
    hugging_face.write_safetensors(path, tensors)
    dtypes = {value.dtype.name for value in tensors.values()}
    values |= {"architectures": [architecture], "torch_dtype": dtypes.pop()}
    values |= _labels(source, weights)
    if source.tokens:
        values["pad_token_id"] = source.tokens.index(PAD)
        tokenizer = tokenizer_json(source.vocabulary, source.do_lower_case)
        _write_json(folder, "tokenizer.json", tokenizer)
    if source.tokens and source.of_vectors:
        width = config.hidden_size
        found = sentence_transformers.files_of(source.of_vectors, width, source.vocabulary)
        for name, value in found.items():
            _write_json(folder, name, value)
    _write_json(folder, HUGGING_FACE_CONFIG_FILE, values)
    if source.stated_case is not None:
        tokenizer = {
            "tokenizer_class": "BertTokenizer",
            "do_lower_case": source.stated_case,
            "model_max_length": config.max_position_embeddings,
        }
        _write_json(folder, TOKENIZER_FILE, tokenizer)
    return path


def _in_used_groups(name, config):
    """Returns TF1's name of a weight if only those groups are counted that a layer uses."""
    if config.num_hidden_groups is None:
        return name
    used = list(dict.fromkeys(config.layer_names))
    return "/".join(f"group_{used.index(p)}" if p in used else p for p in name.split("/"))


def _labels(source, weights):
    kind = weights.kind
    if not kind.has_labels or not any(n.startswith(kind.prefixes[0]) for n in weights.values):
        return {}
    task = source.task or {}
    labels = task.get("labels") or [f"LABEL_{index}" for index in range(weights.num_labels)]
    by_id = {str(index): label for index, label in enumerate(labels)}
    if len(labels) != weights.num_labels:
        raise UserError(
            f"the head of {source.checkpoint} has {weights.num_labels} rows, but task.json beside "
            f"it names {len(labels)} labels; put the task.json there that belongs to the model"
        )
    keys = {"id2label": by_id, "label2id": {label: int(key) for key, label in by_id.items()}}
    problem = _PROBLEM_TYPES.get(task.get("label_type"))
    return {**keys, "problem_type": problem} if problem else keys


def _write_json(folder, name, values):
    text = json.dumps(values, indent=2, sort_keys=True, ensure_ascii=False)
    write_text(os.path.join(folder, name), text + "\n")
