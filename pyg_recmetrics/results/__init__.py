"""Results: the metrics of one evaluation, and all that is asked of them beyond the mean.

This package may import the conventions and all layers below them. It knows no recommenders.
"""

from pyg_recmetrics.results.cohorts import CohortMean, Cohorts
from pyg_recmetrics.results.comparison import Comparison, compare
from pyg_recmetrics.results.gaps import Gap, Gaps
from pyg_recmetrics.results.history import History
from pyg_recmetrics.results.merging import merge
from pyg_recmetrics.results.paired import PairedDifference
from pyg_recmetrics.results.protocol import Protocol
from pyg_recmetrics.results.race import Entrant, Race, RacedPair
from pyg_recmetrics.results.result import EvaluationResult
from pyg_recmetrics.results.runs import MeanOfRuns, Runs
from pyg_recmetrics.results.sampling import Sampling
from pyg_recmetrics.results.side_by_side import SideBySide, side_by_side

__all__ = [
    "CohortMean",
    "Cohorts",
    "Comparison",
    "Entrant",
    "EvaluationResult",
    "Gap",
    "Gaps",
    "History",
    "MeanOfRuns",
    "PairedDifference",
    "Protocol",
    "Race",
    "RacedPair",
    "Runs",
    "Sampling",
    "SideBySide",
    "compare",
    "merge",
    "side_by_side",
]
