"""The command `pyg-recmetrics`: files in, tables out.

Each subcommand reads files, calls one public function, and prints what it returns. Nothing here
imports torch before a subcommand runs, so that help and mistakes in options are answered at once.
"""

from pyg_recmetrics.command.main import main

__all__ = ["main"]
