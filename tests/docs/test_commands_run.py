"""What the documentation marks as quick is run: commands, Python and notebooks."""

import json

import commands
import pages
import pytest
import waiting
from conftest import REPOSITORY

pytestmark = pytest.mark.processes

# The Chinese pages have the same commands.
PAGES = [english for english, _ in pages.pairs() if any(b.is_run for b in pages.blocks(english))]
QUICK_PROGRAMS = f"""
import sys
sys.path.append({str(REPOSITORY / "tests")!r})
import forked_programs
forked_programs.install()
"""
NOTEBOOKS = sorted((REPOSITORY / "examples").glob("*.ipynb"))
# A program of a page that trains longer than a test may, and flags that make it shorter.
SHORTER = {("docs/en/quick_start.md", "run_classifier.py"): ("--num_train_epochs=2",)}
# The page whose blocks a notebook has; they are run once.
OF_PAGE = {"in_python_and_keras": "docs/en/keras.md"}


@pytest.fixture
def clone(tmp_path):
    """A folder that looks like a clone of the repository and may be written into."""
    for path in REPOSITORY.iterdir():
        if path.name not in ("out", "data", ".git"):
            (tmp_path / path.name).symlink_to(path)
    return tmp_path


def run_python(clone, text):
    """Runs Python text in a folder."""
    path = clone / "block.py"
    path.write_text(text, encoding="utf-8")
    # A program that is forked has Keras already, on TensorFlow.
    begin = commands.start_anew if "KERAS_BACKEND" in text else commands.start
    run_program(clone, str(path), begin=begin)


def run_program(clone, script, *arguments, begin=commands.start):
    # The programs that a notebook starts find the package in the folder.
    environment = {"MPLBACKEND": "agg", "PYTHONPATH": str(REPOSITORY)}
    ended = waiting.ended(begin(script, *arguments, folder=clone, environment=environment))
    assert ended.returncode == 0, (script, ended.stdout[-2000:], ended.stderr[-2000:])


@pytest.mark.parametrize("page", PAGES)
def test_what_is_marked_runs(clone, page):
    for block in pages.blocks(page):
        if block.is_run and block.language == "python":
            run_python(clone, block.text)
        elif block.is_run:
            for _, (python, *words) in pages.commands_of(block):
                assert python == "python", "only programs of the repository are run"
                run_program(clone, *words, *SHORTER.get((page, words[0]), ()))
    if page == "docs/en/quick_start.md":  # after a third of the training; guessing is 0.25
        results = json.loads((clone / "out" / "topics" / "eval_results.json").read_text())
        assert results["accuracy"] > 0.5


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebooks_run(clone, notebook):
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    code = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    assert all(cell.get("outputs", []) == [] for cell in cells), "store no outputs"
    if notebook.stem in OF_PAGE:
        blocks = pages.blocks(OF_PAGE[notebook.stem], "python")
        texts = [filled_lines(block.text) for block in blocks if block.is_run]
        assert code and all(filled_lines(cell) in texts for cell in code)
        return
    run_python(clone, "\n\n".join((QUICK_PROGRAMS, *code)))


def filled_lines(text):
    return [line for line in text.splitlines() if line]


def test_there_are_notebooks():
    assert len(NOTEBOOKS) >= 4 and len(PAGES) >= 5
