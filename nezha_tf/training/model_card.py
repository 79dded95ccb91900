"""The model card of a run: the model, its data, flags and results, in the screen's language."""

import datetime
import glob
import hashlib
import importlib.metadata
import json
import os
import platform
import shlex
import sys
from os.path import isfile

from nezha_tf.checkpoints import card_head
from nezha_tf.checkpoints.card_head import FILE_NAME
from nezha_tf.checkpoints.run_checkpoints import RunCheckpoints
from nezha_tf.checkpoints.run_folder import VOCAB_FILE
from nezha_tf.training import flag_history
from nezha_tf.training.recipe import MovingAverage
from nezha_tf.util import console, files, package_data, storage
from nezha_tf.util.language import translated
from nezha_tf.util.parts import patterns_in
from nezha_tf.util.settings import changed, flag_text, flags_of

# The first line after the head; older cards have no head. It distinguishes a card from the user's
# own file.
MARK = "<!-- Written by nezha_tf at the end of a run, and anew at the end of the next. -->"
PACKAGES = ("nezha_tf", "tensorflow", "tensorflow-text", "keras", "numpy")
# The parts with results, and what the hubs call such parts.
SPLITS = {"eval": "validation", "predict": "test"}
# Endings of flags that name input files; a folder means the files in it.
INPUT_FLAGS = ("_file", "data_dir")
# If a flag's files have more bytes together, they get one line without a checksum.
MOST_HASHED = 2**30


def write(task, description, results):
    """Writes the card into the run's folder; returns a line that names the file.

    What the user has written on licence and data sets into the head of an earlier card stays.

    Args:
      task, description, results: see `text_of`.
    """
    return _place(task.settings.output_dir, text_of(task, description, results))


def copy(folder, target):
    """Copies a run's card, if there is one, into another folder; returns a line to print."""
    if not _is_card(folder):
        return f"no model card in {folder}"
    with storage.open_text(os.path.join(folder, FILE_NAME)) as file:
        return _place(target, file.read())


def _place(folder, text):
    path = os.path.join(folder, FILE_NAME)
    if storage.exists(path) and not _is_card(folder):
        return f"no model card: {path} was not written by a run, and stays as it is"
    files.write_text(path, card_head.completed(text, folder, card_head.OF_USER))
    return f"model card in {path}"


def _is_card(folder):
    text = card_head.body_of(card_head.start_of(folder))
    return text.lstrip().partition("\n")[0].strip() == MARK


def text_of(task, description, results):
    """Returns the text of a run's card.

    Args:
      task: a `training.task.Task`.
      description: a line that describes the model.
      results: dict of name to number, the result of `Run.run`.
    """
    settings = task.settings
    given = changed_flags(settings)
    counts = [(part, f"{count:,}") for part, count in task.example_counts.items()]
    sections = (
        (translated("Results"), _table(("metric", "value"), _rounded(results))),
        (translated("Data"), "\n".join(f"- {translated(note)}" for note in task.notes)),
        ("", _table(("part", "inputs"), counts)),
        ("", _table(("flag", "file", "bytes", "SHA-256"), input_files(settings))),
        (translated("Flags that are not the defaults"), _block("\n".join(given))),
        *_changes(settings.output_dir),
        (
            translated("Configuration"),
            _block(json.dumps(task.config.to_dict(), indent=2, sort_keys=True)),
        ),
        (translated("Versions"), _table(("", "version"), versions())),
        (translated("Use"), _use(settings)),
    )
    parts = [f"# {files.folder_name(settings.output_dir)}", translated(_origin(task))]
    shown = translated(description)
    parts[1:1] = [f"{shown[0].upper()}{shown[1:]}{translated('.')}"]
    for title, text in sections:
        parts += [f"## {title}"] if title else []
        parts += [text] if text else []
    head = _head(task, results)
    return "\n\n".join([f"{head}{MARK}\n{parts[0]}", *parts[1:]]) + "\n"


def _head(task, results):
    settings = task.settings
    tag = card_head.pipeline_tag(task.task_file_settings())
    found = []
    for part, split in SPLITS.items():
        metrics = {
            n.removeprefix(f"{part} "): v for n, v in results.items() if n.startswith(f"{part} ")
        }
        found.append(card_head.result(tag, _data_name(settings, part), split, metrics))
    is_adapter = bool(getattr(settings, "lora_rank", 0))
    return card_head.text_of(
        library="nezha_tf",
        framework="tensorflow",
        tag=tag,
        tags=card_head.tags_of(task.config, *["lora"] * is_adapter),
        base=card_head.base_of(_start(settings)),
        is_adapter=is_adapter,
        index=card_head.index_of(files.folder_name(settings.output_dir), found),
    )


def _data_name(settings, part):
    """Returns the name of a part's data: those of its files, or that of the data set."""
    paths = getattr(settings, f"{part}_file", None)
    if not paths:
        return getattr(settings, "task_name", part)
    return ", ".join(map(os.path.basename, patterns_in(paths)))


def _start(settings):
    """Returns the checkpoint that a run began with, or None."""
    begun_with = flag_history.begun_with(settings.output_dir)
    return begun_with.get("--init_checkpoint") if begun_with else settings.init_checkpoint


def changed_flags(settings):
    """Returns flag-file lines for the flags that differ from the program's defaults.

    They include the flags whose values come from the data.
    """
    kept = flag_history.kept(settings)
    found = sorted((name, kept[name]) for name in changed(settings))
    return [f"--{name}={flag_text(value)}" for name, value in found if value is not None]


def input_files(settings):
    """Returns a sorted list of (flag, path, bytes, SHA-256) for each local file of a flag.

    If a flag's files are too large to be read again, they are one row without SHA-256.
    """
    rows = []
    given = {name: value for name, value in flags_of(settings).items() if value}
    for flag in sorted(name for name in given if name.endswith(INPUT_FLAGS)):
        value = package_data.of_flag(flag, flag_text(given[flag]))
        if os.path.isdir(value):
            value = os.path.join(glob.escape(value), "*")
        patterns = (each for each in patterns_in(value) if not storage.is_remote(each))
        paths = {path for pattern in patterns for path in storage.glob(pattern)}
        paths = sorted(filter(isfile, paths))
        total = sum(map(os.path.getsize, paths))
        if total > MOST_HASHED:
            rows.append((flag, f"{value} ({len(paths):,} files)", total, ""))
        else:
            rows += [
                (flag, package_data.shown(path), os.path.getsize(path), _hash_of(path))
                for path in paths
            ]
    return rows


def versions():
    """Returns a list of (name, version) for Python and the installed packages."""
    rows = [("python", platform.python_version())]
    for name in PACKAGES:
        try:
            rows.append((name, importlib.metadata.version(name)))
        except importlib.metadata.PackageNotFoundError:  # nezha_tf need not be installed
            continue
    return rows


def _origin(task):
    """Returns sentences on how the model was made, and which checkpoint it is."""
    settings, day = task.settings, datetime.datetime.now(datetime.UTC).date()
    start = _start(settings)
    start = f"the checkpoint `{start}`" if start else "random weights"
    checkpoints = RunCheckpoints(settings.output_dir, {}, best_metric=task.best_metric)
    step = checkpoints.chosen()
    is_best = step == (checkpoints.best() or {}).get("global_step")
    why = f"the best by {task.best_metric.name}" if is_best else "the last"
    lines = [
        f"Trained by `{_program()}` from {start}; this card was written on {day}.",
        f"The model is `{checkpoints.path(step)}`, {why}.",
    ]
    if settings.ema_decay:
        (name,) = MovingAverage.names(["NAME"])
        lines.append(
            "It is used with the averages of its weights (`--ema_decay`), which are stored as "
            f"`{name}`."
        )
    return "\n".join(lines)


def _changes(folder):
    """Returns a list of the section (title, text) on changed flags; [] without changes."""
    changes = flag_history.changes_in(folder)
    if not changes:
        return []
    rows = [
        (change.step, f"`{change.name}`", *map(flag_history.shown, change[2:]))
        for change in changes
    ]
    table = _table(("from step", "what", "before", "then"), rows)
    text = "The flags above are those of the last start. Earlier starts had other values:"
    return [(translated("Changed flags"), f"{translated(text)}\n\n{table}")]


def _use(settings):
    """Returns the section on opening the model in Python and predicting with it."""
    folder = settings.output_dir
    lines = f'import nezha_tf\n\ntokenizer, model = nezha_tf.load("{folder}")'
    parts = [f"```python\n{lines}\n```"]
    if not storage.exists(os.path.join(folder, VOCAB_FILE)):
        parts.insert(
            0,
            translated(
                f"The vocabulary is missing here: copy the `{VOCAB_FILE}` that the examples were "
                "made with into this folder (`--vocab_file` does so)."
            ),
        )
    if "do_predict" in flags_of(settings):
        parts.append(_block(_command(settings)))
    return "\n\n".join(parts)


def _command(settings):
    """Returns the command that predicts with the model."""
    folder = settings.output_dir
    flags = shlex.quote(os.path.join(folder, "run.flags"))
    lines = [f"{console.as_typed(_program())} --flagfile={flags}"]
    lines.append("--nodo_train --nodo_eval --do_predict")
    if "predict_file" in flags_of(settings):
        lines.append("--predict_file=FILE")
    return " \\\n    ".join(lines)


def _program():
    return os.path.basename(sys.argv[0])


def _rounded(results):
    shown = {name: value for name, value in results.items() if "trust_ratio/" not in name}
    return [(name, f"{value:.6g}") for name, value in shown.items()]


def _hash_of(path):
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _table(head, rows):
    head = list(map(translated, head))
    lines = [head, ["---"] * len(head), *rows] if rows else []
    return "\n".join(f"| {' | '.join(map(str, line))} |" for line in lines)


def _block(text):
    return f"```\n{text}\n```"
