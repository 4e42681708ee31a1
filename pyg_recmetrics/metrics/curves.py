"""Curves: metrics at every cut-off from one to a largest one, and what is read off them."""

from collections.abc import Callable
from typing import Literal, TypeAlias

import torch
from torch import Tensor

from pyg_recmetrics.checks import (
    check_boolean,
    check_choice,
    check_finite_number,
    check_positive_integer,
)
from pyg_recmetrics.metrics.registry import (
    EmptyTargetAction,
    Metric,
    check_empty_target_action,
    check_num_without_truth,
    check_ranked,
    fill_without_truth,
    parse,
)
from pyg_recmetrics.ranked_edges import RankedEdges, candidates_of

#: Precisions, recalls and cut-offs, each of shape `[num_cut_offs]`.
Curve: TypeAlias = tuple[Tensor, Tensor, Tensor]

#: How to get from the values of all users to one: a word, or a function of the values and `dim`.
Aggregation: TypeAlias = Literal["mean", "median", "min", "max"] | Callable[..., Tensor]

#: How many values of users and cut-offs are in memory at once, each of 8 bytes.
_NUM_VALUES_AT_ONCE = 2**22

_AGGREGATIONS: dict[str, Callable[..., Tensor]] = {
    # A mean of torch is rounded differently for other numbers of columns, and of threads.
    "mean": lambda values, dim: values.cumsum(dim).select(dim, -1) / values.size(dim),
    "median": lambda values, dim: values.median(dim).values,
    "min": torch.amin,
    "max": torch.amax,
}


def curve(ranked: RankedEdges, metric: str, max_k: int) -> Tensor:
    r"""Computes any metric at every cut-off from one to `max_k`, for every user.

    Args:
        ranked (RankedEdges): The ranked ground truth.
        metric (str): The metric, which needs to have a cut-off, spelled without it, such as
            `"ndcg"` or `"ndcg(gain=exponential)"`.
        max_k (int): The largest cut-off.

    Returns:
        A double-precision tensor of shape `[num_users, max_k]`; `NaN` where the metric is
        undefined, so for users without truth. Call `.nanmean(dim=0)` for the curve of the mean. A
        metric with one value for all users together, such as `"coverage"`, has one curve, of shape
        `[max_k]`.

    Raises:
        TypeError: If `ranked` is not `RankedEdges`, or `metric` is not a string.
        ValueError: If there is no metric of that name, if it has no cut-off or is spelled with one,
            or if `max_k` is not a positive integer or is larger than the depth of the ranking.

    Example:
        >>> import torch
        >>> from pyg_recmetrics import RankedEdges, metrics
        >>> lists, truth = torch.tensor([[3, 1, 4]]), torch.tensor([[0, 0], [1, 4]])
        >>> metrics.curve(RankedEdges.from_topk(lists, truth), "recall", max_k=3)
        tensor([[0.0000, 0.5000, 1.0000]], dtype=torch.float64)
    """
    check_ranked(ranked)
    return torch.stack([at_k(ranked) for at_k in at_every_k(metric, max_k)], dim=-1).flip(-1)


def at_every_k(metric: str, max_k: int) -> list[Metric]:
    """Returns a metric with every cut-off from `max_k` down to one, see :func:`curve`.

    The largest is the first, so that the error of a ranking that is less deep names it.
    """
    max_k = check_positive_integer(max_k, "max_k")
    if not isinstance(metric, str):
        raise TypeError(f"'metric' needs to be a string (got {type(metric).__name__})")
    if "@" in metric:
        raise ValueError(f"'metric' needs to be spelled without a cut-off (got {metric!r})")
    at_max_k = parse(f"{metric}@{max_k}", "metric")
    return [Metric(at_max_k.name, k, at_max_k.arguments) for k in range(max_k, 0, -1)]


def precision_recall_curve(
    ranked: RankedEdges,
    max_k: int | None = None,
    adaptive_k: bool = False,
    *,
    empty_target_action: EmptyTargetAction = "neg",
    aggregation: Aggregation = "mean",
) -> Curve:
    r"""Computes precision and recall at every cut-off from one to `max_k`, over evaluated users.

    The arguments, defaults and values are those of torchmetrics' `RetrievalPrecisionRecallCurve`.
    The values are right whatever the sign of the scores.

    Args:
        ranked (RankedEdges): The ranked ground truth.
        max_k (int, optional): The largest cut-off. (default: `None`, the largest number of
            candidates of a user, which needs a ranking of all candidates)
        adaptive_k (bool, optional): Whether to divide the precision of a user with fewer than `k`
            candidates by the number of candidates. (default: `False`)
        empty_target_action (str, optional): What users without truth count as. `"neg"` counts them
            as zero, `"pos"` counts them as one, `"skip"` leaves them out, and `"error"` raises an
            error. (default: `"neg"`)
        aggregation (str or callable, optional): How to get from the values of all users to one:
            `"mean"`, `"median"`, `"min"`, `"max"`, or a function that takes a tensor of shape
            `[num_users, num_cut_offs]` and `dim=0`. (default: `"mean"`)

    Returns:
        The precisions and the recalls, in double precision, and the cut-offs, each of shape
        `[max_k]`. Precisions and recalls are zero, and not `NaN`, if all users are left out.

    Raises:
        TypeError: If `ranked` is not `RankedEdges`, or `adaptive_k` is not a boolean.
        ValueError: If `max_k` is not a positive integer or is larger than the depth of the ranking,
            if `empty_target_action` is not `"neg"`, `"pos"`, `"skip"` or `"error"`, if
            `aggregation` is not one of the words above, if `max_k` is `None` or `adaptive_k` is
            `True` and `ranked` does not know the number of candidates, or if `empty_target_action`
            is `"error"` and there is a user without truth.

    Example:
        >>> import torch
        >>> from pyg_recmetrics import RankedEdges, metrics
        >>> ranked = RankedEdges.from_pairs(
        ...     preds=torch.tensor([0.4, 0.01, 0.5, 0.6, 0.2, 0.3, 0.5]),
        ...     target=torch.tensor([True, False, False, True, True, False, True]),
        ...     indexes=torch.tensor([0, 0, 0, 0, 1, 1, 1]),
        ... )
        >>> precisions, recalls, top_k = metrics.precision_recall_curve(ranked, max_k=4)
        >>> precisions
        tensor([1.0000, 0.5000, 0.6667, 0.5000], dtype=torch.float64)
        >>> recalls
        tensor([0.5000, 0.5000, 1.0000, 1.0000], dtype=torch.float64)
    """
    check_ranked(ranked)
    check_boolean(adaptive_k, "adaptive_k")
    max_k = _largest_k(ranked, max_k)
    check_empty_target_action(empty_target_action)
    if empty_target_action == "error":
        is_without_truth = ranked._is_evaluated & (ranked.degree == 0)
        check_num_without_truth(int(is_without_truth.sum()))
    aggregate = aggregate_of(aggregation)
    top_k = torch.arange(1, max_k + 1, device=ranked.rank.device)
    is_filled = empty_target_action in ("neg", "pos")
    is_counted = ranked._is_evaluated & ((ranked.degree > 0) | is_filled)
    if not bool(is_counted.any()):
        zeros = torch.zeros(max_k, dtype=torch.float64, device=top_k.device)
        return zeros, zeros.clone(), top_k
    precisions: list[Tensor] = []
    recalls: list[Tensor] = []
    # Cut-offs are aggregated one by one, so blocks of them give the same values in less memory.
    for block in top_k.split(max(1, _NUM_VALUES_AT_ONCE // ranked.num_users)):
        precision, recall = _at_every(ranked, block, adaptive_k)
        for values, collected in ((precision, precisions), (recall, recalls)):
            filled = fill_without_truth(values, ranked.degree, empty_target_action)
            collected.append(aggregate(filled[is_counted], dim=0))
    return torch.cat(precisions), torch.cat(recalls), top_k


def recall_at_fixed_precision(
    ranked: RankedEdges,
    min_precision: float = 0.0,
    max_k: int | None = None,
    adaptive_k: bool = False,
    *,
    empty_target_action: EmptyTargetAction = "neg",
    aggregation: Aggregation = "mean",
) -> tuple[Tensor, Tensor]:
    r"""Computes the largest recall at a precision of at least `min_precision`, and its cut-off.

    .. math::
        \text{max\_recall} = \max_{k:\, P_k \geq p} R_k

    where :math:`P_k` and :math:`R_k` are the precision and the recall at `k` over all evaluated
    users, as :func:`precision_recall_curve` computes them, and `p` is `min_precision`. The
    arguments, defaults and values are those of torchmetrics' `RetrievalRecallAtFixedPrecision`. If
    several cut-offs have the largest recall, the largest of them is returned. Like torchmetrics,
    this compares in single precision, so that the rounding errors of a mean do not matter.

    Args:
        ranked (RankedEdges): The ranked ground truth.
        min_precision (float, optional): The smallest precision to accept, from zero to one.
            (default: `0.0`)
        max_k (int, optional): See :func:`precision_recall_curve`. (default: `None`)
        adaptive_k (bool, optional): See :func:`precision_recall_curve`. (default: `False`)
        empty_target_action (str, optional): See :func:`precision_recall_curve`. (default: `"neg"`)
        aggregation (str or callable, optional): See :func:`precision_recall_curve`.
            (default: `"mean"`)

    Returns:
        The recall in double precision, in [0, 1], and the cut-off. If no cut-off has the precision
        or a recall above zero, these are zero and `max_k`.

    Raises:
        TypeError: See :func:`precision_recall_curve`.
        ValueError: If `min_precision` is not a number from zero to one, and see
            :func:`precision_recall_curve`.

    Source: torchmetrics, "Retrieval Recall At Fixed Precision".

    Example:
        >>> import torch
        >>> from pyg_recmetrics import RankedEdges, metrics
        >>> ranked = RankedEdges.from_pairs(
        ...     preds=torch.tensor([0.4, 0.01, 0.5, 0.6, 0.2, 0.3, 0.5]),
        ...     target=torch.tensor([True, False, False, True, True, False, True]),
        ...     indexes=torch.tensor([0, 0, 0, 0, 1, 1, 1]),
        ... )
        >>> metrics.recall_at_fixed_precision(ranked, min_precision=0.6)
        (tensor(1., dtype=torch.float64), tensor(3))
    """
    check_ranked(ranked)
    min_precision = check_min_precision(min_precision)
    curve = precision_recall_curve(
        ranked,
        max_k,
        adaptive_k,
        empty_target_action=empty_target_action,
        aggregation=aggregation,
    )
    return largest_recall(*curve, min_precision)


def largest_recall(
    precisions: Tensor, recalls: Tensor, top_k: Tensor, min_precision: float
) -> tuple[Tensor, Tensor]:
    """Reads :func:`recall_at_fixed_precision` off a curve."""
    # In single precision, in which rounding errors of a mean vanish.
    is_enough = (precisions.float() >= min_precision) & ~recalls.isnan()
    recalls = recalls.masked_fill(~is_enough, 0.0)
    rounded = recalls.float()
    best = (rounded == rounded.max()).nonzero()[-1, 0]
    return recalls[best], top_k[best]


def check_min_precision(min_precision: object) -> float:
    """Returns `min_precision` if it is a number from zero to one."""
    number = check_finite_number(min_precision, "min_precision")
    if not 0 <= number <= 1:
        raise ValueError(f"'min_precision' needs to be in [0, 1] (got {min_precision!r})")
    return number


def aggregate_of(aggregation: Aggregation) -> Callable[..., Tensor]:
    """Returns a function of `[num_users, num_cut_offs]` and `dim` with values `[num_cut_offs]`.

    Raises:
        ValueError: If `aggregation` is neither a function nor a word for one.
    """
    if callable(aggregation):
        return aggregation
    name = check_choice(aggregation, "aggregation", list(_AGGREGATIONS), or_else="a function")
    return _AGGREGATIONS[name]


def _at_every(ranked: RankedEdges, top_k: Tensor, adaptive_k: bool) -> tuple[Tensor, Tensor]:
    """Precision and recall of every user at consecutive cut-offs: `[num_users, num_cut_offs]`."""
    first = int(top_k[0])
    # A relevant item at rank 2.5 is in the top 3, and not in the top 2.
    cut_off = ranked.rank.ceil()
    hits = torch.zeros(ranked.num_users, top_k.numel(), dtype=torch.float64, device=top_k.device)
    is_within = (cut_off >= first) & (cut_off < first + top_k.numel())
    hits[ranked.edge_label_index[0, is_within], cut_off[is_within].long() - first] = 1.0
    hits = hits.cumsum_(dim=1).add_(ranked.hits(first - 1).unsqueeze(1))
    denominator = top_k.unsqueeze(0)
    if adaptive_k:
        num_candidates = candidates_of(ranked).unsqueeze(1)
        denominator = torch.minimum(denominator, num_candidates).clamp(min=1)
    return hits / denominator, hits / ranked.degree.unsqueeze(1)


def _largest_k(ranked: RankedEdges, max_k: int | None) -> int:
    if max_k is None:
        num_candidates = candidates_of(ranked)
        if num_candidates.numel() == 0:
            raise ValueError("'max_k' needs to be given if there are no users (got None)")
        max_k = int(num_candidates.max())
    max_k = check_positive_integer(max_k, "max_k")
    if ranked.depth is not None and max_k > ranked.depth:
        raise ValueError(
            f"'max_k' needs to be at most {ranked.depth}, the depth of the ranking (got {max_k})"
        )
    return max_k
