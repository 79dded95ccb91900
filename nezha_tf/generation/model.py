"""The model that the flags name, and what it says where a flag is not given."""

import dataclasses
import functools
import os
import sys

from nezha_tf.checkpoints import loading, run_folder
from nezha_tf.checkpoints.folder import open_folder, weights_of
from nezha_tf.checkpoints.kinds import POOLER
from nezha_tf.checkpoints.published import read_config
from nezha_tf.modeling.pretraining import NezhaForMaskedLM
from nezha_tf.resources import DEFAULT_MODEL
from nezha_tf.text.tokenization import FullTokenizer
from nezha_tf.text.vocabulary import check_vocabulary
from nezha_tf.training.start import differences, with_files_beside
from nezha_tf.util.errors import UserError, require_flag

# Weights that most tools do not read, and that Hugging Face's masked LMs do not have.
UNREAD_NAMES = (POOLER,)
# The flags that name a bare checkpoint; they replace --model_folder.
BARE_FLAGS = ("bert_config_file", "vocab_file", "init_checkpoint")


class BareCheckpoint:
    """A checkpoint with its configuration and vocabulary; has the interface of a `ModelFolder`.

    Attributes:
      config: `NezhaConfig`.
      task: "task" is None, as of a folder that belongs to no task; "layer_mix" is what a
        `task.json` beside the weights says.
    """

    def __init__(self, settings):
        """Args:
          settings: `TrainedModelSettings` with `init_checkpoint`; the others of `BARE_FLAGS` are
            those beside the weights if they are not given. Text is lower-cased unless
            `do_lower_case` is False.

        Raises:
          UserError: a flag is missing, the configuration is invalid, or a `task.json` beside the
            weights is damaged.
        """
        settings = with_files_beside(settings)
        config_file, self._vocab_file, path = (
            require_flag(getattr(settings, name), name) for name in BARE_FLAGS
        )
        self._do_lower_case = settings.do_lower_case is not False
        self._checkpoint, self._averages = weights_of(path)
        self.config, notes = read_config(config_file, self._checkpoint)
        for line in notes:
            print(line, file=sys.stderr)
        beside = run_folder.read_task(os.path.dirname(self._checkpoint)) or {}
        self.task = {"task": None, "layer_mix": beside.get("layer_mix", False)}

    @functools.cached_property
    def tokenizer(self):
        """The `FullTokenizer`; raises `UserError` if the vocabulary belongs to another model."""
        tokenizer = FullTokenizer(self._vocab_file, self._do_lower_case)
        check_vocabulary(self.config, tokenizer.vocabulary)
        return tokenizer

    def load_into(self, model, may_be_missing=()):
        """Does what `ModelFolder.load_into` does.

        If a vocabulary or a `task.json` beside the weights contradicts the flags, a line on stderr
        says so.
        """
        for line in differences(self._checkpoint, self._vocab_file, self._do_lower_case):
            print(line, file=sys.stderr)
        loading.load(model, self._checkpoint, may_be_missing, averages=self._averages)


def open_model(settings):
    """Opens the model that the flags name, or that of the package; does not load its weights yet.

    Args:
      settings: `TrainedModelSettings`.

    Returns:
      `ModelFolder` or `BareCheckpoint`.

    Raises:
      UserError: the flags name a folder and a bare checkpoint; or the files that they name are no
        model.
    """
    given = [f"--{name}" for name in BARE_FLAGS if getattr(settings, name)]
    if given and not settings.model_folder:
        return BareCheckpoint(settings)
    if given:
        raise UserError(
            f"--model_folder={settings.model_folder} holds a whole model; leave out "
            f"{', '.join(given)}"
        )
    return open_folder(settings.model_folder or DEFAULT_MODEL, settings.do_lower_case)


def load_model(opened, model_class=NezhaForMaskedLM, may_be_missing=UNREAD_NAMES):
    """Loads the model and the tokenizer of what `open_model` returned.

    From the folder of a run with --ema_decay it loads the moving averages of the weights.

    Args:
      opened: `ModelFolder` or `BareCheckpoint`.
      model_class: class of the Keras model; it is called with the configuration and, if the
        weights have a mixture of layers, with `layer_mix`.
      may_be_missing: as for `checkpoints.load`.

    Returns:
      (the model, `FullTokenizer`).

    Raises:
      UserError: files are damaged, or do not belong together.
    """
    mixed = {"layer_mix": True} if opened.task.get("layer_mix") else {}
    tokenizer, model = opened.tokenizer, model_class(opened.config, **mixed)
    opened.load_into(model, may_be_missing)
    return model, tokenizer


def with_defaults(settings, opened, defaults):
    """Returns the settings with values for flags that were not given.

    Args:
      settings: a dataclass; None stands for a flag that was not given.
      opened: as returned by `open_model`.
      defaults: dict of field names to the values that hold if the model folder does not say one.
    """
    missing = {
        name: opened.task.get(name, default)
        for name, default in defaults.items()
        if getattr(settings, name) is None
    }
    return dataclasses.replace(settings, **missing)
