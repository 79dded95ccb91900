"""The files of a run's folder that make it a model: written, compared, and taken by later runs."""

import contextlib
import dataclasses
import json
import os

from nezha_tf.checkpoints import run_folder
from nezha_tf.checkpoints.run_checkpoints import RunCheckpoints
from nezha_tf.checkpoints.run_folder import CONFIG_FILE, VOCAB_FILE, read_settings, vocabulary_in
from nezha_tf.checkpoints.task_table import TASKS
from nezha_tf.training import adapters, devices
from nezha_tf.util import files, locks
from nezha_tf.util.errors import UserError
from nezha_tf.util.settings import changed, flag_text, flags_of


def with_head_of_run(settings):
    """Returns the settings with what the run in the folder says about its head.

    Flags that are not given take its values, also the metric that has chosen its best checkpoint.
    With --do_train nothing is taken from the folder: the flags must describe the same head as the
    run there, if there is one.

    Args:
      settings: `RunSettings`.

    Raises:
      UserError: a flag is given otherwise, `task.json` is damaged, or the folder is a file.
    """
    folder = settings.output_dir
    if not folder:
        return settings  # `Run` reports the missing flag.
    files.require_folder(folder, "output_dir")
    stored, given, taken = run_folder.read_task(folder), changed(settings), {}
    names = ("layer_mix", *TASKS[stored["task"]].head_flags) if stored else ()
    for name in filter(flags_of(settings).__contains__, names):
        there, here = stored.get(name, False), getattr(settings, name)
        if settings.do_train or name in given:
            _require_same_flag(folder, name, there, here)
        else:
            taken[name] = tuple(there) if isinstance(there, list) else there
    if not settings.do_train:
        taken |= _best_metric_of_run(settings, given)
    return dataclasses.replace(settings, **taken)


def _best_metric_of_run(settings, given):
    """Returns {"best_metric": the metric that has chosen the folder's best checkpoint}, or {}."""
    best = RunCheckpoints(settings.output_dir, {}, best_metric=None).best() or {}
    metric = next((name for name in best if name != "global_step"), None)
    if metric is None or "best_metric" not in flags_of(settings):
        return {}
    if given.get("best_metric", metric) != metric:
        raise UserError(
            f"the best checkpoint in {settings.output_dir} is that of --best_metric={metric}, not "
            f"of --best_metric={settings.best_metric}; leave the flag out"
        )
    return {"best_metric": metric}


def _require_same_flag(folder, name, there, here):
    there, here = _told_flag(name, there), _told_flag(name, here)
    if there != here:
        raise UserError(
            f"the run in {folder} is {there}, and this one {here}; give it the same flag, or "
            "another --output_dir"
        )


def _told_flag(name, value):
    if value is True:
        return f"with --{name}"
    return f"with --{name}={flag_text(value)}" if value else f"without --{name}"


def write_settings(folder, task):
    """Writes `bert_config.json`, `task.json` and `vocab.txt`.

    Args:
      folder: the run's folder.
      task: a `training.task.Task`.

    Raises:
      UserError: see `check`.
    """
    check(folder, task)
    _copy_vocabulary(task.settings.vocab_file, folder)
    task.config.to_json_file(os.path.join(folder, CONFIG_FILE))
    run_folder.write_task(folder, settings_of(task))


def check(folder, task):
    """Checks that a task fits the run in a folder, if there is one.

    Args:
      folder: the run's folder.
      task: a `training.task.Task`.

    Raises:
      UserError: the folder is for another task, or has another vocabulary, another value of
        `do_lower_case` or `layer_mix`, other adapters, or another head (see `head_flags` of the
        table).
    """
    wanted = settings_of(task)
    stored = read_settings(folder, wanted["task"])
    if stored and stored["do_lower_case"] != wanted["do_lower_case"]:
        raise UserError(
            f"do_lower_case is {json.dumps(wanted['do_lower_case'])} here, and "
            f"{json.dumps(stored['do_lower_case'])} in the run in {folder}; pass another "
            "--output_dir"
        )
    if stored:
        _check_head(folder, stored, wanted)
    adapters.check_folder(folder, task.settings)
    source, target = task.settings.vocab_file, vocabulary_in(folder)
    if source and target and not files.same_bytes(source, target):
        raise UserError(
            f"--vocab_file={source} is another vocabulary than that of the run in {target}; "
            "pass that one, or another --output_dir"
        )


def _check_head(folder, stored, wanted):
    """Compares two contents of `task.json`."""
    flags = {"layer_mix": "layer_mix", **TASKS[wanted["task"]].head_flags}
    for name, flag in flags.items():
        there, here = (values.get(name, False) for values in (stored, wanted))
        if name == flag:
            _require_same_flag(folder, flag, there, here)
        elif there != here:
            raise UserError(
                f"{name} is {json.dumps(there)} in the run in {folder}, and {json.dumps(here)} "
                f"here; give it the same --{flag}, or another --output_dir"
            )


def settings_of(task):
    """Returns the contents of `task.json` for a `Task`, a dict."""
    settings, own = task.settings, task.task_file_settings()
    common = {
        "do_lower_case": settings.do_lower_case,
        "max_seq_length": getattr(settings, "max_seq_length", None),
        "uses_averages": settings.ema_decay > 0,
    }
    common |= {"layer_mix": True} if settings.layer_mix else {}
    found = {"task": own["task"], **common, **own}
    # JSON has no tuples.
    return {name: list(v) if isinstance(v, tuple) else v for name, v in found.items()}


def _copy_vocabulary(source, folder):
    """Copies the vocabulary into the folder, unless there is none or it is there already."""
    if source and not vocabulary_in(folder):
        files.copy(source, os.path.join(folder, VOCAB_FILE))


# Locks the folder of a run while it trains.
LOCK_FILE = "run.lock"


@contextlib.contextmanager
def alone_in(settings, strategy):
    """Locks the --output_dir while the block trains, so that no other run trains there.

    The workers of a strategy are one run, and their chief holds the lock.

    Args:
      settings: `RunSettings`; without `do_train` there is no lock.
      strategy: the `tf.distribute.Strategy`.

    Raises:
      UserError: another run trains there; all workers raise it.
    """
    folder = settings.output_dir
    with contextlib.ExitStack() as stack:
        taken = None
        try:
            if settings.do_train and devices.is_chief(strategy):
                stack.enter_context(locks.held(os.path.join(folder, LOCK_FILE), folder))
        except UserError as error:
            taken = error
        if not devices.agree_on(strategy, int(taken is not None)) or taken:
            raise taken or UserError(f"the chief says that another run is writing {folder}")
        yield
