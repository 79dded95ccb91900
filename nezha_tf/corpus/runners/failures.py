"""Turns what an engine says of a failed job into one line for the user."""

import re

from nezha_tf.util.errors import Terminated, UserError, first_line

# An engine shows a worker's error as text, with a traceback. Beam appends the step's name.
_MISTAKE = re.compile(r"nezha_tf\.errors\.UserError: (.*?)(?: \[while running .*)?$", re.MULTILINE)
_MISSING = re.compile(r"ModuleNotFoundError: (No module named '[\w.]+')")


def failure(runner, message):
    """Returns the `UserError` of a job that failed outside of our code."""
    return UserError(
        f"--runner={runner}: {message}; finished shards stay: the same command makes the rest"
    )


def told(runner, error, is_defect, cause=""):
    """Returns the exception to raise for an engine's error.

    Args:
      runner: the runner's name.
      error: what the engine raised.
      is_defect: whether the text of the error is the traceback of a worker. Such an error is
        returned as it is if it is no user's mistake, because its traceback is needed.
      cause: what the engine's log says; "": nothing.
    """
    if isinstance(error, UserError | Terminated):
        return error
    text = str(error)
    # The last one is that which was raised; those before it are its causes.
    if mistakes := _MISTAKE.findall(text):
        return UserError(mistakes[-1])
    if missing := _MISSING.search(text):
        return failure(
            runner,
            f"the workers' Python says {missing[1]}; install this package with what it needs in it",
        )
    return error if is_defect else failure(runner, cause or first_line(error))
