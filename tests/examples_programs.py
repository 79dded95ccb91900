"""The programs of examples/ as modules."""

import functools
import importlib.util

from conftest import REPOSITORY


@functools.cache
def program(name):
    """Returns a program of examples/ as a module."""
    spec = importlib.util.spec_from_file_location(name, REPOSITORY / "examples" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
