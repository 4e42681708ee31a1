"""Executes the notebooks in a clean kernel, and writes the outputs into them.

python -m tests.support.tools.notebooks

The metadata of a cell lists what its output has to contain: `"promises": ["a part of a line", ..]`.
`"promises_with": {"recometrics": [..]}` lists what it contains where that package is installed, as
in the outputs that are committed.
"""

import os
import re
from collections.abc import Callable
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbformat import NotebookNode

ROOT = Path(__file__).resolve().parents[3]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))

#: How many seconds a cell may run.
CELL_TIMEOUT = 900


def execute(notebook: NotebookNode, folder: Path) -> None:
    """Replaces all outputs by those of a new kernel, which runs in `folder` with this package."""
    paths = [str(ROOT), *os.environ.get("PYTHONPATH", "").split(os.pathsep)]
    client = NotebookClient(
        notebook,
        timeout=CELL_TIMEOUT,
        kernel_name="python3",
        record_timing=False,
        coalesce_streams=True,
        resources={"metadata": {"path": str(folder)}},
    )
    client.execute(env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))})


def code_cells(notebook: NotebookNode) -> list[NotebookNode]:
    """Returns the code cells of a notebook, in their order."""
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def text_of(cell: NotebookNode) -> str:
    """Returns all outputs of a cell as text, without its pictures."""
    parts = []
    for output in cell.outputs:
        data = output.get("data", {})
        parts += [output.get("text", ""), data.get("text/plain", "")]
        parts.append(re.sub(r"<[^>]+>", " ", data.get("text/html", "")))
    return "\n".join(parts)


def missing_promises(cell: NotebookNode, is_installed: Callable[[str], object]) -> list[str]:
    """Returns the promises of a cell that its output does not contain."""
    promises = [*cell.metadata.get("promises", [])]
    for package, lines in cell.metadata.get("promises_with", {}).items():
        promises += lines if is_installed(package) else []
    return [line for line in promises if line not in text_of(cell)]


def main() -> None:
    for path in NOTEBOOKS:
        notebook = nbformat.read(path, as_version=4)
        execute(notebook, path.parent)
        # Without the version of Python, so that another version does not change the file.
        notebook.metadata["language_info"] = {"name": "python"}
        nbformat.write(notebook, path)


if __name__ == "__main__":
    main()
