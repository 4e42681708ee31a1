"""The package and its tests are no larger than the table in `pyproject.toml` says.

A line of code is one that is neither blank nor a comment nor part of a docstring. Tokens are those
of `tokenize` on such lines, without layout. A clever line saves none of them, and a line that is
split for reading adds none.
"""

import ast
import io
import sys
import tokenize
from collections import Counter
from pathlib import Path

import tomllib

ROOT = Path(__file__).resolve().parents[1]
TABLE = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["lines-of-code"]

#: By how many lines a row may be above what there is, before it has to be lowered.
SLACK = 50

LAYOUT = {
    *(tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT),
    *(tokenize.COMMENT, tokenize.ENDMARKER),
}

WITH_DOCSTRINGS = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def lines_of_docstrings(text):
    """The numbers of the lines that docstrings take."""
    return {
        number
        for node in ast.walk(ast.parse(text))
        if isinstance(node, WITH_DOCSTRINGS) and ast.get_docstring(node, clean=False) is not None
        for number in range(node.body[0].lineno, node.body[0].end_lineno + 1)
    }


def lines_of_code(text):
    """How many lines of code a file has."""
    in_docstring = lines_of_docstrings(text)
    return sum(
        number not in in_docstring and line.strip() != "" and not line.strip().startswith("#")
        for number, line in enumerate(text.splitlines(), 1)
    )


def tokens_of_code(text):
    """How many tokens a file has. An f-string is a single one, as up to Python 3.11."""
    in_docstring, number, depth = lines_of_docstrings(text), 0, 0
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        name = tokenize.tok_name[token.type]
        depth -= name == "FSTRING_END"
        is_counted = token.type not in LAYOUT and token.start[0] not in in_docstring
        number += is_counted and depth == 0 and name != "FSTRING_END"
        depth += name == "FSTRING_START"
    return number


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


def test_the_package_has_no_more_tokens_than_the_table_says_and_its_lines_are_no_denser():
    texts = [file.read_text() for file in (ROOT / "pyg_recmetrics").rglob("*.py")]
    tokens, lines = sum(map(tokens_of_code, texts)), sum(map(lines_of_code, texts))
    assert tokens <= TABLE["tokens"]
    assert tokens / lines <= TABLE["tokens-per-line"]


def test_what_a_line_and_a_token_of_code_are():
    lines = [
        *('"""A module.', "", 'It has two."""', "", "# A comment.", "x = 1  # one", "", "def f():"),
        *('    "Says."', '    return """', '    b"""', ""),
    ]
    text = "\n".join(lines)
    assert lines_of_code(text) == 4
    # x = 1, def f():, return, and a string of two lines.
    assert tokens_of_code(text) == 3 + 5 + 2
    assert tokens_of_code('f"{x} {f"{y}"}"' if sys.version_info >= (3, 12) else 'f"{x}"') == 1
