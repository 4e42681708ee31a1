"""Several recommenders on several data sets: one table, one comparison, one page.

A data set has its own users, so nothing is paired between data sets. This package arranges what
`results` computes on each of them, and adds only what takes several: ranks, counts and orders.
"""

from pyg_recmetrics.benchmark.benchmark import Benchmark
from pyg_recmetrics.benchmark.comparison import BenchmarkComparison, DataSetCount
from pyg_recmetrics.benchmark.critical_differences import CriticalDifferences, RankedPair
from pyg_recmetrics.benchmark.sensitivity import OrderChange, Sensitivity

__all__ = [
    "Benchmark",
    "BenchmarkComparison",
    "CriticalDifferences",
    "DataSetCount",
    "OrderChange",
    "RankedPair",
    "Sensitivity",
]
