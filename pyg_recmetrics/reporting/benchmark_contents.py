"""What a report on several data sets is about."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from statistics import fmean

from pyg_recmetrics.benchmark import Benchmark, BenchmarkComparison, Sensitivity
from pyg_recmetrics.benchmark.means import MeanOnDataSet, MeansOnDataSets
from pyg_recmetrics.benchmark.ranks import mean_ranks
from pyg_recmetrics.metrics import Metric
from pyg_recmetrics.results import EvaluationResult
from pyg_recmetrics.results.runs import runs_of

#: With more pairs than this, one recommender is compared with the others.
_MANY_PAIRS = 6


@dataclass(frozen=True)
class BenchmarkContents:
    """What a report on several data sets is about.

    Attributes:
        benchmark (Benchmark): The results.
        comparison (BenchmarkComparison or None): The differences of the recommenders.
        metric (Metric): The metric of comparisons and pictures.
    """

    benchmark: Benchmark
    comparison: BenchmarkComparison | None
    metric: Metric

    @classmethod
    def of(cls, benchmark: Benchmark, comparison: object = None) -> "BenchmarkContents":
        """Returns what a report is about, from what the caller has.

        Args:
            benchmark (Benchmark): The results.
            comparison (BenchmarkComparison, optional): The differences of the recommenders.
                (default: `None`, those of :meth:`Benchmark.compare` by default)

        Raises:
            TypeError: If `comparison` is something else.
            ValueError: If `comparison` is not of these results, or the results have no metric of
                single users in common.
        """
        if comparison is None:
            metric = _main_metric(benchmark)
            return cls(benchmark, _compare(benchmark, metric), metric)
        if not isinstance(comparison, BenchmarkComparison):
            raise TypeError(
                f"'comparison' needs to be what 'compare' of the benchmark returned "
                f"(got {type(comparison).__name__})"
            )
        comparison.check_results(benchmark)
        return cls(benchmark, comparison, comparison.metric)

    @cached_property
    def means(self) -> MeansOnDataSets:
        """The means of the main metric."""
        return MeansOnDataSets(dict(self.benchmark), self.metric, 0.95)

    @cached_property
    def sensitivity(self) -> Sensitivity:
        """The order of recommenders under other protocols."""
        return self.benchmark.sensitivity(self.metric)

    @cached_property
    def best(self) -> str:
        """The recommender with the best mean rank, or else with the best ranks of its own."""
        names = self.benchmark.recommenders
        found = mean_ranks(self.means.values, names, self.means.higher_is_better)
        rows = self.means.rows.values()
        return min(names, key=lambda name: (found[name], *_own_ranks(name, rows)))

    @cached_property
    def main_comparison(self) -> BenchmarkComparison | None:
        """All differences, or those from the best recommender if there are too many."""
        comparison = self.comparison
        if comparison is None or len(comparison.counts) <= _MANY_PAIRS:
            return comparison
        of_all = set.intersection(*map(set, comparison.pairs))
        return comparison if of_all else comparison.select(self.best)

    @cached_property
    def first_of_each(self) -> dict[str, EvaluationResult]:
        """The first run of the first recommender on each data set."""
        return {
            data_set: runs_of(next(iter(results.values())))[0]
            for data_set, results in self.benchmark.items()
        }


def _own_ranks(name: str, rows: Iterable[MeanOnDataSet]) -> tuple[float, float]:
    """Returns how many data sets a recommender lacks, and its mean rank on the others."""
    places = [row.rank for row in rows if row.recommender == name and not math.isnan(row.rank)]
    return -len(places), fmean(places) if places else math.inf


def _main_metric(benchmark: Benchmark) -> Metric:
    """Returns the first metric with a value for every user that all results have."""
    for metric in benchmark.metrics:
        if all(
            str(metric) in run.per_user
            for results in benchmark.values()
            for result in results.values()
            for run in runs_of(result)
        ):
            return metric
    raise ValueError("the results have no metric of single users in common")


def _compare(benchmark: Benchmark, metric: Metric) -> BenchmarkComparison | None:
    """Returns all differences; `None` if there are none, or what they need is missing."""
    try:
        return benchmark.compare(metric)
    except (ImportError, ValueError):
        return None
