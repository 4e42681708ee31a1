"""Runs the files of `examples/`."""

import runpy
import sys
from pathlib import Path

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"


def run_example(monkeypatch, name, *arguments):
    """Runs an example with arguments of the command line, and returns what its `main` returns."""
    monkeypatch.setattr(sys, "argv", [name, *arguments])
    # A script finds others beside it.
    monkeypatch.syspath_prepend(EXAMPLES)
    try:
        return runpy.run_path(str(EXAMPLES / name))["main"]()
    finally:
        sys.modules.pop("recommenders", None)  # one of them, which has the name of a library
