"""The badge above a notebook, which opens it in Colab."""

import json
from pathlib import Path

_COLAB = "https://colab.research.google.com"

_FROM_A_REPOSITORY = """<a class="badge" href="{link}">Open in Colab</a>

Run `pip wheel --no-deps --wheel-dir release .` in a clone, and upload the wheel there into a folder
`release`, from which the first cell installs it."""

_BY_UPLOAD = """<a class="badge" href="{link}">Open Colab</a>

Choose *Upload* there, and take `notebooks/{name}` from your clone. The package is not published
yet: run `pip wheel --no-deps --wheel-dir release .` in the clone, and upload the wheel into a
folder `release`, from which the first cell installs it."""


def with_badge(notebook: Path, repository: str | None) -> str:
    """Returns a notebook with a badge below its title.

    Args:
        notebook: Its file.
        repository: Where it is on GitHub, as `owner/name`; `None` if it is nowhere.
    """
    if repository is None:
        text = _BY_UPLOAD.format(link=f"{_COLAB}/#create=true", name=notebook.name)
    else:
        path = f"github/{repository}/blob/main/notebooks/{notebook.name}"
        text = _FROM_A_REPOSITORY.format(link=f"{_COLAB}/{path}")
    content = json.loads(notebook.read_text())
    first = content["cells"][0]
    title, *others = "".join(first["source"]).split("\n\n")
    first["source"] = "\n\n".join([title, text, *others])
    return json.dumps(content)
