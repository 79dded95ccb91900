"""Opens the models of a page, folders and exports, and sorts them by what they can do."""

import os

from nezha_tf.checkpoints.folder import open_folder
from nezha_tf.util.errors import UserError, require_flag

EXPORT_FILE = "saved_model.pb"


def open_models(paths):
    """Opens models.

    Args:
      paths: sequence of paths of model folders or exports (`tools/export_saved_model.py`).

    Returns:
      dict of ability to dict of the model's name to its predictor (see `demo.predictors`).

    Raises:
      UserError: no path, a folder has no model, or the page has no tab for it.
    """
    require_flag(paths, "model_folder")
    models = {}
    for name, path in zip(_names(paths), paths, strict=True):
        for ability, predictor in _open(path).items():
            models.setdefault(ability, {})[name] = predictor
    return models


def _open(path):
    """Returns dict of ability to predictor, for one model."""
    if os.path.exists(os.path.join(path, EXPORT_FILE)):
        from nezha_tf.demo.exports import predictors_of_export

        return predictors_of_export(path)
    from nezha_tf.demo.predictors import predictors_of

    return predictors_of(open_folder(path))


def _names(paths):
    """Returns the last part of each path; or the paths, if two of these parts are the same."""
    if len(set(map(os.path.abspath, paths))) < len(paths):
        raise UserError("--model_folder names a folder twice; name each once")
    names = [os.path.basename(os.path.abspath(path)) for path in paths]
    return names if len(set(names)) == len(names) else list(paths)
