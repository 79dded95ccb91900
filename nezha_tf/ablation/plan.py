"""The file of an ablation, and the jobs that it asks for."""

import math
import os
import re
import tomllib
from typing import NamedTuple

from nezha_tf.util import storage
from nezha_tf.util.errors import UserError, require_flag
from nezha_tf.util.settings import flag_text

_KEYS = ("seeds", "paths", "stages", "settings")
_STAGE_KEYS = ("program", "flags", "metrics", "results", "is_seeded")
_SETTING_KEYS = ("x", "without", "num_seeds")
_NAME = re.compile(r"\w[\w.-]*")
_PLACEHOLDER = re.compile(r"\{\{(?P<kept>\w[\w.-]*)\}\}|\{(?P<name>\w[\w.-]*)\}")
_OUTPUT, _SEED = "output", "seed"


class Stage(NamedTuple):
    """A program that each setting runs.

    Attributes:
      program: path of the Python program.
      flags: dict of flag name to text.
      metrics: names of the numbers that the table shows.
      results: the JSON file in the output folder that has these numbers.
      is_seeded: whether it runs once for each seed; else once.
    """

    program: str
    flags: dict
    metrics: tuple
    results: str
    is_seeded: bool


class Setting(NamedTuple):
    """What is compared.

    Attributes:
      flags: dict of stage name to a dict of flag name to text.
      x: where its values are in the picture, or None: one beside the other.
      without: names of the stages that it does not run.
      num_seeds: number of seeds, from the first on, that it runs with; None: all.
    """

    flags: dict
    x: float | None
    without: tuple
    num_seeds: int | None


class Ablation(NamedTuple):
    """The contents of a file: seeds, and dicts of name to path, `Stage` and `Setting`.

    `is_whole` is False if some of the file's settings were left out; see `narrowed`.
    """

    path: str
    seeds: tuple
    paths: dict
    stages: dict
    settings: dict
    is_whole: bool = True


class Job(NamedTuple):
    """A program with its flags, which runs once.

    Attributes:
      name: STAGE/SETTING or STAGE/SETTING/seedN; its folder below the output folder.
      program: see `Stage`.
      flags: tuple of --name=value.
      needs: tuple of the names of the jobs whose output it reads.
    """

    name: str
    program: str
    flags: tuple
    needs: tuple


def read(settings):
    """Reads the file of an ablation.

    Args:
      settings: `AblationSettings`; its seeds and paths come before those of the file.

    Returns:
      `Ablation`.

    Raises:
      UserError: the file is missing or not as it should be.
    """
    path = require_flag(settings.ablation_file, "ablation_file")
    content = _toml(path)
    _check_keys(content, _KEYS, path)
    seeds = settings.seeds or content.get("seeds", [0])
    paths = _paths(_table(content, "paths", path), settings.paths, path)
    stages = {
        name: _stage(value, f"{path}, stages.{name}")
        for name, value in _table(content, "stages", path).items()
    }
    chosen = {
        name: _setting(value, stages, f"{path}, settings.{name}")
        for name, value in _table(content, "settings", path).items()
    }
    for kind, found in (("stages", stages), ("settings", chosen)):
        if not found:
            raise UserError(f"{path} has no [{kind}.NAME]; name at least one")
        for name in found:
            if not _NAME.fullmatch(name):
                raise UserError(f"{path}: {name!r} is not a name for a folder; use letters")
    taken = {_OUTPUT, _SEED, *_SETTING_KEYS, *paths} & set(stages)
    if taken or {_OUTPUT, _SEED} & set(paths):
        name = min(taken or {_OUTPUT, _SEED} & set(paths))
        raise UserError(f"{path}: {name!r} cannot be the name of this stage or path; rename it")
    return Ablation(path, _seeds(seeds, path), paths, stages, chosen)


def jobs_of(ablation, folder):
    """Returns what is to be run.

    Jobs that have the same program and the same flags, but for the folder of their output, are
    one.

    Args:
      ablation: `Ablation`.
      folder: the folder of all output.

    Returns:
      Dict of (setting, stage, seed) to `Job`; jobs come after those that they need.

    Raises:
      UserError: a value has a placeholder that means nothing, or names files that are missing.
    """
    found, unique = {}, {}
    for setting, about in ablation.settings.items():
        for seed in ablation.seeds[: about.num_seeds]:
            for stage in ablation.stages:
                if stage not in about.without:
                    maker = _Maker(ablation, folder, setting, stage, seed, found)
                    found[setting, stage, seed] = unique.setdefault(maker.identity(), maker.job())
    return found


def narrowed(ablation, jobs, names):
    """Returns the `Ablation` and the jobs of some settings alone.

    Args:
      ablation, jobs: see `jobs_of`. The names of jobs do not depend on which settings are chosen.
      names: names of settings; (): all.

    Raises:
      UserError: there is no such setting.
    """
    for name in names:
        if name not in ablation.settings:
            known = ", ".join(ablation.settings)
            raise UserError(f"--settings: {name!r} is not in {ablation.path}; it has {known}")
    kept = {name: each for name, each in ablation.settings.items() if not names or name in names}
    found = {key: job for key, job in jobs.items() if key[0] in kept}
    is_whole = len(kept) == len(ablation.settings)
    return ablation._replace(settings=kept, is_whole=is_whole), found


class _Maker:
    """Makes the job of a setting, a stage and a seed."""

    def __init__(self, ablation, folder, setting, stage, seed, made):
        self._ablation, self._folder, self._made = ablation, folder, made
        self._setting, self._stage, self._seed = setting, stage, seed
        is_seeded = ablation.stages[stage].is_seeded
        self._name = f"{stage}/{setting}" + (f"/seed{seed}" if is_seeded else "")
        self._output = os.path.join(folder, self._name)
        self._where = f"{ablation.path}, settings.{setting}, {stage}"

    def job(self):
        program = self._ablation.stages[self._stage].program
        return Job(self._name, program, self._flags(self._output), tuple(self._needs))

    def identity(self):
        """Returns a value that jobs which do the same have in common."""
        return self._ablation.stages[self._stage].program, self._flags("")

    def _flags(self, output):
        """Returns the flags, with `output` for the folder of the output."""
        stage = self._ablation.stages[self._stage]
        self._needs = []
        changes = self._ablation.settings[self._setting].flags
        flags = {**stage.flags, **changes.get(self._stage, {})}
        if not any(f"{{{_OUTPUT}}}" in value for value in flags.values()):
            flags["output_dir"] = f"{{{_OUTPUT}}}"
        if stage.is_seeded and "seed" not in flags:
            flags["seed"] = f"{{{_SEED}}}"
        # Of two values absl takes the later one, so a flag file comes first.
        names = sorted(flags, key=lambda name: name != "flagfile")
        return tuple(f"--{name}={self._filled(name, flags[name], output)}" for name in names)

    def _filled(self, name, value, output):
        return ",".join(self._filled_part(name, part, output) for part in value.split(","))

    def _filled_part(self, name, part, output):
        filled = _PLACEHOLDER.sub(lambda match: self._text_of(name, match, output), part)
        used = {match["name"] for match in _PLACEHOLDER.finditer(part)} - {None}
        is_given = used and used <= set(self._ablation.paths)
        if is_given and not storage.is_remote(filled) and not storage.glob(filled):
            raise UserError(f"{self._where}: --{name}: no file matches {filled!r}")
        return filled

    def _text_of(self, flag, match, output):
        if match["kept"]:
            return f"{{{match['kept']}}}"
        return self._meaning(flag, match["name"], output)

    def _meaning(self, flag, placeholder, output):
        if placeholder == _OUTPUT:
            return output
        if placeholder == _SEED:
            if not self._ablation.stages[self._stage].is_seeded:
                raise UserError(
                    f"{self._where}: --{flag} has {{{_SEED}}}, but {self._stage} runs once for all "
                    "seeds (is_seeded)"
                )
            return str(self._seed)
        if placeholder in self._ablation.paths:
            return self._ablation.paths[placeholder]
        job = self._made.get((self._setting, placeholder, self._seed))
        if job is None:
            raise UserError(
                f"{self._where}: --{flag} has {{{placeholder}}}, which is neither one of [paths] "
                "nor a stage that this setting runs before (braces of the flag itself are doubled: "
                f"{{{{{placeholder}}}}})"
            )
        stages = self._ablation.stages
        if stages[placeholder].is_seeded and not stages[self._stage].is_seeded:
            raise UserError(
                f"{self._where}: --{flag} has {{{placeholder}}}, which runs for each seed, and "
                f"{self._stage} does not (is_seeded)"
            )
        self._needs.append(job.name)
        return os.path.join(self._folder, job.name)


def _toml(path):
    try:
        with open(path, "rb") as file:
            return tomllib.load(file)
    except OSError as error:
        raise UserError(f"--ablation_file={path}: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UserError(f"{path} is not TOML: {error}") from error


def _stage(value, where):
    _check_keys(value, _STAGE_KEYS, where)
    program = value.get("program")
    if not isinstance(program, str) or not os.path.isfile(program):
        raise UserError(
            f"{where}: program = {program!r} is not a file; write its path from the folder where "
            "you start the ablation"
        )
    metrics = value.get("metrics", [])
    if not (isinstance(metrics, list) and all(isinstance(name, str) for name in metrics)):
        raise UserError(f"{where}: metrics is not a list of names")
    is_seeded = value.get("is_seeded", True)
    if not isinstance(is_seeded, bool):
        raise UserError(f"{where}: is_seeded is not true or false")
    results = value.get("results", "eval_results.json")
    if not isinstance(results, str):
        raise UserError(f"{where}: results = {results!r} is not the name of a file")
    return Stage(program, _flags(value, "flags", where), tuple(metrics), results, is_seeded)


def _setting(value, stages, where):
    if not isinstance(value, dict):
        raise UserError(f"{where} is not a table")
    for name in value:
        if name not in (*_SETTING_KEYS, *stages):
            raise UserError(
                f"{where}: {name!r} is neither a stage ({', '.join(stages)}) nor one of "
                f"{', '.join(_SETTING_KEYS)}"
            )
    without = value.get("without", [])
    if not isinstance(without, list) or any(name not in stages for name in without):
        raise UserError(f"{where}: without is not a list of stages ({', '.join(stages)})")
    x = value.get("x")
    is_number = isinstance(x, int | float) and not isinstance(x, bool) and math.isfinite(x)
    if x is not None and not is_number:
        raise UserError(f"{where}: x = {x!r} is not a finite number")
    num_seeds = value.get("num_seeds")
    if num_seeds is not None and (type(num_seeds) is not int or num_seeds < 1):
        raise UserError(f"{where}: num_seeds = {num_seeds!r} is not a whole number above 0")
    flags = {name: _flags(value, name, where) for name in stages if name in value}
    return Setting(flags, x, tuple(without), num_seeds)


def _flags(value, key, where):
    """Returns the flags of a table as a dict of texts."""
    found = _table(value, key, where)
    for name, given in found.items():
        if isinstance(given, dict):
            raise UserError(f"{where}: {key}.{name} is a table, not the value of a flag")
    return {name: flag_text(given) for name, given in found.items()}


def _table(value, key, where):
    found = value.get(key, {})
    if not isinstance(found, dict):
        raise UserError(f"{where}: {key} is not a table")
    return found


def _check_keys(value, known, where):
    if not isinstance(value, dict):
        raise UserError(f"{where} is not a table")
    for key in value:
        if key not in known:
            raise UserError(f"{where}: {key!r} is none of {', '.join(known)}")


def _seeds(given, path):
    try:
        seeds = [int(str(seed)) for seed in given] if isinstance(given, list | tuple) else None
    except ValueError:
        seeds = None
    if seeds is None:
        raise UserError(f"{path}: the seeds {given!r} are not a list of whole numbers")
    if not seeds or len(set(seeds)) < len(seeds):
        raise UserError(f"{path}: name at least one seed, and each once: {given!r}")
    return tuple(seeds)


def _paths(paths, texts, where):
    """Returns the paths of a file, replaced by those of name=folder texts."""
    for name, folder in paths.items():
        if not isinstance(folder, str):
            raise UserError(f"{where}: paths.{name} = {folder!r} is not a path")
    found = dict(paths)
    for text in texts:
        name, _, folder = text.partition("=")
        if name not in paths or not folder:
            known = ", ".join(paths) or "none"
            raise UserError(f"--paths: {text!r} is not name=folder with a name of {where}: {known}")
        found[name] = folder
    return found
