"""The documentation, built by `sphinx-build -W docs docs/_build`.

The reference, the table of metrics and the page of conventions are written from the package.
"""

import importlib
import inspect
import re
import sys
from operator import attrgetter
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
exclude_patterns = ["_build", "images", "generated/*.md"]  # other pages include the last
html_theme = "furo"
html_title = "pyg_recmetrics"
html_show_copyright = False
html_static_path = ["_static"]
html_css_files = ["style.css"]

myst_enable_extensions = ["colon_fence", "dollarmath"]
myst_heading_anchors = 3
default_role = "code"  # as PyG writes its docstrings
autodoc_member_order = "bysource"
autodoc_typehints = "none"  # docstrings say the types in words
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

#: The base classes that the classes of a page share, which the page explains first.
BASES = {
    "pyg_recmetrics.modules": [
        "StreamingMetric",
        "RankingMetric",
        "MeanOverUsers",
        "OverAllUsers",
        "OverListedItems",
    ]
}

#: What the functions of a page return. Nobody imports these classes, but everybody reads them.
RETURNED = {
    "pyg_recmetrics": [
        "results.History",
        "results.user_counts.UserCounts",
        "results.CohortMean",
        "results.PairedDifference",
    ],
    "pyg_recmetrics.transforms": ["split_report.StageReport", "split_report.Distribution"],
}

#: What readers of the first page look for first.
FIRST = ["evaluate", "Evaluator", "EvaluationResult", "RankingTask", "rank", "RankedEdges"]


def documented_names(module_name: str) -> list[str]:
    """Returns the names of the classes and functions that the page of a module explains."""
    module = importlib.import_module(module_name)
    # The classes of `modules` are made from the registry, so it has a list of them instead.
    public = sorted(getattr(module, "__all__", dir(module)), key=_order)
    if module is not pyg_recmetrics:  # whose page explains what it has, too
        public = [name for name in public if not _is_same_as_above(name, module)]
    names = [*BASES.get(module_name, []), *public, *RETURNED.get(module_name, [])]
    return [name for name in names if _is_explained(attrgetter(name)(module))]


def _order(name: str) -> tuple[int, str]:
    return FIRST.index(name) if name in FIRST else len(FIRST), name


def _is_same_as_above(name: str, module: object) -> bool:
    return getattr(pyg_recmetrics, name, None) is getattr(module, name)


def _is_explained(value: object) -> bool:
    return inspect.isclass(value) or (callable(value) and inspect.getdoc(value) is not None)


def described_attributes(explained: type) -> list[str]:
    """Returns the attributes that the docstring of a class describes, so no member has to."""
    _, _, described = (inspect.getdoc(explained) or "").partition("\nAttributes:\n")
    return re.findall(r"^ {4}(\w+)", described.partition("\n\n")[0], flags=re.MULTILINE)


def reference_page(module_name: str, title: str) -> str:
    """Returns the page that explains the public names of a module."""
    lines = [title, "=" * len(title), "", f".. automodule:: {module_name}", "   :no-members:", ""]
    module = importlib.import_module(module_name)
    for name in documented_names(module_name):
        directive = "autoclass" if inspect.isclass(attrgetter(name)(module)) else "autofunction"
        lines += [f".. {directive}:: {module_name}.{name}"]
        if directive == "autoclass":
            excluded = ["definition", *described_attributes(attrgetter(name)(module))]
            lines += ["   :members:", f"   :exclude-members: {', '.join(excluded)}"]
        lines += [""]
    return "\n".join(lines)


def generate(app: Sphinx) -> None:
    """Writes the pages and tables whose content comes from the package."""
    folder = HERE / "generated"
    folder.mkdir(exist_ok=True)
    for module_name, title in MODULES.items():
        path = folder / f"{module_name}.rst"
        path.write_text(reference_page(module_name, title))
    (folder / "metric_table.md").write_text(metric_table() + "\n")
    (folder / "conventions.md").write_text(conventions_page() + "\n")


def setup(app: Sphinx) -> None:
    """Tells Sphinx to call `generate` before it reads any page."""
    app.connect("builder-inited", generate)
