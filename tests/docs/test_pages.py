"""The documentation: both languages say the same, links lead somewhere, commands exist."""

import ast
import configparser
import importlib.util
import os
import pathlib
import re
import types

import pages
import pytest
from absl import flags
from commands import flags_of
from conftest import REPOSITORY

import nezha_tf
from nezha_tf.programs.table import PROGRAMS

# Programs of the system and of others that pages name.
OTHERS = ("python3", "pip", ".", "cd", "mkdir", "git", "docker", "curl", "hf", "unzip", "apt")
OTHERS += ("tensorboard", "mkdocs", "ruff", "wget", "make", "sudo", "export", "modelscope")
_SETUP = configparser.ConfigParser()
_SETUP.read(REPOSITORY / "setup.cfg", encoding="utf-8")
EXTRAS = set(_SETUP["options.extras_require"])
MOST_BYTES = 6_000
_LINK = re.compile(r"!?\[[^\]\n]*\]\(([^)\s]+)\)")


def test_both_languages_have_the_same_pages():
    english, chinese = (
        {path.name for path in (REPOSITORY / "docs" / language).iterdir()}
        for language in pages.LANGUAGES
    )
    assert english == chinese and len(english) > 15


@pytest.mark.parametrize("page", pages.pages())
def test_no_page_has_marks_of_a_merge(page):
    assert not re.search(r"^(<<<<<<<|=======|>>>>>>>)", pages.read(page), re.MULTILINE)


@pytest.mark.parametrize("english, chinese", pages.pairs())
def test_both_languages_have_the_same_commands(english, chinese):
    assert [(b.text, b.is_run) for b in pages.blocks(english, "bash")] == [
        (b.text, b.is_run) for b in pages.blocks(chinese, "bash")
    ]
    assert [b.language for b in pages.blocks(english)] == [
        b.language for b in pages.blocks(chinese)
    ]


@pytest.mark.parametrize("page", pages.pages())
def test_commands_have_programs_flags_and_files(page):
    for line, words in pages.commands(page):
        problem = problem_of(words)
        assert not problem, f"{page}, line {line}: {problem}: {' '.join(words)}"


def problem_of(words):
    """Returns what is wrong with a command, or None."""
    while words and re.fullmatch(r"[A-Z_]+=.*", words[0]):
        words = words[1:]
    if not words:
        return None
    program, *rest = words
    if program == "pip":
        return next(filter(None, map(unknown_extra, rest)), None)
    if program.endswith(".sh") or program == "bash":
        script = program if program.endswith(".sh") else rest[0]
        return None if (REPOSITORY / script).is_file() else f"no file {script}"
    if program == "nezha_tf":  # the command, as it is installed
        return unknown_flag(f"{rest[0]}.py", rest[1:]) if rest else None
    if program != "python":
        return None if program in OTHERS else f"unknown program {program}"
    if rest[0] in ("-m", "-c"):
        return None
    script, *arguments = rest
    if not (REPOSITORY / script).is_file():
        # A module of the reader's own, as the page on extending has them.
        return None if "/" not in script else f"no file {script}"
    return unknown_flag(script, arguments)


def unknown_extra(word):
    """Returns what is wrong with the extras that a word like '.[plot,eval]' names."""
    match = re.search(r"\.\[(.+)\]", word)
    unknown = set(match[1].split(",")) - EXTRAS if match else ()
    return f"no extra {', '.join(unknown)}" if unknown else None


def unknown_flag(script, arguments):
    for argument in arguments:
        path = argument.split("=", 1)[-1]
        ours = path.startswith(("configs/", "examples/", "nezha_tf/", "tools/"))
        if ours and not os.path.exists(REPOSITORY / path):
            return f"no file {path}"
    # Files that the reader makes are not there yet, and `$START` stands for several flags.
    known = [a for a in arguments if not a.startswith(("$", "--flagfile=out/"))]
    if pathlib.Path(script).stem not in PROGRAMS:
        text = (REPOSITORY / script).read_text(encoding="utf-8")
        names = [a.split("=")[0].lstrip("-") for a in known if a.startswith("-")]
        return next((f"no --{name}" for name in names if name not in text), None)
    try:
        flags_of(script, *known)
    except flags.Error as error:
        return str(error)
    return None


@pytest.mark.parametrize("page", pages.pages())
def test_links_lead_somewhere(page):
    for link in _LINK.findall(re.sub(r"```.*?^```", "", pages.read(page), flags=re.M | re.S)):
        path, _, anchor = link.partition("#")
        if ":" in path:
            assert re.match(r"https?://|mailto:", path), link
            continue
        target = (REPOSITORY / page).parent / path if path else REPOSITORY / page
        assert target.exists(), f"{page}: {link}"
        if anchor:
            assert anchor in anchors(target.read_text(encoding="utf-8")), f"{page}: {link}"


def anchors(text):
    """Returns the anchors of a page: those given, and those made from the words of headings.

    GitHub and MkDocs make different anchors from Chinese headings, so those need one of their own.
    """
    found = set(re.findall(r'^<a id="([\w-]+)"></a>$', text, re.MULTILINE))
    for heading in re.findall(r"^#+ (.+)$", text, re.MULTILINE):
        if heading.isascii():
            words = re.sub(r"[^\w\s-]", "", heading.lower()).strip()
            found.add(re.sub(r"[\s-]+", "-", words))
    return found


@pytest.mark.parametrize("page", pages.pages())
def test_python_is_python_and_its_names_exist(page):
    for block in pages.blocks(page, "python"):
        for node in ast.walk(ast.parse(block.text, f"{page}, line {block.line}")):
            if isinstance(node, ast.ImportFrom) and node.module.startswith("nezha_tf"):
                module = importlib.import_module(node.module)
                for alias in node.names:
                    is_there = hasattr(module, alias.name) or importlib.util.find_spec(
                        f"{node.module}.{alias.name}"
                    )
                    assert is_there, f"{page}, line {block.line}: {alias.name}"
            if isinstance(node, ast.Import):
                for alias in node.names:
                    if alias.name.startswith("nezha_tf"):
                        importlib.import_module(alias.name)


@pytest.mark.parametrize("page", ("README.md", "README.zh.md"))
def test_the_readme_is_short(page):
    assert len(pages.read(page).encode()) <= MOST_BYTES


@pytest.mark.parametrize("language", pages.LANGUAGES)
def test_the_reference_has_every_public_name(language):
    text = pages.read(f"docs/{language}/api.md")
    named = set(re.findall(r"^::: ([\w.]+)$", text, re.MULTILINE))
    for name in nezha_tf.__all__:
        thing = getattr(nezha_tf, name)
        is_module = isinstance(thing, types.ModuleType)
        path = thing.__name__ if is_module else f"{thing.__module__}.{thing.__name__}"
        assert path in named, path


@pytest.mark.parametrize("name", nezha_tf.__all__)
def test_public_names_are_documented(name):
    thing = getattr(nezha_tf, name)
    if callable(thing) or hasattr(thing, "__path__"):
        assert thing.__doc__ and len(thing.__doc__) > 30, name
    if isinstance(thing, type):
        for method, value in vars(thing).items():
            if not method.startswith("_") and callable(value) and method not in INHERITED:
                assert value.__doc__, f"{name}.{method}"


# Methods of Keras that are documented there.
INHERITED = ("build", "call", "get_config", "compute_mask", "compute_output_shape", "from_config")
