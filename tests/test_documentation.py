"""The documentation builds without warnings, its code runs, and it knows every public name."""

import importlib.util
import re
import subprocess
import sys
import zlib
from pathlib import Path

import pytest
import torch

import pyg_recmetrics

ROOT = Path(__file__).resolve().parents[1]
PAGES = sorted((ROOT / "docs").glob("*.md"))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_python_of_every_page_runs(page):
    torch.manual_seed(0)
    namespace = {}
    for block in re.findall(r"```python\n(.*?)```", page.read_text(), flags=re.DOTALL):
        exec(block, namespace)


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    if importlib.util.find_spec("sphinx") is None:
        pytest.skip("needs sphinx, which the extra 'docs' installs")
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "docs", str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder


def test_every_public_name_is_in_the_reference(site):
    # After four lines of a header, the list of all names that are explained, compressed.
    *_, packed = (site / "objects.inv").read_bytes().split(b"\n", maxsplit=4)
    known = {line.split(" ")[0] for line in zlib.decompress(packed).decode().splitlines()}
    missing = [
        name
        for name in pyg_recmetrics.__all__
        if f"pyg_recmetrics.{name}" not in known and name != "__version__"
    ]
    assert not missing
    for name in pyg_recmetrics.metrics.names():
        assert f"pyg_recmetrics.metrics.{name}" in known
