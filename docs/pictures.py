"""Draws the pictures of the pages, by the code that stands above each of them.

python docs/pictures.py
"""

import contextlib
import io
import re
from pathlib import Path
from typing import Any

import torch

HERE = Path(__file__).resolve().parent
PAGE = HERE / "results.md"

#: A block of code, and the name of the picture below it if there is one.
BLOCK = re.compile(r"```python\n(.*?)```(?:\n\n!\[[^\]]*\]\((images/\w+\.png)\))?", flags=re.DOTALL)

#: Dots per inch: sharp where the page is as wide as a text.
RESOLUTION = 150


def draw(folder: Path) -> None:
    """Writes the pictures into a folder."""
    torch.manual_seed(0)
    (folder / "images").mkdir(exist_ok=True)
    namespace: dict[str, Any] = {}
    for code, name in BLOCK.findall(PAGE.read_text()):
        with contextlib.redirect_stdout(io.StringIO()):
            if name:
                eval(code, namespace).figure.savefig(folder / name, dpi=RESOLUTION)
            else:
                exec(code, namespace)


if __name__ == "__main__":
    draw(HERE)
