"""The table of a paper: several recommenders in several metrics, on one data set or several."""

from pyg_recmetrics.benchmark.benchmark import Benchmark

__all__ = ["Benchmark"]
__dir__ = __all__.copy  # what completion shows
