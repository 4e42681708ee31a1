"""Ranking: what can be ranked, in which order users go through, and the ways to their ranks.

This package may import the ranked edges and all layers below them. It knows no metrics.
"""

from pyg_recmetrics.ranking.adapt import RecommenderLike
from pyg_recmetrics.ranking.algorithms import Algorithm
from pyg_recmetrics.ranking.ranking import rank
from pyg_recmetrics.ranking.recommenders import PairScorer

__all__ = ["Algorithm", "PairScorer", "RecommenderLike", "rank"]
