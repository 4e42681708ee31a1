"""Cohorts: metrics measured for groups of users, or of items, separately."""

import math
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor

from pyg_recmetrics.checks import check_positive_integer
from pyg_recmetrics.frozen import FrozenDict
from pyg_recmetrics.metrics import Metric
from pyg_recmetrics.ranked_edges import RankedEdges
from pyg_recmetrics.results.inference import IntervalMethod, interval_of_mean
from pyg_recmetrics.tables import Table, Tabular, format_mean, to_data_frame

if TYPE_CHECKING:
    import pandas as pd


class CohortMean(NamedTuple):
    """The mean of a metric over the users of a cohort.

    Attributes:
        value: The mean; `NaN` if no user counts.
        low: The lower end of its confidence interval; `NaN` for fewer than two users.
        high: The upper end.
        num_users: The number of users who count.
    """

    value: float
    low: float
    high: float
    num_users: int


class Cohorts(Tabular, Mapping[Hashable, Mapping[str, CohortMean]]):
    r"""The metrics of several cohorts, as a mapping of a label to the means of a cohort.

    :meth:`EvaluationResult.by`, :meth:`EvaluationResult.by_degree` and
    :meth:`EvaluationResult.recall_by_popularity` return them.

    Attributes:
        name (str): What the labels say about a cohort.
        level (float): The level of the intervals.
    """

    def __init__(
        self, means: Mapping[Hashable, Mapping[str, CohortMean]], name: str, level: float
    ) -> None:
        self._means = FrozenDict(
            {label: FrozenDict(of_metric) for label, of_metric in means.items()}
        )
        self.name = name
        self.level = level

    def to_pandas(self) -> "pd.DataFrame":
        """Returns a data frame with a row for every cohort and metric.

        Its columns are `group`, `metric`, `value`, `low`, `high` and `num_users`.

        Raises:
            ImportError: If pandas is not installed.
        """
        rows = [
            (label, metric, *mean)
            for label, means in self.items()
            for metric, mean in means.items()
        ]
        return to_data_frame(rows, ["group", "metric", *CohortMean._fields])

    def __getitem__(self, label: Hashable) -> Mapping[str, CohortMean]:
        return self._means[label]

    def __iter__(self) -> Iterator[Hashable]:
        return iter(self._means)

    def __len__(self) -> int:
        return len(self._means)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name}: {', '.join(map(str, self))})"

    def _table(self) -> Table:
        metrics = list(dict.fromkeys(metric for means in self.values() for metric in means))
        rows = [
            [
                str(label),
                f"{max((mean.num_users for mean in means.values()), default=0):,}",
                *(
                    format_mean(means[metric].value, (means[metric].high - means[metric].low) / 2)
                    for metric in metrics
                ),
            ]
            for label, means in self.items()
        ]
        note = f"±: {100 * self.level:.4g}% confidence interval of the mean over users"
        return Table([self.name, "users", *metrics], rows, (note,))


def by_groups(
    values: Mapping[str, Tensor],
    group: Tensor,
    labels: Sequence[Hashable],
    *,
    name: str,
    level: float,
    method: IntervalMethod,
) -> Cohorts:
    """Measures groups of users separately.

    Args:
        values (mapping): What every user contributes to each metric, of shape `[num_users]`.
        group (torch.Tensor): The number of each user's group, of shape `[num_users]`; `-1` for
            users without a group.
        labels (sequence): The label of each group.
        name (str): What the labels say about a group.
        level (float): The level of the confidence intervals.
        method (str): How to find the intervals.
    """
    means: dict[Hashable, dict[str, CohortMean]] = {label: {} for label in labels}
    for metric, contributed in values.items():
        parts = split_by(contributed, group.to(contributed.device), len(labels))
        for label, part in zip(labels, parts, strict=True):
            means[label][metric] = cohort_mean(part, level, method)
    return Cohorts(means, name, level)


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
    bin_of_user = quantile_bins(counted, bins)
    group = torch.full_like(degree, -1)
    group[is_counted] = bin_of_user
    return group, range_labels(counted, bin_of_user)


def by_popularity(
    ranked: RankedEdges,
    metric: Metric,
    is_counted: Tensor,
    candidates: Tensor | None,
    *,
    name: str,
    bins: int,
    level: float,
    method: IntervalMethod,
) -> Cohorts:
    """Measures how popular and other relevant items are retrieved.

    Args:
        ranked (RankedEdges): The ranked ground truth, with the seen edges in its catalogue.
        metric (Metric): What to measure for the relevant items of each bucket.
        is_counted (torch.Tensor): The users who count, a mask of shape `[num_users]`.
        candidates (torch.Tensor, optional): The items to divide into buckets; `None` for all.
        name (str): What the metric is called.
        bins (int): The number of buckets.
        level (float): The level of the confidence intervals.
        method (str): How to find the intervals.
    """
    popularity = ranked.required_catalogue.popularity
    is_item = torch.ones_like(popularity, dtype=torch.bool)
    if candidates is not None:
        is_item = torch.zeros_like(is_item).index_fill_(0, candidates, True)
    bin_of_item = quantile_bins(popularity[is_item], bins)
    bucket = torch.full_like(popularity, -1)
    bucket[is_item] = bin_of_item
    bucket_of_edge = bucket[ranked.edge_index[1]]
    means = {}
    for number, label in enumerate(range_labels(popularity[is_item], bin_of_item)):
        value = metric(ranked.select_edges(bucket_of_edge == number))
        value = value.masked_fill(~is_counted, torch.nan)
        means[label] = {name: cohort_mean(value, level, method)}
    return Cohorts(means, "popularity", level)


def cohort_mean(values: Tensor, level: float, method: IntervalMethod) -> CohortMean:
    """Returns the mean of the values that are not `NaN`, with its interval."""
    values = values[~values.isnan()]
    low, high = interval_of_mean(values, level, method)
    return CohortMean(float(values.mean()), low, high, values.numel())


def split_by(values: Tensor, group: Tensor, num_groups: int) -> Iterable[Tensor]:
    """Returns the values of each group, without those in group `-1`."""
    order = group.argsort(stable=True)
    order = order[group[order] >= 0]
    sizes = torch.bincount(group[order], minlength=num_groups).tolist()
    parts: Iterable[Tensor] = values[order].split(sizes)
    return parts


def read_groups(groups: Any, num_users: int) -> tuple[Tensor, list[Hashable]]:
    """Reads the groups of :meth:`EvaluationResult.by`.

    Returns:
        The number of each user's group, `-1` for users without one; and the labels of the groups.

    Raises:
        TypeError: If `groups` does not hold labels.
        ValueError: If there is not one label for every user.
    """
    if isinstance(groups, Tensor):
        if groups.is_floating_point() or groups.is_complex():
            raise ValueError(f"'groups' needs to hold integers or booleans (got {groups.dtype})")
        _check_one_per_user(list(groups.shape), num_users)
        found, group = groups.unique(return_inverse=True)
        return group, found.tolist()
    if isinstance(groups, str) or not isinstance(groups, Iterable):
        raise TypeError(
            f"'groups' needs to be a tensor or a sequence of labels (got {type(groups).__name__})"
        )
    # Arrays and series return their values as Python's own.
    labels = list(groups.tolist() if hasattr(groups, "tolist") else groups)
    _check_one_per_user([len(labels)], num_users)
    distinct = _sorted(dict.fromkeys(label for label in labels if not _is_missing(label)))
    number = {label: index for index, label in enumerate(distinct)}
    group = [number.get(label, -1) for label in labels]
    return torch.tensor(group, dtype=torch.long, device="cpu"), distinct


def quantile_bins(values: Tensor, bins: int) -> Tensor:
    """Returns the number of the bin of every value, for bins of about the same size.

    The bounds are quantiles of the values. Equal values are always in the same bin, so bins may
    differ in size, and there may be fewer than asked for.
    """
    check_positive_integer(bins, "bins")
    if values.numel() == 0:
        return torch.empty_like(values)
    last_of_bin = [max(0, math.ceil(values.numel() * bin / bins) - 1) for bin in range(1, bins)]
    bounds = values.sort().values[last_of_bin].unique()
    return torch.bucketize(values, bounds)


def range_labels(values: Tensor, group: Tensor) -> list[Hashable]:
    """Returns the range of the values of every group, such as `"3-7"`. No group is empty."""
    labels: list[Hashable] = []
    for part in split_by(values, group, int(group.max()) + 1 if group.numel() else 0):
        low, high = (int(bound) for bound in part.aminmax())
        labels.append(str(low) if low == high else f"{low}-{high}")
    return labels


def _check_one_per_user(shape: list[int], num_users: int) -> None:
    if shape != [num_users]:
        raise ValueError(
            f"'groups' needs to have shape [{num_users}], a label for every user (got {shape})"
        )


def _is_missing(label: Any) -> bool:
    return label is None or label != label


def _sorted(labels: Iterable[Any]) -> list[Hashable]:
    labels = list(labels)
    try:
        return sorted(labels)
    except TypeError:  # labels of different types stay in the order in which they came
        return labels
