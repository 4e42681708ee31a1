"""The README holds what it says: its code runs, and its tables are those of the package."""

import re
from pathlib import Path

import pytest
import torch

from pyg_recmetrics import metrics

README = Path(__file__).resolve().parents[1] / "README.md"


def metric_table():
    """The table of all metrics, from the registry."""
    lines = ["| metric | what it says | formula | range |", "|---|---|---|---|"]
    for name in metrics.names():
        definition = metrics.definition(name)
        options = "".join(
            f"<br>{name}: " + (", ".join(f"`{word}`" for word in parameter.choices) or "a number")
            for name, parameter in definition.parameters.items()
        )
        spelling = f"`{name}@k`" if definition.has_cut_off else f"`{name}`"
        upper = "1" if definition.upper_bound == 1 else "∞"
        cells = [spelling + options, definition.summary, f"${definition.formula}$", f"0 to {upper}"]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def test_the_metric_table_is_that_of_the_registry():
    assert metric_table() in README.read_text(), f"put this into the README:\n{metric_table()}"


def test_all_python_runs(capsys):
    torch.manual_seed(0)
    namespace = {}
    for block in re.findall(r"```python\n(.*?)```", README.read_text(), flags=re.DOTALL):
        exec(block, namespace)
    assert "users evaluated" in capsys.readouterr().out
    assert namespace["result"].per_user["recall@20"].shape == (1000,)
    recall = metrics.recall(namespace["ranked"], k=2)
    assert recall.tolist() == pytest.approx([0.5, 1.0])
