"""Evaluation of graph recommenders in PyTorch Geometric: rank once, then measure."""

from importlib import import_module
from typing import TYPE_CHECKING

from pyg_recmetrics.version import __version__ as __version__

if TYPE_CHECKING:  # `as` says to type checkers that a name is public
    from pyg_recmetrics import conventions as conventions
    from pyg_recmetrics import datasets as datasets
    from pyg_recmetrics import distributed as distributed
    from pyg_recmetrics import metrics as metrics
    from pyg_recmetrics import modules as modules
    from pyg_recmetrics import plot as plot
    from pyg_recmetrics import transforms as transforms
    from pyg_recmetrics.benchmark import Benchmark as Benchmark
    from pyg_recmetrics.conventions import Population as Population
    from pyg_recmetrics.evaluation import Evaluator as Evaluator
    from pyg_recmetrics.evaluation import evaluate as evaluate
    from pyg_recmetrics.margins import Margin as Margin
    from pyg_recmetrics.ranked_edges import RankedEdges as RankedEdges
    from pyg_recmetrics.ranking import PairScorer as PairScorer
    from pyg_recmetrics.ranking import rank as rank
    from pyg_recmetrics.reporting import report as report
    from pyg_recmetrics.results import Cohorts as Cohorts
    from pyg_recmetrics.results import Comparison as Comparison
    from pyg_recmetrics.results import EvaluationResult as EvaluationResult
    from pyg_recmetrics.results import Runs as Runs
    from pyg_recmetrics.results import compare as compare
    from pyg_recmetrics.results import merge as merge
    from pyg_recmetrics.task import Catalogue as Catalogue
    from pyg_recmetrics.task import RankingTask as RankingTask

#: The public names that are not modules, by the module where they are.
_NAMES = {
    "benchmark": ("Benchmark",),
    "conventions": ("Population",),
    "evaluation": ("Evaluator", "evaluate"),
    "margins": ("Margin",),
    "ranked_edges": ("RankedEdges",),
    "ranking": ("PairScorer", "rank"),
    "reporting": ("report",),
    "results": (
        *("Cohorts", "Comparison", "EvaluationResult", "Runs"),
        *("compare", "merge"),
    ),
    "task": ("Catalogue", "RankingTask"),
}
_MODULES = {name: module for module, names in _NAMES.items() for name in names}
_PARTS = ("conventions", "datasets", "distributed", "metrics", "modules", "plot", "transforms")

if not TYPE_CHECKING:  # which reads the imports above, and would take any name for right
    __all__ = sorted(["__version__", *_MODULES, *_PARTS])

    def __getattr__(name):
        # Imported when asked for: torch takes seconds, which the help of the command need not wait.
        if name in _MODULES:
            value = getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
        else:
            value = _import_part(name)
        globals()[name] = value
        return value

    def _import_part(name):
        """Returns a module of the package."""
        path = f"{__name__}.{name}"
        try:
            if not name.startswith("_"):
                return import_module(path)
        except ModuleNotFoundError as error:
            if error.name != path:
                raise
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'{_remedy(name)}")

    def _remedy(name):
        """Returns what to write where a name sounds like a metric."""
        from pyg_recmetrics import metrics

        metric = name.lower().partition("_at_")[0].partition("@")[0]
        if name.startswith("_") or metric not in metrics.names():
            return ""
        return f"; write evaluate(model, data, '{metric}@20')"

    def __dir__():
        return sorted(__all__)
