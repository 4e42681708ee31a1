"""Values by metric, looked up by any spelling of the metric."""

from collections.abc import Iterator, Mapping
from typing import NoReturn, TypeVar

from torch import Tensor

from pyg_recmetrics.metrics import Metric, parse

V = TypeVar("V")


class ByMetric(Mapping[str, V]):
    """A mapping of `name@k` to a value, which says why a metric is not in it.

    A key is a :class:`~pyg_recmetrics.metrics.Metric`, or a string that `metrics.parse` reads as
    the same metric: spaces and the order of arguments do not matter.
    """

    def __init__(self, values: Mapping[str, V]) -> None:
        self._values = dict(values)

    def __getitem__(self, metric: str | Metric) -> V:
        try:
            metric = parse(metric)
        except (TypeError, ValueError) as error:
            raise KeyError(str(error)) from error
        if str(metric) not in self._values:
            raise KeyError(self._why_missing(metric))
        return self._values[str(metric)]

    def _why_missing(self, metric: Metric) -> str:
        return f"{metric} was not evaluated, only {', '.join(self)}"

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._values})"


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
