"""Evaluation of graph recommenders in PyTorch Geometric: rank once, then measure."""

from pyg_recmetrics import conventions, datasets, metrics, transforms
from pyg_recmetrics.evaluation import Evaluator, evaluate
from pyg_recmetrics.ranked_edges import RankedEdges
from pyg_recmetrics.ranking import rank
from pyg_recmetrics.result import EvaluationResult
from pyg_recmetrics.task import RankingTask
from pyg_recmetrics.version import __version__

__all__ = [
    "EvaluationResult",
    "Evaluator",
    "RankedEdges",
    "RankingTask",
    "__version__",
    "conventions",
    "datasets",
    "evaluate",
    "metrics",
    "rank",
    "transforms",
]
