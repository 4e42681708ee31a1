"""Values by metric, looked up by any spelling of the metric."""

from typing import NoReturn, TypeVar

from torch import Tensor

from pyg_recmetrics.frozen import FrozenDict
from pyg_recmetrics.metrics import Metric, parse

V = TypeVar("V")


class ByMetric(FrozenDict[str, V]):
    """A mapping of `name@k` to a value, which says why a metric is not in it.

    A key is a :class:`~pyg_recmetrics.metrics.Metric`, or a string that `metrics.parse` reads as
    the same metric: spaces and the order of arguments do not matter.
    """

    def __getitem__(self, metric: str | Metric) -> V:
        if isinstance(metric, str) and metric in self._items:
            return self._items[metric]
        try:
            metric = parse(metric)
        except (TypeError, ValueError) as error:
            raise KeyError(str(error)) from error
        if str(metric) not in self._items:
            raise KeyError(self._why_missing(metric))
        return self._items[str(metric)]

    def _why_missing(self, metric: Metric) -> str:
        return f"{metric} was not evaluated, only {', '.join(self)}"


class PerUser(ByMetric[Tensor]):
    """The values of every user by metric: tensors of shape `[num_users]`."""

    def _why_missing(self, metric: Metric) -> str:
        if metric.is_aggregate:
            return f"{metric} has one value for all users together, and none for each"
        return f"{metric} was not evaluated per user, only {', '.join(self)}"

    def __array__(self, *args: object, **kwargs: object) -> NoReturn:
        # Without this, pandas would make a column of the names.
        raise TypeError(
            "values by metric make no array or data frame by themselves: use "
            "'result.to_pandas(per_user=True)'"
        )
