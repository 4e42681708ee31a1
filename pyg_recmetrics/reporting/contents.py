"""What a report is about: results by name, and the split that they are of."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias, TypeVar

from torch import Tensor
from torch_geometric.data import Data, HeteroData

from pyg_recmetrics.benchmark import Benchmark, BenchmarkComparison
from pyg_recmetrics.metrics import Metric
from pyg_recmetrics.plot.picture import Recommenders, all_runs
from pyg_recmetrics.results import Comparison, EvaluationResult, compare
from pyg_recmetrics.results.comparison import is_higher_better
from pyg_recmetrics.results.result import Measured, mean_of
from pyg_recmetrics.results.runs import common_metrics, one_or_recommenders_by_name
from pyg_recmetrics.results.same_task import check_same_task
from pyg_recmetrics.task.edges import coalesce_edges, contains
from pyg_recmetrics.task.graph import read_data
from pyg_recmetrics.transforms.split_report import SplitReport, check_split

#: The training, validation and test data, or what `check_split` says of them.
Split: TypeAlias = Sequence[Data | HeteroData] | SplitReport

_Compared = TypeVar("_Compared", Comparison, BenchmarkComparison)

#: With more pairs than this, one recommender is compared with the others.
_MANY_PAIRS = 6

#: The cut-off of lists if no metric has one.
_DEFAULT_K = 20


@dataclass(frozen=True)
class Contents:
    """What a report on a data set is about.

    Attributes:
        recommenders (mapping): The results by name; the name of a single recommender is empty.
        split (SplitReport or None): The checks of the split.
        comparison (Comparison or None): The differences of the recommenders.
        metric (Metric or None): The metric of the pictures that show one; `None` for the first
            that has a cut-off, or the first.
    """

    recommenders: Mapping[str, Measured]
    split: SplitReport | None = None
    comparison: Comparison | None = None
    metric: Metric | None = None

    @classmethod
    def of(
        cls, results: Recommenders, split: Split | None = None, comparison: object = None
    ) -> "Contents":
        """Returns what a report is about, from what the caller has.

        Args:
            results (EvaluationResult, Runs, sequence or dict): The results.
            split (tuple or SplitReport, optional): The parts of the split, or their checks.
            comparison (Comparison, optional): The differences of the recommenders.
                (default: `None`, those of :func:`compare` by default)

        Raises:
            ImportError: If a recommender has several runs, and scipy is not installed.
            TypeError: If `results` is or holds something else, or `split` holds no data.
            ValueError: If there is no result, they are of different tasks, `split` does not hold
                three parts of one graph, neither its test nor its validation part holds the
                ground truth of the results, or `comparison` is not of these results.
        """
        recommenders = one_or_recommenders_by_name(results)
        check_same_task({name: result.runs[0] for name, result in recommenders.items()})
        checked = None if split is None else _check_split(split, cls(recommenders).first)
        found = _compared(recommenders, comparison, Comparison, lambda: compare(recommenders))
        return cls(recommenders, checked, found)

    @property
    def first(self) -> EvaluationResult:
        """The first run of the first recommender."""
        return self.every[0]

    @cached_property
    def every(self) -> list[EvaluationResult]:
        """All runs of all recommenders."""
        return all_runs(self.recommenders.values())

    @cached_property
    def metrics(self) -> tuple[Metric, ...]:
        """The metrics that all results have for every user."""
        return tuple(x for x in common_metrics(self.every) if str(x) in self.first.per_user)

    @property
    def ranking(self) -> list[str]:
        """The recommenders by their mean of the main metric, the best first."""
        metric = self.main_metric
        means = {name: mean_of(x, metric).value for name, x in self.recommenders.items()}
        return sorted(means, key=lambda name: means[name], reverse=is_higher_better(str(metric)))

    @cached_property
    def main_comparison(self) -> Comparison | None:
        """All differences, or those from the best recommender if there are too many."""
        return self.comparison and _main(self.comparison, [self])

    @property
    def main_metric(self) -> Metric:
        """The metric of the pictures that show one.

        Raises:
            ValueError: If the results have no metric in common.
        """
        if self.metric is not None:
            return self.metric
        if not self.metrics:
            raise ValueError("the results have no metric of single users in common")
        return next((metric for metric in self.metrics if metric.k), self.metrics[0])

    @property
    def k(self) -> int:
        """The cut-off of recommended lists: the largest of the metrics."""
        return self.first.max_k or _DEFAULT_K


def of_data_sets(
    benchmark: Benchmark, comparison: object = None
) -> tuple[dict[str, Contents], BenchmarkComparison | None]:
    """Returns what a report on each data set is about, and the main differences on all of them.

    Raises:
        TypeError: If `comparison` is something else than what :meth:`Benchmark.compare` returns.
        ValueError: If `comparison` is not of these results.
    """
    common = set.intersection(*(set(Contents(x).metrics) for x in benchmark.values()))
    metric = next((metric for metric in benchmark.metrics if metric in common), None)
    found = _compared(benchmark, comparison, BenchmarkComparison, lambda: benchmark.compare(metric))
    metric = metric if found is None else found.metric
    data_sets = {
        data_set: Contents(results, None, None if found is None else found.get(data_set), metric)
        for data_set, results in benchmark.items()
    }
    return data_sets, found and _main(found, data_sets.values())


def _main(comparison: _Compared, data_sets: Iterable[Contents]) -> _Compared:
    """Returns all differences, or those from what is best most often if there are too many."""
    best = [contents.ranking[0] for contents in data_sets if contents.metrics]
    each = [comparison] if isinstance(comparison, Comparison) else comparison.values()
    pairs = {frozenset((row.a, row.b)) for rows in each for row in rows}
    if len(pairs) <= _MANY_PAIRS or frozenset.intersection(*pairs) or not best:
        return comparison
    return comparison.select(name=max(best, key=best.count))


def _compared(
    results: Any, comparison: object, kind: type[_Compared], compare: Callable[[], _Compared]
) -> _Compared | None:
    """Returns a comparison of results, which may be given; `None` if nothing can be compared."""
    if comparison is None:
        # There may be a single one, nothing in common, or no scipy.
        with suppress(ImportError, ValueError):
            return compare()
        return None
    if not isinstance(comparison, kind):
        raise TypeError(
            f"'comparison' needs to be a '{kind.__name__}' (got {type(comparison).__name__})"
        )
    comparison.check_results(results)
    return comparison


def _check_split(split: Split, result: EvaluationResult) -> SplitReport:
    if isinstance(split, SplitReport):
        return split
    if not isinstance(split, Sequence) or len(split) != 3:
        raise TypeError(
            f"'split' needs to be training, validation and test data (got {type(split).__name__})"
        )
    train, val, test = split
    # Only homogeneous data may leave open which of its nodes are users.
    num_users = result.ranked.num_users if isinstance(train, Data) else None
    checked = check_split(train, val, test, num_users=num_users)
    if not any(_has_truth(part, num_users, result.ranked.edge_label_index) for part in (test, val)):
        raise ValueError(
            "'split' does not match the results: neither its test nor its validation data hold "
            "their ground truth"
        )
    return checked


def _has_truth(part: Data | HeteroData, num_users: int | None, truth: Tensor) -> bool:
    """Returns whether a part of a split has all edges as ground truth."""
    edges = read_data(part, None, num_users)
    if truth.numel() and int(truth[1].max()) >= edges.num_items:
        return False
    held = coalesce_edges(edges.truth, edges.num_items)
    return bool(contains(held, truth.to(held.device), edges.num_items).all())
