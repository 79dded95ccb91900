"""What all data sets share: their files, by a flag or by known names, and the packed examples."""

import os
from typing import NamedTuple

from nezha_tf.util import files
from nezha_tf.util.errors import UserError, require_flag

# The --task_name of the user's own data.
CUSTOM = "custom"


def one_of(*names):
    """Returns the choice among files of these names; see `found_in`."""
    return tuple((name,) for name in names)


# The test sets of CLUE's archives, the one that the site takes first. Where there is no
# test1.1.json (ChID and C3 have one), test.json is version 1.1; test1.0.json is an older one, kept
# for reference (README of TNEWS's archive).
CLUE_TESTS = ("test1.1.json", "test.json", "test1.0.json")
# The files of an archive of CLUE, or of FewCLUE.
CLUE_FILES = {
    "train": one_of("train.json", "train_few_all.json", "train_0.json"),
    "eval": one_of("dev.json", "dev_few_all.json", "dev_0.json"),
    "predict": one_of(*CLUE_TESTS, "test_public.json"),
}


class Examples(NamedTuple):
    """The packed examples of a part.

    Attributes:
      rows: what each was made of, a list.
      arrays: the arrays for `ArrayReader`; `label_ids` only if all examples are labelled.
      labels: for each its encoded label, or None.
    """

    rows: list
    arrays: dict
    labels: list


def files_of(data_set, part, settings):
    """Returns the list of a part's files, from --train_file and similar flags or in --data_dir.

    Args:
      data_set: an object with `files`: a dict of part to its choices of files (see `found_in`);
        without any, the flag must name the files.
      part: "train", "eval" or "predict".
      settings: an object with `data_dir`, `train_file`, `eval_file` and `predict_file`.

    Raises:
      UserError: there is no such file.
    """
    flag, choices = f"{part}_file", data_set.files.get(part, ())
    if getattr(settings, flag) or not choices:
        return files.expand(require_flag(getattr(settings, flag), flag), flag)
    folder = settings.data_dir
    if not folder:
        raise UserError(f"--data_dir is needed (or --{flag}): the folder of {listed(choices)}")
    found = found_in(folder, choices)
    if not found:
        raise UserError(f"--data_dir={folder} has no {listed(choices)}; or pass --{flag}")
    return found


def found_in(folder, choices):
    """Returns the paths of the files of the first choice that has any in the folder, a list.

    The files of one choice, a tuple of names, belong together.
    """
    for names in choices:
        paths = [os.path.join(folder, name) for name in names]
        found = [path for path in paths if os.path.exists(path)]
        if found:
            return found
    return []


def listed(choices):
    """Returns the choices as text."""
    return " or ".join(" and ".join(names) for names in choices)


def require_different(settings, *flags):
    """Returns the columns that flags name, a list; two of the same name are a `UserError`."""
    columns = [getattr(settings, flag) for flag in flags]
    if len(set(columns)) < len(columns):
        names = ", ".join(f"--{flag}" for flag in flags)
        raise UserError(f"{names} are {columns}; name another column for each")
    return columns
