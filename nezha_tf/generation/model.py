"""The model that the flags name, and what it says where a flag is not given."""

import dataclasses

from nezha_tf.checkpoints.folder import open_folder
from nezha_tf.checkpoints.kinds import POOLER
from nezha_tf.modeling.pretraining import NezhaForMaskedLM
from nezha_tf.resources import DEFAULT_MODEL
from nezha_tf.util.errors import UserError, require_flag

# Weights that most tools do not read, and that Hugging Face's masked LMs do not have.
UNREAD_NAMES = (POOLER,)
# The flags that name a bare checkpoint; they replace --model_folder.
BARE_FLAGS = ("bert_config_file", "vocab_file", "init_checkpoint")


def open_model(settings):
    """Opens the model that the flags name, or that of the package; does not load its weights yet.

    Args:
      settings: `TrainedModelSettings`.

    Returns:
      `ModelFolder`.

    Raises:
      UserError: the flags name a folder and a bare checkpoint; or the files that they name are no
        model.
    """
    given = [f"--{name}" for name in BARE_FLAGS if getattr(settings, name)]
    if not given:
        return open_folder(settings.model_folder or DEFAULT_MODEL, settings.do_lower_case)
    if settings.model_folder:
        raise UserError(
            f"--model_folder={settings.model_folder} holds a whole model; leave out "
            f"{', '.join(given)}"
        )
    return open_folder(
        require_flag(settings.init_checkpoint, "init_checkpoint"),
        settings.do_lower_case,
        settings.bert_config_file,
        settings.vocab_file,
    )


def load_model(opened, model_class=NezhaForMaskedLM, may_be_missing=UNREAD_NAMES):
    """Loads the model and the tokenizer of what `open_model` returned.

    From the folder of a run with --ema_decay it loads the moving averages of the weights.

    Args:
      opened: `ModelFolder`.
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
