"""Executes the notebooks from a clean kernel, and writes their outputs into them.

python tests/support/notebooks.py

A cell says in its metadata what its output promises: `"promises": ["a part of a line", ..]`.
"""

import os
import re
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbformat import NotebookNode

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))


def execute(notebook: NotebookNode, folder: Path) -> None:
    """Replaces all outputs by those of a new kernel that runs in `folder` on this package."""
    paths = [str(ROOT), *os.environ.get("PYTHONPATH", "").split(os.pathsep)]
    client = NotebookClient(
        notebook,
        timeout=180,  # of a cell, of which the longest takes seconds
        kernel_name="python3",
        record_timing=False,
        coalesce_streams=True,
        resources={"metadata": {"path": str(folder)}},
    )
    client.execute(env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))})


def code_cells(notebook: NotebookNode) -> list[NotebookNode]:
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def text_of(cell: NotebookNode) -> str:
    """What a reader sees of the outputs of a cell, without its pictures."""
    parts = []
    for output in cell.outputs:
        data = output.get("data", {})
        parts += [output.get("text", ""), data.get("text/plain", "")]
        parts.append(re.sub(r"<[^>]+>", " ", data.get("text/html", "")))
    return "\n".join(parts)


def missing_promises(cell: NotebookNode) -> list[str]:
    return [line for line in cell.metadata.get("promises", []) if line not in text_of(cell)]


def main() -> None:
    for path in NOTEBOOKS:
        notebook = nbformat.read(path, as_version=4)
        execute(notebook, path.parent)
        # The version of Python that it happened to run on is nobody's business.
        notebook.metadata["language_info"] = {"name": "python"}
        nbformat.write(notebook, path)


if __name__ == "__main__":
    main()
