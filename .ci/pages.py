"""Runs the code of each page alone, with nothing installed but what `pip install ".[all]"` brings.

    python .ci/pages.py README.md docs/start.md ...

`.ci/run` runs it in a virtual environment of its own, outside of the source tree. A block that
imports something else is left out if its page says what to install.
"""

import ast
import contextlib
import importlib.util
import io
import re
import sys
import tempfile
from pathlib import Path

import torch

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
    # Pages share what they import, which takes most of the time, and nothing else.
    torch.manual_seed(0)
    with contextlib.chdir(tempfile.mkdtemp()), contextlib.redirect_stdout(io.StringIO()):
        exec(compile("\n".join(blocks), page, "exec"), {"torch": torch, "__name__": "__main__"})
    print(f"{page}: {len(blocks)} blocks")
