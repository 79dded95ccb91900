"""The files that come with the package, by their names or by the paths that a clone has.

So `--flagfile=sample`, `--bert_config_file=nezha_base` and `--vocab_file=nezha_tf/resources/
vocab.txt` mean the same in a clone and where the package is installed, in any folder. What exists
under the path that was given always goes first.
"""

import difflib
import os

from nezha_tf.util.errors import UserError

PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
CONFIGS = os.path.join(PACKAGE, "configs")
# The first part of a path in a clone, and that folder here.
_FOLDERS = {"configs": CONFIGS, "nezha_tf": PACKAGE}
# The ending of the files that a name may stand for, what they are, and their folder.
_KINDS = {
    ".flags": ("flag file", CONFIGS),
    ".json": ("model configuration", CONFIGS),
    ".toml": ("ablation", os.path.join(CONFIGS, "ablations")),
}
# The flags whose values may be such names.
_FLAGS = {
    "flagfile": ".flags",
    "bert_config_file": ".json",
    "config_file": ".json",
    "ablation_file": ".toml",
}


def in_package(path):
    """Returns where the package would have a path of a clone, or None: it is no such path."""
    first, _, rest = os.fspath(path).partition("/")
    return os.path.join(_FOLDERS[first], rest) if rest and first in _FOLDERS else None


def located(path):
    """Returns where a file of the package is, if its path in a clone leads nowhere from here.

    Other paths are returned as they are.
    """
    here = None if os.path.lexists(path) else in_package(path)
    return here if here and os.path.exists(here) else path


def named(name, ending):
    """Returns the path that a flag means: one that exists, or the file of the package by its name.

    Args:
      name: a path, or the name of a file in `configs/` without its ending.
      ending: the ending, a key of `_KINDS`.

    Raises:
      UserError: it has the form of a name, and neither is there.
    """
    path = located(os.fspath(name))
    if os.path.lexists(path):
        return path
    what, folder = _KINDS[ending]
    own = os.path.join(folder, path + ending)
    if os.path.isfile(own):
        return own
    if path and os.path.basename(path) == path and not path.endswith(ending):
        known = sorted(file[: -len(ending)] for file in os.listdir(folder) if file.endswith(ending))
        near = difflib.get_close_matches(path, known, n=5)
        those = f"names like it: {', '.join(near)}" if near else f"its names: {', '.join(known)}"
        raise UserError(f"no {what} {name!r}, neither a file here nor one of the package ({those})")
    return path


def of_flag(flag, value):
    """Returns the path that a flag's value means; values of other flags are returned as they are.

    Args:
      flag: the flag's name.
      value: a str.

    Raises:
      UserError: see `named`.
    """
    return named(value, _FLAGS[flag]) if flag in _FLAGS else value


def shown(path):
    """Returns a file's path; if the package is installed, that of its own files begins with it."""
    own = os.path.abspath(path) == path and path.startswith(PACKAGE + os.sep)
    return os.path.relpath(path, os.path.dirname(PACKAGE)) if own else path
