"""The reference: a page for each part of the package, with a table of its names on top."""

import importlib
import inspect
import re
from dataclasses import dataclass
from operator import attrgetter
from types import ModuleType

import pyg_recmetrics
from pyg_recmetrics import metrics


@dataclass(frozen=True)
class Part:
    """A part of the package, which has a page of its own.

    Attributes:
        title: The title of the page.
        about: What the part is for.
        module_name: The module of its names.
        names: Its names. If there are none, they are all public names of the module.
        first: Names that come first: what readers look for, and base classes.
        last: Names that come last: what functions return, and what few readers need.
    """

    title: str
    about: str
    module_name: str = "pyg_recmetrics"
    names: tuple[str, ...] = ()
    first: tuple[str, ...] = ()
    last: tuple[str, ...] = ()

    @property
    def module(self) -> ModuleType:
        """The module of the names."""
        return importlib.import_module(self.module_name)

    @property
    def documented(self) -> list[str]:
        """The names that the page explains, in its order."""
        # The classes of `modules` are made from the registry, so it has a list of them instead.
        public = self.names or sorted(getattr(self.module, "__all__", dir(self.module)))
        between = [name for name in public if name not in (*self.first, *self.last)]
        names = [*self.first, *between, *self.last]
        return [name for name in names if _is_explained(self.value(name))]

    def value(self, name: str) -> object:
        """Returns the function or class of a name."""
        return attrgetter(name)(self.module)


_METRICS = tuple(metrics.names())
_OF_LISTS, _OF_ALL_RANKS = _METRICS.index("coverage"), _METRICS.index("roc_auc")
_CURVES = tuple(sorted(name for name in metrics.__all__ if name.islower() and name not in _METRICS))

#: The parts by the name of their page, in the order in which the reference lists them.
PARTS = {
    "plain": Part(
        "The plain file",
        "All of it in one function.",
        "pyg_recmetrics.plain",
        names=("evaluate",),
    ),
    "evaluation": Part(
        "Evaluation",
        "From a recommender and one part of a split to its numbers.",
        names=("evaluate", "Evaluator", "Margin", "results.History"),
    ),
    "tasks": Part(
        "Tasks",
        "Who is ranked, over which items, and what is relevant.",
        names=("RankingTask", "Catalogue", "Population"),
    ),
    "ranking": Part(
        "Ranking",
        "The rank of every ground-truth edge, from which all metrics follow.",
        names=("rank", "RankedEdges", "PairScorer"),
        last=("ranked_edges.Provenance",),
    ),
    "results": Part(
        "Results",
        "Means, intervals, groups of users, and comparisons.",
        names=(
            "EvaluationResult",
            "Runs",
            "Benchmark",
            "compare",
            "merge",
            "report",
        ),
        last=(
            "Cohorts",
            "Comparison",
            "results.counts.UserCounts",
            "results.statistics.MetricMean",
            "results.PairedDifference",
            "results.Protocol",
            "results.Sampling",
        ),
    ),
    "metrics": Part(
        "Metrics of the top of a ranking",
        "One function for each metric of accuracy at a cut-off.",
        "pyg_recmetrics.metrics",
        names=_METRICS[:_OF_LISTS],
    ),
    "metrics_of_lists": Part(
        "Metrics of lists",
        "Which items the lists hold: how many, how evenly, how popular, how diverse.",
        "pyg_recmetrics.metrics",
        names=_METRICS[_OF_LISTS:_OF_ALL_RANKS],
    ),
    "metrics_of_all_ranks": Part(
        "Metrics of all ranks",
        "Metrics that look at the whole ranking.",
        "pyg_recmetrics.metrics",
        names=_METRICS[_OF_ALL_RANKS:],
    ),
    "registry": Part(
        "Curves and definitions",
        "Curves, the definition of each metric, and metrics of your own.",
        "pyg_recmetrics.metrics",
        names=_CURVES,
        last=("Metric", "Definition"),
    ),
    "modules": Part(
        "Metric classes",
        "The metrics for mini-batches, with `update` and `compute`.",
        "pyg_recmetrics.modules",
        first=(
            "StreamingMetric",
            "RankingMetric",
            "MeanOverUsers",
            "OverAllUsers",
        ),
    ),
    "conventions": Part(
        "Conventions",
        "The definitions of other libraries.",
        "pyg_recmetrics.conventions",
        names=("Convention", "get"),
    ),
    "plot": Part("Pictures", "Pictures of results.", "pyg_recmetrics.plot"),
    "transforms": Part(
        "Splits",
        "Training, validation and test data, and reports on them.",
        "pyg_recmetrics.transforms",
    ),
    "datasets": Part("Data sets", "Files and synthetic data.", "pyg_recmetrics.datasets"),
    "distributed": Part(
        "Several processes", "Groups of `torch.distributed`.", "pyg_recmetrics.distributed"
    ),
}


#: Methods that other parts of the package call, by their class. The reference leaves them out.
FOR_THE_PACKAGE = {
    "Catalogue": ("get", "to_dict"),
    "Comparison": ("bound", "check_results", "claims", "covers_training", "star"),
    "Convention": ("from_dict", "resolve_all", "to_dict"),
    "History": ("append",),
    "Measured": ("cell", "estimate_of", "recipe_of"),
    "Metric": ("check_catalogue", "check_holds", "of"),
    "Population": ("describe", "is_eligible", "measure", "select"),
    "PrecisionRecallCurve": ("curve",),
    "RankingMetric": ("with_catalogue",),
    "RankingTask": ("from_dict", "to_dict"),
    "Runs": ("tie_range",),
    "Sampling": ("from_dict", "mean_over_all", "to_dict"),
    "StreamingMetric": ("as_result", "merge", "state"),
}

#: What a subclass defines for its base class, which calls it.
HOOKS = (
    *("add", "arguments", "initial_state"),  # of metric classes
    *("arrange", "assign", "forward"),  # of transforms
    "table",  # of what prints as one
)


def pages_of_files() -> dict[str, str]:
    """Returns the page of the reference for each file of the repository whose names it explains."""
    pages: dict[str, str] = {}
    for page, part in PARTS.items():
        for name in part.documented:
            module = inspect.getmodule(part.value(name))
            file = f"{module.__name__.replace('.', '/')}.py" if module else ""
            pages.setdefault(file, page)
    return pages


def is_for_users(explained: type, method: str) -> bool:
    """Returns whether people call a method of a class, and not only other parts of the package."""
    for_the_package = (FOR_THE_PACKAGE.get(base.__name__, ()) for base in explained.__mro__)
    return method not in HOOKS and not any(method in names for names in for_the_package)


def index_page() -> str:
    """Returns the page that lists the parts and their names."""
    lines = ["# Reference", "", "Every public name, with its arguments and the errors it raises."]
    for page, part in PARTS.items():
        targets = [f"{{py:obj}}`~{part.module_name}.{name}`" for name in part.documented]
        lines += ["", f"## [{part.title}]({page}.rst)", "", part.about, "", " · ".join(targets)]
    return "\n".join([*lines, "", "```{toctree}", ":hidden:", "", *PARTS, "```", ""])


def reference_page(part: Part) -> str:
    """Returns the page that explains the names of a part, under a table of them."""
    lines = [part.title, "=" * len(part.title), ""]
    pages = [other for other in PARTS.values() if other.module_name == part.module_name]
    if part.module is pyg_recmetrics or part is not pages[0]:  # a module is explained once
        lines += [part.about, ""]
    else:
        lines += [f".. automodule:: {part.module_name}", "   :no-members:", ""]
    lines += [".. list-table::", "   :class: summary", ""]
    for name in part.documented:
        lines += [f"   * - :obj:`~{part.module_name}.{name}`", f"     - {_summary(part, name)}"]
    lines += [""]
    for name in part.documented:
        lines += [*_directive(part, name), ""]
    return "\n".join(lines)


def _directive(part: Part, name: str) -> list[str]:
    value, target = part.value(name), f"{part.module_name}.{name}"
    if not inspect.isclass(value):
        return [f".. autofunction:: {target}"]
    unused = [member for member in dir(value) if not is_for_users(value, member)]
    excluded = ["definition", *_described_attributes(value), *unused]
    return [
        f".. autoclass:: {target}",
        "   :members:",
        f"   :exclude-members: {', '.join(excluded)}",
    ]


def _summary(part: Part, name: str) -> str:
    """Returns the first sentence of a docstring, in one line."""
    paragraph, _, _ = (inspect.getdoc(part.value(name)) or "").partition("\n\n")
    return re.split(r"(?<=\.)\s", " ".join(paragraph.split()))[0]


def _is_explained(value: object) -> bool:
    return inspect.isclass(value) or (callable(value) and inspect.getdoc(value) is not None)


def _described_attributes(explained: type) -> list[str]:
    """Returns the attributes that the docstring of a class describes, so no member has to."""
    _, _, described = (inspect.getdoc(explained) or "").partition("\nAttributes:\n")
    return re.findall(r"^ {4}(\w+)", described.partition("\n\n")[0], flags=re.MULTILINE)
