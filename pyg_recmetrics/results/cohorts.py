"""Cohorts: metrics measured for groups of users, or of items, and how far groups are apart."""

import math
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from itertools import combinations

import numpy as np
import pandas as pd
from scipy.sparse.csgraph import connected_components

from pyg_recmetrics.checks import check_positive_integer
from pyg_recmetrics.metrics import Metric
from pyg_recmetrics.results.counts import RowNouns
from pyg_recmetrics.results.notes import caution, lines
from pyg_recmetrics.results.statistics import (
    Array,
    Mean,
    MetricMean,
    mean_of_users,
    mean_with,
    sums_by,
    worth_of,
)
from pyg_recmetrics.tables import Table, Tabular, format_interval
from pyg_recmetrics.utils import FrozenDict

#: How many estimates of groups are held at once, of which each takes 8 bytes for every user.
_NUM_ESTIMATES = 128

#: A singular value that is smaller than this share of the largest is zero, but for rounding.
_NEARLY_ZERO = 1e-10

#: By which share of the mean number of relevant items groups may differ without a note.
_ALIKE = 0.1


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
        self.person = person
        self.values = values[self.is_counted]
        self.group = group[self.is_counted]
        self.of_degree = np.unique(degree[self.is_counted], return_inverse=True)[1]
        num_groups = int(group.max(initial=-1)) + 1
        num_degrees = int(self.of_degree.max(initial=-1)) + 1
        self.counts = np.zeros((num_degrees, num_groups))
        np.add.at(self.counts, (self.of_degree, self.group), 1)
        self.sizes = self.counts.sum(axis=0)
        of_degrees = self.counts.sum(axis=1)[:, None]
        self.shares = self.counts / of_degrees
        means = sums_by(self.of_degree, self.values, num_degrees) / of_degrees
        self.rest = self.values - means[self.of_degree]
        # The normal equations of the effects, whose rank is one less than there are groups.
        products = np.diag(self.sizes) - self.counts.T @ self.shares
        self.inverse = np.linalg.pinv(products, rcond=_NEARLY_ZERO, hermitian=True)
        self.effects = self.inverse @ sums_by(self.group, self.rest, num_groups)
        self.rest -= self._of_users(self.effects)

    def _of_users(self, effects: Array) -> Array:
        """Returns the effect of the group of each user, less that of all with as many items."""
        own: Array = effects[self.group] - (self.shares @ effects)[self.of_degree]
        return own

    def mean(self, number: int) -> Mean:
        """Returns the mean of a group."""
        num_users = max(1, len(self.values))
        is_own = self.group == number
        num_own = int(is_own.sum())
        deviations = np.zeros((len(self.is_counted), self.values.shape[1]))
        if not self._is_connected(number):
            unknown = np.full(self.values.shape[1], math.nan)
            return Mean(unknown, deviations, 0, num_own)
        of_all = self.values.mean(axis=0)
        contrast = (np.arange(len(self.sizes)) == number) - self.sizes / num_users
        lever = self._of_users(self.inverse @ contrast)
        # Users without any of another group beside them tell nothing.
        tells = (self.counts > 0).sum(axis=1) > 1
        num_telling = self.counts[tells].sum()
        left = num_telling - tells.sum() - (self.sizes > 0).sum() + 1
        factor = math.sqrt(num_telling / left) if left > 0 else math.nan
        of_effect = factor * lever[:, None] * self.rest
        deviations[self.is_counted] = (self.values - of_all) / num_users + of_effect
        means = of_all + contrast @ self.effects
        mean = mean_with(means, deviations, self.is_counted, self.person)
        mean = replace(mean, num_drawn=num_own, num_rows=num_own)
        if self.person is None:
            return mean
        sizes = np.bincount(self.person[self.is_counted][is_own])
        num_drawn = int((sizes > 0).sum())
        return replace(mean, num_drawn=num_drawn, num_persons=worth_of(sizes))

    def _is_connected(self, number: int) -> bool:
        """Returns whether users of a group can be compared with most of the others."""
        has = (self.counts > 0).astype(int)
        _, component = connected_components(has.T @ has)
        largest = np.bincount(component, self.sizes).argmax()
        return bool(self.sizes[number] > 0 and component[number] == largest)


class Cohorts(Tabular, FrozenDict[Hashable, Mapping[str, MetricMean]]):
    r"""The metrics of several cohorts, as a mapping of a label to the means of a cohort.

    :meth:`EvaluationResult.by` and :meth:`EvaluationResult.by_degree` return them, and so do the
    methods of the same names of :class:`Runs`.

    Args:
        values (mapping): The values of each metric, of shape `[num_users, num_runs]`.
        metrics (mapping): The metrics by name.
        group (np.ndarray): The number of each user's group, of shape `[num_users]`; `-1` for users
            without a group.
        labels (sequence): The label of each group.
        name (str): What the labels say about a group.
        person (np.ndarray or None): The person that each row belongs to, of shape `[num_users]`.
        level (float): The level of the intervals.
        nouns (RowNouns): What the rows are called.
        remarks (tuple of str): What groups differ in, and which users stand for all, if some do.
        degree (np.ndarray or None): The number of relevant items of each user, of shape
            `[num_users]`, if only users who have as many are compared.

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
        values: Mapping[str, Array],
        metrics: Mapping[str, Metric],
        group: Array,
        labels: Sequence[Hashable],
        *,
        name: str,
        person: Array | None,
        level: float,
        nouns: RowNouns,
        remarks: tuple[str, ...],
        degree: Array | None,
    ) -> None:
        self.name = name
        self.level = level
        self.remarks = remarks
        self._values = values
        self._group = group
        self._person = person
        self._degree = degree
        self._nouns = nouns
        found: dict[Hashable, dict[str, MetricMean]] = {label: {} for label in labels}
        for name_of, of_users in values.items():
            mean_of = self._means(of_users)
            for number, label in enumerate(labels):
                found[label][name_of] = mean_of(number).of_metric(metrics[name_of], level)
        super().__init__({label: FrozenDict(means) for label, means in found.items()})

    def _means(self, values: Array) -> Callable[[int], Mean]:
        """Returns the mean over each group by number, given values `[num_users, num_runs]`."""
        if self._degree is not None:
            return SameDegree(values, self._group, self._degree, self._person).mean
        return partial(self._plain_mean, values)

    def _plain_mean(self, values: Array, number: int) -> Mean:
        """Returns the mean over a group, whatever its numbers of relevant items are."""
        is_in = (self._group == number)[:, None]
        return mean_of_users(np.where(is_in, values, math.nan), self._person)

    def gaps(self) -> pd.DataFrame:
        r"""Returns how far groups are apart, as a data frame with a row for each metric and pair.

        Its columns are `metric`, `a`, `b`, `difference`, which is `a - b`, `low` and `high`. The
        intervals allow for users who count in several groups, and for persons who have several
        rows. Those of :class:`Runs` allow for other runs, too. They are not corrected for several
        pairs.

        Source: Ekstrand et al., "All the cool kids, how do they fit in? Popularity and demographic
        biases in recommender evaluation and effectiveness" (2018).

        Example:
            >>> import torch
            >>> from pyg_recmetrics import RankingTask, evaluate
            >>> truth = torch.stack([torch.arange(8), torch.tensor([0, 1, 0, 1, 0, 0, 0, 1])])
            >>> task = RankingTask(truth, num_users=8, num_items=2)
            >>> result = evaluate(torch.tensor([0.9, 0.1]), task, ["recall@1"])
            >>> result.by(["new"] * 4 + ["old"] * 4).gaps().round(4)
                 metric    a    b  difference     low    high
            0  recall@1  new  old       -0.25 -1.4653  0.9653
        """
        rows = []
        for metric, values in self._values.items():
            mean_of = lru_cache(maxsize=_NUM_ESTIMATES)(self._means(values))
            for (first, a), (second, b) in combinations(enumerate(self), 2):
                difference = mean_of(first).minus(mean_of(second))
                rows.append((metric, a, b, difference.value, *difference.interval(self.level)))
        return pd.DataFrame(rows, columns=["metric", "a", "b", "difference", "low", "high"])

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
            (label, metric, *mean[:4])
            for label, means in self.items()
            for metric, mean in means.items()
        ]
        return pd.DataFrame(rows, columns=["group", "metric", *MetricMean._fields[:4]])

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
        num_runs = max((values.shape[1] for values in self._values.values()), default=1)
        means = [
            (metric, self._plain_mean(values, number))
            for metric, values in self._values.items()
            for number in range(len(self))
        ]
        nouns = self._nouns
        notes = [
            *lines("intervals", self.level, self._person, nouns, num_runs),
            *self.remarks,
            caution(means, f"{nouns.means} in some groups", nouns.drawn),
        ]
        return Table([self.name, nouns.means, *self._values], rows, tuple(filter(None, notes)))


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
    if not is_counted.any():
        return np.full(len(degree), -1), []
    shares = np.arange(1, bins) / bins
    bounds = np.unique(np.quantile(degree[is_counted], shares, method="inverted_cdf"))
    group = np.where(is_counted, np.searchsorted(bounds, degree), -1)
    of_group = pd.Series(degree[is_counted]).groupby(group[is_counted])
    ends = zip(of_group.min(), of_group.max(), strict=True)
    return group, [f"{low}-{high}" if low < high else f"{low}" for low, high in ends]


def note_on_degrees(
    group: Array, degree: Array, metrics: Iterable[Metric], nouns: RowNouns
) -> list[str]:
    """Returns how many relevant items users of each group have, if groups differ in it."""
    is_in = (group >= 0) & (degree > 0)
    depend = any(x.needs_truth and not x.definition.needs_all_ranks for x in metrics)
    means = pd.Series(degree[is_in]).groupby(group[is_in]).mean()
    if not depend or len(means) < 2 or np.ptp(means) <= _ALIKE * degree[is_in].mean():
        return []
    return lines("degrees", means.min(), means.max(), nouns)
