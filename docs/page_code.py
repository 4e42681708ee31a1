"""The code of the pages, which tests run and which draws their pictures."""

import re
from pathlib import Path


def code_of(page: Path) -> list[str]:
    """Returns the blocks of code on a page."""
    return re.findall(r"```python\n(.*?)```", page.read_text(), flags=re.DOTALL)
