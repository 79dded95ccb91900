"""What comes with the package: the sample text, its vocabulary, and a small model.

The project made all of it itself.
"""

import os

from nezha_tf import hub
from nezha_tf.util import package_data

# The name of a model, in place of a path, to its folder here.
MODELS = {"mini": "mini"}
DEFAULT_MODEL = "mini"


def model_path(path):
    """Returns the folder of a model of the package or a hub for its name; other paths unchanged.

    A file or folder of the user that has such a name comes first. A model of a hub is fetched.

    Args:
      path: a str or `os.PathLike`.

    Raises:
      UserError: see `hub.folder_of`.
    """
    path = os.fspath(path)
    if hub.is_name(path):
        return hub.folder_of(path)
    if path not in MODELS or os.path.lexists(path):
        return package_data.located(path)
    return os.path.join(os.path.dirname(__file__), MODELS[path])
