"""Starts programs by name: the command `nezha_tf`, and the scripts of a clone."""

import difflib
import functools
import os
import sys

from nezha_tf.programs.table import PROGRAMS, part
from nezha_tf.util import console, errors, language
from nezha_tf.util.language import translated

_HELP = ("--help", "-h", "help")


def run(name):
    """Runs a program of the table with the flags of the command line, and exits."""
    program, cli = PROGRAMS[name], _cli()
    language.use(language.of_start(sys.argv[1:], os.environ))
    # Where absl takes the text above the flags from.
    how = console.as_typed(sys.argv[0])
    sys.modules["__main__"].__doc__ = translated(program.about).replace("PROGRAM", how)
    main = functools.partial(_main, program)
    cli.run(main, part(program.settings), program.with_tensorflow)


def choose():
    """Runs the program that the first argument names, or shows a list of all; the entry point."""
    path, *arguments = sys.argv
    own = "python -m nezha_tf" if path.endswith("__main__.py") else os.path.basename(path)
    words = [text for text in arguments if not text.startswith(f"--{language.FLAG}=")]
    if words and words[0] in PROGRAMS:
        arguments.remove(words[0])
        sys.argv[:] = [f"{own} {words[0]}", *arguments]
        run(words[0])
    sys.argv[0] = own
    language.use(language.of_start(arguments, os.environ))
    with _cli().in_one_line():
        if words and words[0] not in _HELP:
            raise errors.UserError(_unknown(words[0]))
        console.tell(listed(own))


def listed(own):
    """Returns what programs there are, a line each.

    Args:
      own: how the command was started.
    """
    rows = [(name, translated(program.line)) for name, program in PROGRAMS.items()]
    title = f"{own} PROGRAM --flag=value ...; the flags of a program: {own} PROGRAM --help"
    return console.table(title, rows)


def _unknown(name):
    near = difflib.get_close_matches(name, PROGRAMS, n=1, cutoff=0.0)
    return f"no program {name!r}; the nearest name is {near[0]}; all: {sys.argv[0]} --help"


def _main(program, settings):
    told = part(program.main)(settings)
    if told is not None:
        console.tell(told)


def _cli():
    """Returns the module `cli`, which needs libraries that the package installs."""
    try:
        from absl import flags

        from nezha_tf import cli
    except ImportError as error:
        sys.exit(translated(f"{error}; install the project first: {errors.install_command()}"))
    flags.disclaim_key_flags()
    return cli
