"""Results: the metrics of one evaluation, and all that is asked of them beyond the mean.

Imports metrics, conventions, ranked edges and the task. It knows no recommenders.
"""

from pyg_recmetrics.results.cohorts import CohortMean, Cohorts
from pyg_recmetrics.results.comparison import Comparison, PairedDifference, compare
from pyg_recmetrics.results.history import History
from pyg_recmetrics.results.result import EvaluationResult

__all__ = [
    "CohortMean",
    "Cohorts",
    "Comparison",
    "EvaluationResult",
    "History",
    "PairedDifference",
    "compare",
]
