"""Opens the model to convert: weights of any layout, and the files beside them."""

import os
from typing import NamedTuple

from nezha_tf.checkpoints import folder as model_folder
from nezha_tf.checkpoints import hugging_face, loading, published, task_file
from nezha_tf.checkpoints.configuration import read_config
from nezha_tf.checkpoints.kinds import kind_of_architecture, kind_of_settings
from nezha_tf.checkpoints.run_folder import VOCAB_FILE
from nezha_tf.checkpoints.task_row import Kind
from nezha_tf.config import NezhaConfig, read_values
from nezha_tf.resources import model_path
from nezha_tf.text.vocabulary import Vocabulary, check_vocabulary
from nezha_tf.util import storage
from nezha_tf.util.errors import UserError


class Source(NamedTuple):
    """The model to convert.

    Attributes:
      path: path of the weights, for messages.
      reader: the reader that `loading.open_checkpoint` returns.
      config: `NezhaConfig`.
      config_values: dict, the content of the configuration file.
      vocabulary: `Vocabulary`, or None if there is none.
      task: dict, the content of `task.json`, or what a config.json of Hugging Face says of a task;
        None if the model belongs to no task.
      do_lower_case: bool, or None if no file says it.
      kind: the `Kind` that a file beside the weights names, or None.
      notes: list of lines that tell the user what was assumed.
    """

    path: str
    reader: object
    config: NezhaConfig
    config_values: dict
    vocabulary: Vocabulary | None
    task: dict | None
    do_lower_case: bool | None
    kind: Kind | None
    notes: list[str]

    @property
    def is_hugging_face(self):
        """Whether the weights have Hugging Face's layout."""
        return isinstance(self.reader, hugging_face.HuggingFaceReader)


def open_source(path, config_file=None, vocab_file=None, do_lower_case=None):
    """Opens a model; does not read its weights yet.

    Args:
      path: folder of a run or of a published model, "mini", prefix of a TF1 checkpoint, or file of
        Hugging Face's.
      config_file: path; None: the file beside the weights.
      vocab_file: path; None: `vocab.txt` beside the weights, if it is there.
      do_lower_case: bool; None: what the files beside the weights say.

    Returns:
      `Source`.

    Raises:
      UserError: there is no model, a file is damaged or names unknown objectives,
        or the vocabulary belongs to another model.
    """
    path = model_path(path)
    if model_folder.is_folder(path):
        folder = model_folder.folder_of_model(path)
        path = model_folder.checkpoint_in(folder)
    else:
        folder = os.path.dirname(path) or "."
    weights_path, reader = loading.open_checkpoint(path)
    config_file = config_file or _config_file(folder, weights_path)
    config, notes = read_config(config_file, weights_path)
    values = read_values(config_file)
    said = kind_of_architecture(published.architecture_of(values))
    _, reader = loading.open_checkpoint(path, config, said.prefixes if said else ())
    if not vocab_file:
        vocab_file = os.path.join(folder, VOCAB_FILE)
        if not storage.exists(vocab_file):
            notes.append(
                f"no {vocab_file}: the new folder has no vocabulary; to have one, pass --vocab_file"
            )
            vocab_file = None
    task = task_file.read(folder)
    if do_lower_case is None:
        case = published.do_lower_case(folder, default=None)
        do_lower_case = task["do_lower_case"] if task else case
    how = (do_lower_case is not False, do_lower_case is not None)
    notes += published.told_reading(folder, vocab_file, *how)
    if task is None and "architectures" in values:
        # The config.json of Hugging Face names the class of the model, and so its head.
        task = published.settings_of(folder, config, weights_path, config_file)
    if task:
        is_known = task["task"] is not None
        task = {**task, "do_lower_case": do_lower_case is not False} if is_known else None
    return Source(
        path=weights_path,
        reader=reader,
        config=config,
        config_values=values,
        vocabulary=_read_vocabulary(vocab_file, config) if vocab_file else None,
        task=task,
        do_lower_case=do_lower_case,
        kind=_kind_said(task, values, config),
        notes=notes,
    )


def _config_file(folder, weights_path):
    """Returns the path of the configuration beside the weights."""
    try:
        return model_folder.config_file_in(folder, weights_path)
    except UserError as error:
        raise UserError(f"{error}, or pass --config_file") from error


def _read_vocabulary(path, config):
    """Returns the `Vocabulary`; raises `UserError` if it does not belong to the configuration."""
    vocabulary = Vocabulary.from_file(path)
    try:
        check_vocabulary(config, vocabulary)
    except UserError as error:
        raise UserError(f"{path}: {error}") from error
    return vocabulary


def _kind_said(task, values, config):
    """Returns the `Kind` by `task.json`, or else by Hugging Face's config.json; or None."""
    if task:
        return kind_of_settings(task, config)
    return kind_of_architecture(published.architecture_of(values))
