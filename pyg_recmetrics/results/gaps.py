"""Gaps: how far groups are apart in a metric."""

from collections.abc import Callable, Hashable, Iterable, Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from pyg_recmetrics.results.estimates import Estimate
from pyg_recmetrics.tables import (
    Rows,
    Table,
    format_interval,
    format_level,
    format_mean,
    to_data_frame,
)

if TYPE_CHECKING:
    import pandas as pd

#: Two groups, the second of which is taken from the first.
Pair: TypeAlias = tuple[Hashable, Hashable]

#: How many estimates of groups are held at once, of which each takes 8 bytes for every user.
_NUM_ESTIMATES = 128


class Gap(NamedTuple):
    """The difference and the ratio of two groups in a metric.

    Attributes:
        metric: The metric.
        a: The label of one group.
        b: The label of the other.
        difference: The value of `a` minus that of `b`.
        low: The lower end of its confidence interval.
        high: The upper end.
        ratio: The value of `a` over that of `b`; `NaN` if that is zero.
        ratio_low: The lower end of its confidence interval.
        ratio_high: The upper end.

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
    ratio: float
    ratio_low: float
    ratio_high: float


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

    def __init__(self, gaps: Iterable[Gap], level: float) -> None:
        self._rows, self.level = tuple(gaps), level

    def to_pandas(self) -> "pd.DataFrame":
        """Returns a data frame with a row for every metric and pair of groups.

        Raises:
            ImportError: If pandas is not installed.

        Example:
            >>> import torch
            >>> from pyg_recmetrics import RankingTask, evaluate
            >>> truth = torch.stack([torch.arange(40), torch.arange(40) % 4])
            >>> task = RankingTask(truth, num_users=40, num_items=4)
            >>> result = evaluate(torch.tensor([4.0, 3.0, 2.0, 1.0]), task, "mrr")
            >>> gaps = result.by(["a", "b"] * 20).gaps()
            >>> gaps.to_pandas().columns.tolist()
            ['metric', 'a', 'b', 'difference', 'low', 'high', 'ratio', 'ratio_low', 'ratio_high']
        """
        return to_data_frame(self._rows, Gap._fields)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self)} gaps)"

    def table(self) -> Table:
        """Returns the printed table."""
        rows = [
            [
                gap.metric,
                str(gap.a),
                str(gap.b),
                format_mean(gap.difference, (gap.high - gap.low) / 2),
                format_interval(gap.ratio, gap.ratio_low, gap.ratio_high),
            ]
            for gap in self
        ]
        notes = (
            f"{format_level(self.level)} confidence intervals, not corrected for several pairs",
            "difference: a - b; ratio: a / b",
        )
        return Table(["metric", "a", "b", "difference", "ratio"], rows, notes, num_left=3)


def find_gaps(
    estimate: Callable[[Hashable], Estimate], metric: str, pairs: Iterable[Pair], level: float
) -> Iterator[Gap]:
    """Yields how far groups are apart in a metric.

    Args:
        estimate (callable): Returns the estimate of a group.
        metric (str): The metric.
        pairs (iterable): The labels of groups.
        level (float): The level of the intervals.
    """
    estimate = lru_cache(maxsize=_NUM_ESTIMATES)(estimate)
    for a, b in pairs:
        first, second = estimate(a), estimate(b)
        difference, ratio = first.minus(second), first.over(second)
        ends = difference.interval(level), ratio.interval(level)
        yield Gap(metric, a, b, difference.value, *ends[0], ratio.value, *ends[1])
