"""The file of an ablation, and the jobs that it asks for."""

import os
import re
import tomllib
from typing import NamedTuple

from nezha_tf.programs.table import arguments_of, has_flag
from nezha_tf.util import forms, package_data, storage
from nezha_tf.util.errors import UserError, require_flag
from nezha_tf.util.parts import patterns_in
from nezha_tf.util.settings import flag_text

_NAME = re.compile(r"\w[\w.-]*")
_PLACEHOLDER = re.compile(r"\{\{(?P<kept>\w[\w.-]*)\}\}|\{(?P<name>\w[\w.-]*)\}")
_OUTPUT, _SEED = "output", "seed"
# Stands for a job's own folder until it is known whether another job does the same.
_OWN_FOLDER = "\0"


class Stage(NamedTuple):
    """A program that each setting runs: a table `stages.NAME`."""

    program: str
    flags: dict  # of name to text
    metrics: list
    results: str
    is_seeded: bool


class Setting(NamedTuple):
    """What is compared: a table `settings.NAME`."""

    flags: dict  # of stage to dict of flag name to text
    x: float | None
    without: list
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
    """A program with its flags, which runs once."""

    name: str  # STAGE/SETTING or STAGE/SETTING/seedN; its folder below the output folder
    program: str
    flags: tuple  # of --name=value
    needs: tuple  # of the names of the jobs whose output it reads


# The keys of each table of the file: their `forms`, what is right there, and the default.
_TABLE = ({}, "a table", {})
_FLAGS = (
    {str: lambda value: not isinstance(value, dict)},
    "a table of flags and their values",
    {},
)
_FILE = {
    "seeds": ([forms.is_anything], "a list of whole numbers", [0]),
    "paths": _TABLE,
    "stages": _TABLE,
    "settings": _TABLE,
}
_STAGE = {
    "program": (
        lambda value: forms.is_text(value) and arguments_of(value) is not None,
        "a file or a program of nezha_tf; write its path from the folder where you start the "
        "ablation",
        "",
    ),
    "flags": _FLAGS,
    "metrics": ([forms.is_text], "a list of names", []),
    "results": (forms.is_text, "the name of a file", "eval_results.json"),
    "is_seeded": (forms.is_truth, "true or false", True),
}
_SETTING = {
    "x": (forms.is_finite, "a finite number", None),
    "without": ([forms.is_text], "a list of stages", []),
    "num_seeds": (lambda value: type(value) is int and value > 0, "a whole number above 0", None),
}


def read(settings):
    """Returns the `Ablation` of the file of `AblationSettings`, which replace seeds and paths."""
    path = require_flag(settings.ablation_file, "ablation_file")
    content = _checked(_toml(path), _FILE, path)
    paths = _paths(content["paths"], settings.paths, path)
    stages = {
        name: _stage(value, f"{path}, stages.{name}") for name, value in content["stages"].items()
    }
    chosen = {
        name: _setting(value, stages, f"{path}, settings.{name}")
        for name, value in content["settings"].items()
    }
    for kind, named in (("stages", stages), ("settings", chosen)):
        if not named:
            raise UserError(f"{path} has no [{kind}.NAME]; name at least one")
        for name in named:
            if not _NAME.fullmatch(name):
                raise UserError(f"{path}: {name!r} is not a name for a folder; use letters")
    reserved = {_OUTPUT, _SEED, *(set(stages) & {*_SETTING, *paths})}
    for name in sorted(reserved & {*stages, *paths}):
        raise UserError(f"{path}: {name!r} cannot be the name of this stage or path; rename it")
    return Ablation(path, _seeds(settings.seeds or content["seeds"], path), paths, stages, chosen)


def jobs_of(ablation, folder):
    """Returns what is to be run in a folder: dict of (setting, stage, seed) to `Job`.

    Jobs that have the same program and the same flags, but for the folder of their output, are
    one. Jobs come after those that they need.
    """
    jobs, unique = {}, {}
    for setting, about in ablation.settings.items():
        for seed in ablation.seeds[: about.num_seeds]:
            for stage in ablation.stages:
                if stage not in about.without:
                    job = _job(ablation, folder, setting, stage, seed, jobs)
                    own = os.path.join(folder, job.name)
                    flags = tuple(flag.replace(_OWN_FOLDER, own) for flag in job.flags)
                    identity, job = (job.program, job.flags), job._replace(flags=flags)
                    jobs[setting, stage, seed] = unique.setdefault(identity, job)
    return jobs


def narrowed(ablation, jobs, names):
    """Returns the `Ablation` and its jobs (`jobs_of`) for some settings alone, or for all.

    The names of jobs do not depend on which settings are chosen.
    """
    for name in names:
        if name not in ablation.settings:
            known = ", ".join(ablation.settings)
            raise UserError(f"--settings: {name!r} is not in {ablation.path}; it has {known}")
    kept = {name: each for name, each in ablation.settings.items() if not names or name in names}
    is_whole = len(kept) == len(ablation.settings)
    own = {key: job for key, job in jobs.items() if key[0] in kept}
    return ablation._replace(settings=kept, is_whole=is_whole), own


def _job(ablation, folder, setting, stage, seed, jobs):
    """Returns the `Job` of a stage, in whose flags `_OWN_FOLDER` stands for its own folder.

    The argument `jobs` has those of the stages before it.
    """
    about, needs = ablation.stages[stage], []
    flags = {**about.flags, **ablation.settings[setting].flags.get(stage, {})}
    if not any(f"{{{_OUTPUT}}}" in value for value in flags.values()):
        flags["output_dir"] = f"{{{_OUTPUT}}}"
    if about.is_seeded and has_flag(about.program, _SEED):
        flags.setdefault("seed", f"{{{_SEED}}}")

    def meaning(match, where):
        name = match["name"]
        if name is None:
            return f"{{{match['kept']}}}"
        if name == _OUTPUT:
            return _OWN_FOLDER
        if name in ablation.paths:
            return ablation.paths[name]
        job = jobs.get((setting, name, seed))
        if job is None and name != _SEED:
            raise UserError(
                f"{where} has {{{name}}}, which is neither one of [paths] nor a stage that this "
                f"setting runs before (braces of the flag itself are doubled: {{{{{name}}}}})"
            )
        if not about.is_seeded and (name == _SEED or ablation.stages[name].is_seeded):
            raise UserError(
                f"{where} has {{{name}}}, which differs between seeds, but {stage} runs once for "
                "all seeds (is_seeded)"
            )
        if name == _SEED:
            return str(seed)
        needs.append(job.name)
        return os.path.join(folder, job.name)

    def filled(part, where):
        text = _PLACEHOLDER.sub(lambda match: meaning(match, where), part)
        names = {match["name"] for match in _PLACEHOLDER.finditer(part)} - {None}
        is_given = names and names <= set(ablation.paths)
        if is_given and not storage.is_remote(text):
            if not any(map(storage.glob, patterns_in(text))):
                raise UserError(f"{where}: no file matches {text!r}")
        return text

    texts = []
    # Of two values absl takes the later one, so a flag file comes first.
    for flag in sorted(flags, key=lambda flag: flag != "flagfile"):
        where = f"{ablation.path}, settings.{setting}, {stage}: --{flag}"
        parts = [filled(part, where) for part in flags[flag].split(",")]
        texts.append(f"--{flag}={','.join(parts)}")
    name = f"{stage}/{setting}" + (f"/seed{seed}" if about.is_seeded else "")
    return Job(name, about.program, tuple(texts), tuple(needs))


def _toml(path):
    try:
        with open(package_data.named(path, ".toml"), "rb") as file:
            return tomllib.load(file)
    except OSError as error:
        raise UserError(f"--ablation_file={path}: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UserError(f"{path} is not TOML: {error}") from error


def _checked(table, fields, where):
    """Returns a table of a file with the defaults of the `fields` that it lacks."""
    if not isinstance(table, dict):
        raise UserError(f"{where} is not a table")
    for key in table:
        if key not in fields:
            raise UserError(f"{where}: {key!r} is none of {', '.join(fields)}")
    values = {key: table.get(key, default) for key, (_, _, default) in fields.items()}
    for key, (form, right, _) in fields.items():
        if values[key] is not None and forms.misfit(values[key], form) is not None:
            raise UserError(f"{where}: {key} = {values[key]!r} is not {right}")
    return values


def _stage(table, where):
    values = _checked(table, _STAGE, where)
    return Stage(**{**values, "flags": _texts(values["flags"])})


def _setting(table, stages, where):
    values = _checked(table, {**_SETTING, **dict.fromkeys(stages, _FLAGS)}, where)
    for name in values["without"]:
        if name not in stages:
            raise UserError(f"{where}: without: {name!r} is none of {', '.join(stages)}")
    flags = {name: _texts(values[name]) for name in stages}
    return Setting(flags, values["x"], values["without"], values["num_seeds"])


def _texts(flags):
    return {name: flag_text(value) for name, value in flags.items()}


def _seeds(given, path):
    try:
        seeds = tuple(int(str(seed)) for seed in given)
    except ValueError:
        raise UserError(f"{path}: the seeds {given!r} are not a list of whole numbers") from None
    if not seeds or len(set(seeds)) < len(seeds):
        raise UserError(f"{path}: name at least one seed, and each once: {given!r}")
    return seeds


def _paths(paths, replacements, where):
    """Returns the paths of a file, replaced by those of name=folder texts."""
    for name, folder in paths.items():
        if not isinstance(folder, str):
            raise UserError(f"{where}: paths.{name} = {folder!r} is not a path")
    replaced = dict(paths)
    for text in replacements:
        name, _, folder = text.partition("=")
        if name not in paths or not folder:
            known = ", ".join(paths) or "none"
            raise UserError(f"--paths: {text!r} is not name=folder with a name of {where}: {known}")
        replaced[name] = folder
    return replaced
