"""The table of programs: a row for each script, and each row starts."""

import ast
import configparser
import dataclasses
import re
import runpy
import sys

import program_flags
import pytest
from conftest import REPOSITORY

from nezha_tf.programs import start
from nezha_tf.programs.table import PROGRAMS, arguments_of, part

SCRIPTS = {
    path.stem: path for path in (*REPOSITORY.glob("run_*.py"), *REPOSITORY.glob("tools/*.py"))
}


def exits(monkeypatch, capsys, script, *arguments):
    """Returns (status, stdout, stderr) of a script that runs in this process."""
    monkeypatch.setattr(sys, "argv", [str(script), *arguments])
    with program_flags.forgotten_afterwards(), pytest.raises(SystemExit) as end:
        runpy.run_path(str(script), run_name="__main__")
    return end.value.code or 0, *capsys.readouterr()


def test_each_script_has_a_row_and_each_row_a_script():
    assert SCRIPTS.keys() == PROGRAMS.keys() and len(SCRIPTS) > 20
    for name, path in SCRIPTS.items():
        assert ast.get_docstring(ast.parse(path.read_text())) == PROGRAMS[name].line


@pytest.mark.parametrize("name", PROGRAMS)
def test_what_a_row_names_is_there(name):
    program = PROGRAMS[name]
    assert dataclasses.is_dataclass(part(program.settings)) and callable(part(program.main))
    assert re.match(r".{20,95}\.\n\n", program.about) and "  PROGRAM --" in program.about


@pytest.fixture(scope="module")
def entry(tmp_path_factory):
    """The script that pip makes of the entry point of setup.cfg."""
    setup = configparser.ConfigParser()
    setup.read(REPOSITORY / "setup.cfg", encoding="utf-8")
    name, _, place = setup["options.entry_points"]["console_scripts"].strip().partition(" = ")
    module, _, function = place.partition(":")
    path = tmp_path_factory.mktemp("bin") / name
    path.write_text(f"from {module} import {function}\n{function}()\n")
    return path


@pytest.mark.parametrize("name", PROGRAMS)
def test_help_shows_the_commands_as_they_were_called_and_the_flags(
    name, entry, monkeypatch, capsys
):
    path = SCRIPTS[name]
    for script, arguments, how in (
        (path, [], f"python {path}"),
        (entry, [name], f"nezha_tf {name}"),
    ):
        status, told, complaint = exits(monkeypatch, capsys, script, *arguments, "--help")
        assert status == 0 and complaint == ""
        text, _, flags = told.partition("\nflags:\n")
        assert text.startswith(PROGRAMS[name].line) and f"\n  {how} --" in text
        for field in dataclasses.fields(part(PROGRAMS[name].settings)):
            if field.metadata:
                flag = field.metadata["name"] or field.name
                assert re.search(rf"^  --(\[no\])?{flag}:\s", flags, re.MULTILINE), flag


@pytest.mark.parametrize("arguments", ([], ["--help"]))
def test_without_a_program_there_is_a_list_with_a_line_for_each(arguments, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["/usr/bin/nezha_tf", *arguments])
    start.choose()
    first, *lines = capsys.readouterr().out.splitlines()
    assert "nezha_tf PROGRAM --flag" in first
    assert [line.split()[0] for line in lines] == list(PROGRAMS)
    for line, program in zip(lines, PROGRAMS.values(), strict=True):
        assert line.endswith(f"  {program.line}")


@pytest.mark.parametrize(
    "given, near",
    [
        ("run_pretrainin", "run_pretraining"),
        ("create-pretraining-data", "create_pretraining_data"),
        ("run_ner.py", "run_ner"),
        ("--flagfile=sample", ""),
    ],
)
def test_an_unknown_program_is_one_line_with_the_nearest_name(given, near, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["/clone/nezha_tf/__main__.py", given])
    with pytest.raises(SystemExit) as end:
        start.choose()
    told = capsys.readouterr().err
    assert end.value.code == 1 and told.count("\n") == 1
    assert told.startswith(f"python -m nezha_tf: error: no program {given!r}; the nearest")
    assert f" name is {near}" in told


def test_a_program_is_called_by_its_script_or_by_its_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    by_name = ["-m", "nezha_tf", "build_vocab"]
    assert arguments_of("tools/build_vocab.py") == arguments_of("build_vocab") == by_name
    assert arguments_of("examples/sample_lines.py") is None
    monkeypatch.chdir(REPOSITORY)
    assert arguments_of("tools/build_vocab.py") == ["tools/build_vocab.py"]
