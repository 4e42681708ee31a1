"""Ranking: what can be ranked, in which order users go through, and three ways to their ranks.

Imports the task, the ranked edges, the kernels, and what these stand on. It knows no metrics.
"""

from pyg_recmetrics.ranking.adapt import RecommenderLike
from pyg_recmetrics.ranking.algorithms import Algorithm
from pyg_recmetrics.ranking.constant_scores import has_constant_scores
from pyg_recmetrics.ranking.ranking import rank

__all__ = ["Algorithm", "RecommenderLike", "has_constant_scores", "rank"]
