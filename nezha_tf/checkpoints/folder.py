"""Opens a run's folder, or the folder of a published model, as a model."""

import functools
import json
import os
import sys

from nezha_tf.checkpoints import electra, hugging_face, loading, published, task_file, tf1
from nezha_tf.checkpoints.configuration import read_config
from nezha_tf.checkpoints.kinds import (
    ENCODER,
    POOLER,
    kind_of_architecture,
    kind_of_settings,
    listed,
)
from nezha_tf.checkpoints.name_table import tf1_names
from nezha_tf.checkpoints.run_checkpoints import RunCheckpoints
from nezha_tf.checkpoints.run_folder import CONFIG_FILE, VOCAB_FILE, best_sweep_member
from nezha_tf.checkpoints.task_table import DISCRIMINATOR, MASKED_LM, PRETRAINING
from nezha_tf.resources import model_path
from nezha_tf.text.tokenization import FullTokenizer
from nezha_tf.text.vocabulary import check_vocabulary
from nezha_tf.util import storage
from nezha_tf.util.errors import UserError
from nezha_tf.util.files import read_object

# The name in the folders of ALBERT that Google published.
ALBERT_CONFIG_FILE = "albert_config.json"
# The end of the name in HFL's folders of ELECTRA.
DISCRIMINATOR_CONFIG_FILE = "_discriminator_config.json"
# Files of weights by their ending, and the programs that read them.
_OTHER_WEIGHTS = {
    ".pdparams": "PaddlePaddle",
    ".h5": "Keras",
    ".msgpack": "Flax",
    ".onnx": "ONNX",
}


def load(folder):
    """Returns the tokenizer and the model of a folder.

    Args:
      folder: see `open_folder`.

    Returns:
      (`FullTokenizer`, the Keras model of `ModelFolder.make_model`, with its weights).

    Raises:
      UserError: see `open_folder`; or the weights are damaged or belong to another model.
    """
    opened = open_folder(folder)
    return opened.tokenizer, opened.make_model()


def open_folder(path, do_lower_case=None):
    """Opens a folder; the weights are not loaded yet.

    Args:
      path: the --output_dir of a run; that of several runs, which means the best of them; or the
        folder of a published model: `bert_config.json` (or `albert_config.json`, or Hugging
        Face's `config.json`), weights and `vocab.txt`; or "mini", the model of the package; or
        the name of a model of a hub, such as "hf:OWNER/NAME".
      do_lower_case: replaces the folder's own value; None: the folder decides.

    Returns:
      `ModelFolder`.

    Raises:
      UserError: the folder does not exist, has no model, or a file in it is damaged.
    """
    path = model_path(path)
    if not storage.isdir(path):
        what = "a file; pass its folder" if storage.exists(path) else "not there; check the path"
        raise UserError(f"no model in {path}: it is {what}")
    return ModelFolder(folder_of_model(path), do_lower_case)


def folder_of_model(path):
    """Returns the folder itself, or the one in it that is meant.

    That is the best run of several, or the model of an older folder of sentence-transformers.
    """
    if RunCheckpoints(path, {}).steps():
        return path
    inner = os.path.join(path, published.TRANSFORMER_FOLDER)
    has_inner = hugging_face.find_weights(path) is None and storage.isdir(inner)
    return best_sweep_member(path) or (inner if has_inner else path)


class ModelFolder:
    """A model and everything that belongs to it.

    Attributes:
      path: the folder.
      config: `NezhaConfig`.
      task: dict, the contents of `task.json` (see `task_table.TASKS`). Without such a file, the
        result of `published.settings_of`: {"task": None} for a model without a task's head.
      do_lower_case: whether texts are lower-cased: from `task.json`, else from Hugging Face's
        `tokenizer_config.json`, else True.
      checkpoint: path for `checkpoints.load`. In a run's folder, it is the best checkpoint if an
        evaluation has chosen one, else the newest.
    """

    def __init__(self, path, do_lower_case=None):
        """Arguments and errors are those of `open_folder`.

        Lines on stderr say what was assumed of a configuration that lacks keys.
        """
        self.path = path
        self.checkpoint = checkpoint_in(path)
        self.config, notes = read_config(config_file_in(path, self.checkpoint), self.checkpoint)
        for line in notes:
            print(line, file=sys.stderr)
        self.task = task_file.read(path)
        if do_lower_case is None and self.task:
            do_lower_case = self.task["do_lower_case"]
        elif do_lower_case is None:
            do_lower_case = published.do_lower_case(path, default=None)
        self._is_case_said = do_lower_case is not None
        self.do_lower_case = do_lower_case is not False
        if self.task is None:
            self.task = published.settings_of(path, self.config, self.checkpoint)

    @property
    def vocab_file(self):
        """The path of `vocab.txt`; a missing file is a `UserError`."""
        path = os.path.join(self.path, VOCAB_FILE)
        if not storage.exists(path):
            raise UserError(
                f"no {VOCAB_FILE} in {self.path}; copy the vocabulary of the model's training there"
            )
        return path

    @functools.cached_property
    def tokenizer(self):
        """The `FullTokenizer`; a vocabulary that does not fit the model is a `UserError`.

        Lines on stderr say how it may differ from that of the model's training.
        """
        tokenizer = FullTokenizer(self.vocab_file, self.do_lower_case)
        try:
            check_vocabulary(self.config, tokenizer.vocabulary)
        except UserError as error:
            raise UserError(f"{self.path}: {error}") from error
        how = (self.vocab_file, self.do_lower_case, self._is_case_said)
        for line in published.told_reading(self.path, *how):
            print(line, file=sys.stderr)
        return tokenizer

    def make_model(self):
        """Returns the task's Keras model, with the weights or with their moving averages.

        Without a task, the heads in the checkpoint decide: `NezhaForPreTraining`,
        `NezhaDiscriminator`, `NezhaForMaskedLM` or `NezhaEncoder`; a pooler that the checkpoint
        lacks stays random. A line on stderr names weights that are not in this model, such as
        those of another head.

        Raises:
          UserError: the weights are damaged or belong to another model.
        """
        if self.task["task"] is None:
            model, may_be_missing = self._model_of_names(), (POOLER,)
        else:
            model, may_be_missing = model_of_task(self.task, self.config)
        report = self.load_into(model, may_be_missing)
        if self.task["task"] is None and report.unused:
            print(self._told_unused(model, report.unused), file=sys.stderr)
        return model

    def _told_unused(self, model, names):
        """Returns a line on the weights that the model of the checkpoint's names does not have."""
        config_file = os.path.join(self.path, published.CONFIG_FILE)
        theirs = published.architecture_of(read_object(config_file) or {})
        said = f", a {theirs}," if theirs else ""
        return (
            f"warning: {self.checkpoint}{said} is opened as {type(model).__name__}; there, but not "
            f"in this model: {listed(names)}"
        )

    def load_into(self, model, may_be_missing=()):
        """Loads the weights, or their moving averages, into a model of another kind.

        Args:
          model: a Keras model whose variables are in the name table.
          may_be_missing: see `loading.load`.

        Returns:
          A `LoadReport`.

        Raises:
          UserError: the weights are damaged or belong to another model.
        """
        averages = self.task.get("uses_averages", False)
        return loading.load(model, self.checkpoint, may_be_missing, averages=averages)

    def _model_of_names(self):
        """Returns the largest model all of whose heads are in the checkpoint.

        Of ELECTRA's two models as wide as each other, it is the one that `config.json` names.
        """
        theirs = read_object(os.path.join(self.path, published.CONFIG_FILE)) or {}
        said = kind_of_architecture(published.architecture_of(theirs))
        of_one_head = sorted((DISCRIMINATOR, MASKED_LM), key=lambda kind: kind is not said)
        for kind in (PRETRAINING, *of_one_head):
            _, reader = loading.open_checkpoint(self.checkpoint, self.config, kind.prefixes)
            names = set(reader.get_variable_to_shape_map())
            model = kind.model(self.config)
            if {name for name in tf1_names(model) if name.startswith(kind.prefixes)} <= names:
                return model
        return ENCODER.model(self.config)


def model_of_task(settings, config):
    """Makes the model of a task, with random weights.

    Args:
      settings: dict, the contents of `task.json`.
      config: its `NezhaConfig`.

    Returns:
      (Keras model, prefixes of the TF1 names that its checkpoint may lack).

    Raises:
      UserError: the configuration does not fit the settings, or these name unknown objectives.
    """
    kind = kind_of_settings(settings, config)
    # A regression model has no labels and one output.
    num_labels = max(1, len(settings.get("labels", ())))
    length, layer_mix = settings["max_seq_length"], settings.get("layer_mix", False)
    model = kind.model(config, num_labels, length, layer_mix)
    return model, () if kind.reads_pooler else (POOLER,)


def weights_of(path):
    """Returns the weights that --init_checkpoint means: those of the folder's model.

    Args:
      path: a checkpoint (see `loading.open_checkpoint`) or its folder, of which `ModelFolder`
        would take the same; "mini" means the model of the package, "hf:OWNER/NAME" one of a hub.

    Returns:
      (path for `loading.open_checkpoint`, whether the moving averages in it are the weights, as
      `task.json` beside it says).

    Raises:
      UserError: the folder has no weights, or `task.json` is damaged.
    """
    path = model_path(path)
    folder = os.path.dirname(path) or "."
    if is_folder(path):
        folder = folder_of_model(path)
        path = checkpoint_in(folder)
    return path, bool((task_file.read(folder) or {}).get("uses_averages"))


def is_folder(path):
    """Whether the path of a model is a folder, not the prefix of a checkpoint.

    TensorFlow's file system in memory says of a checkpoint's prefix, too, that it is a folder.
    """
    return storage.isdir(path) and not storage.exists(f"{path}.index")


def checkpoint_in(folder):
    """Returns the path of a folder's weights, for `checkpoints.load`."""
    checkpoints = RunCheckpoints(folder, {}, best_metric=None)
    step = checkpoints.chosen()
    if step is not None:
        return checkpoints.path(step)
    weights = hugging_face.find_weights(folder)
    if weights:
        return weights
    names = sorted(storage.listdir(folder))
    found = [name for name in names if name.endswith(".index")]
    if not found:
        raise UserError(
            f"no weights in {folder}: neither TF1's (*.ckpt.index) nor Hugging Face's "
            f"({', '.join(hugging_face.FILE_NAMES)}){_told_others(names)}"
        )
    if len(found) > 1:
        names = ", ".join(found)
        raise UserError(f"several checkpoints in {folder} ({names}); remove all but one")
    return os.path.join(folder, found[0].removesuffix(".index"))


def _told_others(names):
    """Returns a clause on files of weights that are not read here, or ""."""
    for ending, program in _OTHER_WEIGHTS.items():
        name = next((name for name in names if name.endswith(ending)), None)
        if name:
            return f"; {name} is {program}'s, take the same model in one of these two forms"
    return ""


def config_file_in(folder, checkpoint):
    """Returns the path of the configuration; of two, the one with the checkpoint's layout.

    Args:
      folder: the model's folder.
      checkpoint: see `loading.open_checkpoint`.

    Raises:
      UserError: there is no configuration, or the checkpoint is damaged.
    """
    names = [CONFIG_FILE, ALBERT_CONFIG_FILE, published.CONFIG_FILE]
    if hugging_face.find_weights(checkpoint):
        names.reverse()
    # HFL's folders of ELECTRA have one for each of its two models; the generator's is not taken.
    names += sorted(n for n in storage.listdir(folder) if n.endswith(DISCRIMINATOR_CONFIG_FILE))
    paths = [os.path.join(folder, name) for name in names]
    for path in paths:
        if storage.exists(path):
            return path
    names = f"{CONFIG_FILE} or {published.CONFIG_FILE}"
    advice = _configurations_of_electra(checkpoint) or "copy the model's file there"
    raise UserError(f"no {names} in {folder}; {advice}")


def _configurations_of_electra(checkpoint):
    """Returns what a `config.json` for a TF1 checkpoint of ELECTRA says, or "" for others."""
    if hugging_face.find_weights(checkpoint):
        return ""
    _, reader = tf1.open_checkpoint(checkpoint)
    if not electra.is_electra(reader.get_variable_to_shape_map()):
        return ""
    texts = [json.dumps(electra.configuration(model)) for model in electra.models_of(reader)]
    return (
        "ELECTRA's programs write none: write one with "
        + " (the generator: ".join(texts)
        + (")" * (len(texts) - 1))
    )
