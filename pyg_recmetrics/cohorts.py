"""Cohorts: the mean of a metric for some users at a time."""

import math
from collections.abc import Hashable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor

from pyg_recmetrics.checks import check_positive_integer
from pyg_recmetrics.extras import importing
from pyg_recmetrics.statistics import IntervalMethod, interval_of_mean
from pyg_recmetrics.tables import Table, Tabular, format_mean

if TYPE_CHECKING:
    import pandas as pd


class CohortMean(NamedTuple):
    """The mean of a metric over the users of a cohort.

    Attributes:
        value: The mean; `NaN` if no user counts.
        low: The lower end of its confidence interval; `NaN` for fewer than two users.
        high: The upper end.
        num_users: How many users count.
    """

    value: float
    low: float
    high: float
    num_users: int


class Cohorts(Tabular, Mapping[Hashable, Mapping[str, CohortMean]]):
    r"""The metrics of several cohorts: a mapping of a label to the cohort's means.

    Made by :meth:`EvaluationResult.by`, :meth:`EvaluationResult.by_degree` and
    :meth:`EvaluationResult.recall_by_popularity`.

    Attributes:
        name (str): What the labels say of a cohort.
        level (float): The level of the intervals.
    """

    def __init__(
        self, means: Mapping[Hashable, Mapping[str, CohortMean]], name: str, level: float
    ) -> None:
        self._means = dict(means)
        self.name = name
        self.level = level

    def to_pandas(self) -> "pd.DataFrame":
        """Returns a data frame with a row for every cohort and metric.

        Its columns are `group`, `metric`, `value`, `low`, `high` and `num_users`.

        Raises:
            ImportError: If pandas is not installed.
        """
        with importing("pandas", "examples", "to_pandas"):
            import pandas as pd
        rows = [
            (label, metric, *mean)
            for label, means in self.items()
            for metric, mean in means.items()
        ]
        return pd.DataFrame(rows, columns=["group", "metric", *CohortMean._fields])

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


def cohort_mean(values: Tensor, level: float, method: IntervalMethod) -> CohortMean:
    """Returns the mean of those values that are not `NaN`, with its interval."""
    values = values[~values.isnan()]
    low, high = interval_of_mean(values, level, method)
    return CohortMean(float(values.mean()), low, high, values.numel())


def split_by(values: Tensor, group: Tensor, num_groups: int) -> Iterable[Tensor]:
    """Returns the values of each group; those in group `-1` are left out."""
    order = group.argsort(stable=True)
    order = order[group[order] >= 0]
    sizes = torch.bincount(group[order], minlength=num_groups).tolist()
    parts: Iterable[Tensor] = values[order].split(sizes)
    return parts


def read_groups(groups: Any, num_users: int) -> tuple[Tensor, list[Hashable]]:
    """Returns the number of each user's group, `-1` for users without one, and the labels."""
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
    # Arrays and data frames return their values as Python's own.
    labels = list(groups.tolist() if hasattr(groups, "tolist") else groups)
    _check_one_per_user([len(labels)], num_users)
    known = _in_order(dict.fromkeys(label for label in labels if not _is_missing(label)))
    place = {label: index for index, label in enumerate(known)}
    return torch.tensor([place.get(label, -1) for label in labels], dtype=torch.long), known


def quantile_bins(values: Tensor, bins: int) -> Tensor:
    """Returns the number of the bin of every value, such that bins are about equally large.

    The bounds are quantiles of the values. Equal values are never torn apart, so that bins may be
    of different size, and fewer than wanted.
    """
    check_positive_integer(bins, "bins")
    if values.numel() == 0:
        return torch.empty_like(values)
    last_of_bin = [math.ceil(values.numel() * bin / bins) - 1 for bin in range(1, bins)]
    bounds = values.sort().values[[max(place, 0) for place in last_of_bin]].unique()
    return torch.bucketize(values, bounds)


def range_labels(values: Tensor, group: Tensor) -> list[Hashable]:
    """Returns for every group the range of its values, such as `"3-7"`; groups have no holes."""
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


def _in_order(labels: Iterable[Any]) -> list[Hashable]:
    labels = list(labels)
    try:
        return sorted(labels)
    except TypeError:  # labels of different types have no order but that in which they came
        return labels
