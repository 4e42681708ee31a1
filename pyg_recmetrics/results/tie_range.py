"""How far the order of equal scores can move the means of a ranking."""

from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from typing import NamedTuple, cast

import torch
from torch import Tensor

from pyg_recmetrics.kernels.exact.ranks import NOT_RETRIEVED
from pyg_recmetrics.metrics import Metric
from pyg_recmetrics.ranked_edges import RankedEdges, Ties, has_constant_scores, select_users
from pyg_recmetrics.utils import list_some, warn

#: The ways to rank ties that may flatter a recommender.
_FLATTERING: tuple[Ties, ...] = ("index", "best")

#: The lowest and the highest order of equal scores, for what falls with every rank.
_ENDS: tuple[Ties, ...] = ("worst", "best")

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
    """Returns whether ties matter to a metric, and the range is known if the ranking is deep."""
    is_deep = ranked.depth is None or metric.depth is not None
    return metric.needs_truth and is_deep and not _is_unknown(ranked, metric)


def _is_unknown(ranked: RankedEdges, metric: Metric) -> bool:
    """Returns whether it would take all orders of equal scores to find the range of a metric."""
    given = metric.all_arguments
    has_grades = ranked.weight is not None
    is_graded = metric.depth_of_hits is not None and has_grades and given.get("gain") != "binary"
    return given.get("users") == "hit" or (is_graded and metric.depends_on_weight)


def describe_ties(ranked: RankedEdges, num_tied: int) -> str:
    """Says how many ground-truth edges tie, of how many of which that is known."""
    num_known = int((cast("Tensor", ranked.num_above) < NOT_RETRIEVED).sum())
    within = "" if ranked.depth is None else f" that can be in the top {ranked.depth:,} or R"
    edges = f"{num_tied:,} of {num_known:,} ground-truth edges{within}"
    return f"{edges} have the same score as another candidate"


class TieRanges:
    """How far the order of ties can move the means of a ranking.

    Args:
        ranked (RankedEdges): The ranking.
        num_tied (int or None): How many edges have the score of another candidate; `None` if scores
            are unknown.
    """

    def __init__(self, ranked: RankedEdges, num_tied: int | None) -> None:
        self.ranked = ranked
        self.num_tied = num_tied

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

        Raises:
            ValueError: If the range is not known.
        """
        if not (metric.needs_truth and self.num_tied):
            mean = average(contributed)
            return TieRange(mean, mean)
        if _is_unknown(self.ranked, metric):
            raise ValueError(
                f"'metric' needs to be one of which the orders of equal scores that are lowest and "
                f"highest are known (got '{metric}')"
            )
        # The value of a user without ties stays as it is, unless it depends on other users.
        orders = self._orders_of_all if metric.is_pooled else self._orders_of_tied
        ends = [torch.where(self._has_tie, contribute(each), contributed) for each in orders]
        if (k := metric.depth_of_hits) is not None:
            for order in self._orders_by_hits(k):
                value = torch.where(self._has_tie, contribute(order), contributed)
                ends = [torch.fmin(ends[0], value), torch.fmax(ends[1], value)]
        means = [average(end) for end in ends]
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
        ties = describe_ties(self.ranked, self.num_tied or 0)
        said = f"{list_some(movable, _MAX_NAMED)} depending on the order of ties: {ties}"
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
    def _tied(self) -> RankedEdges:
        return select_users(self.ranked, self._has_tie)

    @cached_property
    def _orders_of_tied(self) -> tuple[RankedEdges, RankedEdges]:
        return self._tied.with_ties("worst"), self._tied.with_ties("best")

    def _orders_by_hits(self, k: int) -> Iterator[RankedEdges]:
        """Yields the worst and the best orders of all numbers of hits in the top `k`."""
        most = min(k, int(self._tied.degree.max()))
        for num_hits in range(most + 1):
            for ties in _ENDS:
                yield self._tied._with_ties(ties, hits=(k, num_hits))
