"""The exceptions that end a program with one line of explanation, and their helpers."""

import importlib
import os
import re


class UserError(Exception):
    """A mistake that the user can correct, in flags, files or data.

    Its message is one line: what is wrong, where, and what to do. The entry points print the
    message without a traceback and exit with status 1.
    """


class Terminated(Exception):
    """A signal ended a run, and the run has saved what it needs to continue.

    The entry points print the message and exit with `STATUS_TERMINATED`.
    """


class WorkerLost(Exception):
    """Another worker of a run on several workers does not answer, so this one cannot go on.

    The entry points print the message and exit with `STATUS_WORKER_LOST`.
    """


# EX_TEMPFAIL of sysexits.h: the program did not finish; the caller may start it again.
STATUS_TERMINATED = 75
# EX_PROTOCOL of sysexits.h: the other side did not answer as it should.
STATUS_WORKER_LOST = 76


def require_flag(value, flag, advice=""):
    """Returns the value of a required flag.

    Raises:
      UserError: the value is empty; `advice` says what else may be done.
    """
    if not value:
        raise UserError(f"--{flag} is needed" + f"; {advice}" * bool(advice))
    return value


def install_command(extra=""):
    """Returns the command that installs the package, as it is here: from its clone or by name.

    Args:
      extra: the name of an extra that is asked for, or "".
    """
    above = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    is_clone = os.path.isfile(os.path.join(above, "setup.cfg"))
    extra = f"[{extra}]" if extra else ""
    if is_clone:
        return (f"pip install -e '.{extra}'" if extra else "pip install -e .") + " in the clone"
    return f"pip install 'nezha_tf{extra}'" if extra else "pip install nezha_tf"


def require_modules(what, extra, *modules, otherwise=""):
    """Imports modules that an extra of this package installs.

    Args:
      what: what needs them, and their libraries, for the message.
      extra: the name of the extra.
      *modules: their names.
      otherwise: what else the user can do, for the end of the message.

    Raises:
      UserError: a module is missing.
    """
    try:
        for module in modules:
            importlib.import_module(module)
    except ImportError as error:
        advice = install_command(extra) + otherwise
        raise UserError(f"{what} ({error}): {advice}") from error


def require_unicode(text, flag):
    """Raises a `UserError` if a flag's text was not UTF-8, which Python reads as half characters.

    Args:
      text: the flag's value.
      flag: its name.
    """
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise UserError(
            f"--{flag}: the text is not UTF-8 from character {error.start + 1} on; convert it"
        ) from error


def first_line(error):
    """Returns the first line of an exception's text that says what happened.

    TensorFlow's node names are removed.
    """
    text = re.sub(r"\{\{.*?\}\} ?", "", str(error)).strip()
    if text.startswith("Graph execution error"):
        # The text begins with places in the graph; the line before the first [[node]] says more.
        text = text.partition("\n\t [[")[0].splitlines()[-1]
        text = re.sub(r"^ *(\(\d+\) [A-Z_]+:)? *", "", text)
    return text.splitlines()[0].split(" [Op:")[0] if text else type(error).__name__
