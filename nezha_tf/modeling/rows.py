"""Finds the class that a row of a table of `nezha_tf.config` names."""

import importlib

from nezha_tf.util.errors import UserError


def class_of(key, name, where, base):
    """Imports and returns a class, a subclass of `base`.

    `where` is "module:Class", what the table has for the value `name` of the configuration's `key`.
    A `UserError` says if it is no such class.
    """
    module_name, _, class_name = where.partition(":")
    try:
        named = getattr(importlib.import_module(module_name), class_name, None)
    except (ImportError, ValueError) as error:
        raise UserError(f"{key} {name!r}: cannot import {where}: {error}") from error
    if not (isinstance(named, type) and issubclass(named, base)):
        raise UserError(
            f"{key} {name!r}: {where} is not a subclass of {base.__module__}.{base.__name__} "
            f"(see {key.upper()}S of nezha_tf/config.py)"
        )
    return named
