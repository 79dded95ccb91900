"""Flags that nothing reads beside others are refused, and --help says which those are."""

import dataclasses
import itertools
import re

import pytest
from absl import flags
from commands import run, settings_class_of
from conftest import REPOSITORY

from nezha_tf.programs.table import PROGRAMS
from nezha_tf.util import language, settings
from nezha_tf.util.errors import UserError

# The programs that have such flags.
WITH_CONDITIONS = (
    "run_classifier",
    "run_mrc",
    "run_multiple_choice",
    "run_ner",
    "run_pretraining",
    "run_sentence_vectors",
    "run_seq2seq",
    "convert_export",
    "create_pretraining_data",
    "extract_features",
    "generate_text",
    "inspect_tfrecords",
    "score_text",
    "visualize",
)


def class_of(program):
    return settings_class_of(f"{program}.py")


def help_of(settings_class):
    """Returns {flag: its help}, as absl has it, of the flags that are fields."""
    values = flags.FlagValues()
    settings.define(settings_class, values)
    return {name: values[name].help for name in values if name != language.FLAG}


def other_value(settings_class, name):
    """Returns a value of a flag that is neither its default nor its usual one."""
    values = flags.FlagValues()
    settings.define(settings_class, values)
    flag, default = values[name], values[name].default
    usual = settings_class.__dataclass_fields__[name].metadata["usual"]
    choices = getattr(flag.parser, "enum_values", None)
    if choices:
        return next(choice for choice in choices if choice not in (default, usual, ""))
    kind = flag.flag_type()
    if kind == "bool":
        return not default
    if kind in ("int", "float"):
        return {"int": int, "float": float}[kind]((default or usual or 0) + 1)
    return ("other",) if "list" in kind else "other"


def states_of(settings_class, name):
    """Returns all values of a flag with choices, otherwise its default and another value."""
    field = settings_class.__dataclass_fields__[name]
    choices = field.metadata["choices"] or (other_value(settings_class, name),)
    return list(dict.fromkeys((field.default, *choices)))


def conditions_in(text):
    """Returns what a help says after "Only": list of (is "with", flag, values or None: any)."""
    found = re.search(r" Only (with(?:out)? --.*)\.$", text)
    conditions = []
    for part in found[1].split(", ") if found else ():
        word, _, flag = part.partition(" --")
        name, _, values = flag.partition("=")
        conditions.append((word == "with", name, values.split(" or ") if values else None))
    return conditions


def holds(values, condition):
    is_with, name, wanted = condition
    value = values[name]
    if wanted is None:
        return bool(value) == is_with
    return str(value) in wanted


@pytest.mark.parametrize("program", WITH_CONDITIONS)
def test_a_flag_is_refused_exactly_where_the_help_says_that_it_is_not_read(program):
    settings_class = class_of(program)
    for name, text in help_of(settings_class).items():
        conditions = conditions_in(text)
        others = [other for _, other, _ in conditions]
        for states in itertools.product(*(states_of(settings_class, other) for other in others)):
            beside = dict(zip(others, states, strict=True))
            if None in (beside.get("decoding", ""), beside.get("mode", "")):
                continue  # The model folder decides, before the check.
            given = settings_class(**{name: other_value(settings_class, name)}, **beside)
            if all(holds(beside, condition) for condition in conditions):
                settings.require_read(given)
            else:
                with pytest.raises(UserError, match=rf"^--{name}\b.* does nothing with.*leave it"):
                    settings.require_read(given)
            settings.require_read(settings_class(**beside))


def test_all_programs_with_such_flags_are_here():
    for name in PROGRAMS:
        has_conditions = any(map(conditions_in, help_of(class_of(name)).values()))
        assert has_conditions == (name in WITH_CONDITIONS), name


@pytest.mark.parametrize("program", WITH_CONDITIONS)
def test_every_flag_is_read_somewhere(program):
    source = "\n".join(
        path.read_text()
        for path in (REPOSITORY / "nezha_tf").rglob("*.py")
        if not path.name.endswith("settings.py")
    )
    for field in dataclasses.fields(class_of(program)):
        assert re.search(rf"\b{field.name}\b", source), field.name


@pytest.mark.parametrize(
    "program, given, message",
    [
        (
            "run_classifier",
            {"label_words": ("好", "差")},
            "--label_words=好,差 does nothing without --pattern; leave it out, or pass --pattern",
        ),
        (
            "run_classifier",
            {"label_separator": ";"},
            "--label_separator=; does nothing with --label_type=single; leave it out, or pass "
            "--label_type=multi",
        ),
        (
            "run_classifier",
            {"task_name": "lcqmc", "columns": ("text", "label")},
            "--columns=text,label does nothing with --task_name=lcqmc; leave it out, or pass "
            "--task_name=custom",
        ),
        (
            "run_ner",
            {"layer_mix": True, "recompute": True},
            "--recompute does nothing with --layer_mix; leave it out",
        ),
        (
            "run_mrc",
            {"null_score_diff_threshold": -3.0},
            "--null_score_diff_threshold=-3.0 does nothing without --version_2_with_negative; "
            "leave it out, or pass --version_2_with_negative",
        ),
        (
            "run_pretraining",
            {"tpu": "local"},
            "--tpu=local does nothing with --distribution_strategy=default; leave it out, or pass "
            "--distribution_strategy=tpu",
        ),
        (
            "run_pretraining",
            {"num_train_steps": 9, "train_minutes": 0.0},
            "--num_train_steps=9 does nothing with --train_minutes=0.0; leave it out",
        ),
        (
            "run_seq2seq",
            {"exempt_words": ("甲",)},
            "--exempt_words=甲 does nothing without --no_repeat_ngram_size; leave it out, or pass "
            "--no_repeat_ngram_size",
        ),
        (
            "create_pretraining_data",
            {"masking": "none", "dupe_factor": 5},
            "--dupe_factor=5 does nothing with --masking=none; leave it out, or pass "
            "--masking=whole_word or token or ngram or span or entity",
        ),
        ("create_pretraining_data", {"masking": "none", "dupe_factor": 1}, None),
        (
            "create_pretraining_data",
            {"runner": "spark", "num_workers": 2},
            "--num_workers=2 does nothing with --runner=spark; leave it out",
        ),
        ("generate_text", {"decoding": "beam", "temperature": 1.0}, None),
        (
            "generate_text",
            {"prompt": "甲", "source_column": "text"},
            "--source_column=text does nothing with --prompt=甲; leave it out",
        ),
        (
            "inspect_tfrecords",
            {"check": True, "num_records": 2},
            "--num_records=2 does nothing with --check; leave it out",
        ),
    ],
)
def test_the_message(program, given, message):
    given = class_of(program)(**given)
    if message is None:
        settings.require_read(given)
    else:
        with pytest.raises(UserError, match=f"^{re.escape(message)}$"):
            settings.require_read(given)


def test_what_the_users_own_flags_rule_out_of_flag_files_gets_its_default():
    """And nothing else: what flag files contradict themselves, and what the user does."""
    settings_class = class_of("run_pretraining")
    given = settings_class(train_minutes=5.0, num_train_steps=70, num_warmup_steps=7, tpu="local")
    found, lines = settings.overruled(given, {"train_minutes"})
    assert found == settings_class(train_minutes=5.0, tpu="local")
    assert lines == [
        "--num_train_steps=70 of the flag file is not read with --train_minutes=5.0",
        "--num_warmup_steps=7 of the flag file is not read with --train_minutes=5.0",
    ]
    found, lines = settings.overruled(given, {"train_minutes", "num_train_steps"})
    assert found == dataclasses.replace(given, num_warmup_steps=settings_class().num_warmup_steps)
    assert [line.split("=")[0] for line in lines] == ["--num_warmup_steps"]
    assert settings.overruled(given, {"num_train_steps"}) == (given, [])


@pytest.mark.processes
def test_a_recipe_takes_another_length_on_the_command_line(tmp_path):
    recipe = tmp_path / "recipe.flags"
    recipe.write_text("--num_train_steps=70\n--tpu=local\n--input_file=missing\n")
    arguments = (f"--flagfile={recipe}", "--do_train", "--train_minutes", "5", "--vocab_file=gone")
    result = run("run_pretraining.py", *arguments, folder=tmp_path)
    told, error = result.stderr.splitlines()
    assert told == "--num_train_steps=70 of the flag file is not read with --train_minutes=5.0"
    assert "--input_file: no file matches" in error and result.returncode == 1
