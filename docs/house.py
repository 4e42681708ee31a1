"""Draws the house: the rooms of the package, floor by floor, and which room imports which.

python docs/house.py

Floors and rooms are those of the contract in `pyproject.toml`. Lines are read from the imports of
all files. A room that is reached through another one has no line of its own. The width of a room
grows with its lines of code.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import tomllib

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "pyg_recmetrics"

#: Sizes in pixels. A room is at least as wide as its name, and wider the more lines it has.
WIDTH, HEIGHT, FLOOR, GAP, LETTER, LINES_IN_A_PIXEL = 760, 34, 66, 24, 8, 20


def floors() -> list[list[str]]:
    """Returns the rooms of each floor, from top to bottom."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    layers = contracts["contracts"][0]["layers"]
    return [re.findall(r"\w+", layer) for layer in layers if layer != "__main__"]


def files_of(room: str) -> list[Path]:
    """Returns the files of a room: those of a folder, or one alone."""
    alone = PACKAGE / f"{room}.py"
    return [alone] if alone.exists() else sorted((PACKAGE / room).rglob("*.py"))


def num_lines(room: str) -> int:
    """Returns the number of lines that say something."""
    texts = (file.read_text() for file in files_of(room))
    return sum(bool(line.strip()) for text in texts for line in text.splitlines())


def imports(room: str) -> Iterator[str]:
    """Yields the rooms that a room imports."""
    for file in files_of(room):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(PACKAGE.name):
                names = [*node.module.split(".")[1:2]] or [alias.name for alias in node.names]
                yield from (name for name in names if name != room)


def lines_between(rooms: list[str]) -> list[tuple[str, str]]:
    """Returns what imports what, without what follows from other lines. Rooms are in order."""
    direct = {room: {*imports(room)} & {*rooms} for room in rooms}
    reached: dict[str, set[str]] = {}
    for room in reversed(rooms):
        reached[room] = direct[room].union(*(reached[other] for other in direct[room]))
    return [
        (room, other)
        for room in rooms
        for other in rooms
        if other in direct[room] and not any(other in reached[x] for x in direct[room])
    ]


def picture() -> str:
    """Returns the picture as SVG."""
    places: dict[str, tuple[float, float, float]] = {}
    rows = floors()
    for number, row in enumerate(rows):
        widths = {
            room: max(LETTER * len(room) + 16, num_lines(room) / LINES_IN_A_PIXEL) for room in row
        }
        x = (WIDTH - sum(widths.values()) - GAP * (len(row) - 1)) / 2
        for room, width in widths.items():
            places[room] = (x, GAP + number * FLOOR, width)
            x += width + GAP
    height = GAP + len(rows) * FLOOR - FLOOR + HEIGHT + GAP
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
        f'font-family="sans-serif" font-size="13">',
        f'<rect width="{WIDTH}" height="{height}" fill="white"/>',
    ]
    for room, other in lines_between(list(places)):
        (x, y, width), (x2, y2, width2) = places[room], places[other]
        start, end = (x + width / 2, y + HEIGHT), (x2 + width2 / 2, y2)
        bend = (end[1] - start[1]) / 2
        lines.append(
            f'<path d="M{start[0]:.0f} {start[1]} C{start[0]:.0f} {start[1] + bend:.0f} '
            f'{end[0]:.0f} {end[1] - bend:.0f} {end[0]:.0f} {end[1]}" fill="none" '
            f'stroke="#00488F" stroke-opacity="0.6"/>'
        )
    for room, (x, y, width) in places.items():
        lines += [
            f'<rect x="{x:.0f}" y="{y}" width="{width:.0f}" height="{HEIGHT}" rx="4" '
            f'fill="#EEF2F7" stroke="#00488F"/>',
            f'<text x="{x + width / 2:.0f}" y="{y + 21}" text-anchor="middle">{room}</text>',
        ]
    return "\n".join([*lines, "</svg>", ""])


if __name__ == "__main__":
    (ROOT / "docs" / "_static" / "house.svg").write_text(picture())
