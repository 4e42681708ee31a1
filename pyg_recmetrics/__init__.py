"""Evaluation of graph recommenders in PyTorch Geometric: rank once, then measure."""

from pyg_recmetrics import datasets, metrics
from pyg_recmetrics.evaluation import Evaluator, evaluate
from pyg_recmetrics.ranked_edges import RankedEdges
from pyg_recmetrics.ranking import rank
from pyg_recmetrics.result import EvaluationResult
from pyg_recmetrics.task import RankingTask

__version__ = "0.1.0"

__all__ = [
    "EvaluationResult",
    "Evaluator",
    "RankedEdges",
    "RankingTask",
    "datasets",
    "evaluate",
    "metrics",
    "rank",
]
