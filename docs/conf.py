"""The documentation, built by `sphinx-build -W docs docs/_build`.

The reference, the table of metrics and the page of conventions are written from the package, and
the notebooks are shown with the outputs they were saved with.
"""

import os
import re
import shutil
import sys
from pathlib import Path

from sphinx.application import Sphinx

import pyg_recmetrics

HERE = Path(__file__).parent
NOTEBOOKS = HERE.parent / "notebooks"
#: `owner/name` on GitHub, from where Colab opens the notebooks, once they are there.
REPOSITORY = os.environ.get("PYG_RECMETRICS_REPOSITORY")
sys.path.insert(0, str(HERE))

# These stand beside this file.
import mathml  # noqa: E402
from colab import with_badge  # noqa: E402
from reference_pages import PARTS, index_page, reference_page  # noqa: E402
from tables import conventions_page, metric_table  # noqa: E402

project = "pyg_recmetrics"
release = version = pyg_recmetrics.__version__
extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
]
# Other pages include what is generated, and the last is what myst_nb writes beside a build.
exclude_patterns = ["_build", "images", "generated", "jupyter_execute"]
html_theme = "furo"
pygments_dark_style = "github-dark"
html_title = f"pyg_recmetrics {release}"
html_show_copyright = False
html_show_sphinx = False
html_static_path = ["_static"]
html_css_files = ["style.css"]
html_favicon = html_logo = "_static/favicon.svg"
html_theme_options = {
    "light_css_variables": {
        "color-brand-primary": "#00705e",
        "color-brand-content": "#00705e",
        "color-brand-visited": "#5b4a8a",
        "hit": "#b85c00",
        "shadow": "rgb(0 0 0 / 20%)",
    },
    "dark_css_variables": {
        "color-brand-primary": "#4fd1b5",
        "color-brand-content": "#4fd1b5",
        "color-brand-visited": "#b9a6f0",
        "hit": "#ff9f43",
        "shadow": "rgb(0 0 0 / 80%)",
    },
}
html_math_renderer = "mathml"

myst_enable_extensions = ["colon_fence", "dollarmath"]
myst_heading_anchors = 3
nb_execution_mode = "off"  # tests run the notebooks
nb_merge_streams = True
default_role = "code"  # as PyG writes its docstrings
autodoc_member_order = "bysource"
autodoc_typehints = "none"  # docstrings say the types in words
autodoc_preserve_defaults = True
napoleon_use_rtype = False
python_maximum_signature_line_length = 88


def generate(app: Sphinx) -> None:
    """Writes the pages and tables whose content comes from elsewhere in the repository."""
    write("generated", {"metric_table.md": metric_table(), "conventions.md": conventions_page()})
    pages = {f"{name}.rst": reference_page(part) for name, part in PARTS.items()}
    changelog = "```{include} ../../CHANGELOG.md\n```"
    write("reference", {"index.md": index_page(), "changelog.md": changelog, **pages})
    notebooks = {path.name: with_badge(path, REPOSITORY) for path in NOTEBOOKS.glob("*.ipynb")}
    write("notebooks", notebooks)


def write(folder_name: str, files: dict[str, str]) -> None:
    """Writes files into a folder that holds nothing else."""
    folder = HERE / folder_name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for name, text in files.items():
        (folder / name).write_text(f"{text}\n")


def without_links_back(
    app: Sphinx, page: str, template: str, context: dict[str, str], tree: object
) -> None:
    """Leaves out the links from source code to the reference, some of which lead nowhere."""
    if page.startswith("_modules/"):
        context["body"] = re.sub(r'<a class="viewcode-back".*?</a>', "", context["body"])


def setup(app: Sphinx) -> None:
    """Adds the renderer of formulas, and tells Sphinx when to call the functions above."""
    mathml.setup(app)
    app.connect("builder-inited", generate)
    app.connect("html-page-context", without_links_back)
