"""The entry of all programs."""

import dataclasses
import io
import sys

import program_flags
import pytest

from nezha_tf import cli, settings
from nezha_tf.errors import UserError


@dataclasses.dataclass(frozen=True)
class Settings:
    text: str = settings.flag("", "What is printed.")


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
