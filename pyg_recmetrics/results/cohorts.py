"""Cohorts: metrics measured for groups of users, or of items, and how far groups are apart."""

import math
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, combinations
from typing import NamedTuple, TypeAlias

import numpy as np
import pandas as pd
from scipy.sparse.csgraph import connected_components

from pyg_recmetrics.checks import check_positive_integer
from pyg_recmetrics.metrics import Metric
from pyg_recmetrics.results.counts import Nouns
from pyg_recmetrics.results.notes import caution, note_on_intervals
from pyg_recmetrics.results.statistics import Array, Basis, Mean, mean_of_users, mean_with, sums_by
from pyg_recmetrics.tables import Rows, Table, Tabular, format_interval, format_level
from pyg_recmetrics.utils import FrozenDict

#: Two groups, the second of which is taken from the first.
Pair: TypeAlias = tuple[Hashable, Hashable]

#: How many estimates of groups are held at once, of which each takes 8 bytes for every user.
_NUM_ESTIMATES = 128


#: A singular value that is smaller than this share of the largest is zero, but for rounding.
_NEARLY_ZERO = 1e-10

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
class Groups:
    """Which users belong to which group, and how their means are taken.

    Attributes:
        group (np.ndarray): The number of each user's group, of shape `[num_users]`; `-1` for users
            without a group.
        labels (sequence): The label of each group.
        name (str): What the labels say about a group.
        person (np.ndarray or None): The person that each row belongs to, of shape `[num_users]`.
        level (float): The level of the intervals.
        nouns (Nouns): What the rows are called.
        remarks (tuple of str): What groups differ in, and which users stand for all, if some do.
        degree (np.ndarray or None): The number of relevant items of each user, of shape
            `[num_users]`, if only users who have as many are compared.
    """

    group: Array
    labels: Sequence[Hashable]
    name: str
    person: Array | None
    level: float
    nouns: Nouns
    remarks: tuple[str, ...] = ()
    degree: Array | None = None

    def mean(self, values: Array, number: int) -> Mean:
        """Returns the mean over a group, given values of shape `[num_users, num_runs]`."""
        if self.degree is not None:
            return SameDegree(values, self.group, self.degree, self.person).mean(number)
        is_in = (self.group == number)[:, None]
        return mean_of_users(np.where(is_in, values, math.nan), self.person)

    def cohort_mean(self, values: Array, number: int, metric: Metric) -> CohortMean:
        """Returns the same with its interval, which is held by the range of the metric."""
        mean, own = self.mean(values, number), values[self.group == number]
        own = own[~np.isnan(own).any(axis=1)]
        interval = mean.interval(self.level)
        if self.degree is None:
            interval = interval.of_metric(metric, own)
        return CohortMean(mean.value, *interval, len(own))

    def bases(self, metric: str, values: Array) -> Iterator[Basis]:
        """Yields what the interval of each group rests on."""
        of_users = values.mean(axis=1)
        for number in range(len(self.labels)):
            is_in = self.group == number
            person = None if self.person is None else self.person[is_in]
            yield Basis.of(metric, of_users[is_in], person)


class SameDegree:
    r"""Means of groups, whose differences are those of users with as many relevant items.

    A value is the sum of a number for each number of relevant items, an effect of the group, and a
    rest. Effects are those of least squares: of two groups, their difference is the mean of the
    differences within each number of relevant items, weighted by :math:`n_a n_b / (n_a + n_b)`. A
    mean is that of all users, and what its group has more than the average group. A group that
    shares no number of relevant items with the others has none.

    Args:
        values (np.ndarray): The values, of shape `[num_users, num_runs]`.
        group (np.ndarray): The group of each user, of shape `[num_users]`; `-1` for none.
        degree (np.ndarray): The number of relevant items of each user, of shape `[num_users]`.
        person (np.ndarray or None): The person that each row belongs to, of shape `[num_users]`.

    Source: Searle, "Linear models", 7.1 (1971).
    """

    def __init__(self, values: Array, group: Array, degree: Array, person: Array | None) -> None:
        self.is_counted = ~np.isnan(values).any(axis=1) & (group >= 0)
        self.person, self.values = person, values[self.is_counted]
        self.group = group[self.is_counted]
        self.of_degree = np.unique(degree[self.is_counted], return_inverse=True)[1]
        num_groups = int(group.max(initial=-1)) + 1
        cells = np.stack([self.group, self.of_degree])
        self.counts = np.zeros((num_groups, int(self.of_degree.max(initial=-1)) + 1))
        np.add.at(self.counts, tuple(cells), 1)
        self.sizes, of_degrees = self.counts.sum(axis=1), self.counts.sum(axis=0)
        self.shares = self.counts / of_degrees
        within = sums_by(self.of_degree, self.values) / of_degrees[:, None]
        apart = sums_by(self.group, self.values - within[self.of_degree], num_groups)
        # The normal equations of the effects, whose rank is one less than there are groups.
        products = np.diag(self.sizes) - self.shares @ self.counts.T
        self.inverse = np.linalg.pinv(products, rcond=_NEARLY_ZERO, hermitian=True)
        self.effects = self.inverse @ apart
        within -= self.shares.T @ self.effects
        self.rest = self.values - self.effects[self.group] - within[self.of_degree]

    def mean(self, number: int) -> Mean:
        """Returns the mean of a group."""
        num_users, is_own = max(1, len(self.values)), self.group == number
        deviations = np.zeros((len(self.is_counted), self.values.shape[1]))
        if not self._is_connected(number):
            return Mean(np.full(self.values.shape[1], math.nan), deviations, 0)
        of_all = self.values.mean(axis=0)
        weight = self.inverse[number] - self.sizes @ self.inverse / num_users
        lever = weight[self.group] - (weight @ self.shares)[self.of_degree]
        # Users without any of another group beside them tell nothing.
        tells = (self.counts > 0).sum(axis=0) > 1
        num_telling = self.counts[:, tells].sum()
        left = num_telling - tells.sum() - (self.sizes > 0).sum() + 1
        factor = math.sqrt(num_telling / left) if left > 0 else math.nan
        of_effect = factor * lever[:, None] * self.rest
        deviations[self.is_counted] = (self.values - of_all) / num_users + of_effect
        means = of_all + self.effects[number] - self.sizes @ self.effects / num_users
        mean = mean_with(means, deviations, self.is_counted, self.person)
        drawn = is_own if self.person is None else self.person[self.is_counted][is_own]
        mean.num_drawn = int(is_own.sum()) if self.person is None else len(np.unique(drawn))
        return mean

    def _is_connected(self, number: int) -> bool:
        """Returns whether users of a group can be compared with most of the others."""
        has = (self.counts > 0).astype(int)
        _, component = connected_components(has @ has.T)
        largest = np.bincount(component, self.sizes).argmax()
        return bool(self.sizes[number] > 0 and component[number] == largest)


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
        self, values: Mapping[str, Array], metrics: Mapping[str, Metric], groups: Groups
    ) -> None:
        super().__init__(
            {
                label: FrozenDict(
                    {
                        name: groups.cohort_mean(of_metric, number, metrics[name])
                        for name, of_metric in values.items()
                    }
                )
                for number, label in enumerate(groups.labels)
            }
        )
        self._values, self._groups = values, groups
        self.name, self.level, self.remarks = groups.name, groups.level, groups.remarks

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
        found = (self._gaps(metric, pairs) for metric in self._values)
        return Gaps(chain.from_iterable(found), self.level, self.remarks)

    def _gaps(self, metric: str, pairs: Iterable[Pair]) -> Iterator[Gap]:
        """Yields how far groups are apart in a metric."""

        @lru_cache(maxsize=_NUM_ESTIMATES)
        def mean(label: Hashable) -> Mean:
            return self._groups.mean(self._values[metric], list(self).index(label))

        for a, b in pairs:
            difference = mean(a).minus(mean(b))
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
                *(format_interval(*mean[:3]) for mean in means.values()),
            ]
            for label, means in self.items()
        ]
        groups, nouns = self._groups, self._groups.nouns
        num_runs = max((values.shape[1] for values in self._values.values()), default=1)
        bases = [x for name, values in self._values.items() for x in groups.bases(name, values)]
        notes = [
            note_on_intervals(self.level, groups.person, nouns, num_runs),
            *self.remarks,
            caution(bases, f"{nouns.means} in some groups", nouns.drawn),
        ]
        head = [self.name, nouns.means, *self._values]
        return Table(head, rows, tuple(filter(None, notes)))


def group_by_degree(degree: Array, is_counted: Array, bins: int) -> tuple[Array, list[Hashable]]:
    """Groups users by their degree, whose quantiles bound the groups.

    Args:
        degree (np.ndarray): The degree of every user, of shape `[num_users]`.
        is_counted (np.ndarray): The users to group, a mask of shape `[num_users]`.
        bins (int): The number of groups.

    Returns:
        The number of each user's group, `-1` for users without one; and the range of each group.
    """
    check_positive_integer(bins, "bins")
    counted = np.sort(degree[is_counted])
    if not len(counted):
        return np.full(len(degree), -1), []
    last = [max(0, math.ceil(len(counted) * bin / bins) - 1) for bin in range(1, bins)]
    bounds = np.unique(counted[last])
    group = np.where(is_counted, np.searchsorted(bounds, degree), -1)
    labels: list[Hashable] = []
    for number in range(int(group.max()) + 1):
        own = degree[group == number]
        labels.append(str(own.min()) if own.min() == own.max() else f"{own.min()}-{own.max()}")
    return group, labels


def note_on_degrees(
    group: Array, degree: Array, metrics: Iterable[Metric], nouns: Nouns
) -> str | None:
    """Says how many relevant items users of each group have, if groups differ in it."""
    is_in = (group >= 0) & (degree > 0)
    depend = any(x.needs_truth and not x.definition.needs_all_ranks for x in metrics)
    numbers = np.unique(group[is_in])
    if not depend or len(numbers) < 2:
        return None
    means = [degree[is_in & (group == number)].mean() for number in numbers]
    if max(means) - min(means) <= _ALIKE * degree[is_in].mean():
        return None
    return (
        f"groups have {min(means):.1f} to {max(means):.1f} relevant items a {nouns.user}, on which "
        f"most metrics depend: 'same_degree=True' compares {nouns.users} who have as many"
    )
