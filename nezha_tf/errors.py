"""The one exception for what a user can mend."""


class UserError(Exception):
    """A mistake in flags, files or data, told in one line: what, where and what to do.

    The entry points print the message without a traceback and leave with status 1.
    """
