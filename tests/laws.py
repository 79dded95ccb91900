"""The number of examples in property tests: few fixed ones, or many new ones.

`python -m pytest` is quick and reproducible; `python -m pytest -m long` searches. A failing test
prints the example; add it as `hypothesis.example` to the test, so that it is tried every time.
"""

import math
import os

from hypothesis import HealthCheck, Phase, settings
from hypothesis.internal.conjecture import providers

QUICK, LONG = "quick", "long"
# A long search tries the examples so many times over.
LONG_FACTOR = int(os.environ.get("LAWS_FACTOR", "50"))
# The suite has many laws and a limit of time; a quick run tries this share of the examples.
QUICK_SHARE = 0.4
_COMMON = {
    "deadline": None,  # the first call of a graph takes long
    "database": None,
    "print_blob": True,
    "suppress_health_check": [HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
}


def load_profile(is_long):
    """Chooses the profile; call it before importing a module with property tests."""
    # Shrinking a failure takes more runs of the test; explaining it would take even more.
    phases = [Phase.explicit, Phase.generate, Phase.shrink]
    if not is_long:
        # Hypothesis also draws constants of the modules that are imported by then. Which these are
        # depends on what the worker ran before, so each run of the suite would draw other examples.
        providers._get_local_constants = providers.Constants
    settings.register_profile(QUICK, derandomize=True, phases=phases, **_COMMON)
    settings.register_profile(LONG, phases=phases, **_COMMON)
    settings.load_profile(LONG if is_long else QUICK)


def examples(count):
    """Returns the `hypothesis.settings` of a law that deserves `count` examples."""
    return settings(max_examples=math.ceil(count * (LONG_FACTOR if is_long() else QUICK_SHARE)))


def is_long():
    """Whether this is a long search."""
    return settings.get_current_profile_name() == LONG
