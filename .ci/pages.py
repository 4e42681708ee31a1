"""Runs the code of each page alone, with nothing installed but what `pip install ".[all]"` brings.

    python .ci/pages.py README.md docs/start.md ...

`.ci/run` runs it in a virtual environment of its own, outside of the source tree. A block that
imports something else is left out if its page says what to install. Each page has a process of its
own, a copy of this one, in which what takes long to import is at hand.
"""

import ast
import importlib.util
import os
import re
import sys
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt  # noqa: F401
import pandas as pd  # noqa: F401
import scipy.stats  # noqa: F401
import torch
import torch_geometric.nn  # noqa: F401

import pyg_recmetrics

assert "site-packages" in pyg_recmetrics.__file__, pyg_recmetrics.__file__


def missing(code):
    """Returns what a block imports that is not installed."""
    nodes = list(ast.walk(ast.parse(code)))
    names = [alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names]
    names += [node.module for node in nodes if isinstance(node, ast.ImportFrom)]
    tops = {name.removeprefix("torch.utils.").partition(".")[0] for name in names}
    return sorted(name for name in tops if importlib.util.find_spec(name) is None)


for page in [Path(name).resolve() for name in sys.argv[1:]]:
    text, blocks = page.read_text(), []
    for block in re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL):
        if others := missing(block):
            assert "pip install" in text, f"{page} needs {others}, and does not say how to get them"
        else:
            blocks.append(block)
    process = os.fork()
    if process == 0:
        os.chdir(tempfile.mkdtemp())
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        torch.manual_seed(0)
        exec(compile("\n".join(blocks), page, "exec"), {"torch": torch, "__name__": "__main__"})
        os._exit(0)
    assert os.waitpid(process, 0)[1] == 0, page
    print(f"{page}: {len(blocks)} blocks")
