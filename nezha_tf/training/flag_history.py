"""Which flags a run had, by step, where it went on with others than it began with.

A line of JSON for each start that changed something: the first one has the flags that the run began
with, the others what was changed: {"step": 400, "changed": {"seed": ["1", "2"]}}.
"""

import json
import os
from typing import NamedTuple

from nezha_tf.config import read_values
from nezha_tf.files import write_text
from nezha_tf.model_folder.run_folder import CONFIG_FILE
from nezha_tf.settings import flag_text

FILE_NAME = "flags_history.jsonl"
FLAGS_FILE = "run.flags"
# What changes nothing of the steps that are made.
_WITHOUT_EFFECT = (
    "output_dir",
    "plot",
    "do_predict",
    "predict_file",
    "do_export",
    "export_dir",
)


class Change(NamedTuple):
    """A flag, or a key of the configuration, that a run went on with at a step; texts or None."""

    step: int
    name: str
    before: str | None
    after: str | None


def begun_with(folder):
    """Returns dict of the flags that the run in a folder began with, as texts; {} if unknown."""
    return _begun_with(_read(os.path.join(folder, FILE_NAME)))


def changes_in(folder):
    """Returns the list of `Change` of the run in a folder."""
    return _changes(_read(os.path.join(folder, FILE_NAME)))


class FlagHistory:
    """The history of a run, while it starts."""

    def __init__(self, folder, step):
        """Args:
        folder: of the run.
        step: where it goes on, or 0 where it begins; what is told of later steps never was.
        """
        self._path = os.path.join(folder, FILE_NAME)
        self._step = step
        self._entries = []
        if step:
            # A run that was begun by a version without a history has its flag file alone.
            found = _read(self._path) or [{"step": 0, "flags": _stored(folder)}]
            self._entries = [entry for entry in found if entry["step"] < step]

    def take(self, flags, config):
        """Takes note of a start.

        Args:
          flags: dict of flag to value.
          config: the `NezhaConfig`.

        Returns:
          The list of `Change` since the start before; [] where there was none.
        """
        now, before = _texts(flags, config), dict(_begun_with(self._entries))
        if not before:
            self._entries = [{"step": 0, "flags": now}]
            return []
        before.update({change.name: change.after for change in _changes(self._entries)})
        changed = {
            name: [before.get(name), now.get(name)]
            for name in sorted(before.keys() | now.keys())
            if before.get(name) != now.get(name)
        }
        if changed:
            self._entries.append({"step": self._step, "changed": changed})
        return [Change(self._step, name, *values) for name, values in changed.items()]

    def comments(self):
        """Returns lines for the flag file of the last start: none, where it was the only one."""
        if len(self._entries) < 2:
            return []
        return [f"# From step {self._entries[-1]['step']} on; of before tells {FILE_NAME}.\n"]

    def write(self):
        """Writes the file; it appears whole or not at all."""
        lines = (json.dumps(entry, ensure_ascii=False) + "\n" for entry in self._entries)
        write_text(self._path, "".join(lines))


def told(changes):
    """Returns a line on changes, or ""."""
    if not changes:
        return ""
    texts = [
        f"{change.name} {shown(change.after)} (was {shown(change.before)})"
        + (", not read: the run goes on" if change.name == "--init_checkpoint" else "")
        for change in changes
    ]
    return f"from here on with other flags than before: {'; '.join(texts)}"


def shown(text):
    """Returns a value as it is told."""
    return "not given" if text is None else text


def _texts(flags, config):
    """Returns dict of flag, and of key of the configuration, to its value as text."""
    texts = {
        f"--{name}": flag_text(value)
        for name, value in flags.items()
        if value is not None and name not in _WITHOUT_EFFECT
    }
    return {**texts, **_texts_of_config(config.to_dict())}


def _stored(folder):
    """Returns what the flag file and the configuration of a folder say, as `_texts` does."""
    try:
        with open(os.path.join(folder, FLAGS_FILE), encoding="utf-8") as file:
            lines = [line.rstrip("\n").partition("=") for line in file if "=" in line]
    except FileNotFoundError:
        return {}
    texts = {n: value for n, _, value in lines if n.removeprefix("--") not in _WITHOUT_EFFECT}
    return {**texts, **_texts_of_config(read_values(os.path.join(folder, CONFIG_FILE)))}


def _texts_of_config(values):
    return {f"{CONFIG_FILE} {key}": str(value) for key, value in values.items()}


def _begun_with(entries):
    return entries[0]["flags"] if entries else {}


def _changes(entries):
    return [
        Change(entry["step"], name, *values)
        for entry in entries[1:]
        for name, values in entry["changed"].items()
    ]


def _read(path):
    """Returns the entries of the file, [] where there is none that can be read."""
    try:
        with open(path, encoding="utf-8") as file:
            return [json.loads(line) for line in file]
    except (FileNotFoundError, ValueError):
        return []
