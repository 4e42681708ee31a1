"""How far the order of equal scores can move the means of a ranking."""

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import NamedTuple, cast

import torch
from torch import Tensor

from pyg_recmetrics.messages import list_some, warn
from pyg_recmetrics.metrics import Metric
from pyg_recmetrics.ranked_edges import RankedEdges, has_constant_scores, select_users
from pyg_recmetrics.ranked_edges.ties import Ties

#: The ways to rank ties that may flatter a recommender.
_FLATTERING: tuple[Ties, ...] = ("index", "best")

#: How many metrics a warning names.
_MAX_NAMED = 4


class TieRange(NamedTuple):
    """The lowest and the highest mean of a metric, over all orders of equal scores."""

    low: float
    high: float

    def __str__(self) -> str:
        low, high = (f"{mean:.4f}".removeprefix("0") for mean in self)
        return f"{low} to {high}"


def can_tell(ranked: RankedEdges, metric: Metric) -> bool:
    """Returns whether ties matter to a metric, and the ranking is deep enough to tell."""
    return metric.needs_truth and (ranked.depth is None or metric.depth is not None)


class TieRanges:
    """How far the order of ties can move the means of a ranking.

    Args:
        ranked (RankedEdges): The ranking.
        num_tied (int or None): How many edges have the score of another candidate; `None` if scores
            are unknown.
    """

    def __init__(self, ranked: RankedEdges, num_tied: int | None) -> None:
        self.ranked, self.num_tied = ranked, num_tied

    def range(
        self,
        metric: Metric,
        contributed: Tensor,
        contribute: Callable[[RankedEdges], Tensor],
        average: Callable[[Tensor], float],
    ) -> TieRange:
        """Returns the lowest and the highest mean of a metric.

        Args:
            metric (Metric): The metric.
            contributed (torch.Tensor): What every user contributes to it, of shape `[num_users]`.
            contribute (callable): Returns the same for another order of ties.
            average (callable): Returns the mean of what users contribute.
        """
        if not (metric.needs_truth and self.num_tied):
            mean = average(contributed)
            return TieRange(mean, mean)
        # The value of a user without ties stays as it is, unless it depends on other users.
        means = [
            average(torch.where(self._has_tie, contribute(ranked), contributed))
            for ranked in (self._orders_of_all if metric.is_pooled else self._orders_of_tied)
        ]
        return TieRange(min(means), max(means))

    @property
    def may_flatter(self) -> bool:
        """Whether the order of ties may flatter, or is all that there is."""
        return self.ranked.ties in _FLATTERING or self._is_all_tied

    def warn(self, ranges: Mapping[str, TieRange], margin_of: Callable[[str], float]) -> str | None:
        """Warns of metrics whose mean depends more on the order of ties than on the users.

        Returns what it says of them; `None` if there are none.

        Args:
            ranges (mapping): The range of the mean of each metric.
            margin_of (callable): Returns half the width of the confidence interval of a mean.
        """
        # A single user has no interval.
        movable = [
            f"{name} is {span}"
            for name, span in ranges.items()
            if span.high > span.low
            and (self._is_all_tied or not span.high - span.low <= 2 * margin_of(name))
        ]
        if not movable:
            return None
        said = (
            f"{list_some(movable, _MAX_NAMED)} depending on the order of ties: "
            f"{self.num_tied:,} of {self.ranked.rank.numel():,} ground-truth edges have the "
            f"same score as another candidate"
        )
        warn(f"{said}. See 'ties', which may be 'mean' or 'worst'")
        return said

    @cached_property
    def _is_all_tied(self) -> bool:
        is_constant = has_constant_scores(self.ranked)[self.ranked.edge_label_index[0]]
        return bool(is_constant.all())

    @cached_property
    def _has_tie(self) -> Tensor:
        """Whether each user has an edge that ties with another candidate, `[num_users]`."""
        # Truth that is no candidate ties with nothing, and has a negative number.
        return self.ranked.sum(cast("Tensor", self.ranked.num_tied) > 0) > 0

    @cached_property
    def _orders_of_all(self) -> tuple[RankedEdges, RankedEdges]:
        return self.ranked.with_ties("worst"), self.ranked.with_ties("best")

    @cached_property
    def _orders_of_tied(self) -> tuple[RankedEdges, RankedEdges]:
        tied = select_users(self.ranked, self._has_tie)
        return tied.with_ties("worst"), tied.with_ties("best")
