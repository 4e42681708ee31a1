"""Measured: what one run of a recommender and several runs have in common."""

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from pyg_recmetrics.checks import check_level, check_positive_integer
from pyg_recmetrics.metrics import Metric, parse
from pyg_recmetrics.metrics.beyond_accuracy import exposure
from pyg_recmetrics.ranked_edges import catalogue_of
from pyg_recmetrics.results.cohorts import (
    CohortMean,
    Cohorts,
    Intervals,
    by_groups,
    by_popularity,
    group_by_degree,
)
from pyg_recmetrics.results.estimates import Estimate, mean_of_runs, mean_of_users
from pyg_recmetrics.results.notes import Nouns
from pyg_recmetrics.tables import Tabular
from pyg_recmetrics.task.catalogue import check_has

if TYPE_CHECKING:
    from pyg_recmetrics.results.result import EvaluationResult, TieRange


class Measured(Tabular):
    """One run of a recommender, or several: a value for every row in every run."""

    metrics: tuple[Metric, ...]

    @property
    @abstractmethod
    def runs(self) -> "tuple[EvaluationResult, ...]":
        """The runs. Those whose rankings are equal are one."""

    @property
    def nouns(self) -> Nouns:
        """What its rows are called, such as `"queries"`."""
        return self.runs[0].user_counts.nouns

    def values_of(self, metric: str | Metric) -> Tensor:
        r"""Returns what every row contributes to the mean of a metric in every run.

        This is :attr:`per_user` after `empty_target_action` was applied. The mean of a run is the
        mean of its row, without those that are `NaN`, who do not count.

        Args:
            metric (str or Metric): One of the metrics that were evaluated, or any other metric of
                the convention that the ranking is deep enough for.

        Returns:
            A double-precision tensor of shape `[num_runs, num_users]`. A result is one run. There
            is a column for every edge with `per="edge"`, and for every person with `per="person"`.

        Raises:
            ValueError: If there is no such metric, or it has one value for all users together.

        Example:
            >>> import torch
            >>> from pyg_recmetrics import RankingTask, evaluate
            >>> task = RankingTask(torch.tensor([[0, 1], [2, 0]]), num_users=3, num_items=3)
            >>> scores = torch.tensor([0.1, 0.3, 0.2])
            >>> result = evaluate(scores, task, "recall@2", empty_target_action="neg")
            >>> result.values_of("recall@2").tolist(), result.per_user["recall@2"].tolist()
            ([[1.0, 0.0, 0.0]], [1.0, 0.0, nan])
        """
        device = self.runs[0].ranked.rank.device
        return torch.stack([run._contributions(metric).to(device) for run in self.runs])

    def estimate_of(self, metric: str | Metric) -> Estimate:
        """Returns the mean of a metric over rows and runs, and what each adds to its error.

        A metric of all users together varies by runs alone.

        Raises:
            ValueError: If there is no such metric, or only some runs have it.
        """
        if self.has_rows(metric):
            return mean_of_users(self.values_of(metric), self.runs[0]._person)
        if not all(metric in run for run in self.runs):
            raise ValueError(f"'metric' needs to be a metric of all results (got '{metric}')")
        means = [run[metric] for run in self.runs]
        return mean_of_runs(torch.tensor(means, dtype=torch.double, device="cpu"))

    def mean_of(self, metric: str | Metric, level: float = 0.95) -> CohortMean:
        """Returns the mean of a metric over rows and runs, with its confidence interval.

        Args:
            metric (str or Metric): The metric, as `name@k`.
            level (float, optional): The level of confidence, in :math:`(0, 1)`. (default: `0.95`)

        Raises:
            ValueError: If there is no such metric, or `level` is not between 0 and 1.
        """
        if self.has_rows(metric):
            resolved = self.runs[0]._resolve(metric)
            return self._intervals(level).mean(self.values_of(metric), resolved)
        estimate, users = self.estimate_of(metric), self.runs[0].user_counts
        num_users = users.num_with_list or users.num_evaluated
        interval = estimate.interval(check_level(level))
        resolved = self.runs[0]._resolve(metric)
        ends = interval.of_metric(resolved, estimate.values)
        return CohortMean(estimate.value, *ends, num_users)

    def _values(self, metric: str | Metric) -> Tensor:
        """Returns the values of rows, or those of runs of a metric of all users together."""
        has_rows = self.has_rows(metric)
        return self.values_of(metric) if has_rows else self.estimate_of(metric).values

    def has_rows(self, metric: str | Metric) -> bool:
        """Returns whether a metric has a value for every row, or one for all together."""
        first, name = self.runs[0], str(parse(metric))
        return name in first.per_user or (
            name not in first and not first._resolve(metric).is_aggregate
        )

    def by(self, groups: Any, *, level: float = 0.95) -> Cohorts:
        r"""Measures groups of users separately, since a mean may hide large differences.

        Args:
            groups (torch.Tensor or sequence): A label for every user (or person, if means are over
                persons): integers or booleans of shape `[num_users]`, or a sequence of names. Users
                whose name is `None` are left out.
            level (float, optional): The level of the confidence intervals. (default: `0.95`)

        Returns:
            Every metric with its interval and number of users, for each label. A ratio of sums,
            such as a micro average, is that of the sums over the group. Metrics that have one value
            for all users together are left out.

        Raises:
            TypeError: If `groups` does not hold labels.
            ValueError: If there is not one label for every user, or `level` is not between 0 and 1.

        Example:
            >>> import torch
            >>> from pyg_recmetrics import RankingTask, evaluate
            >>> truth = torch.tensor([[0, 1, 2, 3], [0, 1, 0, 1]])
            >>> task = RankingTask(truth, num_users=4, num_items=2)
            >>> result = evaluate(torch.tensor([0.9, 0.1]), task, ["recall@1", "mrr@2"])
            >>> cohorts = result.by(["new", "new", "old", None])
            >>> print(cohorts)
            group  users        recall@1                      mrr@2
            -------------------------------------------------------
            new        2  0.5000 ± .5000  0.7500 (0.0000 to 1.0000)
            old        1          1.0000                     1.0000
            ±: 95% confidence interval of the mean over users
            intervals may be too narrow: there are few users in some groups (2)
            >>> cohorts["new"]["recall@1"].value
            0.5
        """
        group, labels = self.runs[0]._read_groups(groups)
        return self._by_groups(group, labels, "group", level)

    def by_degree(self, bins: int = 5, *, level: float = 0.95) -> Cohorts:
        r"""Measures users with few and with many seen edges separately.

        The bounds are quantiles of the degree over the users who count. Users of the same degree
        are always in the same group, so groups may differ in size, and there may be fewer than
        `bins`.

        Args:
            bins (int, optional): The number of groups. (default: `5`)
            level (float, optional): See :meth:`by`. (default: `0.95`)

        Returns:
            The groups from the smallest to the largest degree, labelled by their range, such as
            `"3-7"`.

        Raises:
            ValueError: If seen edges are not known, `bins` is not a positive integer, `level` is
                not between 0 and 1.

        Example:
            >>> import torch
            >>> from pyg_recmetrics import RankingTask, evaluate
            >>> truth = torch.tensor([[0, 1, 2, 3], [0, 1, 0, 1]])
            >>> seen = torch.tensor([[1, 2, 2, 3, 3, 3], [2, 2, 3, 2, 3, 4]])
            >>> task = RankingTask(truth, num_users=4, num_items=5, seen=seen)
            >>> list(evaluate(torch.rand(5), task, "recall@1").by_degree(bins=2))
            ['0-1', '2-3']
        """
        first = self.runs[0]
        degree = first._degree
        is_counted = torch.stack([run._is_counted.to(degree.device) for run in self.runs])
        group, labels = group_by_degree(degree, is_counted.all(dim=0), bins)
        return self._by_groups(group, labels, "training degree", level)

    def recall_by_popularity(self, k: int = 20, bins: int = 5, *, level: float = 0.95) -> Cohorts:
        r"""Measures the recall of popular and of other items separately.

        The popularity of an item is the number of users who have seen it. Quantiles of it cut the
        catalogue into buckets. Items of the same popularity are always in the same bucket, so
        buckets may differ in size, and there may be fewer than `bins`. The recall of a user in a
        bucket is that of the convention, as if only the relevant items in that bucket were
        relevant: with the standard convention, the fraction of them that are among the top `k` of
        the whole catalogue. The mean is over users who have such items, whatever
        `empty_target_action` is.

        Args:
            k (int, optional): The cut-off. (default: `20`)
            bins (int, optional): The number of buckets. (default: `5`)
            level (float, optional): See :meth:`by`. (default: `0.95`)

        Returns:
            The buckets from the least to the most popular, labelled by their range of popularity.

        Raises:
            ValueError: If seen edges are not known, the convention has no recall, `k` is deeper
                than was ranked, `bins` is not a positive integer, `level` is not between 0 and 1.

        Example:
            >>> import torch
            >>> from pyg_recmetrics import RankingTask, evaluate
            >>> truth = torch.tensor([[0, 0, 1], [1, 2, 2]])
            >>> seen = torch.tensor([[1, 2, 2], [1, 1, 0]])
            >>> task = RankingTask(truth, num_users=3, num_items=3, seen=seen)
            >>> most_popular = torch.bincount(seen[1], minlength=3).float()
            >>> result = evaluate(most_popular, task, "recall@1")
            >>> buckets = result.recall_by_popularity(k=1, bins=3)
            >>> {label: means["recall@1"].value for label, means in buckets.items()}
            {'0': 0.0, '1': nan, '2': 1.0}
        """
        common_popularity(self.runs, "recall_by_popularity")
        recalls = [run._partial_recall(check_positive_integer(k, "k")) for run in self.runs]
        return by_popularity(recalls, self.runs[0]._candidates, bins, self._intervals(level))

    @property
    @abstractmethod
    def num_tied(self) -> float | None:
        """The number of ground-truth edges with the score of another candidate, over runs."""

    @abstractmethod
    def tie_range(self, metric: str | Metric) -> "TieRange":
        """Returns the lowest and the highest mean, over all orders of equal scores."""

    @abstractmethod
    def cell(self, metric: str | Metric) -> str:
        """Returns the mean of a metric with its interval, as tables show it."""

    def exposure_of(self, k: int) -> Tensor:
        """Counts for each item how many lists hold it in their top `k`, on average over runs.

        Where some users stand for all, counts are scaled up, so that samples of different sizes can
        be compared.

        Returns:
            A double-precision tensor of shape `[num_items]`, on the CPU.

        Raises:
            ValueError: If a result does not hold lists down to `k`.
        """
        counts = [exposure(run.ranked, k).cpu() * _users_per_ranked(run) for run in self.runs]
        return torch.stack(counts).mean(dim=0)

    def _intervals(self, level: float) -> Intervals:
        first = self.runs[0]
        level, nouns = check_level(level), self.nouns
        return Intervals(first._person, level, nouns, self._note_on_sample())

    @abstractmethod
    def _note_on_sample(self) -> str | None:
        """Returns whose users stand for all of the task; `None` if nobody's do."""

    def _by_groups(self, group: Tensor, labels: Sequence[Any], name: str, level: float) -> Cohorts:
        intervals, device = self._intervals(level), self.runs[0].ranked.rank.device
        of_runs = [run._values_of_groups(group, len(labels)) for run in self.runs]
        values: Mapping[str, Tensor] = {
            metric: torch.stack([of_run[metric].to(device) for of_run in of_runs])
            for metric in of_runs[0]
            if all(metric in of_run for of_run in of_runs)
        }
        metrics = self.runs[0].definitions
        return by_groups(values, metrics, group, labels, name, intervals)


def common_popularity(runs: "Iterable[EvaluationResult]", needed_by: str) -> Tensor:
    """Returns how many users have seen each item, of shape `[num_items]`, on the CPU.

    Raises:
        ValueError: If a result does not know the seen edges, or theirs are not the same. The error
            says that `needed_by` needs them.
    """
    counts = []
    for run in runs:
        check_has(run.ranked.catalogue, "popularity", needed_by)
        counts.append(catalogue_of(run.ranked).popularity.cpu())
    if not all(torch.equal(count, counts[0]) for count in counts):
        raise ValueError("'results' needs to be of tasks with the same seen edges")
    return counts[0]


def _users_per_ranked(run: "EvaluationResult") -> float:
    """Returns how many users of the task each user of a result stands for."""
    # A sample has users without ground truth in the same proportion.
    return 1.0 if run.sampling is None else run.sampling.num_users / run.sampling.num_ranked
