"""Results: the metrics of one evaluation, and all that is asked of them beyond the mean.

This package may import the conventions and all layers below them. It knows no recommenders.
"""

from pyg_recmetrics.results.cohorts import CohortMean, Cohorts
from pyg_recmetrics.results.comparison import Comparison, compare
from pyg_recmetrics.results.gaps import ClosedGap, ClosedGaps, Gap, Gaps
from pyg_recmetrics.results.history import History
from pyg_recmetrics.results.merging import merge
from pyg_recmetrics.results.paired import PairedDifference, Probabilities
from pyg_recmetrics.results.power import Power
from pyg_recmetrics.results.protocol import Protocol
from pyg_recmetrics.results.race import Entrant, Race, RacedPair
from pyg_recmetrics.results.result import EvaluationResult
from pyg_recmetrics.results.runs import MeanOfRuns, Runs
from pyg_recmetrics.results.sampling import Sampling
from pyg_recmetrics.results.side_by_side import SideBySide, side_by_side
from pyg_recmetrics.results.slices import Slice, Slices

__all__ = [
    "ClosedGap",
    "ClosedGaps",
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
    "Power",
    "Probabilities",
    "Protocol",
    "Race",
    "RacedPair",
    "Runs",
    "Sampling",
    "SideBySide",
    "Slice",
    "Slices",
    "compare",
    "merge",
    "side_by_side",
]
