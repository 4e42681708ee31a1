"""The site of the documentation, built without warnings: it is complete and stands alone."""

import importlib
import importlib.util
import json
import re
import shutil
import subprocess
import sys
import zlib
from html import escape, unescape
from pathlib import Path
from urllib.parse import unquote

import pytest
from colab import with_badge
from reference_pages import PARTS

import pyg_recmetrics
from pyg_recmetrics import metrics

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    if importlib.util.find_spec("sphinx") is None:
        pytest.skip("needs sphinx, which the extra 'docs' installs")
    # Of a copy, as Sphinx writes pages beside those that are there.
    root = tmp_path_factory.mktemp("repository")
    written = ("_build", "generated", "notebooks", "reference")
    shutil.copytree(DOCS, root / "docs", ignore=shutil.ignore_patterns(*written))
    for name in ("CHANGELOG.md", "benchmarks", "examples", "notebooks"):
        (root / name).symlink_to(ROOT / name)
    # An earlier build into `docs/_build` leaves notebooks, which are no pages.
    left = root / "docs" / "jupyter_execute"
    left.mkdir(exist_ok=True)
    shutil.copy(ROOT / "notebooks" / "lightgcn.ipynb", left)
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "docs", "site"]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return root / "site"


@pytest.fixture(scope="module")
def explained(site):
    """All names that the reference explains."""
    # After four lines of a header, the list of names is compressed.
    *_, packed = (site / "objects.inv").read_bytes().split(b"\n", maxsplit=4)
    return {line.split(" ")[0] for line in zlib.decompress(packed).decode().splitlines()}


def test_every_public_name_and_every_metric_is_in_the_reference(explained):
    public = set(pyg_recmetrics.__all__) - {"__version__"}
    assert {f"pyg_recmetrics.{name}" for name in public} <= explained
    assert {f"pyg_recmetrics.metrics.{name}" for name in metrics.names()} <= explained
    classes = dir(pyg_recmetrics.modules)
    assert {f"pyg_recmetrics.modules.{name}" for name in classes if name[0].isupper()} <= explained


@pytest.mark.parametrize("name", PARTS)
def test_every_reference_page_starts_with_a_table_of_its_names(name, site):
    html = (site / "reference" / f"{name}.html").read_text()
    _, _, after = html.partition('<table class="summary')
    table, _, below = after.partition("</table>")
    for documented in PARTS[name].documented:
        target = f"{PARTS[name].module_name}.{documented}"
        assert f'href="#{target}"' in table
        assert f'id="{target}"' in below


def test_the_site_loads_nothing_from_a_network(site):
    pages = sorted(site.rglob("*.html"))
    assert len(pages) > 50
    for page in pages:
        loading = re.findall(r"<(?:script|link|img|iframe)\b[^>]*>", page.read_text())
        outside = [tag for tag in loading if re.search(r'(?:src|href)="(?:https?:)?//', tag)]
        assert not outside, page


def test_formulas_are_mathml(site):
    html = (site / "metrics.html").read_text()
    assert html.count("<math") > len(metrics.names())
    for page in (site / "metrics.html", *(site / "reference").glob("*.html")):
        text = page.read_text()
        assert not re.search(r"\\(frac|sum|text|min|max|log|in|leq)\b", text), page
        assert "merror" not in text, page


@pytest.mark.parametrize("name", ["lightgcn", "migrate"])
def test_notebooks_open_in_colab_and_install_the_package_there(name, site):
    path = ROOT / "notebooks" / f"{name}.ipynb"
    shown = json.loads(with_badge(path, "owner/name"))["cells"][0]["source"]
    assert f"colab.research.google.com/github/owner/name/blob/main/notebooks/{name}.ipynb" in shown
    html = (site / "notebooks" / f"{name}.html").read_text()
    assert 'class="badge" href="https://colab.research.google.com/' in html
    assert f"notebooks/{name}.ipynb" in html
    first, *_ = (x for x in json.loads(path.read_text())["cells"] if x["cell_type"] == "code")
    (line,) = re.findall(r"%pip install (.*)", "".join(first["source"]))
    assert line == "-q release/*.whl torchmetrics matplotlib pandas scipy"


def test_links_within_the_site_lead_somewhere(site):
    pages = {page: page.read_text() for page in site.rglob("*.html")}
    lost = []
    for page, html in pages.items():
        for link in re.findall(r'<a\b[^>]*\bhref="([^"]+)"', html):
            path, _, anchor = unquote(unescape(link)).partition("#")
            if re.match(r"\w+:", path):
                continue
            target = (page.parent / path).resolve() if path else page
            is_there = target in pages if target.suffix == ".html" else target.exists()
            if not is_there or (anchor and f'id="{escape(anchor)}"' not in pages.get(target, "")):
                lost.append((page.relative_to(site), link))
    assert not lost
