"""The settings of a program: a frozen dataclass in which each field is a flag.

A field holds the flag's default, help and bounds, and the flag is defined from it. So the names,
defaults and meanings are the same from Python and on the command line.
"""

import dataclasses
import re

from absl import flags

from nezha_tf.util import console, language
from nezha_tf.util.errors import UserError, require_unicode
from nezha_tf.util.language import translated

# In a run's folder: the flags of its last start.
FLAGS_FILE = "run.flags"
# In `read_with`: any value but None, False, 0, "" and ().
GIVEN = ()
# With this, --help lists the flags that `define` defines under the program that calls it.
flags.disclaim_key_flags()


def flag(default, help, least=None, most=None, choices=None, name=None, read_with=None, usual=None):
    """Returns a dataclass field that is a flag.

    Args:
      default: the value if the flag is not given.
      help: one or two sentences.
      least, most: inclusive bounds of a number.
      choices: the allowed values of a string.
      name: the flag's name if it is not the field's (`from` is a keyword of Python).
      read_with: dict of other flags to the values with which this flag is read, a tuple or `GIVEN`;
        all of them must hold. --help says it, and `require_read` checks it.
      usual: a value that may be given even where nothing reads it.
    """
    about = {"help": help, "least": least, "most": most, "choices": choices, "name": name}
    about |= {"read_with": read_with or {}, "usual": usual}
    return dataclasses.field(default=default, metadata=about)


def default_of(settings_class, name, default, **changes):
    """Returns a dataclass's field with another default, for use in a subclass.

    Args:
      settings_class, name: the dataclass and its field.
      default: the default.
      **changes: other arguments of `flag` that change.
    """
    metadata = {**settings_class.__dataclass_fields__[name].metadata, **changes}
    return dataclasses.field(default=default, metadata=metadata)


def undecided(settings_class, names):
    """Returns a subclass of a dataclass in which some fields are None unless flags are given.

    The defaults of `settings_class` are their `usual` values.
    """
    fields = settings_class.__dataclass_fields__
    changed = [
        (
            name,
            fields[name].type | None,
            default_of(settings_class, name, None, usual=fields[name].default),
        )
        for name in names
    ]
    return dataclasses.make_dataclass(
        f"Undecided{settings_class.__name__}",
        changed,
        bases=(settings_class,),
        frozen=True,
        kw_only=True,
    )


def define(settings_class, flag_values=flags.FLAGS):
    """Defines a flag for each field that `flag` or `default_of` made.

    The annotation gives the flag's type: bool, int, float or str, with "| None" if the flag has no
    default value, or a tuple, whose values are separated by commas on the command line.

    All programs have `--language`, too, which is no field: it changes nothing but the screen.

    Args:
      settings_class: the dataclass.
      flag_values: the absl `FlagValues` that get the flags; by default those of the program.
    """
    help_ = "Language of messages; default: that of the environment on a terminal, en elsewhere."
    flags.DEFINE_enum(
        language.FLAG, None, language.LANGUAGES, _shown_help(help_, ""), flag_values=flag_values
    )
    for field in _flags_of(settings_class):
        about, default = field.metadata, field.default
        kind = field.type.__name__ if isinstance(field.type, type) else str(field.type)
        bounds = {"lower_bound": about["least"], "upper_bound": about["most"]}
        help_ = _shown_help(about["help"], _reading_note(settings_class, about["read_with"]))
        common = {"name": _name(field), "help": help_, "flag_values": flag_values}
        if about["choices"]:
            flags.DEFINE_enum(default=default, enum_values=list(about["choices"]), **common)
        elif "tuple" in kind:
            flags.DEFINE_list(default=default and list(default), **common)
        elif kind.startswith("bool"):
            flags.DEFINE_bool(default=default, **common)
        elif kind.startswith("int"):
            flags.DEFINE_integer(default=default, **bounds, **common)
        elif kind.startswith("float"):
            flags.DEFINE_float(default=default, **bounds, **common)
        else:
            flags.DEFINE_string(default=default, **common)


def from_flags(settings_class, flag_values=flags.FLAGS):
    """Returns the settings with the values of the flags; the arguments are those of `define`."""
    values = {field.name: flag_values[_name(field)].value for field in _flags_of(settings_class)}
    for name, value in values.items():
        values[name] = tuple(value) if isinstance(value, list) else value
    return settings_class(**values)


def changed(settings):
    """Returns a dict of the flags whose values differ from their defaults."""
    return {
        _name(field): getattr(settings, field.name)
        for field in _flags_of(settings)
        if flag_text(getattr(settings, field.name)) != flag_text(field.default)
    }


def require_read(given, settings=None):
    """Raises a `UserError` if a flag is given that nothing reads beside the others.

    Args:
      given: the settings as the user gave them.
      settings: the same, completed by what a model folder says; by default `given`.
    """
    for name, value, other, values in _unread(given, settings or given):
        instead = f", or pass {_choices(other, values)}" if _has_on(values) else ""
        raise UserError(
            f"{_shown(name, value)} does nothing {_beside(settings or given, other)}; leave it out"
            f"{instead}"
        )


def overruled(given, own):
    """Returns (settings, lines), without what the user's own flags rule out of flag files.

    Whoever passes --train_minutes behind a recipe with a number of steps wants the minutes. A flag
    of the recipe that nothing reads then gets its default, and a line says so.

    Args:
      given: the settings with the values of all flags.
      own: the names of the flags that were given beside flag files.
    """
    lines = {
        name: f"{_shown(name, value)} of the flag file is not read {_beside(given, other)}"
        for name, value, other, _ in _unread(given, given)
        if other in own and name not in own
    }
    defaults = {f.name: f.default for f in _flags_of(given) if _name(f) in lines}
    return dataclasses.replace(given, **defaults), list(lines.values())


def _unread(given, settings):
    """Yields (flag, its value, another flag, the values of this with which the first is read).

    The first flag is given, but not read beside the other; see `require_read`.
    """
    about = {_name(field): field.metadata for field in _flags_of(given)}
    for name, value in changed(given).items():
        if value == about[name]["usual"]:
            continue
        for other, values in about[name]["read_with"].items():
            there = getattr(settings, other)
            if not (there if values == GIVEN else there in values):
                yield name, value, other, values


def _beside(settings, other):
    there = getattr(settings, other)
    defaults = {field.name: field.default for field in dataclasses.fields(settings)}
    # A 0 that is not the default was given.
    is_given = there or (there is not False and there != defaults[other])
    return f"with {_shown(other, there)}" if is_given else f"without --{other}"


def _reading_note(settings_class, read_with):
    """Returns " Only with --crf." for the help of a flag, or ""."""
    own = flag_names(settings_class)
    conditions = [
        f"with {_choices(other, values)}" if _has_on(values) else f"without --{other}"
        for other, values in read_with.items()
        if other in own  # Programs that lack the other flag have one value of it.
    ]
    shown = [translated(each).replace(" or ", translated(" or ")) for each in conditions]
    return translated(" Only CONDITIONS.").replace("CONDITIONS", ", ".join(shown)) if shown else ""


def _shown_help(text, note):
    """Returns help in the language of the screen, with a note that is in it already.

    absl breaks lines at blanks only, of which Chinese has few.
    """
    shown = translated(text)
    if shown == text:
        return text + note
    return "\n" + console.folded(shown + note, flags.get_help_width() - len("    "))


def _has_on(values):
    return values == GIVEN or any(values)


def _choices(other, values):
    return f"--{other}" + ("=" + " or ".join(values) if all(values) and values else "")


def _shown(name, value):
    return f"--{name}" if value is True else f"--{name}={flag_text(value)}"


def flag_names(settings_class):
    """Returns the names of the flags of a class of settings, a set."""
    return {_name(field) for field in _flags_of(settings_class)}


def flags_of(settings):
    """Returns a dict of flag name to value."""
    return {_name(field): getattr(settings, field.name) for field in _flags_of(settings)}


def flag_text(value):
    """Returns a flag's value in the form that flag files use."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple | list):
        return ",".join(map(_list_part, map(str, value))) if tuple(value) != ("",) else '""'
    return str(value)


def _list_part(text):
    """Returns a value of a list as absl's parser of CSV takes it."""
    is_plain = "," not in text and not text.startswith('"')
    return text if is_plain else '"' + text.replace('"', '""') + '"'


def flag_lines(values):
    """Returns the lines of a flag file with all flags, sorted by name, that absl reads back.

    Args:
      values: dict of flag to value, as of `flags_of`. Flags whose value is None are left out.

    Raises:
      UserError: no flag file can hold a value: absl reads a line for each flag, drops blanks at its
        end, and those around each value of a list.
    """
    lines = []
    for name, value in sorted(values.items()):
        if value is not None:
            _require_for_file(name, value)
            lines.append(f"--{name}={flag_text(value)}\n")
    return lines


def _require_for_file(name, value):
    is_list = isinstance(value, tuple | list)
    for text in map(str, value if is_list else (value,)):
        require_unicode(text, name)
        if re.search(r"[\r\n]", text):
            raise UserError(f"--{name}={text!r}: a flag file cannot hold its line break; remove it")
        if text != (text.strip() if is_list else text.rstrip()):
            raise UserError(f"--{name}={text!r}: a flag file cannot hold its blanks; remove them")


def _flags_of(settings):
    """Returns the fields of a class or an instance that are flags."""
    return [field for field in dataclasses.fields(settings) if field.metadata]


def _name(field):
    """Returns the name of a field's flag."""
    return field.metadata["name"] or field.name
