"""Metrics of the whole ranking, from the rank of every relevant item among all candidates."""

from typing import Annotated, Literal, TypeAlias

import torch
from torch import Tensor

from pyg_recmetrics.kernels.exact.ranks import find_runs
from pyg_recmetrics.metrics.registry import Average, register
from pyg_recmetrics.ranked_edges import (
    RankedEdges,
    candidates_of,
    count_irrelevant,
    positions,
)
from pyg_recmetrics.sums import exact_mean

TiedPairs: TypeAlias = Annotated[
    Literal["ranked", "half"],
    {"ranked": "equal scores as they are ranked", "half": "equal scores count one half"},
]
#: How the mean over users weighs them, see :func:`roc_auc`.
WeightedAverage: TypeAlias = Annotated[
    Literal["macro", "candidates", "relevant"],
    {
        "macro": "",
        "candidates": "every user counts as often as it has candidates",
        "relevant": "every user counts as often as it has relevant items",
    },
]


@register(needs_all_ranks=True, aliases=("auc", "auroc", "roc_auc_score"))
def roc_auc(
    ranked: RankedEdges,
    ties: TiedPairs = "ranked",
    average: WeightedAverage = "macro",
) -> Tensor:
    r"""The chance that a relevant item ranks above an irrelevant one.

    .. math::
        \text{roc\_auc} = 1 - \frac{1}{R (n - R)} \sum_{j=1}^{R} (r_j - j)

    where `n` is the number of the user's candidates, `R` is the number of its relevant items, and
    :math:`r_j` is the rank of the `j`-th relevant item. Above that item rank :math:`r_j - j`
    irrelevant items. A random ranking scores one half on average.

    With another `average` than `"macro"`, the mean over users is the GAUC: the sum of weight times
    ROC-AUC over all users who have a value, divided by the sum of their weights. To that end,
    the value of a user is multiplied by its weight as a multiple of the mean weight, so it may
    exceed one.

    Args:
        ranked (RankedEdges): The ranked ground truth, with the rank of every edge.
        ties (str, optional): What a relevant and an irrelevant item of equal score count. With
            `"ranked"`, they count as they are ranked: one if the relevant item is above, zero if it
            is below, and one half if the ranking gave it the mean rank. With `"half"`, they count
            one half whatever the ranking, as in scikit-learn. (default: `"ranked"`)
        average (str, optional): How the mean over users weighs them: `"macro"` all the same,
            `"candidates"` by their number of candidates, such as impressions, and `"relevant"` by
            their number of relevant items, such as clicks. (default: `"macro"`)

    Returns:
        A double-precision tensor of shape `[num_users]` in [0, 1]; `NaN` for users without truth,
        or without an irrelevant candidate. It may exceed one unless `average` is `"macro"`.

    Raises:
        ValueError: If `ranked` does not know the rank of every edge or the number of candidates, if
            `ties` is not `"ranked"` or `"half"`, if `ties` is `"half"` and `ranked` does not know
            which scores are equal, or if `average` is not `"macro"`, `"candidates"` or
            `"relevant"`.

    Source: Hanley and McNeil, "The meaning and use of the area under a ROC curve" (1982); with
    weights, Zhu et al., "Optimized cost per click in Taobao display advertising" (2017).

    Example:
        >>> import torch
        >>> from pyg_recmetrics import metrics, rank
        >>> scores, truth = torch.tensor([[0.9, 0.1, 0.5, 0.3]]), torch.tensor([[0, 0], [0, 3]])
        >>> metrics.roc_auc(rank(scores, truth, full=True))
        tensor([0.7500], dtype=torch.float64)
    """
    num_above = ranked.rank - positions(ranked) if ties == "ranked" else _num_above(ranked)
    num_irrelevant = count_irrelevant(ranked)
    value = 1 - ranked.sum(num_above) / (ranked.degree * num_irrelevant)
    if average == "macro":
        return value
    weights = candidates_of(ranked) if average == "candidates" else ranked.degree
    is_counted = (ranked.degree > 0) & (num_irrelevant > 0)
    return value * weights / exact_mean(weights[is_counted])


@register(needs_all_ranks=True)
def partial_auc(ranked: RankedEdges, k: int) -> Tensor:
    r"""The chance that a relevant item ranks above one of the top `k` irrelevant items.

    .. math::
        \text{partial\_auc@}k = \frac{1}{R k'} \sum_{j=1}^{R} \max(0, k' - (r_j - j)),
        \qquad k' = \min(k, n - R)

    where `n` is the number of the user's candidates, `R` is the number of its relevant items, and
    :math:`r_j` is the rank of the `j`-th relevant item. Above that item rank :math:`r_j - j`
    irrelevant items. If `k` is the number of irrelevant items, this is the area under the whole
    ROC curve. In a ranking by mean ranks, an irrelevant item of equal score counts as half an item
    above.

    Args:
        ranked (RankedEdges): The ranked ground truth, with the rank of every edge.
        k (int): The number of irrelevant items to look at, those that rank highest.

    Returns:
        A double-precision tensor of shape `[num_users]` in [0, 1]; `NaN` for users without truth,
        or without an irrelevant candidate.

    Raises:
        ValueError: If `k` is not a positive integer, or if `ranked` does not know the rank of every
            edge or the number of candidates.

    Source: Budhiraja et al., "Rich-item recommendations for rich-users: exploiting dynamic and
    static side information" (2020), who call it `pAUC@k`.

    Example:
        >>> import torch
        >>> from pyg_recmetrics import metrics, rank
        >>> scores, truth = torch.tensor([[0.9, 0.1, 0.5, 0.3]]), torch.tensor([[0, 0], [0, 3]])
        >>> metrics.partial_auc(rank(scores, truth, full=True), k=1)
        tensor([0.5000], dtype=torch.float64)
    """
    looked_at = count_irrelevant(ranked).clamp(max=k)
    num_above = ranked.rank - positions(ranked)
    num_below = (looked_at[ranked.edge_label_index[0]] - num_above).clamp(min=0)
    return ranked.sum(num_below) / (ranked.degree * looked_at)


@register(needs_all_ranks=True, aliases=("auprc",))
def pr_auc(ranked: RankedEdges) -> Tensor:
    r"""The area under the precision-recall curve, as the average precision of the whole ranking.

    .. math::
        \text{pr\_auc} = \frac{1}{R} \sum_{j=1}^{R} \frac{j}{r_j}

    where :math:`r_j` is the rank of the user's `j`-th of `R` relevant items. The curve has one step
    for each relevant item. The precision at its rank is the height of the step, and all steps are
    :math:`1 / R` wide. This is the MAP without a cut-off. Where scores tie, the
    `average_precision_score` of scikit-learn has one step for all of them, as no `ties` has here.

    Args:
        ranked (RankedEdges): The ranked ground truth, with the rank of every edge.

    Returns:
        A double-precision tensor of shape `[num_users]` in [0, 1]; `NaN` for users without truth.

    Raises:
        ValueError: If `ranked` does not know the rank of every edge or the number of candidates.

    Source: Davis and Goadrich, "The relationship between precision-recall and ROC curves" (2006).

    Example:
        >>> import torch
        >>> from pyg_recmetrics import metrics, rank
        >>> scores, truth = torch.tensor([[0.9, 0.1, 0.5, 0.3]]), torch.tensor([[0, 0], [0, 3]])
        >>> metrics.pr_auc(rank(scores, truth, full=True))
        tensor([0.8333], dtype=torch.float64)
    """
    return ranked.sum(positions(ranked) / ranked.rank.double()) / ranked.degree


@register(range=(1.0, torch.inf), needs_all_ranks=True, higher_is_better=False)
def mean_rank(ranked: RankedEdges) -> Tensor:
    r"""The mean rank of the relevant items; lower is better.

    .. math::
        \text{mean\_rank} = \frac{1}{R} \sum_{j=1}^{R} r_j

    where :math:`r_j` is the rank of the user's `j`-th of `R` relevant items. The best possible
    value is :math:`(R + 1) / 2`.

    Args:
        ranked (RankedEdges): The ranked ground truth, with the rank of every edge.

    Returns:
        A double-precision tensor of shape `[num_users]`, one or more; `NaN` for users without
        truth.

    Raises:
        ValueError: If `ranked` does not know the rank of every edge or the number of candidates.

    Source: Bordes et al., "Translating embeddings for modeling multi-relational data" (2013).

    Example:
        >>> import torch
        >>> from pyg_recmetrics import metrics, rank
        >>> scores, truth = torch.tensor([[0.9, 0.1, 0.5, 0.3]]), torch.tensor([[0, 0], [0, 3]])
        >>> metrics.mean_rank(rank(scores, truth, full=True))
        tensor([2.], dtype=torch.float64)
    """
    return ranked.sum(ranked.rank) / ranked.degree


@register(range=(1.0, torch.inf), needs_all_ranks=True, higher_is_better=False, pools_edges=True)
def median_rank(ranked: RankedEdges) -> Tensor:
    r"""The median rank of the relevant items; lower is better.

    .. math::
        \text{median\_rank} = \frac{r_{\lfloor (R + 1) / 2 \rfloor} +
        r_{\lceil (R + 1) / 2 \rceil}}{2}

    where :math:`r_j` is the rank of the user's `j`-th of `R` relevant items. Where each row is an
    edge, as in a knowledge graph, this is the median over all edges together, as in PyKEEN: the
    mean of the medians of single ranks would be the mean rank.

    Args:
        ranked (RankedEdges): The ranked ground truth, with the rank of every edge.

    Returns:
        A double-precision tensor of shape `[num_users]`, one or more; `NaN` for users without
        truth. With one number if each row is an edge; `NaN` if there is none.

    Raises:
        ValueError: If `ranked` does not know the rank of every edge or the number of candidates.

    Source: Bordes et al., "Translating embeddings for modeling multi-relational data" (2013), who
    report the mean. Unlike the mean, the median does not move with a single bad rank.

    Example:
        >>> import torch
        >>> from pyg_recmetrics import metrics, rank
        >>> scores, truth = torch.tensor([[0.9, 0.1, 0.5, 0.3]]), torch.tensor([[0, 0], [0, 2]])
        >>> metrics.median_rank(rank(scores, truth, full=True))
        tensor([1.5000], dtype=torch.float64)
    """
    if ranked.origin.user_of_row is not None:
        ordered, num_edges = ranked.rank.double().sort().values, ranked.rank.numel()
        return ordered[(num_edges - 1) // 2 : num_edges // 2 + 1].mean()
    degree = ranked.degree[ranked.edge_label_index[0]]
    is_lower = positions(ranked) == (degree + 1) // 2
    is_upper = positions(ranked) == degree // 2 + 1
    return ranked.sum((is_lower.long() + is_upper.long()) * ranked.rank) / 2


@register(range=(0.0, torch.inf), needs_all_ranks=True, higher_is_better=False, aliases=("amr",))
def adjusted_mean_rank(ranked: RankedEdges, average: Average = "micro") -> Tensor:
    r"""The mean rank as a multiple of what a random ranking has; lower is better.

    .. math::
        \text{adjusted\_mean\_rank} = \frac{\sum_{j=1}^{R} r_j}{R (n + 1) / 2}

    where `n` is the number of the user's candidates, `R` is the number of its relevant items, and
    :math:`r_j` is the rank of the `j`-th relevant item. In a random ranking, each has the rank
    :math:`(n + 1) / 2` on average. The mean over users is the sum of all numerators divided by the
    sum of all denominators, which is one for a random ranking and less than two for any other. It
    does not depend on how many candidates there are, as the mean rank does.

    Each relevant item has its rank among all candidates, other relevant items included, so only a
    user with a single one can reach the rank one with all. PyKEEN ranks every triple without the
    other known answers to its query, as `evaluate(..., per="edge")` does.

    Args:
        ranked (RankedEdges): The ranked ground truth, with the rank of every edge.
        average (str, optional): How the mean over users weighs them. With `"micro"`, the mean is
            the ratio of two sums. To that end, the sum of a user's ranks is divided by the mean
            denominator, so the value of a user may be two or more. With `"macro"`, every user has a
            ratio of its own. (default: `"micro"`)

    Returns:
        A double-precision tensor of shape `[num_users]`, above zero; `NaN` for users without truth.

    Raises:
        ValueError: If `ranked` does not know the rank of every edge or the number of candidates, or
            if `average` is not `"macro"` or `"micro"`.

    Source: Berrendorf et al., "On the ambiguity of rank-based evaluation of entity alignment or
    link prediction methods" (2020).

    Example:
        >>> import torch
        >>> from pyg_recmetrics import metrics, rank
        >>> scores, truth = torch.tensor([[0.9, 0.1, 0.5, 0.3]]), torch.tensor([[0, 0], [0, 3]])
        >>> metrics.adjusted_mean_rank(rank(scores, truth, full=True))  # (1 + 3) / 5
        tensor([0.8000], dtype=torch.float64)
    """
    expected = ranked.degree.double() * (candidates_of(ranked) + 1) / 2
    return ranked.sum(ranked.rank) / _denominator(ranked, expected, average)


@register(range=(-torch.inf, torch.inf), needs_all_ranks=True, aliases=("amri",))
def adjusted_mean_rank_index(ranked: RankedEdges, average: Average = "micro") -> Tensor:
    r"""How much better the mean rank is than that of a random ranking, from one down to minus one.

    .. math::
        \text{adjusted\_mean\_rank\_index} =
        1 - \frac{\sum_{j=1}^{R} (r_j - 1)}{R (n - 1) / 2}

    where `n` is the number of the user's candidates, `R` is the number of its relevant items, and
    :math:`r_j` is the rank of the `j`-th relevant item. In a random ranking, each has the rank
    :math:`(n + 1) / 2` on average. The mean over users is
    :math:`1 - (\text{MR} - 1) / (\mathbb{E}[\text{MR}] - 1)`, where `MR` is the mean rank of all
    relevant items together: one if all rank first, zero for a random ranking, and minus one if all
    rank last. Each has its rank among all candidates, see :func:`adjusted_mean_rank`.

    Args:
        ranked (RankedEdges): The ranked ground truth, with the rank of every edge.
        average (str, optional): How the mean over users weighs them. With `"micro"`, the mean is
            one minus the ratio of two sums. To that end, the value of a user is the sum of
            :math:`(n + 1) / 2 - r_j`, by which its ranks are better than random ones, divided by
            the mean denominator, so it may exceed one. With `"macro"`, every user has a ratio of
            its own. (default: `"micro"`)

    Returns:
        A double-precision tensor of shape `[num_users]`; `NaN` for users without truth. It is also
        `NaN` for users with a single candidate with `average="macro"`, and for all users with
        `"micro"` if no user has more. With others, a user with a single candidate counts zero, and
        does not change the ratio.

    Raises:
        ValueError: If `ranked` does not know the rank of every edge or the number of candidates, or
            if `average` is not `"macro"` or `"micro"`.

    Source: Berrendorf et al., "On the ambiguity of rank-based evaluation of entity alignment or
    link prediction methods" (2020).

    Example:
        >>> import torch
        >>> from pyg_recmetrics import metrics, rank
        >>> scores, truth = torch.tensor([[0.9, 0.1, 0.5, 0.3]]), torch.tensor([[0, 0], [0, 3]])
        >>> metrics.adjusted_mean_rank_index(rank(scores, truth, full=True))  # 1 - 2 / 3
        tensor([0.3333], dtype=torch.float64)
    """
    num_candidates, degree = candidates_of(ranked), ranked.degree.double()
    expected = degree * (num_candidates + 1) / 2
    possible = degree * (num_candidates - 1) / 2
    return (expected - ranked.sum(ranked.rank)) / _denominator(ranked, possible, average)


def _denominator(ranked: RankedEdges, own: Tensor, average: str) -> Tensor | float:
    """What to divide the sum of a user by: its own denominator, or the mean of all."""
    return own if average == "macro" else exact_mean(own[ranked.degree > 0])


def _num_above(ranked: RankedEdges) -> Tensor:
    """How many irrelevant items score higher than each edge; those of equal score count half."""
    if ranked.num_above is None or ranked.num_tied is None:
        raise ValueError(
            "'ties' can only be 'half' if 'ranked' knows which scores are equal (got a ranking "
            "without scores)"
        )
    # The edges of a user are in the order of their scores, so those of equal score are neighbours.
    first, num_relevant = find_runs(ranked.edge_label_index[0], ranked.num_above)
    num_relevant_above = positions(ranked)[first] - 1
    num_irrelevant_tied = ranked.num_tied + 1 - num_relevant
    return ranked.num_above - num_relevant_above + num_irrelevant_tied.double() / 2
