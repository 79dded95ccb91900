"""The settings of a program: a frozen dataclass in which each field is a flag.

A field holds the flag's default, help and bounds, and the flag is defined from it. So the names,
defaults and meanings are the same from Python and on the command line.
"""

import dataclasses
import re

from absl import flags

from nezha_tf.util.errors import UserError, require_unicode

# In a run's folder: the flags of its last start.
FLAGS_FILE = "run.flags"
# With this, --help lists the flags that `define` defines under the program that calls it.
flags.disclaim_key_flags()


def flag(default, help, least=None, most=None, choices=None, name=None):
    """Returns a dataclass field that is a flag.

    Args:
      default: the value if the flag is not given.
      help: one or two sentences.
      least, most: inclusive bounds of a number.
      choices: the allowed values of a string.
      name: the flag's name if it is not the field's (`from` is a keyword of Python).
    """
    about = {"help": help, "least": least, "most": most, "choices": choices, "name": name}
    return dataclasses.field(default=default, metadata=about)


def default_of(settings_class, name, default):
    """Returns a dataclass's field with another default, for use in a subclass."""
    field = settings_class.__dataclass_fields__[name]
    return dataclasses.field(default=default, metadata=field.metadata)


def undecided(settings_class, names):
    """Returns a subclass of a dataclass in which some fields are None unless flags are given."""
    fields = settings_class.__dataclass_fields__
    changed = [
        (name, fields[name].type | None, default_of(settings_class, name, None)) for name in names
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

    Args:
      settings_class: the dataclass.
      flag_values: the absl `FlagValues` that get the flags; by default those of the program.
    """
    for field in _flags_of(settings_class):
        about, default = field.metadata, field.default
        kind = field.type.__name__ if isinstance(field.type, type) else str(field.type)
        bounds = {"lower_bound": about["least"], "upper_bound": about["most"]}
        common = {"name": _name(field), "help": about["help"], "flag_values": flag_values}
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


def refuse(settings, names, beside):
    """Raises a `UserError` if one of some flags is given, as nothing would read it.

    Args:
      settings: the settings.
      names: the flags' names.
      beside: the flag, with its value, beside which they do nothing.
    """
    for name, value in changed(settings).items():
        if name in names:
            raise UserError(f"--{name}={flag_text(value)} does nothing with {beside}; leave it out")


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
