"""Accuracy metrics: how well the top of a ranking agrees with the ground truth."""

import math
from functools import lru_cache
from typing import Annotated, Literal, TypeAlias

import torch
from torch import Tensor
from torch_geometric.utils import lexsort, scatter

from pyg_recmetrics.kernels.exact.ranks import NOT_RETRIEVED
from pyg_recmetrics.metrics.registry import Average, register
from pyg_recmetrics.ranked_edges import (
    RankedEdges,
    count_irrelevant,
    length_of_lists,
    positions,
)
from pyg_recmetrics.sums import exact_sum

#: Down to so many ranks, discounts are looked up, and not computed again.
_MAX_LOOKED_UP = 2**12

# Each choice stands beside the words that say in a sentence what it means. Tables and recipes of
# results print these words.
_DIVIDED_BY = {
    "k": "divided by k",
    "R": "divided by R",
    "min": "divided by min(k, R)",
    "length": "divided by the length of the list",
    "hits": "divided by the number of hits",
}
PrecisionNormalizer: TypeAlias = Annotated[Literal["k", "length", "min"], _DIVIDED_BY]
RecallNormalizer: TypeAlias = Annotated[Literal["R", "min"], _DIVIDED_BY]
MapNormalizer: TypeAlias = Annotated[Literal["min", "R", "k", "hits"], _DIVIDED_BY]
ReciprocalRanks: TypeAlias = Annotated[
    Literal["first", "all"], {"first": "", "all": "mean over all relevant items"}
]
Weighted: TypeAlias = Annotated[bool, "every relevant item counts as much as it weighs"]
Counted: TypeAlias = Annotated[
    Literal["all", "hit"],
    {"all": "averaged over all users", "hit": "averaged over users with a hit alone"},
]
Gain: TypeAlias = Annotated[
    Literal["linear", "exponential", "binary"],
    {
        "linear": "linear gain",
        "exponential": "exponential gain 2^w - 1",
        "binary": "binary gain",
    },
]
Discount: TypeAlias = Annotated[
    Literal["log2", "lenskit"],
    {"log2": "discount 1 / log2(rank + 1)", "lenskit": "discount 1 / log2(max(rank, 2))"},
]
Persistence: TypeAlias = Annotated[float, "persistence {}"]
MaxGrade: TypeAlias = Annotated[int, "grades up to {}"]
Ideal: TypeAlias = Annotated[
    Literal["relevant", "k", "retrieved"],
    {
        "relevant": "ideal of the best min(k, R) relevant items",
        "k": "ideal of k relevant items",
        "retrieved": "ideal over retrieved items only",
    },
]


@register(depends_on_order=False, aliases=("p", "prec"))
def precision(
    ranked: RankedEdges,
    k: int,
    normalizer: PrecisionNormalizer = "k",
    average: Average = "macro",
) -> Tensor:
    r"""The fraction of the top `k` that is relevant.

    .. math::
        \text{precision@}k = \frac{h_k}{k}

    where :math:`h_k` is the number of relevant items in the top `k`. The denominator is `k` even if
    the list is shorter. A user with :math:`R < k` relevant items cannot reach one.

    Args:
        ranked (RankedEdges): The ranked ground truth.
        k (int): The cut-off.
        normalizer (str, optional): What to divide by. `"k"` divides by `k`; `"length"` by the
            length of the list if that is less than `k`, as LensKit does; `"min"` by the minimum of
            `k` and `R`, the user's number of relevant items. (default: `"k"`)
        average (str, optional): How the mean over users weighs them. With `"macro"`, all users
            count the same. With `"micro"`, the mean is the sum of all hits divided by the sum of
            all denominators. To that end, the hits of a user are divided by the mean denominator,
            so the value of a user may exceed one. (default: `"macro"`)

    Returns:
        A double-precision tensor of shape `[num_users]` in [0, 1]; `NaN` for users without truth.
        With `average="micro"`, the value of a user may exceed one.

    Raises:
        ValueError: If `k` is not a positive integer, or is larger than the depth of the ranking, if
            `normalizer` is not `"k"`, `"length"` or `"min"`, or if `average` is not `"macro"` or
            `"micro"`.

    Source: Manning, Raghavan and Schütze, "Introduction to Information Retrieval", 8.4 (2008).

    Example:
        >>> import torch
        >>> from pyg_recmetrics import RankedEdges, metrics
        >>> lists, truth = torch.tensor([[3, 1, 4]]), torch.tensor([[0, 0], [1, 9]])
        >>> metrics.precision(RankedEdges.from_topk(lists, truth), k=2)
        tensor([0.5000], dtype=torch.float64)
    """
    return _ratio(ranked, ranked.hits(k), _denominator(ranked, k, normalizer), average)


@register(depends_on_order=False, aliases=("trunc_precision", "tp"))
def truncated_precision(ranked: RankedEdges, k: int) -> Tensor:
    r"""Precision as a share of what is possible: a perfect ranking scores one at every `k`.

    .. math::
        \text{truncated\_precision@}k = \frac{h_k}{\min(k, R)}

    where :math:`h_k` is the number of relevant items in the top `k`, and `R` is the user's number
    of relevant items. For :math:`k \leq R` this is precision, and for :math:`k \geq R` it is
    recall. Some libraries call it recall, and others call it R-precision.

    Args:
        ranked (RankedEdges): The ranked ground truth.
        k (int): The cut-off.

    Returns:
        A double-precision tensor of shape `[num_users]` in [0, 1]; `NaN` for users without truth.

    Raises:
        ValueError: If `k` is not a positive integer, or is larger than the depth of the ranking.

    Source: `recometrics <https://cran.r-project.org/package=recometrics>`_, `TP@K`.

    Example:
        >>> import torch
        >>> from pyg_recmetrics import RankedEdges, metrics
        >>> lists, truth = torch.tensor([[3, 1, 4]]), torch.tensor([[0, 0], [1, 9]])
        >>> metrics.truncated_precision(RankedEdges.from_topk(lists, truth), k=3)
        tensor([0.5000], dtype=torch.float64)
    """
    return ranked.hits(k) / ranked.degree.clamp(max=k)


@register(depends_on_order=False, aliases=("r",))
def recall(
    ranked: RankedEdges,
    k: int,
    normalizer: RecallNormalizer = "R",
    average: Average = "macro",
    weighted: Weighted = False,
) -> Tensor:
    r"""The fraction of the relevant items that is in the top `k`.

    .. math::
        \text{recall@}k = \frac{h_k}{R}

    where :math:`h_k` is the number of relevant items in the top `k`, and `R` is the user's number
    of relevant items. A user with :math:`R > k` cannot reach one.

    Args:
        ranked (RankedEdges): The ranked ground truth.
        k (int): The cut-off.
        normalizer (str, optional): What to divide by. `"R"` divides by `R`; `"min"` by the minimum
            of `k` and `R`, as LensKit and rectorch do. (default: `"R"`)
        average (str, optional): How the mean over users weighs them: `"macro"` or `"micro"`, see
            :func:`precision`. (default: `"macro"`)
        weighted (bool, optional): Whether every relevant item counts as much as it weighs. The
            value is then the sum of the weights :math:`w_j` of the items in the top `k`, divided
            by the sum of all weights, or of the :math:`\min(k, R)` largest with
            `normalizer="min"`. All weights are one if the ground truth has no weights.
            (default: `False`)

    Returns:
        A double-precision tensor of shape `[num_users]` in [0, 1]; `NaN` for users without truth.
        With `average="micro"`, the value of a user may exceed one.

    Raises:
        ValueError: If `k` is not a positive integer, or is larger than the depth of the ranking, if
            `normalizer` is not `"R"` or `"min"`, or if `average` is not `"macro"` or `"micro"`.
        TypeError: If `weighted` is not a boolean.

    Source: Manning, Raghavan and Schütze, "Introduction to Information Retrieval", 8.4 (2008);
    weighted as PyG's :class:`~torch_geometric.metrics.LinkPredRecall` does.

    Example:
        >>> import torch
        >>> from pyg_recmetrics import RankedEdges, metrics
        >>> lists, truth = torch.tensor([[3, 1, 4]]), torch.tensor([[0, 0], [1, 9]])
        >>> metrics.recall(RankedEdges.from_topk(lists, truth), k=3)
        tensor([0.5000], dtype=torch.float64)
    """
    if not weighted or ranked.weight is None:
        return _ratio(ranked, ranked.hits(k), _denominator(ranked, k, normalizer), average)
    # A common factor of all weights, or of those of a user, changes nothing. It keeps sums finite.
    if average == "macro":
        weight = ranked.weight / _largest_of_user(ranked, ranked.weight)
    else:
        weight = ranked.weight / (ranked.weight.max() if ranked.weight.numel() else 1.0)
    possible = weight
    if normalizer == "min":
        possible = _largest_first(ranked, weight) * (positions(ranked) <= k)
    return _ratio(ranked, ranked.sum(ranked.is_hit(k) * weight), ranked.sum(possible), average)


@register(depends_on_order=False, aliases=("f1_score",))
def f1(ranked: RankedEdges, k: int) -> Tensor:
    r"""The harmonic mean of a user's precision and recall.

    .. math::
        \text{f1@}k = \frac{2 h_k}{k + R}

    where :math:`h_k` is the number of relevant items in the top `k`, and `R` is the user's number
    of relevant items. This equals :math:`2pr / (p + r)` for precision :math:`p = h_k / k` and
    recall :math:`r = h_k / R`. The mean of F1 over users is not the F1 of mean precision and mean
    recall.

    Args:
        ranked (RankedEdges): The ranked ground truth.
        k (int): The cut-off.

    Returns:
        A double-precision tensor of shape `[num_users]` in [0, 1]; `NaN` for users without truth.

    Raises:
        ValueError: If `k` is not a positive integer, or is larger than the depth of the ranking.

    Source: van Rijsbergen, "Information Retrieval", chapter 7 (1979).

    Example:
        >>> import torch
        >>> from pyg_recmetrics import RankedEdges, metrics
        >>> lists, truth = torch.tensor([[3, 1, 4]]), torch.tensor([[0, 0], [1, 9]])
        >>> metrics.f1(RankedEdges.from_topk(lists, truth), k=2)
        tensor([0.5000], dtype=torch.float64)
    """
    return 2 * ranked.hits(k) / (k + ranked.degree)


@register(aliases=("rprec", "r_prec"))
def r_precision(ranked: RankedEdges, users: Counted = "all") -> Tensor:
    r"""Precision at the user's own number of relevant items `R`, where it equals recall.

    .. math::
        \text{r\_precision} = \frac{h_R}{R}

    where :math:`h_R` is the number of relevant items in the top `R`. Each user has a cut-off of its
    own, so a perfect ranking scores one for every user. `R` is the degree of the user in the ground
    truth, even if the list of the user is shorter than `R`. Relevant items that are not in the list
    count as not retrieved.

    Args:
        ranked (RankedEdges): The ranked ground truth.
        users (str, optional): Which users have a value. `"all"` are all users with truth. With
            `"hit"`, users who score zero are undefined, as in Microsoft's recommenders. The mean
            then leaves them out and is too high. (default: `"all"`)

    Returns:
        A double-precision tensor of shape `[num_users]` in [0, 1]; `NaN` for users without truth,
        and with `users="hit"` for users who score zero.

    Raises:
        ValueError: If `users` is not `"all"` or `"hit"`.

    Source: Manning, Raghavan and Schütze, "Introduction to Information Retrieval", 8.4 (2008).

    Example:
        >>> import torch
        >>> from pyg_recmetrics import RankedEdges, metrics
        >>> lists, truth = torch.tensor([[3, 1, 4]]), torch.tensor([[0, 0], [1, 9]])
        >>> metrics.r_precision(RankedEdges.from_topk(lists, truth))
        tensor([0.5000], dtype=torch.float64)
    """
    value = ranked.hits(ranked.degree) / ranked.degree
    return value if users == "all" else value.masked_fill(value == 0, torch.nan)


@register(depends_on_order=False, aliases=("hr", "hit", "hits", "hit_ratio", "success"))
def hit_rate(ranked: RankedEdges, k: int) -> Tensor:
    r"""Whether there is a relevant item in the top `k`.

    .. math::
        \text{hit\_rate@}k = [h_k > 0]

    where :math:`h_k` is the number of relevant items in the top `k`. A bracket is one if the
    statement inside is true, and zero if it is false.

    Args:
        ranked (RankedEdges): The ranked ground truth.
        k (int): The cut-off.

    Returns:
        A double-precision tensor of shape `[num_users]` of zeros and ones; `NaN` for users
        without truth.

    Raises:
        ValueError: If `k` is not a positive integer, or is larger than the depth of the ranking.

    Source: Deshpande and Karypis, "Item-based top-N recommendation algorithms" (2004).

    Example:
        >>> import torch
        >>> from pyg_recmetrics import RankedEdges, metrics
        >>> lists, truth = torch.tensor([[3, 1, 4]]), torch.tensor([[0, 0], [1, 9]])
        >>> metrics.hit_rate(RankedEdges.from_topk(lists, truth), k=2)
        tensor([1.], dtype=torch.float64)
    """
    return (ranked.hits(k) > 0).double()


@register(
    depends_on_order=False, higher_is_better=False, needs_candidates=True, aliases=("fallout",)
)
def fall_out(ranked: RankedEdges, k: int) -> Tensor:
    r"""The fraction of the irrelevant items that is in the top `k`; lower is better.

    .. math::
        \text{fall\_out@}k = \frac{\min(k - h_k, n - R)}{n - R}

    where `n` is the number of the user's candidates, `R` is the number of its relevant items, and
    :math:`h_k` is how many of them are in the top `k`. The others in the top `k` are irrelevant. A
    place of a list that holds no item counts as an irrelevant item, as for the precision. Fall-out
    and recall are the two coordinates of the ROC curve.

    Args:
        ranked (RankedEdges): The ranked ground truth, which knows the number of candidates.
        k (int): The cut-off.

    Returns:
        A double-precision tensor of shape `[num_users]` in [0, 1]; `NaN` for users without truth,
        or without an irrelevant candidate. All candidates of a user without truth are irrelevant,
        so the fraction would be :math:`k / n` for any ranking, and say nothing about it. Recall and
        fall-out have the same users in this way. torchmetrics counts :math:`k / n` for users
        without truth, and its `empty_target_action` is about users without an irrelevant
        candidate.

    Raises:
        ValueError: If `k` is not a positive integer, or is larger than the depth of the ranking, or
            if `ranked` does not know the number of candidates, as for lists alone.

    Source: `Wikipedia
    <https://en.wikipedia.org/wiki/Evaluation_measures_(information_retrieval)#Fall-out>`_, as in
    torchmetrics' `RetrievalFallOut`.

    Example:
        >>> import torch
        >>> from pyg_recmetrics import metrics, rank
        >>> scores, truth = torch.tensor([[0.9, 0.1, 0.5, 0.3]]), torch.tensor([[0, 0], [0, 3]])
        >>> metrics.fall_out(rank(scores, truth, full=True), k=2)
        tensor([0.5000], dtype=torch.float64)
    """
    num_irrelevant = count_irrelevant(ranked)
    return torch.minimum(k - ranked.hits(k), num_irrelevant) / num_irrelevant


@register(aliases=("rr", "recip_rank", "reciprocal_rank", "mean_reciprocal_rank"))
def mrr(ranked: RankedEdges, k: int | None = None, hits: ReciprocalRanks = "first") -> Tensor:
    r"""The reciprocal rank of the first relevant item; its mean is the MRR.

    .. math::
        \text{mrr@}k = \frac{[r_1 \leq k]}{r_1}

    where :math:`r_1` is the rank of the user's first relevant item. A bracket is one if the
    statement inside is true, and zero if it is false.

    With `hits="all"`, the value is the mean over all `R` relevant items of the user:
    :math:`\frac{1}{R} \sum_{j:\, r_j \leq k} \frac{1}{r_j}`. The MIND news data set calls this the
    MRR. A perfect ranking of more than one relevant item scores less than one.

    Args:
        ranked (RankedEdges): The ranked ground truth.
        k (int, optional): The cut-off. A relevant item counts zero unless it ranks at `k` or
            better. (default: `None`, no cut-off)
        hits (str, optional): Which relevant items count: the `"first"`, or `"all"` of them, as in
            MIND. (default: `"first"`)

    Returns:
        A double-precision tensor of shape `[num_users]` in [0, 1]; `NaN` for users without truth.

    Raises:
        ValueError: If `k` is not a positive integer, or is larger than the depth of the ranking, or
            if `hits` is not `"first"` or `"all"`.

    Source: Voorhees, "The TREC-8 question answering track report" (1999); of all relevant items,
    Wu et al., "MIND: a large-scale dataset for news recommendation" (2020).

    Example:
        >>> import torch
        >>> from pyg_recmetrics import RankedEdges, metrics
        >>> lists, truth = torch.tensor([[3, 1, 4]]), torch.tensor([[0, 0], [1, 9]])
        >>> metrics.mrr(RankedEdges.from_topk(lists, truth), k=3)
        tensor([0.5000], dtype=torch.float64)
        >>> metrics.mrr(RankedEdges.from_topk(lists, truth), k=3, hits="all")
        tensor([0.2500], dtype=torch.float64)
    """
    if hits == "all":
        return ranked.sum(ranked.is_hit(k) / ranked.rank.double()) / ranked.degree
    is_first_hit = ranked.is_hit(k) & (positions(ranked) == 1)
    return ranked.sum(is_first_hit / ranked.rank.double())


@register(aliases=("ap", "average_precision", "mean_average_precision"))
def map(ranked: RankedEdges, k: int | None = None, normalizer: MapNormalizer = "min") -> Tensor:
    r"""The average precision at the ranks of the relevant items; its mean is the MAP.

    .. math::
        \text{map@}k = \frac{1}{\min(k, R)} \sum_{j:\, r_j \leq k} \frac{j}{r_j}

    where :math:`r_j` is the rank of the user's `j`-th relevant item, and `R` is the user's number
    of relevant items. The fraction :math:`j / r_j` is the precision at that rank.

    Args:
        ranked (RankedEdges): The ranked ground truth.
        k (int, optional): The cut-off. (default: `None`, no cut-off)
        normalizer (str, optional): What to divide the sum by. `"min"` divides by the minimum of
            `k` and `R`. `"R"` divides by `R`; users with :math:`R > k` then cannot reach one.
            `"k"` divides by `k`; users with :math:`R < k` then cannot reach one. `"hits"` divides
            by the number of hits; a user whose only hit has rank one then scores one, however many
            relevant items are missed. (default: `"min"`)

    Returns:
        A double-precision tensor of shape `[num_users]` in [0, 1]; `NaN` for users without truth.

    Raises:
        ValueError: If `k` is not a positive integer, or is larger than the depth of the ranking, if
            `normalizer` is not `"min"`, `"R"`, `"k"` or `"hits"`, or if `normalizer` is `"k"` and
            there is no cut-off.

    Source: Manning, Raghavan and Schütze, "Introduction to Information Retrieval", 8.4 (2008),
    normalised as PyG's :class:`~torch_geometric.metrics.LinkPredMAP` does.

    Example:
        >>> import torch
        >>> from pyg_recmetrics import RankedEdges, metrics
        >>> lists, truth = torch.tensor([[3, 1, 4]]), torch.tensor([[0, 0], [1, 9]])
        >>> metrics.map(RankedEdges.from_topk(lists, truth), k=3)
        tensor([0.2500], dtype=torch.float64)
    """
    _check_needs_cut_off(k, "normalizer", normalizer)
    precision_at_rank = positions(ranked) / ranked.rank.double()
    total = ranked.sum(ranked.is_hit(k) * precision_at_rank)
    return total / _denominator(ranked, k, normalizer)


@register(range=(0.0, torch.inf), depends_on_weight=True)
def dcg(
    ranked: RankedEdges,
    k: int | None = None,
    gain: Gain = "linear",
    discount: Discount = "log2",
) -> Tensor:
    r"""The discounted cumulative gain: relevant items add up, and count less further down.

    .. math::
        \text{dcg@}k = \sum_{j:\, r_j \leq k} \frac{g(w_j)}{\log_2(r_j + 1)}

    where :math:`r_j` is the rank of the user's `j`-th relevant item, and :math:`w_j` is its weight.
    All weights are one if the ground truth has no weights. The function `g` is the gain.

    Args:
        ranked (RankedEdges): The ranked ground truth.
        k (int, optional): The cut-off. (default: `None`, no cut-off)
        gain (str, optional): The gain of an item of weight `w`. `"linear"` is :math:`g(w) = w`,
            `"exponential"` is :math:`g(w) = 2^w - 1`, and `"binary"` is :math:`g(w) = 1`.
            (default: `"linear"`)
        discount (str, optional): The factor for an item at rank `r`. `"log2"` is
            :math:`1 / \log_2(r + 1)`. `"lenskit"` is :math:`1 / \log_2(\max(r, 2))`, with which
            ranks one and two count the same. (default: `"log2"`)

    Returns:
        A double-precision tensor of shape `[num_users]`, zero or more, not bounded above; `NaN`
        for users without truth.

    Raises:
        ValueError: If `k` is not a positive integer, or is larger than the depth of the ranking, if
            `gain` is not `"linear"`, `"exponential"` or `"binary"`, if `discount` is not `"log2"`
            or `"lenskit"`, or if weights are so large that the value of a user is infinite, such as
            1,024 for the exponential gain.

    Source: Järvelin and Kekäläinen, "Cumulated gain-based evaluation of IR techniques" (2002);
    for the exponential gain, Burges et al., "Learning to rank using gradient descent" (2005).

    Example:
        >>> import torch
        >>> from pyg_recmetrics import RankedEdges, metrics
        >>> lists, truth = torch.tensor([[3, 1, 4]]), torch.tensor([[0, 0], [1, 9]])
        >>> metrics.dcg(RankedEdges.from_topk(lists, truth), k=3)
        tensor([0.6309], dtype=torch.float64)
    """
    gains = _gain(ranked, gain)
    # A gain may be infinite, and infinity times zero is not zero.
    added = torch.where(ranked.is_hit(k), gains, 0.0) * _discount(ranked.rank, k, discount)
    value = ranked.sum(added)
    if ranked.weight is not None and not bool(value.isfinite().all()):
        raise ValueError(
            f"'gain' needs to keep the DCG finite; the NDCG is finite for all weights (got "
            f"{gain!r} with weights of up to {float(ranked.weight.max()):g})"
        )
    return value


@register(depends_on_weight=True, aliases=("normalized_dcg",))
def ndcg(
    ranked: RankedEdges,
    k: int | None = None,
    gain: Gain = "linear",
    discount: Discount = "log2",
    ideal: Ideal = "relevant",
    ideal_k: int | None = None,
) -> Tensor:
    r"""The discounted cumulative gain as a fraction of the best possible one.

    .. math::
        \text{ndcg@}k = \frac{\text{dcg@}k}{\text{idcg@}k}, \qquad
        \text{idcg@}k = \sum_{j=1}^{\min(k, R)} \frac{g(w_{(j)})}{\log_2(j + 1)}

    where :math:`w_{(j)}` is the `j`-th largest weight of the user's `R` relevant items, retrieved
    or not, and `g` is the gain (see :func:`dcg`). If the ground truth has no weights, this is the
    binary NDCG. The value is finite even for very large weights, such as play counts.

    Args:
        ranked (RankedEdges): The ranked ground truth.
        k (int, optional): The cut-off. (default: `None`, no cut-off)
        gain (str, optional): The gain of an item: `"linear"`, `"exponential"` or `"binary"`, see
            :func:`dcg`. (default: `"linear"`)
        discount (str, optional): The factor for a rank: `"log2"` or `"lenskit"`, see :func:`dcg`.
            (default: `"log2"`)
        ideal (str, optional): What the best possible ranking consists of. `"relevant"` are all
            relevant items. `"k"` are `k` items of the largest gain, as if every user had that many;
            users with :math:`R < k` then cannot reach one (RecTools). `"retrieved"` are only those
            relevant items that were retrieved, in their best order; a user whose only hit has rank
            one then scores one, however many relevant items are missed (NGCF). The last two are for
            reproducing the numbers of other libraries. (default: `"relevant"`)
        ideal_k (int, optional): The depth down to which an item counts as retrieved if `ideal` is
            `"retrieved"`; at least `k`. (default: `None`, the same as `k`)

    Returns:
        A double-precision tensor of shape `[num_users]` in [0, 1]; `NaN` for users without truth.

    Raises:
        ValueError: If `k` or `ideal_k` is not a positive integer, or is larger than the depth of
            the ranking, if `gain` or `discount` is not a value of :func:`dcg`, if `ideal` is not
            `"relevant"`, `"k"` or `"retrieved"`, if `ideal` is `"k"` and there is no cut-off, or if
            `ideal_k` is less than `k`.

    Source: Järvelin and Kekäläinen, "Cumulated gain-based evaluation of IR techniques" (2002).

    Example:
        >>> import torch
        >>> from pyg_recmetrics import RankedEdges, metrics
        >>> lists, truth = torch.tensor([[3, 1, 4]]), torch.tensor([[0, 0], [1, 9]])
        >>> metrics.ndcg(RankedEdges.from_topk(lists, truth), k=3)
        tensor([0.3869], dtype=torch.float64)
    """
    _check_needs_cut_off(k, "ideal", ideal)
    if k is not None and ideal_k is not None and ideal_k < k:
        raise ValueError(f"'ideal_k' needs to be at least k={k} (got {ideal_k})")
    depth = k if ideal_k is None or k is None else ideal_k
    is_available = ranked.is_hit(depth) if ideal == "retrieved" else None
    gains = _relative_gain(ranked, gain, is_available)
    if ideal == "k":
        ranks = torch.arange(1, (k or 0) + 1, device=ranked.rank.device)
        best_possible = _discount(ranks, k, discount).sum()
    elif is_available is None and _is_binary(ranked, gain):
        # All rankings of the same truth share it.
        best_possible = ranked._grouped.once(
            ("ideal", k, discount), lambda: _ideal(ranked, k, gains, discount)
        )
    else:
        best_possible = _ideal(ranked, k, gains, discount)
    value = ranked.sum(gains * _discount(ranked.rank, k, discount))
    return torch.where(value > 0, value / best_possible, value)


@register(aliases=("rank_biased_precision",))
def rbp(ranked: RankedEdges, k: int | None = None, p: Persistence = 0.8) -> Tensor:
    r"""The chance that a user who may stop after any item stops at a relevant one.

    .. math::
        \text{rbp@}k = (1 - p) \sum_{j:\, r_j \leq k} p^{\, r_j - 1}

    where :math:`r_j` is the rank of the user's `j`-th relevant item. The user looks at the first
    item, and goes on from one item to the next with the chance `p`. Only an endless list of
    relevant items scores one: with `R` relevant items, the best possible value is
    :math:`1 - p^R`.

    Args:
        ranked (RankedEdges): The ranked ground truth.
        k (int, optional): The cut-off. (default: `None`, no cut-off)
        p (float, optional): The persistence, the chance to look at the next item, between zero and
            one. The user looks at :math:`1 / (1 - p)` items on average. ranx calls
            `rbp(p=0.95)` `rbp.95`; LensKit calls `p` patience, with a default of 0.85.
            (default: `0.8`)

    Returns:
        A double-precision tensor of shape `[num_users]` in [0, 1]; `NaN` for users without truth.

    Raises:
        ValueError: If `k` is not a positive integer, or is larger than the depth of the ranking, or
            if `p` is not between zero and one.

    Source: Moffat and Zobel, "Rank-biased precision for measurement of retrieval effectiveness"
    (2008).

    Example:
        >>> import torch
        >>> from pyg_recmetrics import RankedEdges, metrics
        >>> lists, truth = torch.tensor([[3, 1, 4]]), torch.tensor([[0, 0], [1, 4]])
        >>> metrics.rbp(RankedEdges.from_topk(lists, truth), k=3, p=0.5)
        tensor([0.3750], dtype=torch.float64)
    """
    chance_to_look = p ** (ranked.rank.double() - 1)
    return (1 - p) * ranked.sum(ranked.is_hit(k) * chance_to_look)


@register(depends_on_weight=True, aliases=("expected_reciprocal_rank",))
def err(ranked: RankedEdges, k: int | None = None, max_grade: MaxGrade = 4) -> Tensor:
    r"""The expected reciprocal rank of the item at which a user is satisfied, and stops.

    .. math::
        \text{err@}k = \sum_{j:\, r_j \leq k} \frac{s_j}{r_j} \prod_{i=1}^{j-1} (1 - s_i),
        \qquad s_j = \frac{2^{w_j} - 1}{2^G}

    where :math:`r_j` is the rank of the user's `j`-th relevant item, and :math:`w_j` is its weight,
    which is its grade. The user is satisfied by that item with the chance :math:`s_j`, and is not
    by any irrelevant item. The grade `G` is the largest on the scale, whether any item has it or
    not. All weights are one if the ground truth has no weights; then choose `max_grade=1`, with
    which every relevant item satisfies one user in two.

    Args:
        ranked (RankedEdges): The ranked ground truth.
        k (int, optional): The cut-off. (default: `None`, no cut-off)
        max_grade (int, optional): The largest grade on the scale, such as `5` for stars.
            (default: `4`, as in TREC's `gdeval`)

    Returns:
        A double-precision tensor of shape `[num_users]` in [0, 1]; `NaN` for users without truth.

    Raises:
        ValueError: If `k` is not a positive integer, or is larger than the depth of the ranking, or
            if `max_grade` is not a positive integer, or is less than a weight.

    Source: Chapelle et al., "Expected reciprocal rank for graded relevance" (2009).

    Example:
        >>> import torch
        >>> from pyg_recmetrics import RankedEdges, metrics
        >>> lists, truth = torch.tensor([[3, 1, 4]]), torch.tensor([[0, 0], [1, 4]])
        >>> ranked = RankedEdges.from_topk(lists, truth, edge_label_weight=torch.tensor([1, 2]))
        >>> metrics.err(ranked, k=3, max_grade=2)  # 1/4 / 2 + 3/4 / 3 * (1 - 1/4)
        tensor([0.3125], dtype=torch.float64)
    """
    weight = _gain(ranked, "linear")
    if bool((weight > max_grade).any()):
        raise ValueError(
            f"'max_grade' needs to be at least the largest weight, {float(weight.max()):g} "
            f"(got {max_grade})"
        )
    # (2^w - 1) / 2^G = 2^(w - G) (1 - 2^-w), where nothing overflows.
    satisfies = torch.exp2(weight - max_grade) * -torch.expm1(weight * -math.log(2))
    goes_on = _product_of_earlier(ranked, 1 - satisfies)
    return ranked.sum(ranked.is_hit(k) * goes_on * satisfies / ranked.rank)


def _ratio(ranked: RankedEdges, hits: Tensor, denominator: Tensor, average: str) -> Tensor:
    total: Tensor | float = denominator
    if average == "micro":
        has_truth = ranked.degree > 0
        hits = hits * int(has_truth.sum())
        total = exact_sum(denominator * has_truth)
    return (hits / total).masked_fill_(hits == 0, 0.0)


def _denominator(ranked: RankedEdges, k: int | None, normalizer: str) -> Tensor:
    """What the hits of every user in the top `k` are divided by, of shape `[num_users]`."""
    if normalizer == "length":
        return length_of_lists(ranked, k or 0)
    if normalizer == "hits":
        return ranked.hits(k).clamp(min=1)
    if normalizer == "R" or k is None:
        return ranked.degree
    # By a single number, a GPU does not divide: it multiplies by the reciprocal.
    return torch.full_like(ranked.degree, k) if normalizer == "k" else ranked.degree.clamp(max=k)


def _ideal(ranked: RankedEdges, k: int | None, gains: Tensor, discount: str) -> Tensor:
    """The discounted gain of the available items in their best order."""
    gains = _largest_first(ranked, gains)
    return ranked.sum(gains * _discount(positions(ranked), k, discount))


def _largest_first(ranked: RankedEdges, gains: Tensor) -> Tensor:
    """Puts each user's gains in descending order."""
    if ranked.weight is None:
        return gains  # All gains are one, or zero for items that were not retrieved and come last.
    return gains[lexsort([-gains, ranked.edge_label_index[0]])]


def _check_needs_cut_off(k: int | None, name: str, value: str) -> None:
    if k is None and value == "k":
        raise ValueError(f"'{name}' can only be 'k' if 'k' is given (got None as 'k')")


def _is_binary(ranked: RankedEdges, gain: str) -> bool:
    """Whether the gains of all relevant items are one."""
    return ranked.weight is None or gain == "binary"


def _gain(ranked: RankedEdges, gain: str) -> Tensor:
    if ranked.weight is None or gain == "binary":
        return torch.ones_like(ranked.rank, dtype=torch.float64)
    if gain == "linear":
        return ranked.weight
    # Of a small weight, 2^w - 1 would lose its digits; of an integer, it is exact.
    small = torch.expm1(ranked.weight * math.log(2))
    return torch.where(ranked.weight < 1, small, torch.exp2(ranked.weight) - 1)


def _relative_gain(ranked: RankedEdges, gain: str, is_available: Tensor | None) -> Tensor:
    """The gain of every available item as a fraction of its user's largest, and zero for others.

    All items are available if it is not said which are. The NDCG is a ratio, so a factor for each
    user does not change it. It keeps the gains finite.
    """
    weight = _gain(ranked, "linear" if gain == "exponential" else gain)
    if is_available is not None:
        weight = weight * is_available
    if _is_binary(ranked, gain):
        return weight
    largest = _largest_of_user(ranked, weight)
    if gain == "linear":
        return weight / largest
    # (2^w - 1) / (2^v - 1) = 2^(w - v) (1 - 2^-w) / (1 - 2^-v), where nothing overflows.
    missing = torch.expm1(weight * -math.log(2)) / torch.expm1(largest * -math.log(2))
    return torch.exp2(weight - largest) * missing


def _largest_of_user(ranked: RankedEdges, weight: Tensor) -> Tensor:
    """The largest weight of the user of every edge; one if none is positive."""
    user = ranked.edge_label_index[0]
    largest = scatter(weight, user, dim_size=ranked.num_users, reduce="max")[user]
    return torch.where(largest > 0, largest, 1.0)


def _product_of_earlier(ranked: RankedEdges, values: Tensor) -> Tensor:
    """The product of the values of all edges of the same user before each edge: `[num_edges]`."""
    product = torch.where(positions(ranked) == 1, 1.0, values.roll(1))
    # Each round doubles the number of edges in a product, so few rounds do.
    num_in_product, largest_degree = 1, int(ranked.degree.max()) if ranked.num_users else 0
    while num_in_product < largest_degree:
        is_longer = positions(ranked) > num_in_product
        product = torch.where(is_longer, product * product.roll(num_in_product), product)
        num_in_product *= 2
    return product


def _discount(rank: Tensor, k: int | None, discount: str) -> Tensor:
    """The factor for every rank: zero beyond `k`, and for what was not retrieved."""
    if k is None or rank.is_floating_point() or k > _MAX_LOOKED_UP:
        is_within = rank < NOT_RETRIEVED if k is None else rank <= k
        return _discount_of_all(rank, discount) * is_within
    return _discounts(k, discount, rank.device).index_select(0, rank.clamp(max=k + 1))


@lru_cache
def _discounts(k: int, discount: str, device: torch.device) -> Tensor:
    """The factors for ranks up to `k`, and zero for the next: `[k + 2]`. There is no rank zero."""
    # A logarithm is computed by several threads, which take longer to meet than to compute it.
    factors = _discount_of_all(torch.arange(k + 2, device=device), discount)
    factors[k + 1] = 0.0
    return factors


def _discount_of_all(rank: Tensor, discount: str) -> Tensor:
    rank = rank.double()
    shifted = rank + 1 if discount == "log2" else rank.clamp(min=2)
    return shifted.log2_().reciprocal_()
