"""What the order of ties does to a mean, and the warning if it does too much."""

from collections.abc import Mapping
from typing import NamedTuple

import torch
from torch import Tensor

from pyg_recmetrics.messages import list_some, warn
from pyg_recmetrics.ranked_edges import RankedEdges
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


def count_tied(ranked: RankedEdges) -> int | None:
    """Returns how many edges have the score of another candidate; `None` if scores are unknown."""
    return None if ranked.num_tied is None else int((ranked.num_tied > 0).sum())


def has_tie(ranked: RankedEdges) -> Tensor:
    """Returns whether each user has an edge that ties with another candidate: `[num_users]`."""
    if ranked.num_tied is None:
        return torch.zeros_like(ranked.is_evaluated)
    return ranked.sum(ranked.num_tied > 0) > 0


def warn_about_ties(
    ranked: RankedEdges, ranges: Mapping[str, TieRange], margins: Mapping[str, float]
) -> None:
    """Warns of metrics whose mean depends more on the order of ties than on the users.

    Args:
        ranked (RankedEdges): The ranking.
        ranges (mapping): The range of the mean of each metric.
        margins (mapping): Half the width of the confidence interval of each mean.
    """
    is_all_tied = bool(ranked.has_constant_scores[ranked.edge_label_index[0]].all())
    if ranked.ties not in _FLATTERING and not is_all_tied:
        return
    # A single user has no interval.
    widths = {name: 0.0 if is_all_tied else 2 * margin for name, margin in margins.items()}
    movable = [
        f"{name} is {span}"
        for name, span in ranges.items()
        if span.high > span.low and not span.high - span.low <= widths[name]
    ]
    if movable:
        warn(
            f"{list_some(movable, _MAX_NAMED)} depending on the order of ties: "
            f"{count_tied(ranked):,} of {ranked.rank.numel():,} ground-truth edges have the same "
            f"score as another candidate. See 'ties', which may be 'mean' or 'worst'"
        )
