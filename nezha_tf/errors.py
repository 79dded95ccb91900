"""The one exception for what a user can mend."""

import re


class UserError(Exception):
    """A mistake in flags, files or data, told in one line: what, where and what to do.

    The entry points print the message without a traceback and leave with status 1.
    """


def require_flag(value, flag):
    """Returns the value of a flag that must be given.

    Raises:
      UserError: it is empty.
    """
    if not value:
        raise UserError(f"--{flag} is needed")
    return value


def first_line(error):
    """Returns the first line of an exception's text, without tensorflow's node names."""
    text = re.sub(r"\{\{.*?\}\} ?", "", str(error)).strip()
    return text.splitlines()[0].split(" [Op:")[0] if text else type(error).__name__
