"""The package and its tests are no larger than the table in `pyproject.toml` says.

A line of code is one that is neither blank nor a comment nor part of a docstring.
"""

import ast
from collections import Counter
from pathlib import Path

import tomllib

ROOT = Path(__file__).resolve().parents[1]
TABLE = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["lines-of-code"]

#: By how many lines a row may be above what there is, before it has to be lowered.
SLACK = 50

WITH_DOCSTRINGS = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def lines_of_code(text):
    """How many lines of code a file has."""
    in_docstring = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, WITH_DOCSTRINGS) and ast.get_docstring(node, clean=False) is not None:
            in_docstring |= set(range(node.body[0].lineno, node.body[0].end_lineno + 1))
    return sum(
        number not in in_docstring and line.strip() != "" and not line.strip().startswith("#")
        for number, line in enumerate(text.splitlines(), 1)
    )


def lines_of_folders():
    """How many lines of code each folder has, without the folders in it."""
    lines = Counter()
    for root in ("pyg_recmetrics", "tests"):
        for file in sorted((ROOT / root).rglob("*.py")):
            lines[file.parent.relative_to(ROOT).as_posix()] += lines_of_code(file.read_text())
    return lines


def test_no_folder_has_more_lines_than_the_table_says():
    lines = lines_of_folders()
    assert lines.keys() == TABLE["folders"].keys()
    too_many = {name: number for name, number in lines.items() if number > TABLE["folders"][name]}
    assert not too_many, "say in the commit why a number is raised"
    too_few = {
        name: number for name, number in lines.items() if number < TABLE["folders"][name] - SLACK
    }
    assert not too_few, "lower the numbers in the table"


def test_the_package_has_no_more_files_than_the_table_says():
    assert len(list((ROOT / "pyg_recmetrics").rglob("*.py"))) <= TABLE["files"]


def test_what_a_line_of_code_is():
    text = [
        *('"""A module.', "", 'It has two."""', "", "# A comment.", "x = 1  # one", "", "def f():"),
        *('    "Says."', '    return """', '    b"""', ""),
    ]
    assert lines_of_code("\n".join(text)) == 4
