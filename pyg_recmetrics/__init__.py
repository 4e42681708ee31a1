"""Evaluation of graph recommenders in PyTorch Geometric: rank once, then measure."""

from importlib import import_module
from typing import TYPE_CHECKING

from pyg_recmetrics.version import __version__ as __version__

if TYPE_CHECKING:  # `as` says to type checkers that a name is public
    from pyg_recmetrics import (
        conventions as conventions,
        datasets as datasets,
        distributed as distributed,
        metrics as metrics,
        modules as modules,
        plot as plot,
        transforms as transforms,
    )
    from pyg_recmetrics.benchmark import Benchmark as Benchmark
    from pyg_recmetrics.conventions import Population as Population
    from pyg_recmetrics.evaluation import Evaluator as Evaluator, evaluate as evaluate
    from pyg_recmetrics.margins import Margin as Margin
    from pyg_recmetrics.ranked_edges import RankedEdges as RankedEdges
    from pyg_recmetrics.ranking import PairScorer as PairScorer, rank as rank
    from pyg_recmetrics.reporting import report as report
    from pyg_recmetrics.results import (
        Cohorts as Cohorts,
        Comparison as Comparison,
        EvaluationResult as EvaluationResult,
        Runs as Runs,
        compare as compare,
        merge as merge,
    )
    from pyg_recmetrics.task import Catalogue as Catalogue, RankingTask as RankingTask

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
        raise AttributeError(
            f"module '{__name__}' has no attribute '{name}'; write a metric as a name, as in "
            f"evaluate(model, data, 'recall@20')"
        )

    def __dir__():
        return sorted(__all__)
