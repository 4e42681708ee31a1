"""The layers of the package are those that CONTRIBUTING.md shows, and names of classes its own."""

import ast
import re
from collections import Counter
from pathlib import Path

import house

ROOT = Path(__file__).resolve().parents[1]
CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text()


def test_no_two_classes_share_a_name():
    trees = [ast.parse(path.read_text()) for path in (ROOT / "pyg_recmetrics").rglob("*.py")]
    nodes = [node for tree in trees for node in ast.walk(tree)]
    times = Counter(node.name for node in nodes if isinstance(node, ast.ClassDef))
    assert [name for name, number in times.items() if number > 1] == []


def test_the_layers_of_contributing_are_those_of_the_contract():
    contract = re.search(
        r"layers = \[\n(.*?)\n\]", (ROOT / "pyproject.toml").read_text(), re.DOTALL
    )
    layers = [set(re.findall(r"\w+", line)) for line in re.findall(r'"(.*?)"', contract[1])]
    table = CONTRIBUTING.partition("| layer, from top to bottom |")[2].partition("\n\n")[0]
    rows = [row.split("|")[1] for row in table.splitlines()[2:]]
    shown = [
        {name.rstrip("/").removesuffix(".py") for name in re.findall(r"`(.*?)`", row)}
        for row in rows
    ]
    assert shown == [{"__init__"}, *layers]


def test_the_picture_of_the_house_has_all_rooms_and_lines():
    drawn = (ROOT / "docs" / "_static" / "house.svg").read_text()
    # Rooms grow. Their names, and what leads where, are to be drawn anew.
    assert re.sub(r"[\d.]+", "", drawn) == re.sub(r"[\d.]+", "", house.picture())


def test_the_tests_that_scripts_name_exist():
    scripts = [path for path in (ROOT / ".ci").iterdir() if path.is_file()]
    named = {name for path in scripts for name in re.findall(r"tests/[\w/*.]+", path.read_text())}
    assert sorted(name for name in named if not any(ROOT.glob(name))) == []
