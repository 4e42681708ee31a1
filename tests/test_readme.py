"""The README holds what it says: its code runs, and its tables are those of the package."""

import re
from pathlib import Path

import torch
from tables import metric_table

from pyg_recmetrics import conventions

README = Path(__file__).resolve().parents[1] / "README.md"


def test_the_metric_table_is_that_of_the_registry():
    assert metric_table() in README.read_text(), f"put this into the README:\n{metric_table()}"
    for line in metric_table().splitlines():
        assert line.count("|") == 5, f"a bar within a formula ends its cell: {line}"


def test_the_conventions_table_is_that_of_the_package():
    shown = f"<!-- conventions -->\n```\n{conventions.table()}\n```"
    assert shown in README.read_text(), f"put this into the README:\n{shown}"


def test_all_python_runs_and_prints_what_its_comments_say(capsys):
    torch.manual_seed(0)
    blocks = re.findall(r"```python\n(.*?)```", README.read_text(), flags=re.DOTALL)
    namespace = {}
    for block in blocks:
        exec(block, namespace)
        for code, comment in re.findall(r"^(.*\S)  # (tensor\(.*\))$", block, flags=re.MULTILINE):
            assert repr(eval(code, namespace)).startswith(comment[:-1]), code
    printed = capsys.readouterr().out
    assert "users evaluated" in printed
    assert "Computed with pyg_recmetrics" in printed
