"""The settings of a program: a frozen dataclass, each field of which is a flag.

A field says the flag's default, help and bounds once; the flag is defined from it. So whoever
calls a program from Python has the same names, defaults and meanings as its command line.
"""

import dataclasses

from absl import flags

# `define` defines the flags of the program that calls it, so that --help shows them as its own.
flags.disclaim_key_flags()


def flag(default, help, least=None, most=None, choices=None, name=None):
    """Returns a dataclass field that is a flag.

    Args:
      default: its value where it is not given.
      help: a sentence or two.
      least, most: bounds of a number, themselves allowed.
      choices: the values that a text may have.
      name: the flag's, where it differs from the field's (`from` is a keyword of Python).
    """
    about = {"help": help, "least": least, "most": most, "choices": choices, "name": name}
    return dataclasses.field(default=default, metadata=about)


def default_of(settings_class, name, default):
    """Returns the field of a dataclass with another default, for a subclass of it."""
    field = settings_class.__dataclass_fields__[name]
    return dataclasses.field(default=default, metadata=field.metadata)


def define(settings_class, flag_values=flags.FLAGS):
    """Defines a flag for each field that `flag` or `default_of` made.

    The type is that of the annotation: bool, int, float or str, with "| None" for a flag that may
    be left out; a tuple is written with commas.

    Args:
      settings_class: the dataclass.
      flag_values: `FlagValues` that get the flags; default: those of the program.
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
    """Returns the settings that flags say; arguments as for `define`."""
    values = {field.name: flag_values[_name(field)].value for field in _flags_of(settings_class)}
    for name, value in values.items():
        values[name] = tuple(value) if isinstance(value, list) else value
    return settings_class(**values)


def changed(settings):
    """Returns dict of the flags that are written otherwise than their default."""
    return {
        _name(field): getattr(settings, field.name)
        for field in _flags_of(settings)
        if flag_text(getattr(settings, field.name)) != flag_text(field.default)
    }


def flags_of(settings):
    """Returns dict of the flags' values, by name."""
    return {_name(field): getattr(settings, field.name) for field in _flags_of(settings)}


def flag_text(value):
    """Returns a value as it is written in a flag file."""
    if isinstance(value, bool):
        return str(value).lower()
    return ",".join(map(str, value)) if isinstance(value, tuple | list) else str(value)


def _flags_of(settings):
    """Returns the fields, of a class or of an instance, that are flags."""
    return [field for field in dataclasses.fields(settings) if field.metadata]


def _name(field):
    """Returns the name of a field's flag."""
    return field.metadata["name"] or field.name
