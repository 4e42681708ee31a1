"""What a report on several data sets is about."""

from dataclasses import dataclass
from functools import cached_property

from pyg_recmetrics.benchmark import Benchmark, BenchmarkComparison
from pyg_recmetrics.benchmark.means import best_on_each, means_on_each
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
    def best(self) -> str:
        """The recommender that is best on most data sets."""
        best = best_on_each(means_on_each(self.benchmark, self.metric, 0.95))
        names = self.benchmark.recommenders
        return max(names, key=lambda name: sum(name in of_one for of_one in best.values()))

    @cached_property
    def main_comparison(self) -> BenchmarkComparison | None:
        """All differences, or those from the best recommender if there are too many."""
        comparison = self.comparison
        if comparison is None or len(comparison.pairs) <= _MANY_PAIRS:
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
