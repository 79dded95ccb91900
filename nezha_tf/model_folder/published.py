"""Finds the settings of a published model in a folder without `task.json`."""

import os

from nezha_tf.checkpoints import loading
from nezha_tf.errors import UserError
from nezha_tf.files import read_object
from nezha_tf.model_folder import task_file
from nezha_tf.model_folder.hugging_face_settings import Published
from nezha_tf.model_folder.kinds import LAYER_MIX, kind_of, kind_of_architecture, task_of
from nezha_tf.model_folder.task_table import TASKS

CONFIG_FILE, TOKENIZER_FILE = "config.json", "tokenizer_config.json"
# The length of pretraining of published models; relative positions themselves have no bound.
MAX_SEQ_LENGTH = 512


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


def architecture_of(values):
    """Returns the class of transformers that a `config.json`, given as a dict, names; or ""."""
    names = values.get("architectures")
    name = names[0] if isinstance(names, list) and names else ""
    return name if isinstance(name, str) else ""


def settings_of(folder, config, checkpoint):
    """Returns the settings of `task.json`, by the head that the weights have.

    The names of classes come from `id2label` in Hugging Face's `config.json`; without it, they are
    LABEL_0, LABEL_1 and so on, as in transformers. No file says if a classifier is for pairs; it is
    taken to be for single texts.

    Args:
      folder: the model's folder.
      config: `NezhaConfig`.
      checkpoint: see `loading.open_checkpoint`.

    Returns:
      Dict as `task_file.read` returns it, or {"task": None} for a model without a task's head.

    Raises:
      UserError: the checkpoint or the configuration is damaged.
    """
    shapes = loading.open_checkpoint(checkpoint)[1].get_variable_to_shape_map()
    path = os.path.join(folder, CONFIG_FILE)
    theirs = read_object(path) or {}
    architecture = architecture_of(theirs)
    said = kind_of_architecture(architecture)
    kind = kind_of(shapes, said)
    task = task_of(kind)
    if task is None or TASKS[task].published is None:
        return {"task": None}
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
