"""What the documentation marks as quick is run: commands, Python and notebooks."""

import json
import os
import pathlib
import subprocess
import sys

import pages
import pytest
from conftest import REPOSITORY
from waiting import TIME_LIMIT

# The Chinese pages have the same commands.
PAGES = [english for english, _ in pages.pairs() if any(b.is_run for b in pages.blocks(english))]
NOTEBOOKS = sorted((REPOSITORY / "examples").glob("*.ipynb"))


@pytest.fixture
def clone(tmp_path):
    """A folder that looks like a clone of the repository and may be written into."""
    for path in REPOSITORY.iterdir():
        if path.name not in ("out", "data", ".git"):
            (tmp_path / path.name).symlink_to(path)
    return tmp_path


def run(clone, *command):
    programs = pathlib.Path(sys.executable).parent
    environment = os.environ | {
        "PATH": f"{programs}:{os.environ['PATH']}",
        "PYTHONPATH": str(REPOSITORY),
        "MPLBACKEND": "agg",
    }
    ended = subprocess.run(
        command, cwd=clone, env=environment, capture_output=True, text=True, timeout=TIME_LIMIT
    )
    assert ended.returncode == 0, f"{command[-1]}\n{ended.stdout[-2000:]}\n{ended.stderr[-2000:]}"


@pytest.mark.parametrize("page", PAGES)
def test_what_is_marked_runs(clone, page):
    for block in pages.blocks(page):
        if block.is_run:
            shell = block.language == "bash"
            run(clone, *(("bash", "-ec") if shell else (sys.executable, "-c")), block.text)


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebooks_run(clone, notebook):
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    code = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    assert all(cell.get("outputs", []) == [] for cell in cells), "store no outputs"
    run(clone, sys.executable, "-c", "\n\n".join(code))


def test_there_are_notebooks():
    assert len(NOTEBOOKS) >= 4 and len(PAGES) >= 5
