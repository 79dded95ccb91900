"""The exception for mistakes that a user can correct, and what belongs to it."""

import re


class UserError(Exception):
    """A mistake in flags, files or data, told in one line: what, where and what to do.

    The entry points print the message without a traceback and leave with status 1.
    """


class Terminated(Exception):
    """A run was asked to end by SIGTERM, and has saved what it needs to go on.

    The entry points print the message and leave with `STATUS_TERMINATED`.
    """


# EX_TEMPFAIL of sysexits.h: not done, and worth another try.
STATUS_TERMINATED = 75


def require_flag(value, flag):
    """Returns the value of a flag that must be given.

    Raises:
      UserError: it is empty.
    """
    if not value:
        raise UserError(f"--{flag} is needed")
    return value


def first_line(error):
    """Returns the first telling line of an exception's text, without tensorflow's node names."""
    text = re.sub(r"\{\{.*?\}\} ?", "", str(error)).strip()
    if text.startswith("Graph execution error"):
        # Where in the graph comes first; what happened is the line before the first [[node]].
        text = text.partition("\n\t [[")[0].splitlines()[-1]
        text = re.sub(r"^ *(\(\d+\) [A-Z_]+:)? *", "", text)
    return text.splitlines()[0].split(" [Op:")[0] if text else type(error).__name__
