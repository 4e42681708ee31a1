"""Cohorts: metrics measured for groups of users, or of items, and how far groups are apart."""

import math
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
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

#: A singular value that is smaller than this share of the largest is zero, but for rounding.
_NEARLY_ZERO = 1e-10

#: By which share of the mean number of relevant items groups may differ without a note.
_ALIKE = 0.1


def means_of_same_degree(
    values: Array, group: Array, degree: Array, person: Array | None
) -> Iterator[Mean]:
    r"""Yields a mean for each group. They differ as users with equally many relevant items do.

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
    is_counted = ~np.isnan(values).any(axis=1) & (group >= 0)
    num_groups = int(group.max(initial=-1)) + 1
    values, group = values[is_counted], group[is_counted]
    of_degree = np.unique(degree[is_counted], return_inverse=True)[1]
    num_degrees = int(of_degree.max(initial=-1)) + 1
    counts = np.zeros((num_degrees, num_groups))
    np.add.at(counts, (of_degree, group), 1)
    sizes = counts.sum(axis=0)
    of_degrees = counts.sum(axis=1)[:, None]
    shares = counts / of_degrees

    def beside_others(effects: Array) -> Array:
        """Returns the effect of each user's group, less the mean of all with as many items."""
        own: Array = effects[group] - (shares @ effects)[of_degree]
        return own

    rest = values - (sums_by(of_degree, values, num_degrees) / of_degrees)[of_degree]
    # The normal equations of the effects, whose rank is one less than there are groups.
    products = np.diag(sizes) - counts.T @ shares
    inverse = np.linalg.pinv(products, rcond=_NEARLY_ZERO, hermitian=True)
    effects = inverse @ sums_by(group, rest, num_groups)
    rest -= beside_others(effects)
    # Users whose number of relevant items no other group has tell nothing of differences.
    tells = (counts > 0).sum(axis=1) > 1
    num_telling = counts[tells].sum()
    left = num_telling - tells.sum() - (sizes > 0).sum() + 1
    factor = math.sqrt(num_telling / left) if left > 0 else math.nan
    for number in range(num_groups):
        is_own = group == number
        num_own = int(is_own.sum())
        deviations = np.zeros((len(is_counted), values.shape[1]))
        if not _is_connected(counts, number):
            yield Mean(np.full(values.shape[1], math.nan), deviations, 0, num_own)
            continue
        of_all = values.mean(axis=0)
        contrast = (np.arange(num_groups) == number) - sizes / len(values)
        of_effect = factor * beside_others(inverse @ contrast)[:, None] * rest
        deviations[is_counted] = (values - of_all) / len(values) + of_effect
        mean = mean_with(of_all + contrast @ effects, deviations, is_counted, person)
        mean = replace(mean, num_drawn=num_own, num_rows=num_own)
        if person is not None:
            own_rows = np.bincount(person[is_counted][is_own])
            num_drawn = int((own_rows > 0).sum())
            mean = replace(mean, num_drawn=num_drawn, num_persons=worth_of(own_rows))
        yield mean


def _is_connected(counts: Array, number: int) -> bool:
    """Returns whether users of a group can be compared with most of the others.

    Args:
        counts (np.ndarray): How many users have each number of relevant items, by group.
        number (int): The number of the group.
    """
    has = (counts > 0).astype(int)
    sizes = counts.sum(axis=0)
    _, component = connected_components(has.T @ has)
    largest = np.bincount(component, sizes).argmax()
    return bool(sizes[number] > 0 and component[number] == largest)


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
        for metric, of_users in values.items():
            for label, mean in zip(labels, self._means(of_users), strict=True):
                found[label][metric] = mean.of_metric(metrics[metric], level)
        super().__init__({label: FrozenDict(means) for label, means in found.items()})

    def _means(self, values: Array) -> Iterator[Mean]:
        """Yields the mean over each group, given values `[num_users, num_runs]`."""
        if self._degree is None:
            return self._plain_means(values)
        return means_of_same_degree(values, self._group, self._degree, self._person)

    def _plain_means(self, values: Array) -> Iterator[Mean]:
        """Yields the mean over each group, whatever its numbers of relevant items are."""
        for number in range(int(self._group.max(initial=-1)) + 1):
            is_in = (self._group == number)[:, None]
            yield mean_of_users(np.where(is_in, values, math.nan), self._person)

    def gaps(self) -> pd.DataFrame:
        r"""Returns how far groups are apart, as a data frame with a row for each metric and pair.

        Its columns are `metric`, `a`, `b`, `difference`, which is `a - b`, `low`, `high` and
        `p_value`. Intervals and p-values allow for users who count in several groups, and for
        persons who have several rows. They have as many degrees of freedom as the smaller group has
        users, less one. Those of :class:`Runs` allow for other runs, too. They are not corrected
        for several pairs. Memory is needed for 8 bytes of every user, run and group.

        Source: Ekstrand et al., "All the cool kids, how do they fit in? Popularity and demographic
        biases in recommender evaluation and effectiveness" (2018).

        Example:
            >>> import torch
            >>> from pyg_recmetrics import RankingTask, evaluate
            >>> truth = torch.stack([torch.arange(8), torch.tensor([0, 1, 0, 1, 0, 0, 0, 1])])
            >>> task = RankingTask(truth, num_users=8, num_items=2)
            >>> result = evaluate(torch.tensor([0.9, 0.1]), task, ["recall@1"])
            >>> result.by(["new"] * 4 + ["old"] * 4).gaps().round(4)
                 metric    a    b  difference     low    high  p_value
            0  recall@1  new  old       -0.25 -1.4653  0.9653   0.5594
        """
        rows = []
        for metric, values in self._values.items():
            means = zip(self, self._means(values), strict=True)
            for (a, first), (b, second) in combinations(means, 2):
                difference = first.minus(second)
                interval = difference.interval(self.level)
                rows.append((metric, a, b, difference.value, *interval, difference.p_value))
        columns = ["metric", "a", "b", "difference", "low", "high", "p_value"]
        return pd.DataFrame(rows, columns=columns)

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
            (metric, mean)
            for metric, values in self._values.items()
            for mean in self._plain_means(values)
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
