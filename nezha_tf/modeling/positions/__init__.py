"""Position encodings; each one is a class."""

import importlib

from nezha_tf.config import POSITION_ENCODINGS
from nezha_tf.modeling.positions.base import Positions
from nezha_tf.util.errors import UserError


def of(config):
    """Returns the class of a configuration's position encoding, a subclass of `Positions`.

    Raises:
      UserError: its row of `POSITION_ENCODINGS` does not name such a class.
    """
    encoding = config.position_encoding
    where = POSITION_ENCODINGS[encoding].implementation
    module_name, _, class_name = where.partition(":")
    try:
        found = getattr(importlib.import_module(module_name), class_name, None)
    except (ImportError, ValueError) as error:
        raise UserError(
            f"position_encoding {encoding!r}: cannot import {where}: {error}"
        ) from error
    if not (isinstance(found, type) and issubclass(found, Positions)):
        raise UserError(
            f"position_encoding {encoding!r}: {where} is not a subclass of {Positions.__module__}."
            f"{Positions.__name__} (see POSITION_ENCODINGS of nezha_tf/config.py)"
        )
    return found
