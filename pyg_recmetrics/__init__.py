"""Evaluation of graph recommenders in PyTorch Geometric: rank once, then measure."""

from importlib import import_module
from typing import TYPE_CHECKING

from pyg_recmetrics.version import __version__

if TYPE_CHECKING:
    from pyg_recmetrics import (
        conventions,
        datasets,
        distributed,
        metrics,
        modules,
        plot,
        transforms,
    )
    from pyg_recmetrics.benchmark import Benchmark
    from pyg_recmetrics.conventions import Population
    from pyg_recmetrics.evaluation import Evaluator, evaluate
    from pyg_recmetrics.racing import race
    from pyg_recmetrics.ranked_edges import RankedEdges
    from pyg_recmetrics.ranking import PairScorer, rank
    from pyg_recmetrics.reporting import report
    from pyg_recmetrics.results import (
        Cohorts,
        Comparison,
        EvaluationResult,
        Race,
        Runs,
        SideBySide,
        compare,
    )
    from pyg_recmetrics.results.side_by_side import side_by_side
    from pyg_recmetrics.task import Catalogue, RankingTask

__all__ = [
    "Benchmark",
    "Catalogue",
    "Cohorts",
    "Comparison",
    "EvaluationResult",
    "Evaluator",
    "PairScorer",
    "Population",
    "Race",
    "RankedEdges",
    "RankingTask",
    "Runs",
    "SideBySide",
    "__version__",
    "compare",
    "conventions",
    "datasets",
    "distributed",
    "evaluate",
    "metrics",
    "modules",
    "plot",
    "race",
    "rank",
    "report",
    "side_by_side",
    "transforms",
]

#: The module of every public name that is not itself a module.
_MODULES = {
    "Benchmark": "benchmark",
    "Catalogue": "task",
    "Cohorts": "results",
    "Comparison": "results",
    "EvaluationResult": "results",
    "Evaluator": "evaluation",
    "PairScorer": "ranking",
    "Population": "conventions",
    "Race": "results",
    "RankedEdges": "ranked_edges",
    "RankingTask": "task",
    "Runs": "results",
    "SideBySide": "results",
    "compare": "results",
    "evaluate": "evaluation",
    "race": "racing",
    "rank": "ranking",
    "report": "reporting",
    "side_by_side": "results",
}

if not TYPE_CHECKING:  # which reads the imports above, and would take any name for right

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
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")

    def __dir__():
        return sorted(__all__)
