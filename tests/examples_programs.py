"""The programs of examples/ as modules."""

import functools
import importlib.util
import sys

from conftest import REPOSITORY

# Where a program finds the modules beside it when Python starts it by its path.
sys.path.append(str(REPOSITORY / "examples"))


@functools.cache
def program(name):
    """Returns a program of examples/ as a module."""
    spec = importlib.util.spec_from_file_location(name, REPOSITORY / "examples" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
