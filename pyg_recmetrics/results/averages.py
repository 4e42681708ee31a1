"""What a mean is over: all rows alike, or the persons behind them."""

from collections.abc import Iterable
from typing import Literal, TypeAlias, get_args

import torch
from torch import Tensor

from pyg_recmetrics.checks import check_choice
from pyg_recmetrics.metrics import Metric

#: What a mean is over: rows, or persons with the mean over the rows of each.
AverageOver: TypeAlias = Literal["user", "person"]


def check_average_over(average_over: object, person: Tensor | None) -> AverageOver:
    """Returns `average_over` if there are such means."""
    check_choice(average_over, "average_over", get_args(AverageOver))
    if average_over == "user":
        return "user"
    if person is None:
        raise ValueError(
            "'average_over' needs to be 'user' where persons are not known: pass 'person' to the "
            "task, or use 'ranked.with_person' (got 'person')"
        )
    return "person"


def check_averages(metrics: Iterable[Metric]) -> None:
    """Raises if a metric is no mean over rows, so that there are no means of persons."""
    for metric in metrics:
        if metric.is_pooled:
            raise ValueError(
                f"'average_over' needs to be 'user' for '{metric}', which is no mean over rows "
                f"(got 'person')"
            )


def check_has_rows(average_over: AverageOver, method: str) -> None:
    """Raises if a method that looks at single rows is called for means over persons."""
    if average_over == "person":
        raise ValueError(f"'{method}' needs means over rows (got average_over='person')")


def num_persons(person: Tensor | None) -> int:
    """Returns how many persons there are."""
    return int(person.max()) + 1 if person is not None and person.numel() else 0


def means_of_persons(values: Tensor, person: Tensor) -> Tensor:
    """Returns the mean of the rows of each person that count: `[num_persons]`.

    Args:
        values (torch.Tensor): A value for every row, of shape `[num_users]`; `NaN` for those that
            do not count.
        person (torch.Tensor): The person to whom each row belongs, of shape `[num_users]`.
    """
    is_counted = ~values.isnan()
    sums = values.new_zeros(num_persons(person))
    sums.index_add_(0, person, values.nan_to_num(0.0))
    counts = torch.bincount(person[is_counted], minlength=sums.numel())
    return sums / counts
