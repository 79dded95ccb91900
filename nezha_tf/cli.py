"""Code that all programs share: flags, one-line errors and a quiet start."""

import contextlib
import errno
import functools
import gc
import io
import math
import os
import re
import sys
import typing

# Set before TensorFlow is imported anywhere: its start-up messages do not help a user.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("GRPC_VERBOSITY", "ERROR")
# The programs run on TensorFlow, whatever backend the user's Keras configuration names.
os.environ["KERAS_BACKEND"] = "tensorflow"

from absl import app, flags, logging

from nezha_tf import inputs
from nezha_tf.util import console, language, package_data, settings
from nezha_tf.util.errors import (
    STATUS_TERMINATED,
    STATUS_WORKER_LOST,
    Terminated,
    UserError,
    WorkerLost,
)
from nezha_tf.util.language import translated

# With this, --help lists the flags that `run` defines under the program that calls it.
flags.disclaim_key_flags()

# TensorFlow and Keras import these packages if they are installed, for parts that no program uses
# (conversion of JAX's models, wrappers, galleries): two seconds and 190 MB.
_NOT_FOR_TENSORFLOW = ("jax", "matplotlib", "sklearn")
# The shell's status of a program that SIGPIPE ended: 128 + 13.
STATUS_BROKEN_PIPE = 141
_NO_MEMORY = "not enough memory; free some, or let fewer workers or smaller batches use it"
# What to do about errors that are the machine's, whatever file they came up with.
_OF_THE_SYSTEM = {
    errno.ENOSPC: "make room",
    errno.EDQUOT: "make room",
    errno.EMFILE: "allow more open files (ulimit -n), or use fewer workers",
    errno.ENFILE: "end other programs, or use fewer workers",
    errno.ENOMEM: "free some memory, or use fewer workers",
    errno.EAGAIN: "allow more processes (ulimit -u), or use fewer workers",
    errno.ENAMETOOLONG: "choose a shorter name",
}
_FLAG = re.compile(r"--?(\w+)")
_CONTROL = re.compile("[\0-\x1f\x7f-\x9f\u2028\u2029]")


def _told_of_no_memory(kind, error, trace):
    if issubclass(kind, MemoryError):
        _print_error(_NO_MEMORY)
    else:
        sys.__excepthook__(kind, error, trace)


sys.excepthook = _told_of_no_memory  # also while the programs import their modules


def run(main, settings_class, with_tensorflow=True):
    """Parses the flags, runs `main` and exits with a status.

    A `UserError`, a full disk, too little memory or an unknown flag gives one line on stderr and
    status 1; a signal of `endings` gives status 75, the loss of another worker 76, an interrupt
    130, and a closed output pipe 141. Any other error is a defect and keeps its traceback. The
    files that the flags name are checked before anything slow is imported.

    Args:
      main: function of the settings.
      settings_class: the dataclass of the program's settings; each field is a flag (see
        `settings.define`).
      with_tensorflow: whether TensorFlow is imported, quietly, before `main` runs. Programs that
        only handle text save its three seconds and 800 MB.
    """
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # started with the descriptor closed, as by `>&-`
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))
    console.show_anything()
    logging.set_verbosity(logging.WARNING)
    settings.define(settings_class)

    def guarded(argv):
        _guarded(main, settings_class, argv, with_tensorflow)

    app.run(guarded, flags_parser=_parse_flags)


def import_tensorflow():
    """Imports TensorFlow and Keras, quietly and without packages that only they would need.

    Returns:
      The module `tensorflow`.
    """
    packages = _hidden(_NOT_FOR_TENSORFLOW)
    with console.stderr_held_back(), packages, _kept_for_good(), _annotations_compiled_once():
        import keras  # noqa: F401
        import tensorflow as tf
    tf.get_logger().setLevel("ERROR")
    return tf


@contextlib.contextmanager
def _hidden(packages):
    """Lets imports of packages fail in the block, as if they were not installed."""
    hidden = [name for name in packages if name not in sys.modules]
    # What Python documents for this: None in place of a module.
    sys.modules.update(dict.fromkeys(hidden))
    try:
        yield
    finally:
        for name in hidden:
            del sys.modules[name]


@contextlib.contextmanager
def _kept_for_good():
    """Lets the garbage collector pass over what is made in the block, now and later.

    Imports make millions of objects, which all stay. Visiting them is a fifth of the imports' time.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        if was_enabled:
            gc.enable()


@contextlib.contextmanager
def _annotations_compiled_once():
    """Lets `typing` compile each name of a type once, which it finds as its global `compile`.

    TensorFlow's operations have 20,000 types in quotes, of some twenty names, and `typing` compiles
    each of them: a tenth of the import.
    """
    typing.compile = functools.cache(compile)  # type: ignore[attr-defined]
    try:
        yield
    finally:
        del typing.compile  # type: ignore[attr-defined]


def _guarded(main, settings_class, argv, with_tensorflow):
    if len(argv) > 1:
        _fail(f"{argv[1]!r} is not a flag; write flags as --name=value")
    with in_one_line():
        given, notes = settings.overruled(settings.from_flags(settings_class), _own(sys.argv[1:]))
        for line in notes:
            console.tell(line, file=sys.stderr)
        inputs.check(settings.flags_of(given))
        if with_tensorflow:
            # Only programs of runs: other programs may read what a tool prints. Of several workers
            # only the chief says anything, which is not known yet.
            if hasattr(given, "do_train") and "TF_CONFIG" not in os.environ:
                print(translated("loading TensorFlow"))
            import_tensorflow()
        main(given)


def _own(arguments):
    """Returns the names of the flags among arguments, without those of flag files; a set."""
    names = {found[1] for found in map(_FLAG.match, arguments) if found}
    return names | {name.removeprefix("no") for name in names if name not in flags.FLAGS}


@contextlib.contextmanager
def in_one_line():
    """Exits after the errors that `run` tells in one line, with its statuses."""
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:  # the reader has closed the pipe, as `| head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for the last flush
        sys.exit(STATUS_BROKEN_PIPE)
    except UserError as error:
        _fail(str(error))
    except Terminated as end:
        console.tell(str(end), file=sys.stderr)
        sys.exit(STATUS_TERMINATED)
    except WorkerLost as loss:
        sys.stdout.flush()
        _print_error(str(loss))
        # An ordered end would wait for the lost worker.
        os._exit(STATUS_WORKER_LOST)
    except MemoryError:
        _fail(_NO_MEMORY)
    except OSError as error:
        advice = _OF_THE_SYSTEM.get(error.errno)
        if not error.filename and advice is None:
            raise
        place = f"{error.filename}: " if error.filename else ""
        _fail(place + error.strerror + (f"; {advice}" if advice else ""))
    except UnicodeEncodeError as error:
        if error.encoding == "utf-8":
            raise
        _fail(f"{error.object!r} has no form in {error.encoding}; set LC_ALL=C.UTF-8")
    except KeyboardInterrupt:
        print(translated("interrupted"), file=sys.stderr)
        sys.exit(130)


def parse(argv, flag_values=flags.FLAGS):
    """Lets absl parse a command line, with flag files in UTF-8; returns what is no flag.

    By itself absl reads them in the encoding of the locale.

    Raises:
      absl.flags.Error: a flag is unknown or has no such value, or a flag file cannot be read.
    """
    sys.modules[flags.FlagValues.__module__].open = _open_flag_file
    return flag_values(argv)


def _parse_flags(argv):
    with in_one_line():
        return _parsed(argv)


def _parsed(argv):
    shown = io.StringIO()
    try:
        with contextlib.redirect_stdout(shown):
            rest = parse(argv)
    except flags.Error as error:
        said = translated(" ".join(str(error).split())), translated(_flag_file_of(error, argv))
        _fail("".join(said) + translated("; see --help"))
    except SystemExit:  # absl exits with status 1 after the text of --help
        _print_help(shown.getvalue())
        sys.exit(0)
    if flags.FLAGS[language.FLAG].value:  # perhaps of a flag file
        language.use(flags.FLAGS[language.FLAG].value)
    for name, value in flags.FLAGS.flag_values_dict().items():
        # Every comparison with nan is False, so nan would pass the flags' range checks.
        if isinstance(value, float) and not math.isfinite(value):
            _fail(f"--{name}={value} is not a finite number; see --help")
    return rest


def _print_help(text):
    """Prints the text of --help; the flags' own help is translated already, what absl says not."""
    for line in text.splitlines():
        own = line.lstrip()
        print(line.removesuffix(own) + translated(own))
    sys.stdout.flush()


def _open_flag_file(path):
    """Opens a flag file, of the package too, in place of `open` of the module of absl."""
    try:
        path = package_data.named(path, ".flags")
    except UserError as error:
        raise flags.Error(str(error)) from error
    with open(path, encoding="utf-8-sig") as file:  # a byte order mark is allowed
        try:
            return io.StringIO(file.read())
        except UnicodeDecodeError as error:
            raise flags.Error(f"the flag file {path} is not UTF-8; convert it") from error


def _flag_file_of(error, argv):
    """Returns ' (in FILE)' if an unknown flag is in a flag file of the command, else ''."""
    name = getattr(error, "flagname", None)
    for argument in argv if name else ():
        option, _, path = argument.partition("=")
        if option.lstrip("-") == "flagfile":
            with contextlib.suppress(OSError, flags.Error), _open_flag_file(path) as file:
                if any(line.strip().lstrip("-").split("=")[0] == name for line in file):
                    return f" (in {path})"
    return ""


def _fail(message):
    # The names of files and what they hold may have line breaks, and orders to a terminal.
    _print_error(_CONTROL.sub(lambda found: repr(found[0])[1:-1], translated(message)))
    sys.exit(1)


def _print_error(line):
    error = translated("error: ")
    print(f"{_program()}: {error}{translated(line)}", file=sys.stderr, flush=True)


def _program():
    return os.path.basename(sys.argv[0])
