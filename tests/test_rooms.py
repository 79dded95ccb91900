"""The order of rooms: each room of the package imports only from itself and from lower rooms."""

import ast
import runpy

import pytest
from conftest import REPOSITORY

PACKAGE = REPOSITORY / "nezha_tf"
# From the lowest room up. Modules outside folders are rooms of their own.
ROOMS = (
    "util",
    "config_forms",
    "config",
    "hub",
    "resources",
    "text",
    "inputs",
    "cli",
    "programs",
    "optimization",
    "modeling",
    "data",
    "objectives",
    "corpus",
    "checkpoints",
    "pictures",
    "training",
    "serving",
    "generation",
    "tasks",
    "estimators",
    "ablation",
)
# The package itself imports on first use, and `python -m nezha_tf` starts a program.
ABOVE_ALL = ("nezha_tf", "nezha_tf.__main__")
# The only module that imports from rooms above its own: what the rows of the table of tasks name.
LATE = "nezha_tf.checkpoints.task_parts"


def module_name(path):
    parts = path.relative_to(REPOSITORY).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports_of(path):
    """Yields the imported names of a file, also those inside functions."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: a relative import"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


def test_no_arrow_runs_back_up():
    up = []
    for path in sorted(PACKAGE.rglob("*.py")):
        module = module_name(path)
        if module in (*ABOVE_ALL, LATE):
            continue
        floor = ROOMS.index(module.split(".")[1])
        for name in imports_of(path):
            parts = name.split(".")
            if parts[0] == "nezha_tf" and ROOMS.index(parts[1]) > floor:
                up.append(f"{module} imports {name}")
    assert not up, "\n".join(up)


def test_every_room_is_there():
    found = {
        path.stem
        for path in PACKAGE.iterdir()
        if path.suffix == ".py" or any(path.glob("*.py"))
        if not path.name.startswith("_")
    }
    assert found == set(ROOMS)


FOLDER = REPOSITORY / "docs" / "pictures"
PICTURES = {
    "draw_rooms": "rooms.svg",
    "draw_flow": "data_flow.svg",
    "draw_masks": "unilm_masks.svg",
}


@pytest.fixture
def script_of(monkeypatch):
    """Returns a function: name of a script that draws -> its names, as a dict."""
    monkeypatch.syspath_prepend(FOLDER)  # where `svg` is
    return lambda name: runpy.run_path(str(FOLDER / f"{name}.py"))


@pytest.mark.parametrize("script, name", PICTURES.items())
def test_the_pictures_of_the_documentation_are_current(script_of, script, name):
    drawn = script_of(script)["picture"]()
    stored = (FOLDER / name).read_text(encoding="utf-8")
    assert drawn == stored, f"python docs/pictures/{script}.py draws it anew"


def test_the_flow_of_data_has_every_room(script_of):
    flow = script_of("draw_flow")
    named = {room for row in flow["ROWS"] for box in row[1] for room in box[2]}
    assert named | set(flow["GROUND"]) == set(ROOMS)
