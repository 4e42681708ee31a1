"""Results: the metrics of one evaluation, and all that is asked of them beyond the mean.

This package may import the conventions and all layers below them. It knows no recommenders.
"""

from pyg_recmetrics.results.cohorts import Cohorts
from pyg_recmetrics.results.comparison import Comparison, compare
from pyg_recmetrics.results.counts import Sampling
from pyg_recmetrics.results.merging import merge
from pyg_recmetrics.results.result import EvaluationResult
from pyg_recmetrics.results.runs import History, Runs
from pyg_recmetrics.results.verdicts import PairedDifference, Protocol

__all__ = [
    "Cohorts",
    "Comparison",
    "EvaluationResult",
    "History",
    "PairedDifference",
    "Protocol",
    "Runs",
    "Sampling",
    "compare",
    "merge",
]
__dir__ = __all__.copy  # what completion shows
