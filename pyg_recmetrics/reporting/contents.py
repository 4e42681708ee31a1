"""What a report is about: results by name, and the split that they are of."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

from torch import Tensor
from torch_geometric.data import Data, HeteroData

from pyg_recmetrics.metrics import Metric
from pyg_recmetrics.results import Comparison, EvaluationResult, Runs, Sampling, compare
from pyg_recmetrics.results.comparison import is_higher_better, rows_by_pair
from pyg_recmetrics.results.measured import Measured
from pyg_recmetrics.results.runs import (
    Runnable,
    common_metrics,
    one_or_recommenders_by_name,
)
from pyg_recmetrics.results.same_task import check_same_task
from pyg_recmetrics.task.edges import coalesce_edges, contains
from pyg_recmetrics.task.graph import read_data
from pyg_recmetrics.transforms.split_report import SplitReport, check_split

#: One recommender with one run or several, or several recommenders by name.
Reportable: TypeAlias = Runnable | Mapping[str, Runnable]

#: The training, validation and test data, or what `check_split` says of them.
Split: TypeAlias = Sequence[Data | HeteroData] | SplitReport

#: With more pairs than this, one recommender is compared with the others.
_MANY_PAIRS = 6

#: The cut-off of lists if no metric has one.
_DEFAULT_K = 20


@dataclass(frozen=True)
class Contents:
    """What a report is about.

    Attributes:
        recommenders (dict): The results by name; the name of a single recommender is empty.
        split (SplitReport or None): The checks of the split.
        comparison (Comparison or None): The differences of the recommenders.
    """

    recommenders: dict[str, Measured]
    split: SplitReport | None
    comparison: Comparison | None

    @classmethod
    def of(
        cls, results: Reportable, split: Split | None = None, comparison: object = None
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
        singles = {name: runs.runs[0] for name, runs in recommenders.items()}
        check_same_task(singles)
        first = next(iter(singles.values()))
        checked = None if split is None else _check_split(split, first)
        return cls(recommenders, checked, _compare(recommenders, comparison))

    @cached_property
    def runs(self) -> dict[str, Sequence[EvaluationResult]]:
        """The runs of each recommender, of which there may be one."""
        return {name: result.runs for name, result in self.recommenders.items()}

    @cached_property
    def singles(self) -> dict[str, EvaluationResult]:
        """The first run of each recommender."""
        return {name: runs[0] for name, runs in self.runs.items()}

    @property
    def first(self) -> EvaluationResult:
        """The first run of the first recommender."""
        return next(iter(self.singles.values()))

    @cached_property
    def every(self) -> list[EvaluationResult]:
        """All runs of all recommenders."""
        return [run for runs in self.runs.values() for run in runs]

    @property
    def largest(self) -> EvaluationResult:
        """The first of the runs that evaluate the most users."""
        return max(self.every, key=lambda run: run.user_counts.num_evaluated)

    @property
    def num_sampled_from(self) -> int | None:
        """Of how many users there are samples that stand for all; `None` if there is no sample."""
        return next((sample.num_users for sample in map(sample_of, self.every) if sample), None)

    @cached_property
    def several(self) -> dict[str, Runs]:
        """The recommenders with several runs."""
        found = self.recommenders.items()
        return {name: runs for name, runs in found if isinstance(runs, Runs)}

    @cached_property
    def metrics(self) -> tuple[Metric, ...]:
        """The metrics that all results have for every user."""
        common = common_metrics(self.every)
        return tuple(metric for metric in common if str(metric) in self.first.per_user)

    @property
    def small_metrics(self) -> list[Metric]:
        """The metrics whose means are at most one, so that one picture can show them all."""
        return [x for x in self.metrics if all(abs(result[x]) <= 1 for result in self.every)]

    @property
    def best(self) -> str:
        """The recommender with the best mean of the main metric."""
        return self.best_but(None)

    def best_but(self, left_out: str | None) -> str:
        """Returns the recommender with the best mean of the main metric, but for one."""
        metric, sign = self.main_metric, 1 if is_higher_better(str(self.main_metric)) else -1

        def mean(name: str) -> float:
            return sign * self.recommenders[name].mean_of(metric, 0.95).value

        return max((name for name in self.recommenders if name != left_out), key=mean)

    @cached_property
    def main_comparison(self) -> Comparison | None:
        """All differences, or those from the best recommender if there are too many."""
        comparison = self.comparison
        if comparison is None or not self.metrics or len(rows_by_pair(comparison)) <= _MANY_PAIRS:
            return comparison
        of_all = set.intersection(*({row.a, row.b} for row in comparison))
        return comparison if of_all else comparison.select(name=self.best)

    @property
    def main_metric(self) -> Metric:
        """The metric of the pictures that show one: the first that has a cut-off, or the first.

        Raises:
            ValueError: If the results have no metric in common.
        """
        if not self.metrics:
            raise ValueError("the results have no metric of single users in common")
        return next((metric for metric in self.metrics if metric.k), self.metrics[0])

    @property
    def k(self) -> int:
        """The cut-off of recommended lists: the largest of the metrics."""
        return self.first.max_k or _DEFAULT_K


def sample_of(result: Measured) -> Sampling | None:
    """Returns how users were drawn, if those of a single run stand for all of the task."""
    sampling = result.runs[0].sampling
    is_sample = len(result.runs) == 1 and sampling is not None and not sampling.is_complete
    return sampling if is_sample else None


def about_rows(comparison: Comparison) -> list[tuple[list[str], list[str]]]:
    """Returns what each row of the tables of a comparison is about, headings among them."""
    return [
        ([*pair], metrics)
        for pair, rows in rows_by_pair(comparison).items()
        for metrics in ([], *([row.metric] for row in rows))
    ]


def _compare(recommenders: dict[str, Measured], comparison: object) -> Comparison | None:
    if comparison is None:
        # There may be a single one, nothing in common, or no scipy.
        with suppress(ImportError, ValueError):
            return compare(recommenders)
        return None
    if not isinstance(comparison, Comparison):
        raise TypeError(
            f"'comparison' needs to be a 'Comparison' (got {type(comparison).__name__})"
        )
    comparison.check_results(recommenders)
    return comparison


def _check_split(split: Split, result: EvaluationResult) -> SplitReport:
    if isinstance(split, SplitReport):
        return split
    if not isinstance(split, Sequence):
        raise TypeError(
            f"'split' needs to be training, validation and test data (got {type(split).__name__})"
        )
    if len(split) != 3:
        raise ValueError(
            f"'split' needs to hold training, validation and test data (got {len(split)} of them)"
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
