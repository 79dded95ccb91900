"""The entry of all programs."""

import dataclasses
import errno
import io
import subprocess
import sys
import typing

import program_flags
import pytest
from conftest import REPOSITORY
from waiting import read_line

from nezha_tf import cli
from nezha_tf.util import settings
from nezha_tf.util.errors import UserError

SHOWS_A_LINE_AND_WAITS = """
import sys
import typing
from nezha_tf.util import console
console.show_anything()
print("told")
sys.stdin.read()
"""


@dataclasses.dataclass(frozen=True)
class Settings:
    text: str = settings.flag("", "What is printed.")


def test_a_line_is_in_a_pipe_at_once():
    command = (sys.executable, "-c", SHOWS_A_LINE_AND_WAITS)
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, cwd=REPOSITORY, **pipes) as process:
        assert read_line(process.stdout) == "told\n"


@pytest.mark.parametrize(
    "encoding, told",
    [
        ("ascii", rb"\u8bb0 \ud55c \U0001f600 \udcd6"),
        ("cp936", b"\xbc\xc7 \\ud55c \\U0001f600 \\udcd6"),
    ],
)
def test_what_a_terminal_cannot_show_ends_no_program(monkeypatch, encoding, told):
    """Neither a character that its encoding lacks, nor half of one."""
    outputs = [io.TextIOWrapper(io.BytesIO(), encoding, errors) for errors in ("strict", "strict")]
    for name, output in zip(("stdout", "stderr"), outputs, strict=True):
        monkeypatch.setattr(sys, name, output)
    monkeypatch.setattr(sys, "argv", ["tool", "--text=记 한 😀 \udcd6"])

    def main(given):
        print(given.text)
        print(given.text, file=sys.stderr)

    with program_flags.forgotten_afterwards(), pytest.raises(SystemExit) as end:
        cli.run(main, Settings, with_tensorflow=False)
    assert not end.value.code
    for output in outputs:
        output.flush()
        assert output.buffer.getvalue() == told + b"\n"


def test_an_error_is_one_line_whatever_it_quotes(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["tool"])

    def main(given):
        raise UserError("no file a\n\x1b[2Jb\u2028；改正它")

    with program_flags.forgotten_afterwards(), pytest.raises(SystemExit) as end:
        cli.run(main, Settings, with_tensorflow=False)
    assert end.value.code == 1
    assert capsys.readouterr().err == "tool: error: no file a\\n\\x1b[2Jb\\u2028；改正它\n"


@pytest.mark.parametrize(
    "error, told",
    [
        (MemoryError(), "not enough memory; free some"),
        (
            OSError(errno.EMFILE, "Too many open files"),
            "Too many open files; allow more open files",
        ),
        (OSError(errno.ENOSPC, "No space left", "run/a"), "run/a: No space left; make room"),
        (OSError(errno.ENAMETOOLONG, "Name too long", "nn"), "nn: Name too long; choose a shorter"),
        (OSError(errno.EACCES, "Permission denied", "a"), "a: Permission denied\n"),
    ],
)
def test_what_a_machine_lacks_is_one_line_with_what_to_do(monkeypatch, capsys, error, told):
    monkeypatch.setattr(sys, "argv", ["tool"])

    def main(given):
        raise error

    with program_flags.forgotten_afterwards(), pytest.raises(SystemExit) as end:
        cli.run(main, Settings, with_tensorflow=False)
    said = capsys.readouterr().err
    assert end.value.code == 1 and said.startswith(f"tool: error: {told}") and said.count("\n") == 1


def test_too_little_memory_for_the_imports_is_one_line(capsys):
    sys.excepthook(MemoryError, MemoryError(), None)
    assert capsys.readouterr().err.endswith("smaller batches use it\n")


def test_types_in_quotes_are_the_same_whoever_compiles_them():
    with cli._annotations_compiled_once():
        known = typing.TypeVar("known", "int", "list[str]", "int")
        of_each = [id(each.__forward_code__) for each in known.__constraints__]
        with pytest.raises(SyntaxError, match="Forward reference must be an expression"):
            typing.ForwardRef("1 +")
    assert len(set(of_each)) == 2
    assert (
        known.__constraints__ == typing.TypeVar("known", "int", "list[str]", "int").__constraints__
    )
    assert not hasattr(typing, "compile")
