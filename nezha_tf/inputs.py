"""Checks the files that flags name before anything slow is imported.

TensorFlow's import takes several seconds; a mistyped file name is reported before it. Contents are
checked here only where that is fast; the readers check the rest.
"""

import dataclasses
import os

from nezha_tf import hub
from nezha_tf.config import OF_TRAINING, NezhaConfig
from nezha_tf.resources import MODELS, model_path
from nezha_tf.text.vocabulary import Vocabulary
from nezha_tf.util import files, storage
from nezha_tf.util.errors import UserError
from nezha_tf.util.parts import patterns_in

# Flags that hold file names or globs, and the flag that makes the program read the files.
_PATTERNS = {
    "input_file": "do_train",
    "train_file": "do_train",
    "eval_file": "do_eval",
    "predict_file": "do_predict",
}
_CHECKPOINTS = ("init_checkpoint", "from")
_FOLDERS = ("model_folder", "saved_model")
_READERS = {"bert_config_file": NezhaConfig.from_json_file, "vocab_file": Vocabulary.from_file}


def check(flags):
    """Checks the input files of a program.

    Args:
      flags: dict of flag name to value.

    Raises:
      UserError: a file is missing, or is a bad configuration or vocabulary; or it contradicts the
        model of the package that another flag names.
    """
    for name, mode in _PATTERNS.items():
        if flags.get(name) and flags.get(mode, True):
            # A folder stands for the files in it where a program takes folders.
            # Weights are of pretraining; other programs find no such file when they read it.
            patterns = ",".join(patterns_in(flags[name]))
            files.expand(patterns, name, may_be_empty=True, in_folders="")
    for name, read in _READERS.items():
        if flags.get(name):
            read(flags[name])
    for name in _CHECKPOINTS:
        path = flags.get(name)
        if hub.recorded(flags.get("output_dir"), path):
            continue  # The run may go on by itself; otherwise it fetches the weights.
        if path and not _is_there(model_path(path)) and not _is_there(f"{path}.index"):
            raise UserError(f"no checkpoint at {path}: neither {path} nor {path}.index exists")
    if flags.get("init_checkpoint") in MODELS:
        _check_beside(flags["init_checkpoint"], flags)
    for name in _FOLDERS:
        paths = flags.get(name) or ()
        for path in [paths] if isinstance(paths, str) else paths:
            if not _is_there(model_path(path)):
                raise UserError(f"no model in {path}: it is not there (--{name})")


def _check_beside(name, flags):
    """Raises a `UserError` if the flags give a model of the package other files than its own.

    Args:
      name: the value of --init_checkpoint.
      flags: dict of flag name to value.
    """
    folder = model_path(name)
    if folder == name:
        return
    vocab_file, config_file = flags.get("vocab_file"), flags.get("bert_config_file")
    if vocab_file and not files.same_bytes(vocab_file, os.path.join(folder, "vocab.txt")):
        raise UserError(f"--vocab_file={vocab_file} is not the vocabulary of {name}; leave it out")
    if config_file:
        own, given = (
            dataclasses.asdict(NezhaConfig.from_json_file(path))
            for path in (os.path.join(folder, "bert_config.json"), config_file)
        )
        for key in sorted(own.keys() - OF_TRAINING):
            if own[key] != given[key]:
                raise UserError(
                    f"--bert_config_file={config_file} has {key} {given[key]}, but {name} has "
                    f"{own[key]}; leave it out"
                )


def _is_there(path):
    return storage.is_remote(path) or os.path.exists(path)
