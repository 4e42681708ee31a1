"""The code of the pages, which tests run and which draws their pictures."""

import re
from pathlib import Path

#: A page that goes on from another says so with a link to it.
GOES_ON = re.compile(r"go(?:es)?\son\sfrom\s[^.]*?\[[^\]]*\]\(([\w./]+\.md)(?:#[\w-]+)?\)")


def code_before(page: Path) -> str:
    """Returns the code of the page from which a page goes on, and of those before it."""
    found = GOES_ON.search(page.read_text())
    if found is None:
        return ""
    before = page.parent / found[1]
    return code_before(before) + "\n".join(code_of(before))


def code_of(page: Path) -> list[str]:
    """Returns the blocks of code on a page, without what it goes on from."""
    return re.findall(r"```python\n(.*?)```", page.read_text(), flags=re.DOTALL)
