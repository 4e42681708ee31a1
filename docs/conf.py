"""The documentation: `sphinx-build -W docs docs/_build`. Lists of names come from the package."""

import importlib
import inspect
import sys
from pathlib import Path

from sphinx.application import Sphinx

import pyg_recmetrics

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

from tables import conventions_page, metric_table  # noqa: E402 (stands beside this file)

project = "pyg_recmetrics"
release = version = pyg_recmetrics.__version__
extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.mathjax",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
]
exclude_patterns = ["_build", "images", "generated/*.md"]  # pages include the latter
html_theme = "furo"
html_title = "pyg_recmetrics"
html_show_copyright = False
html_static_path = ["_static"]
html_css_files = ["style.css"]

myst_enable_extensions = ["colon_fence", "dollarmath"]
myst_heading_anchors = 3
default_role = "code"  # as PyG writes its docstrings
autodoc_member_order = "bysource"
autodoc_typehints = "none"  # the arguments say them in words
autodoc_preserve_defaults = True
napoleon_use_rtype = False
python_maximum_signature_line_length = 88

#: The modules of public names, in the order in which the reference lists them.
MODULES = {
    "pyg_recmetrics": "Evaluation",
    "pyg_recmetrics.metrics": "Metrics",
    "pyg_recmetrics.modules": "Metric classes",
    "pyg_recmetrics.conventions": "Conventions",
    "pyg_recmetrics.plot": "Pictures",
    "pyg_recmetrics.transforms": "Splits",
    "pyg_recmetrics.datasets": "Data sets",
    "pyg_recmetrics.distributed": "Several processes",
}

#: Classes whose methods those of a module have, which are explained once.
BASES = {"pyg_recmetrics.modules": ["RankingMetric", "MeanOverUsers", "OverAllUsers"]}

#: What a reader looks for first.
FIRST = ["evaluate", "Evaluator", "EvaluationResult", "RankingTask", "rank", "RankedEdges"]


def public_names(module_name: str) -> list[str]:
    """The public names of a module that are explained there, and not in a module of their own."""
    module = importlib.import_module(module_name)
    names = getattr(module, "__all__", None) or [
        name
        for name in dir(module)
        if not name.startswith("_")
        and getattr(getattr(module, name), "__module__", None) == module_name
    ]
    names = sorted(names, key=lambda name: FIRST.index(name) if name in FIRST else len(FIRST))
    values = {name: getattr(module, name) for name in [*BASES.get(module_name, []), *names]}
    return [
        name
        for name, value in values.items()
        if inspect.isclass(value) or (callable(value) and inspect.getdoc(value))
    ]


def reference_page(module_name: str, title: str) -> str:
    """Explains every public name of a module."""
    lines = [title, "=" * len(title), "", f".. automodule:: {module_name}", "   :no-members:", ""]
    for name in public_names(module_name):
        value = getattr(importlib.import_module(module_name), name)
        directive = "autoclass" if inspect.isclass(value) else "autofunction"
        lines += [f".. {directive}:: {module_name}.{name}"]
        if directive == "autoclass":
            lines += ["   :members:", "   :exclude-members: definition"]
        lines += [""]
    return "\n".join(lines)


def generate(app: Sphinx) -> None:
    """Writes the pages that the package itself knows best."""
    folder = HERE / "generated"
    folder.mkdir(exist_ok=True)
    for module_name, title in MODULES.items():
        path = folder / f"{module_name}.rst"
        path.write_text(reference_page(module_name, title))
    (folder / "metric_table.md").write_text(metric_table() + "\n")
    (folder / "conventions.md").write_text(conventions_page() + "\n")


def setup(app: Sphinx) -> None:
    """Lets Sphinx call what is above."""
    app.connect("builder-inited", generate)
