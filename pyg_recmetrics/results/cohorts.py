"""Cohorts: metrics measured for groups of users, or of items, and how far groups are apart."""

import math
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import chain, combinations
from typing import NamedTuple, TypeAlias

import pandas as pd
import torch
from torch import Tensor

from pyg_recmetrics.checks import check_positive_integer
from pyg_recmetrics.frozen import FrozenDict
from pyg_recmetrics.messages import list_some
from pyg_recmetrics.metrics import Metric
from pyg_recmetrics.results.counts import USERS, Nouns
from pyg_recmetrics.results.estimates import (
    Basis,
    Estimate,
    Interval,
    Sample,
    mean_of_users,
)
from pyg_recmetrics.results.notes import caution, note_on_intervals
from pyg_recmetrics.tables import Rows, Table, Tabular, format_interval, format_level

#: Two groups, the second of which is taken from the first.
Pair: TypeAlias = tuple[Hashable, Hashable]

#: How many estimates of groups are held at once, of which each takes 8 bytes for every user.
_NUM_ESTIMATES = 128


#: How many users a class of equal numbers of relevant items has, where there are as many.
_FEWEST_OF_DEGREE = 20

#: By which share of the mean number of relevant items groups may differ without a note.
_ALIKE = 0.1


class Gap(NamedTuple):
    """The difference of two groups in a metric.

    Attributes:
        metric: The metric.
        a: The label of one group.
        b: The label of the other.
        difference: The value of `a` minus that of `b`.
        low: The lower end of its confidence interval.
        high: The upper end.

    Example:
        >>> import torch
        >>> from pyg_recmetrics import RankingTask, evaluate
        >>> truth = torch.stack([torch.arange(40), torch.arange(40) % 4])
        >>> task = RankingTask(truth, num_users=40, num_items=4)
        >>> result = evaluate(torch.tensor([4.0, 3.0, 2.0, 1.0]), task, "mrr")
        >>> gaps = result.by(["a", "b"] * 20).gaps()
        >>> gap = gaps[0]
        >>> gap.a, gap.b, round(gap.difference, 4)
        ('a', 'b', 0.2917)
    """

    metric: str
    a: Hashable
    b: Hashable
    difference: float
    low: float
    high: float


class Gaps(Rows[Gap]):
    """How far groups are apart: a :class:`Gap` for every metric and pair of groups.

    :meth:`Cohorts.gaps` returns it.

    Attributes:
        level (float): The level of the intervals.

    Example:
        >>> import torch
        >>> from pyg_recmetrics import RankingTask, evaluate
        >>> truth = torch.stack([torch.arange(40), torch.arange(40) % 4])
        >>> task = RankingTask(truth, num_users=40, num_items=4)
        >>> result = evaluate(torch.tensor([4.0, 3.0, 2.0, 1.0]), task, "mrr")
        >>> gaps = result.by(["a", "b"] * 20).gaps()
        >>> len(gaps), gaps[0].metric
        (1, 'mrr')
    """

    def __init__(self, gaps: Iterable[Gap], level: float, remarks: Iterable[str] = ()) -> None:
        self._rows, self.level, self._remarks = tuple(gaps), level, tuple(remarks)

    def to_pandas(self) -> pd.DataFrame:
        """Returns a data frame with a row for every metric and pair of groups.

        Example:
            >>> import torch
            >>> from pyg_recmetrics import RankingTask, evaluate
            >>> truth = torch.stack([torch.arange(40), torch.arange(40) % 4])
            >>> task = RankingTask(truth, num_users=40, num_items=4)
            >>> result = evaluate(torch.tensor([4.0, 3.0, 2.0, 1.0]), task, "mrr")
            >>> gaps = result.by(["a", "b"] * 20).gaps()
            >>> gaps.to_pandas().columns.tolist()
            ['metric', 'a', 'b', 'difference', 'low', 'high']
        """
        return pd.DataFrame(self._rows, columns=Gap._fields)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self)} gaps)"

    def table(self) -> Table:
        """Returns the printed table."""
        rows = [
            [
                gap.metric,
                str(gap.a),
                str(gap.b),
                format_interval(gap.difference, gap.low, gap.high),
            ]
            for gap in self
        ]
        notes = (
            f"{format_level(self.level)} confidence intervals, not corrected for several pairs",
            "difference: a - b",
            *self._remarks,
        )
        return Table(["metric", "a", "b", "difference"], rows, notes, num_left=3)


class CohortMean(NamedTuple):
    """The mean of a metric over the users of a cohort.

    Attributes:
        value: The mean; `NaN` if no user counts.
        low: The lower end of its confidence interval; `NaN` for fewer than two users.
        high: The upper end.
        num_users: The number of users who count.

    Example:
        >>> import torch
        >>> from pyg_recmetrics import RankingTask, evaluate
        >>> task = RankingTask(torch.tensor([[0, 1], [2, 0]]), num_users=2, num_items=3)
        >>> result = evaluate(torch.tensor([0.1, 0.3, 0.2]), task, "mrr")
        >>> mean = result.by(["old", "new"])["old"]["mrr"]
        >>> mean.value, mean.num_users
        (0.5, 1)
    """

    value: float
    low: float
    high: float
    num_users: int


@dataclass(frozen=True, eq=False)
class Intervals:
    """How to find the confidence intervals of means over users.

    Attributes:
        person (torch.Tensor or None): The person to whom each row belongs, of shape `[num_users]`.
        level (float): The level of confidence.
        nouns (Nouns): What the rows are called.
        remarks (tuple of str): What else a table says: which users stand for all, if some do, and
            what groups differ in.
        are_differences (bool): Whether values are differences, which may be negative for any
            metric and have no ratio.
    """

    person: Tensor | None
    level: float
    nouns: Nouns = USERS
    remarks: tuple[str, ...] = ()
    are_differences: bool = False

    def notes(self, num_runs: int) -> tuple[str, ...]:
        """Returns what a table says about them."""
        note = note_on_intervals(self.level, self.person, self.nouns, num_runs)
        return (note, *self.remarks)

    def caution(self, samples: Iterable[tuple[str, Sample]]) -> str | None:
        """Returns what makes the interval of some group too narrow; `None` if nothing does."""
        bases = [Basis.of(name, sample) for name, sample in samples]
        return caution(bases, f"{self.nouns.means} in some groups", self.nouns.drawn)

    def counted(self, values: Tensor) -> Sample:
        """Returns the users who count, with their means over runs."""
        return Sample.of(values.mean(dim=0), self.person)

    def mean(self, values: Tensor, metric: Metric) -> CohortMean:
        """Returns the mean over users and runs, with its interval.

        Args:
            values (torch.Tensor): The values of users in each run, of shape
                `[num_runs, num_users]`. Users who are `NaN` in any run do not count.
            metric (Metric): What the values are of, whose range holds the interval.
        """
        sample = self.counted(values)
        margin = self.estimate(values).margin(self.level)
        interval = Interval(sample.mean - margin, sample.mean + margin)
        if not self.are_differences:
            interval = interval.of_metric(metric, values)
        return CohortMean(sample.mean, *interval, sample.num_rows)

    def estimate(self, values: Tensor) -> Estimate:
        """Returns the same mean, as one that can be compared with that of other users."""
        return mean_of_users(values, self.person)


class Cohorts(Tabular, FrozenDict[Hashable, Mapping[str, CohortMean]]):
    r"""The metrics of several cohorts, as a mapping of a label to the means of a cohort.

    :meth:`EvaluationResult.by` and :meth:`EvaluationResult.by_degree` return them, and so do the
    methods of the same names of :class:`Runs`.

    Attributes:
        name (str): What the labels say about a cohort.
        level (float): The level of the intervals.
        remarks (tuple of str): What groups differ in, and who stands for all.

    Example:
        >>> import torch
        >>> from pyg_recmetrics import RankingTask, evaluate
        >>> task = RankingTask(torch.tensor([[0, 1], [2, 0]]), num_users=2, num_items=3)
        >>> result = evaluate(torch.tensor([0.1, 0.3, 0.2]), task, "mrr")
        >>> cohorts = result.by(["old", "new"])
        >>> list(cohorts), cohorts["old"]["mrr"].value
        (['new', 'old'], 0.5)
    """

    def __init__(
        self,
        means: Mapping[Hashable, Mapping[str, CohortMean]],
        values: Callable[[Hashable, str], Tensor],
        name: str,
        num_runs: int,
        intervals: Intervals,
        samples: Sequence[tuple[str, Sample]] = (),
    ) -> None:
        super().__init__({label: FrozenDict(of_metric) for label, of_metric in means.items()})
        self._values, self._samples = values, tuple(samples)
        self._intervals, self._num_runs = intervals, num_runs
        self.name = name
        self.level, self.remarks = intervals.level, intervals.remarks

    def gaps(self, reference: Hashable | None = None) -> Gaps:
        r"""Returns how far groups are apart in each metric, with intervals.

        The intervals allow for users who count in several groups, and for persons who have several
        rows. Those of :class:`Runs` allow for other runs, too. They are not corrected for several
        pairs.

        Args:
            reference (label, optional): The group with which each of the others is compared, as
                `b`. (default: `None`, all pairs of groups, where `a` comes before `b`)

        Raises:
            ValueError: If there is no such group.

        Source: Ekstrand et al., "All the cool kids, how do they fit in? Popularity and demographic
        biases in recommender evaluation and effectiveness" (2018).

        Example:
            >>> import torch
            >>> from pyg_recmetrics import RankingTask, evaluate
            >>> truth = torch.stack([torch.arange(8), torch.tensor([0, 1, 0, 1, 0, 0, 0, 1])])
            >>> task = RankingTask(truth, num_users=8, num_items=2)
            >>> result = evaluate(torch.tensor([0.9, 0.1]), task, ["recall@1"])
            >>> cohorts = result.by(["new"] * 4 + ["old"] * 4)
            >>> print(cohorts.gaps("old"))
            metric    a    b          difference
            ------------------------------------
            recall@1  new  old  -0.2500 ± 1.2153
            95% confidence intervals, not corrected for several pairs
            difference: a - b
        """
        pairs = self._pairs(reference)
        found = (self._gaps(metric, pairs) for metric in self._metrics)
        return Gaps(chain.from_iterable(found), self.level, self.remarks)

    def _gaps(self, metric: str, pairs: Iterable[Pair]) -> Iterator[Gap]:
        """Yields how far groups are apart in a metric."""

        @lru_cache(maxsize=_NUM_ESTIMATES)
        def estimate(label: Hashable) -> Estimate:
            return self._intervals.estimate(self._values(label, metric))

        for a, b in pairs:
            difference = estimate(a).minus(estimate(b))
            yield Gap(metric, a, b, difference.value, *difference.interval(self.level))

    def _pairs(self, reference: Hashable | None) -> list[tuple[Hashable, Hashable]]:
        labels = list(self)
        if reference is None:
            return list(combinations(labels, 2))
        if reference not in labels:
            raise ValueError(f"'reference' needs to be one of {labels} (got {reference!r})")
        return [(label, reference) for label in labels if label != reference]

    def to_pandas(self) -> pd.DataFrame:
        """Returns a data frame with a row for every cohort and metric.

        Its columns are `group`, `metric`, `value`, `low`, `high` and `num_users`.

        Example:
            >>> import torch
            >>> from pyg_recmetrics import RankingTask, evaluate
            >>> task = RankingTask(torch.tensor([[0, 1], [2, 0]]), num_users=2, num_items=3)
            >>> result = evaluate(torch.tensor([0.1, 0.3, 0.2]), task, "mrr")
            >>> result.by(["old", "new"]).to_pandas().columns.tolist()
            ['group', 'metric', 'value', 'low', 'high', 'num_users']
        """
        rows = [
            (label, metric, *mean)
            for label, means in self.items()
            for metric, mean in means.items()
        ]
        return pd.DataFrame(rows, columns=["group", "metric", *CohortMean._fields])

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name}: {', '.join(map(str, self))})"

    def table(self) -> Table:
        """Returns the printed table."""
        rows = [
            [
                str(label),
                f"{max((mean.num_users for mean in means.values()), default=0):,}",
                *(format_interval(*means[metric][:3]) for metric in self._metrics),
            ]
            for label, means in self.items()
        ]
        intervals = self._intervals
        notes = [*intervals.notes(self._num_runs), intervals.caution(self._samples)]
        head = [self.name, intervals.nouns.means, *self._metrics]
        return Table(head, rows, tuple(filter(None, notes)))

    @property
    def _metrics(self) -> list[str]:
        return list(dict.fromkeys(metric for means in self.values() for metric in means))


def by_groups(
    values: Mapping[str, Tensor],
    metrics: Mapping[str, Metric],
    group: Tensor,
    labels: Sequence[Hashable],
    name: str,
    intervals: Intervals,
) -> Cohorts:
    """Measures groups of users separately.

    Args:
        values (mapping): What every user contributes to each metric in each run, of shape
            `[num_runs, num_users]`.
        metrics (mapping): What the convention computes under the name of each metric.
        group (torch.Tensor): The number of each user's group, of shape `[num_users]`; `-1` for
            users without a group.
        labels (sequence): The label of each group.
        name (str): What the labels say about a group.
        intervals (Intervals): How to find the intervals.
    """
    num_groups, person = len(labels), intervals.person
    of_group = [intervals] * num_groups
    if person is not None:
        persons = split_by(person, group.to(person.device), num_groups)
        of_group = [replace(intervals, person=part) for part in persons]
    means: dict[Hashable, dict[str, CohortMean]] = {label: {} for label in labels}
    samples = []
    for metric, contributed in values.items():
        parts = split_by(contributed, group.to(contributed.device), num_groups)
        for label, part, found in zip(labels, parts, of_group, strict=True):
            means[label][metric] = found.mean(part, metrics[metric])
            samples.append((metric, found.counted(part)))

    def values_of(label: Hashable, metric: str) -> Tensor:
        contributed = values[metric]
        is_other = group.to(contributed.device) != labels.index(label)
        return contributed.masked_fill(is_other, torch.nan)

    num_runs = max(map(len, values.values()), default=1)
    return Cohorts(means, values_of, name, num_runs, intervals, samples)


def group_by_degree(degree: Tensor, is_counted: Tensor, bins: int) -> tuple[Tensor, list[Hashable]]:
    """Groups users by their degree.

    Args:
        degree (torch.Tensor): The degree of every user, of shape `[num_users]`.
        is_counted (torch.Tensor): The users to group, a mask of shape `[num_users]`.
        bins (int): The number of groups.

    Returns:
        The number of each user's group, `-1` for users without one; and the labels of the groups.
    """
    counted = degree[is_counted]
    num_users = torch.bincount(counted)
    values = num_users.nonzero().squeeze(1)
    bounds = _bounds(values, num_users[values], bins)
    group = torch.full_like(degree, -1)
    group[is_counted] = torch.bucketize(counted, bounds)
    return group, range_labels(values, torch.bucketize(values, bounds))


def beyond_degree(values: Tensor, degree: Tensor) -> Tensor:
    """Returns the values less the mean of users with as many relevant items, in each run.

    Numbers of relevant items that few users have are one class with their neighbours.

    Args:
        values (torch.Tensor): The values, of shape `[num_runs, num_users]`.
        degree (torch.Tensor): The number of relevant items of every user, of shape `[num_users]`.
    """
    is_counted = ~values.isnan().any(dim=0)
    num_classes = max(1, int(is_counted.sum()) // _FEWEST_OF_DEGREE)
    group, labels = group_by_degree(degree, is_counted, num_classes)
    group, counted = group[is_counted], values[:, is_counted]
    total = counted.new_zeros(len(values), len(labels)).index_add_(1, group, counted)
    mean = total / torch.bincount(group, minlength=len(labels))
    beyond = values.clone()
    beyond[:, is_counted] = counted - mean[:, group]
    return beyond


def note_on_degrees(
    group: Tensor, degree: Tensor, num_groups: int, metrics: Iterable[Metric], nouns: Nouns
) -> str | None:
    """Says how many relevant items users of each group have, if groups differ in it."""
    is_in = (group >= 0) & (degree > 0)
    of_group, degree = group[is_in], degree[is_in].double()
    counts = torch.bincount(of_group, minlength=num_groups)
    means = torch.bincount(of_group, degree, minlength=num_groups)[counts > 0] / counts[counts > 0]
    depend = [str(x) for x in metrics if x.needs_truth and not x.definition.needs_all_ranks]
    if not depend or means.numel() < 2:
        return None
    low, high = (float(mean) for mean in means.aminmax())
    if high - low <= _ALIKE * float(degree.mean()):
        return None
    return (
        f"groups have {low:.1f} to {high:.1f} relevant items a {nouns.user}, on which "
        f"{list_some(depend)} depend{'s' if len(depend) == 1 else ''}: 'same_degree=True' compares "
        f"{nouns.users} who have as many"
    )


def split_by(values: Tensor, group: Tensor, num_groups: int) -> Iterable[Tensor]:
    """Returns the values of each group, `[..., group_size]`, without those in group `-1`."""
    order = group.argsort(stable=True)
    order = order[group[order] >= 0]
    sizes = torch.bincount(group[order], minlength=num_groups).tolist()
    parts: Iterable[Tensor] = values[..., order].split(sizes, dim=-1)
    return parts


def _bounds(values: Tensor, counts: Tensor, bins: int) -> Tensor:
    """Returns the largest value of every bin but the last, given how often each value occurs."""
    check_positive_integer(bins, "bins")
    up_to = counts.cumsum(0)
    if values.numel() == 0:
        return values
    num_values = int(up_to[-1])
    last_of_bin = [max(0, math.ceil(num_values * bin / bins) - 1) for bin in range(1, bins)]
    place = torch.searchsorted(up_to, up_to.new_tensor(last_of_bin), right=True)
    bounds: Tensor = values[place].unique()
    return bounds


def range_labels(values: Tensor, group: Tensor) -> list[Hashable]:
    """Returns the range of the values of every group, such as `"3-7"`. No group is empty."""
    labels: list[Hashable] = []
    for part in split_by(values, group, int(group.max()) + 1 if group.numel() else 0):
        low, high = (int(bound) for bound in part.aminmax())
        labels.append(str(low) if low == high else f"{low}-{high}")
    return labels
