"""Evaluation of graph recommenders in PyTorch Geometric: rank once, then measure."""

from importlib import import_module
from types import ModuleType

from pyg_recmetrics import conventions, datasets, distributed, metrics, plot, transforms
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
    side_by_side,
)
from pyg_recmetrics.task import Catalogue, RankingTask
from pyg_recmetrics.version import __version__

__all__ = [
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


def __getattr__(name: str) -> ModuleType:
    # Imported only when it is asked for: where torchmetrics is installed, its import takes seconds.
    if name == "modules":
        return import_module("pyg_recmetrics.modules")
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
