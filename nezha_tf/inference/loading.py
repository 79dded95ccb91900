"""The model that the flags name: opened and loaded."""

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
          settings: `ModelSettings` with `init_checkpoint`; the others of `BARE_FLAGS` are those
            beside the weights if they are not given. Text is lower-cased unless `do_lower_case`
            is False.

        Raises:
          UserError: a flag is missing, the configuration is invalid, or a `task.json` beside the
            weights is damaged.
        """
        settings = with_files_beside(settings)
        config_file, self._vocab_file, self._checkpoint = (
            require_flag(getattr(settings, name), name) for name in BARE_FLAGS
        )
        self._do_lower_case = settings.do_lower_case is not False
        self.config, notes = read_config(config_file, weights_of(self._checkpoint)[0])
        for line in notes:
            print(line, file=sys.stderr)
        self.task = {"task": None, "layer_mix": _has_layer_mix(self._checkpoint)}

    @functools.cached_property
    def tokenizer(self):
        """The `FullTokenizer`; raises `UserError` if the vocabulary belongs to another model."""
        tokenizer = FullTokenizer(self._vocab_file, self._do_lower_case)
        check_vocabulary(self.config, tokenizer.vocabulary)
        return tokenizer

    def load_into(self, model, may_be_missing=()):
        """Does what `ModelFolder.load_into` does.

        If a vocabulary or a `task.json` beside the weights contradicts the flags, a line on stderr
        says so. From the folder of a run with --ema_decay it loads the moving averages.
        """
        checkpoint, averages = weights_of(self._checkpoint)
        for line in differences(checkpoint, self._vocab_file, self._do_lower_case):
            print(line, file=sys.stderr)
        loading.load(model, checkpoint, may_be_missing, averages=averages)


def _has_layer_mix(checkpoint):
    folder = os.path.dirname(weights_of(checkpoint)[0])
    return (run_folder.read_task(folder) or {}).get("layer_mix", False)


def open_model(settings):
    """Opens the model that the flags name, or that of the package; does not load its weights yet.

    Args:
      settings: `ModelSettings`.

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


def load_model(
    opened,
    check=lambda config: None,
    model_class=NezhaForMaskedLM,
    may_be_missing=UNREAD_NAMES,
):
    """Loads the model and the tokenizer of what `open_model` returned.

    From the folder of a run with --ema_decay it loads the moving averages of the weights.

    Args:
      opened: `ModelFolder` or `BareCheckpoint`.
      check: function of the configuration; raises `UserError` if the model is unsuitable.
      model_class: class of the Keras model; it is called with the configuration and, if the
        weights have a mixture of layers, with `layer_mix`.
      may_be_missing: as for `checkpoints.load`.

    Returns:
      (the model, `FullTokenizer`).

    Raises:
      UserError: files are damaged, or do not belong together.
    """
    check(opened.config)
    mixed = {"layer_mix": True} if opened.task.get("layer_mix") else {}
    tokenizer, model = opened.tokenizer, model_class(opened.config, **mixed)
    opened.load_into(model, may_be_missing)
    return model, tokenizer
