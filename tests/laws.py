"""How many examples a property test tries: few and always the same, or many and new ones.

`python -m pytest` is quick and reproducible; `python -m pytest -m long` searches. A test that fails
prints the example; put it under `hypothesis.example` beside the law, so that it stays.
"""

import os

from hypothesis import HealthCheck, Phase, settings

QUICK, LONG = "quick", "long"
# What a long search tries for each example of a quick one; the environment may say another.
LONG_FACTOR = int(os.environ.get("LAWS_FACTOR", "50"))
_COMMON = {
    "deadline": None,  # the first call of a graph takes long
    "database": None,
    "print_blob": True,
    "suppress_health_check": [HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
}


def load_profile(is_long):
    """Chooses the profile; to be called before a module with laws is imported."""
    # A failure is shrunk by more runs of the test, and explained by still more.
    phases = [Phase.explicit, Phase.generate, Phase.shrink]
    settings.register_profile(QUICK, derandomize=True, phases=phases, **_COMMON)
    settings.register_profile(LONG, phases=phases, **_COMMON)
    settings.load_profile(LONG if is_long else QUICK)


def examples(count):
    """Returns the `hypothesis.settings` of a law that has so many examples in a quick run."""
    is_long = settings.get_current_profile_name() == LONG
    return settings(max_examples=count * (LONG_FACTOR if is_long else 1))
