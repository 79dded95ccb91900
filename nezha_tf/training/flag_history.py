"""The history of a run's flags: which flags changed at which step when the run was resumed.

The file has a JSON line for each start that changed something. The first line has the flags of the
first start, the others the changes: {"step": 400, "changed": {"--seed": ["1", "2"]}}.
"""

import json
import os
from typing import NamedTuple

from nezha_tf import hub
from nezha_tf.checkpoints.run_folder import CONFIG_FILE
from nezha_tf.config import read_values
from nezha_tf.util import forms, storage
from nezha_tf.util.errors import UserError
from nezha_tf.util.files import write_text
from nezha_tf.util.settings import FLAGS_FILE, flag_text, flags_of

FILE_NAME = "flags_history.jsonl"


def _are_before_and_after(values):
    is_pair = isinstance(values, list) and len(values) == 2
    return is_pair and all(value is None or forms.is_text(value) for value in values)


_FIRST = {"step": lambda step: step == 0 and forms.is_count(step), "flags": {str: forms.is_text}}
_LATER = {"step": forms.is_count, "changed": {str: _are_before_and_after}}
# Flags that do not affect training.
_WITHOUT_EFFECT = (
    "output_dir",
    "plot",
    "do_predict",
    "predict_file",
    "do_export",
    "export_dir",
    "record",
)


class Change(NamedTuple):
    """A change of a flag, or of a key of the configuration, at a step; values are texts or None."""

    step: int
    name: str
    before: str | None
    after: str | None


def begun_with(folder):
    """Returns a dict of the flags of a run's first start, as texts; {} if unknown."""
    return _begun_with(_read(os.path.join(folder, FILE_NAME)))


def last_flags(folder):
    """Returns a dict of the flags of a run's last start, as texts; {} if unknown."""
    return _last_flags(_entries_in(folder))


def changes_in(folder):
    """Returns the list of `Change` of the run in a folder."""
    return _changes(_read(os.path.join(folder, FILE_NAME)))


class FlagHistory:
    """The history of a run's flags; it is updated when the run starts."""

    def __init__(self, folder, step):
        """Args:
        folder: the run's folder.
        step: the step from which it continues, or 0 for a new run; entries of later steps are
          dropped, because these steps are repeated.
        """
        self._path = os.path.join(folder, FILE_NAME)
        self._step = step
        self._entries = []
        if step:
            self._entries = [entry for entry in _entries_in(folder) if entry["step"] < step]

    def take(self, flags, config):
        """Adds a start to the history.

        Args:
          flags: dict of flag to value.
          config: the `NezhaConfig`.

        Returns:
          List of `Change` since the previous start; [] for the first start.
        """
        now, before = _texts(flags, config), _last_flags(self._entries)
        if not before:
            self._entries = [{"step": 0, "flags": now}]
            return []
        changed = {
            name: [before.get(name), now.get(name)]
            for name in sorted(before.keys() | now.keys())
            if before.get(name) != now.get(name)
        }
        if changed:
            self._entries.append({"step": self._step, "changed": changed})
        return [Change(self._step, name, *values) for name, values in changed.items()]

    def comments(self):
        """Returns comment lines for the flag file of the last start; [] without changes."""
        if len(self._entries) < 2:
            return []
        return [f"# From step {self._entries[-1]['step']} on; earlier flags: {FILE_NAME}.\n"]

    def write(self):
        """Writes the complete file, or no file after an error."""
        lines = (json.dumps(entry, ensure_ascii=False) + "\n" for entry in self._entries)
        write_text(self._path, "".join(lines))


def kept(settings):
    """Returns a dict of flag to value as the record of a run has them.

    The files that the run took from beside the weights of a hub are left out: the name of these
    says the same, on other machines too.
    """
    flags, folder = flags_of(settings), getattr(settings, "output_dir", None)
    if not hub.is_name(flags.get("init_checkpoint")):
        return flags
    for name in ("bert_config_file", "vocab_file"):
        path = flags.get(name) or ""
        if hub.holds(path) or os.path.dirname(path) == os.path.dirname(f"{folder}/"):
            flags[name] = None
    return flags


def of_training(settings):
    """Returns a dict of flag to value: those of `kept` that have a value and affect training."""
    return {
        name: value
        for name, value in kept(settings).items()
        if value is not None and name not in _WITHOUT_EFFECT
    }


def note_of(changes):
    """Returns a line that names the changes, or ""."""
    if not changes:
        return ""
    texts = [
        f"{change.name} {shown(change.after)} (was {shown(change.before)})"
        + (", not read: the run continues" if change.name == "--init_checkpoint" else "")
        for change in changes
    ]
    return f"flags that changed since the last start: {'; '.join(texts)}"


def shown(text):
    """Returns a value's text in messages."""
    return "not given" if text is None else text


def _texts(flags, config):
    """Returns a dict of flags and of the configuration's keys to their values as text."""
    texts = {
        f"--{name}": flag_text(value)
        for name, value in flags.items()
        if value is not None and name not in _WITHOUT_EFFECT
    }
    return {**texts, **_texts_of_config(config.to_dict())}


def _stored(folder):
    """Returns the flags and keys in the files of a folder, in the form of `_texts`."""
    path = os.path.join(folder, FLAGS_FILE)
    try:
        with storage.open_text(path) as file:
            lines = [line.rstrip("\n").partition("=") for line in file if "=" in line]
    except FileNotFoundError:
        return {}
    except UnicodeDecodeError as error:
        raise UserError(f"{path} is not UTF-8; restore or remove it") from error
    texts = {n: value for n, _, value in lines if n.removeprefix("--") not in _WITHOUT_EFFECT}
    return {**texts, **_texts_of_config(read_values(os.path.join(folder, CONFIG_FILE)))}


def _texts_of_config(values):
    return {f"{CONFIG_FILE} {key}": str(value) for key, value in values.items()}


def _begun_with(entries):
    return entries[0]["flags"] if entries else {}


def _last_flags(entries):
    return _begun_with(entries) | {change.name: change.after for change in _changes(entries)}


def _changes(entries):
    return [
        Change(entry["step"], name, *values)
        for entry in entries[1:]
        for name, values in entry["changed"].items()
    ]


def _entries_in(folder):
    # Runs of older versions have no history, only the flag file.
    return _read(os.path.join(folder, FILE_NAME)) or [{"step": 0, "flags": _stored(folder)}]


def _read(path):
    """Returns the entries of the file; [] if it is missing.

    Raises:
      UserError: it is not as `FlagHistory.write` writes it.
    """
    try:
        with storage.open_binary(path, "rb") as file:
            lines = file.read().splitlines()
    except FileNotFoundError:
        return []
    entries = []
    for number, line in enumerate(lines, start=1):
        try:
            entries.append(json.loads(line))
        except (ValueError, RecursionError) as error:
            raise UserError(f"{path}, line {number}: not JSON; restore or remove it") from error
        forms.require(entries[-1], _LATER if number > 1 else _FIRST, f"{path}, line {number}")
    return entries
