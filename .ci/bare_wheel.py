"""Checks the wheel where nothing is installed but the wheel and its requirements.

    python .ci/bare_wheel.py

`.ci/run` runs it in a virtual environment of its own, outside of the source tree.
"""

import importlib.util
import subprocess
import sys
import tempfile
from pathlib import Path

import pandas as pd
import torch
from torch_geometric.nn import LightGCN
from torch_geometric.transforms import RandomLinkSplit

import pyg_recmetrics
from pyg_recmetrics import RankingTask, compare, datasets, evaluate, modules, plot

for name in (
    *("matplotlib", "polars", "pyarrow"),
    *("torchmetrics", "torch_scatter", "lightning"),
):
    assert importlib.util.find_spec(name) is None, name
assert "site-packages" in pyg_recmetrics.__file__, pyg_recmetrics.__file__
for name in (
    *("py.typed", "modules/__init__.pyi", "conventions.json"),
    *("reporting/page.html", "results/words.jinja"),
):
    assert (Path(pyg_recmetrics.__file__).parent / name).is_file(), name


def needs(wanted, function):
    """Asserts that a function raises an error which says what to install."""
    message = "no error"
    try:
        function()
    except ImportError as error:
        message = str(error)
    assert f"pip install {wanted}" in message, message


data = datasets.synthetic_interactions(num_users=100, num_items=50, mean_degree=10)
_, _, test = RandomLinkSplit(edge_types=("user", "rates", "item"))(data)
model = LightGCN(num_nodes=150, embedding_dim=8, num_layers=1)
result = evaluate(model, test, ["r_precision", "ndcg@10", "roc_auc", "coverage@10"])
print(result)
print(result.by_degree(bins=2))
result.to_markdown()
metric = modules.Recall(k=2)
metric.update(torch.tensor([[1, 2]]), torch.tensor([[0], [1]]))
assert metric.compute() == 1

print(compare({"LightGCN": result, "again": result}))
result.to_pandas()
needs("matplotlib", lambda: plot.metric_at_k(result, max_k=5))
needs("torchmetrics", metric.plot)
RankingTask.from_frames(
    test=pd.DataFrame({"user": ["a", "b"], "item": ["x", "y"]}), items=["x", "y"]
)

# The command, which reads tables with an extra, and saved results without one.
folder = Path(tempfile.mkdtemp())
for name in ("old", "new"):
    result.save(folder / f"{name}.npz")
command = Path(sys.executable).with_name("pyg-recmetrics")


def run(*words, status=0):
    """Runs the command in that folder, and returns what it prints on both streams."""
    done = subprocess.run(
        [command, *words], cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == status, done.stderr
    return done.stdout + done.stderr


line = "evaluate --test a.csv --lists b.csv"
assert "pip install pyarrow" in run(*line.split(), status=3)
run("report", "old.npz", "new.npz", "-o", "report.html")
assert (folder / "report.html").stat().st_size > 10_000
gate = ("gate", "new.npz", "--baseline", "old.npz", "--metric", "ndcg@10", "--margin", "2%")
run(*gate, status=2)  # nobody differs, so nothing is decided
print("The wheel needs nothing but its requirements.")
