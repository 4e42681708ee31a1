"""The documentation, built by `sphinx-build -W docs docs/_build`.

The reference is written from the package, and the notebooks are shown with the outputs they were
saved with. Pages link to files of the repository, as they are read there, too. The site leads these
links to the pages that it makes from the files.
"""

import os
import posixpath
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
from reference_pages import PARTS, index_page, pages_of_files, reference_page  # noqa: E402

project = "pyg_recmetrics"
release = version = pyg_recmetrics.__version__
extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
]
# The last is what myst_nb writes beside a build.
exclude_patterns = ["_build", "images", "jupyter_execute"]
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
    """Writes the pages whose content comes from elsewhere in the repository."""
    pages = {f"{name}.rst": reference_page(part) for name, part in PARTS.items()}
    changelog = "```{include} ../../CHANGELOG.md\n```"
    examples = (HERE.parent / "examples" / "README.md").read_text()
    pages["examples.md"] = examples.replace("](", "](../../examples/")
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


#: The page of the site for each file of the repository that has one.
PAGES = {
    "CHANGELOG.md": "reference/changelog.md",
    "examples/README.md": "reference/examples.md",
    **{f"notebooks/{path.name}": f"notebooks/{path.name}" for path in NOTEBOOKS.glob("*.ipynb")},
    **{file: f"reference/{page}.rst" for file, page in pages_of_files().items()},
}


#: The pages below a page, in the order in which the site lists them under a caption.
CONTENTS = {
    "index": {
        "The first hour": "start notebooks/lightgcn",
        "Your data and model": "own_data splits own_model queries",
        "Metrics": "metrics semantics my_number_differs conventions",
        "Results": "comparing groups export",
        "In your work": "training command margin speed",
        "Coming from elsewhere": "migration/index notebooks/migrate",
        "Reference": "reference/index reference/examples reference/changelog",
    },
    "migration/index": {
        "Libraries": "pyg torchmetrics recbole recommenders lenskit implicit ranx recometrics",
        "Papers": "lightgcn",
    },
}


def add_directives(app: Sphinx, page: str, source: list[str]) -> None:
    """Adds the first picture and the lists of pages, which GitHub would show as code."""
    source[0] = source[0].replace(
        "<!-- idea: drawn by docs/conf.py -->", "```{raw} html\n:file: idea.html\n```"
    )
    for caption, names in CONTENTS.get(page, {}).items():
        lines = ["", "```{toctree}", ":hidden:", f":caption: {caption}", "", *names.split(), "```"]
        source[0] += "\n".join([*lines, ""])


def link_within_the_site(app: Sphinx, page: str, source: list[str]) -> None:
    """Leads links to files of the repository to the pages that are made from them."""
    folder = posixpath.dirname(page)

    def lead(link: re.Match[str]) -> str:
        file = posixpath.normpath(posixpath.join("docs", folder, link[1]))
        return f"]({posixpath.relpath(PAGES[file], folder or '.')}" if file in PAGES else link[0]

    source[0] = re.sub(r"\]\(((?:\.\./)[^)#\s]+)", lead, source[0])


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
    app.connect("source-read", add_directives)
    app.connect("source-read", link_within_the_site)
    app.connect("html-page-context", without_links_back)
