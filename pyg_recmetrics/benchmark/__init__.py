"""Several recommenders on several data sets: one table, one comparison, one page.

A data set has its own users, so nothing is paired between data sets. This package arranges what
`results` computes on each of them.
"""

from pyg_recmetrics.benchmark.benchmark import Benchmark
from pyg_recmetrics.benchmark.comparison import BenchmarkComparison

__all__ = ["Benchmark", "BenchmarkComparison"]
__dir__ = __all__.copy  # what completion shows
