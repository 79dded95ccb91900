"""Draws the rooms of nezha_tf/ and who imports whom, as rooms.svg beside this file.

The rooms are those of tests/test_rooms.py, the arrows those of the code. An arrow that follows from
others is left out. A room stands one floor above the highest room that it imports from.

  python docs/pictures/draw_rooms.py
"""

import ast
import pathlib

from svg import arrow, box, document, text

FOLDER = pathlib.Path(__file__).resolve().parent
REPOSITORY = FOLDER.parent.parent
PACKAGE = REPOSITORY / "nezha_tf"
PICTURE = FOLDER / "rooms.svg"

BOX_WIDTH, BOX_HEIGHT, FLOOR_HEIGHT, GAP = 166, 34, 74, 22
MARGIN = 24
# By what a module of the room needs when it is imported, with all that it imports itself.
COLOURS = {"nothing": "#e8eef7", "keras": "#f8eede", "tensorflow": "#e9f3e6"}
LEGEND = {"nothing": "Python", "keras": "Keras", "tensorflow": "TensorFlow"}


def constant(name):
    """Returns a constant of tests/test_rooms.py: ROOMS, from the ground up, LATE or ABOVE_ALL."""
    text = (REPOSITORY / "tests" / "test_rooms.py").read_text(encoding="utf-8")
    for node in ast.parse(text).body:
        if isinstance(node, ast.Assign) and node.targets[0].id == name:
            return ast.literal_eval(node.value)
    raise ValueError(f"tests/test_rooms.py has no {name}")


def imports_of(nodes):
    """Yields (module, name) of each import among syntax nodes."""
    for node in nodes:
        if isinstance(node, ast.ImportFrom):
            yield from ((node.module, alias.name) for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from ((alias.name, "") for alias in node.names)


def modules():
    """Returns dict of module name to its syntax tree; a package has its own name."""
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(REPOSITORY).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        found[name] = ast.parse(path.read_text(encoding="utf-8"))
    return found


def room_of(module):
    """Returns the room of a module of the package."""
    return module.split(".")[1]


def arrows(names, trees):
    """Returns dict of room to the set of rooms that it imports from, in functions too."""
    below = {name: set() for name in names}
    not_drawn = (*constant("ABOVE_ALL"), constant("LATE"))
    for module, tree in trees.items():
        for source, name in imports_of(ast.walk(tree)):
            parts = [*source.split("."), name]
            if module not in not_drawn and parts[0] == "nezha_tf" and parts[1] != room_of(module):
                below[room_of(module)].add(parts[1])
    return below


def needs_of(names, trees):
    """Returns dict of room to a key of `COLOURS`: the most that one of its modules needs.

    What is imported in a function alone is not needed.
    """
    found = {}

    def needed(module):
        if module not in found:
            found[module] = set()
            for source, name in imports_of(trees[module].body):
                if not source.startswith("nezha_tf"):
                    found[module].add(source.split(".")[0].replace("tensorflow_text", "tensorflow"))
                    continue
                parts = f"{source}.{name}".split(".")
                above = [".".join(parts[:n]) for n in range(1, len(parts) + 1)]
                found[module].update(*(needed(other) for other in above if other in trees))
        return found[module] & {"keras", "tensorflow"}

    needs = {name: set() for name in names}
    for module in trees:
        if module not in constant("ABOVE_ALL"):
            needs[room_of(module)] |= needed(module)
    return {room: max(packages, default="nothing") for room, packages in needs.items()}


def floors_of(below):
    """Returns dict of room to its floor, 0 at the ground; the rooms stand in the order of it."""
    floors = {}
    for room, others in below.items():
        floors[room] = 1 + max((floors[other] for other in others), default=-1)
    return floors


def plain(below):
    """Returns the arrows without those that follow from others."""
    reached = {}
    for room, others in below.items():
        reached[room] = others.union(*(reached[other] for other in others))
    return {
        room: {o for o in others if not any(o in reached[other] for other in others - {o})}
        for room, others in below.items()
    }


def places(floors, below):
    """Returns (dict of room to the x of its middle, width of the picture).

    Rooms that belong together are brought near each other: each goes towards the mean of those
    that it has arrows with.
    """
    neighbours = {room: set(others) for room, others in below.items()}
    for room, others in below.items():
        for other in others:
            neighbours[other].add(room)
    rows = [[r for r in floors if floors[r] == n] for n in range(max(floors.values()) + 1)]
    step = BOX_WIDTH + GAP
    width = 2 * MARGIN + max(map(len, rows)) * step - GAP
    middles = {room: width / 2 for room in floors}
    for _ in range(30):
        for row in rows:
            wanted = {
                r: sum(middles[o] for o in neighbours[r]) / (len(neighbours[r]) or 1) for r in row
            }
            row.sort(key=lambda room: (wanted[room], room))
            left = MARGIN + BOX_WIDTH / 2
            for index, room in enumerate(row):
                right = width - MARGIN - BOX_WIDTH / 2 - (len(row) - 1 - index) * step
                middles[room] = min(max(wanted[room], left), right)
                left = middles[room] + step
    return middles, width


def picture():
    """Returns the text of the SVG."""
    names, trees = constant("ROOMS"), modules()
    below, needs = arrows(names, trees), needs_of(names, trees)
    floors, drawn = floors_of(below), plain(below)
    middles, width = places(floors, drawn)
    top = max(floors.values())
    height = 2 * MARGIN + top * FLOOR_HEIGHT + BOX_HEIGHT + 46
    tops = {room: MARGIN + (top - floors[room]) * FLOOR_HEIGHT for room in floors}
    lines = []
    for room in names:
        for other in sorted(drawn[room]):
            x, y = middles[room], tops[room] + BOX_HEIGHT
            to_x, to_y = middles[other], tops[other] - 2
            # One that passes behind other rooms is fainter.
            colour = "#777" if floors[room] - floors[other] == 1 else "#bbb"
            path = f"M{x:.0f} {y}C{x:.0f} {y + 30} {to_x:.0f} {to_y - 34} {to_x:.0f} {to_y}"
            lines.append(arrow(path, colour, 1.3))
    for room in names:
        x, y = middles[room] - BOX_WIDTH / 2, tops[room]
        lines.append(box(f"{x:.0f}", y, BOX_WIDTH, BOX_HEIGHT, COLOURS[needs[room]]))
        lines.append(text(f"{middles[room]:.0f}", y + 22, room, 14, "#111"))
    y = height - MARGIN - 14
    for index, (need, colour) in enumerate(COLOURS.items()):
        x = MARGIN + index * 150
        lines.append(box(x, y, 22, 16, colour))
        lines.append(text(x + 30, y + 13, LEGEND[need], 13, anchor="start"))
    label = f"The rooms of nezha_tf, from the top: {', '.join(reversed(names))}"
    return document(width, height, label, lines)


if __name__ == "__main__":
    PICTURE.write_text(picture(), encoding="utf-8")
    print(PICTURE)
