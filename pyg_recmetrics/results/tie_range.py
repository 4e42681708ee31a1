"""How far the order of equal scores can move the means of a ranking."""

from collections.abc import Callable, Iterator
from functools import cached_property
from itertools import chain
from typing import NamedTuple, cast

import torch
from torch import Tensor

from pyg_recmetrics.metrics import Metric
from pyg_recmetrics.ranked_edges import RankedEdges, Ties, has_constant_scores, select_users

#: The ways to rank ties that may flatter a recommender.
_FLATTERING: tuple[Ties, ...] = ("index", "best")

#: The lowest and the highest order of equal scores, for what falls with every rank.
_ENDS: tuple[Ties, ...] = ("worst", "best")


class TieRange(NamedTuple):
    """The lowest and the highest mean of a metric, over all orders of equal scores."""

    low: float
    high: float

    def __str__(self) -> str:
        digits = (n for n in range(4, 17) if round(self.low, n) != round(self.high, n))
        n = next(digits, 4)
        low, high = (f"{mean:.{n}f}".removeprefix("0") for mean in self)
        return f"{low} to {high}"


def can_tell(ranked: RankedEdges, metric: Metric) -> bool:
    """Returns whether ties matter to a metric, and the range is known if the ranking is deep."""
    is_deep = ranked.depth is None or metric.depth is not None
    return metric.needs_truth and is_deep and not _is_unknown(ranked, metric)


def _is_unknown(ranked: RankedEdges, metric: Metric) -> bool:
    """Returns whether it would take all orders of equal scores to find the range of a metric."""
    given = metric.all_arguments
    has_grades = ranked.weight is not None
    is_graded = metric.depth_of_hits is not None and has_grades and given.get("gain") != "binary"
    return given.get("users") == "hit" or (is_graded and metric.depends_on_weight)


class TieRanges:
    """How far the order of ties can move the values of users in a ranking.

    Args:
        ranked (RankedEdges): The ranking.
        contribute (callable): Returns what every user contributes to a metric in another order of
            ties, of shape `[num_users]`.
    """

    def __init__(
        self, ranked: RankedEdges, contribute: Callable[[Metric, RankedEdges], Tensor]
    ) -> None:
        self.ranked = ranked
        self.contribute = contribute

    def ends(self, metric: Metric, contributed: Tensor) -> tuple[Tensor, Tensor]:
        """Returns the lowest and the highest values of all users.

        Args:
            metric (Metric): The metric.
            contributed (torch.Tensor): What every user contributes to it, of shape `[num_users]`.

        Raises:
            ValueError: If they are not known.
        """
        low = high = contributed
        if not metric.needs_truth:
            return low, high
        if _is_unknown(self.ranked, metric):
            raise ValueError(
                f"'metric' needs to be one of which the orders of equal scores that are lowest and "
                f"highest are known (got '{metric}')"
            )
        # The value of a user without ties stays as it is, unless it depends on other users.
        orders = map(self.ranked.with_ties, _ENDS) if metric.is_pooled else self._orders_of_tied
        of_hits = () if metric.depth_of_hits is None else self._orders_by_hits(metric.depth_of_hits)
        for order in chain(orders, of_hits):
            value = torch.where(self._has_tie, self.contribute(metric, order), contributed)
            low, high = torch.fmin(low, value), torch.fmax(high, value)
        return low, high

    @property
    def may_flatter(self) -> bool:
        """Whether the order of ties may flatter, or is all that there is."""
        return self.ranked.ties in _FLATTERING or self.is_all_tied

    @cached_property
    def is_all_tied(self) -> bool:
        """Whether all candidates of every user with ground truth have one score."""
        is_constant = has_constant_scores(self.ranked)[self.ranked.edge_label_index[0]]
        return bool(is_constant.all())

    @cached_property
    def _has_tie(self) -> Tensor:
        """Whether each user has an edge that ties with another candidate, `[num_users]`."""
        # Truth that is no candidate ties with nothing, and has a negative number.
        return self.ranked.sum(cast("Tensor", self.ranked.num_tied) > 0) > 0

    @cached_property
    def _tied(self) -> RankedEdges:
        return select_users(self.ranked, self._has_tie)

    @cached_property
    def _orders_of_tied(self) -> list[RankedEdges]:
        return [*map(self._tied.with_ties, _ENDS)]

    def _orders_by_hits(self, k: int) -> Iterator[RankedEdges]:
        """Yields the worst and the best orders of all numbers of hits in the top `k`."""
        most = min(k, int(self._tied.degree.max()))
        for num_hits in range(most + 1):
            for ties in _ENDS:
                yield self._tied._with_ties(ties, hits=(k, num_hits))
