"""Metrics of how well a ranking agrees with the ground truth."""

from typing import Literal, TypeAlias

import torch
from torch import Tensor

from pyg_recmetrics.metrics.registry import metric
from pyg_recmetrics.ranked_edges import RankedEdges

Gain: TypeAlias = Literal["linear", "exponential", "binary"]


@metric()
def precision(ranked: RankedEdges, k: int) -> Tensor:
    r"""The fraction of the top `k` that is relevant.

    .. math::
        \text{precision@}k = \frac{h_k}{k}

    where :math:`h_k` is the number of relevant items in the top `k`. The denominator is `k` also
    for a list that is shorter, and so a user with :math:`R < k` relevant items cannot reach one.

    Args:
        ranked (RankedEdges): The ranked ground truth.
        k (int): The cut-off.

    Returns:
        A double-precision tensor of shape `[num_users]` in [0, 1]; `NaN` for users without truth.

    Raises:
        ValueError: If `k` is not a positive integer, or deeper than was ranked.

    Source: Manning, Raghavan and Schütze, "Introduction to Information Retrieval", 8.4 (2008).

    Example:
        >>> import torch
        >>> lists, truth = torch.tensor([[3, 1, 4]]), torch.tensor([[0, 0], [1, 9]])
        >>> precision(RankedEdges.from_topk(lists, truth), k=2)
        tensor([0.5000], dtype=torch.float64)
    """
    return ranked.hits(k) / k


@metric()
def truncated_precision(ranked: RankedEdges, k: int) -> Tensor:
    r"""Precision out of what is possible: a perfect ranking scores one at every `k`.

    .. math::
        \text{truncated\_precision@}k = \frac{h_k}{\min(k, R)}

    where :math:`h_k` is the number of relevant items in the top `k` and `R` that of all relevant
    items of the user. Below `R` it is precision, above it is recall. Some libraries call it
    recall, some R-precision.

    Args:
        ranked (RankedEdges): The ranked ground truth.
        k (int): The cut-off.

    Returns:
        A double-precision tensor of shape `[num_users]` in [0, 1]; `NaN` for users without truth.

    Raises:
        ValueError: If `k` is not a positive integer, or deeper than was ranked.

    Source: `recometrics <https://cran.r-project.org/package=recometrics>`_, `TP@K`.

    Example:
        >>> import torch
        >>> lists, truth = torch.tensor([[3, 1, 4]]), torch.tensor([[0, 0], [1, 9]])
        >>> truncated_precision(RankedEdges.from_topk(lists, truth), k=3)
        tensor([0.5000], dtype=torch.float64)
    """
    return ranked.hits(k) / ranked.degree.clamp(max=k)


@metric()
def recall(ranked: RankedEdges, k: int) -> Tensor:
    r"""The fraction of the relevant items that is in the top `k`.

    .. math::
        \text{recall@}k = \frac{h_k}{R}

    where :math:`h_k` is the number of relevant items in the top `k` and `R` that of all relevant
    items of the user. A user with :math:`R > k` cannot reach one.

    Args:
        ranked (RankedEdges): The ranked ground truth.
        k (int): The cut-off.

    Returns:
        A double-precision tensor of shape `[num_users]` in [0, 1]; `NaN` for users without truth.

    Raises:
        ValueError: If `k` is not a positive integer, or deeper than was ranked.

    Source: Manning, Raghavan and Schütze, "Introduction to Information Retrieval", 8.4 (2008).

    Example:
        >>> import torch
        >>> lists, truth = torch.tensor([[3, 1, 4]]), torch.tensor([[0, 0], [1, 9]])
        >>> recall(RankedEdges.from_topk(lists, truth), k=3)
        tensor([0.5000], dtype=torch.float64)
    """
    return ranked.hits(k) / ranked.degree


@metric()
def f1(ranked: RankedEdges, k: int) -> Tensor:
    r"""The harmonic mean of precision and recall of every user.

    .. math::
        \text{f1@}k = \frac{2 h_k}{k + R}

    where :math:`h_k` is the number of relevant items in the top `k` and `R` that of all relevant
    items of the user: this is :math:`2pr / (p + r)` of precision :math:`p = h_k / k` and recall
    :math:`r = h_k / R`. Its mean over users is not the F1 of mean precision and mean recall.

    Args:
        ranked (RankedEdges): The ranked ground truth.
        k (int): The cut-off.

    Returns:
        A double-precision tensor of shape `[num_users]` in [0, 1]; `NaN` for users without truth.

    Raises:
        ValueError: If `k` is not a positive integer, or deeper than was ranked.

    Source: van Rijsbergen, "Information Retrieval", chapter 7 (1979).

    Example:
        >>> import torch
        >>> lists, truth = torch.tensor([[3, 1, 4]]), torch.tensor([[0, 0], [1, 9]])
        >>> f1(RankedEdges.from_topk(lists, truth), k=2)
        tensor([0.5000], dtype=torch.float64)
    """
    return 2 * ranked.hits(k) / (k + ranked.degree)


@metric()
def r_precision(ranked: RankedEdges) -> Tensor:
    r"""Precision, and at the same time recall, at the user's own number of relevant items `R`.

    .. math::
        \text{r\_precision} = \frac{h_R}{R}

    where :math:`h_R` is the number of relevant items in the top `R`. Every user is measured at the
    depth it deserves, so a perfect ranking scores one for all. `R` is the degree of the user in
    the ground truth, whatever part of the ranking is known: lists that are shorter than `R`
    count as not retrieved what they leave out.

    Args:
        ranked (RankedEdges): The ranked ground truth.

    Returns:
        A double-precision tensor of shape `[num_users]` in [0, 1]; `NaN` for users without truth.

    Source: Manning, Raghavan and Schütze, "Introduction to Information Retrieval", 8.4 (2008).

    Example:
        >>> import torch
        >>> lists, truth = torch.tensor([[3, 1, 4]]), torch.tensor([[0, 0], [1, 9]])
        >>> r_precision(RankedEdges.from_topk(lists, truth))
        tensor([0.5000], dtype=torch.float64)
    """
    return ranked.hits(ranked.degree) / ranked.degree


@metric()
def hit_rate(ranked: RankedEdges, k: int) -> Tensor:
    r"""Whether there is a relevant item in the top `k`.

    .. math::
        \text{hit\_rate@}k = [h_k > 0]

    where :math:`h_k` is the number of relevant items in the top `k`, and a bracket is one if what
    it holds is true and zero if not.

    Args:
        ranked (RankedEdges): The ranked ground truth.
        k (int): The cut-off.

    Returns:
        A double-precision tensor of shape `[num_users]` of zeros and ones; `NaN` for users
        without truth.

    Raises:
        ValueError: If `k` is not a positive integer, or deeper than was ranked.

    Source: Deshpande and Karypis, "Item-based top-N recommendation algorithms" (2004).

    Example:
        >>> import torch
        >>> lists, truth = torch.tensor([[3, 1, 4]]), torch.tensor([[0, 0], [1, 9]])
        >>> hit_rate(RankedEdges.from_topk(lists, truth), k=2)
        tensor([1.], dtype=torch.float64)
    """
    return (ranked.hits(k) > 0).double()


@metric()
def mrr(ranked: RankedEdges, k: int) -> Tensor:
    r"""The reciprocal rank of the first relevant item; its mean is the MRR.

    .. math::
        \text{mrr@}k = \frac{[r_1 \leq k]}{r_1}

    where :math:`r_1` is the rank of the user's first relevant item, and a bracket is one if what
    it holds is true and zero if not.

    Args:
        ranked (RankedEdges): The ranked ground truth.
        k (int): The cut-off, below which the reciprocal rank is zero.

    Returns:
        A double-precision tensor of shape `[num_users]` in [0, 1]; `NaN` for users without truth.

    Raises:
        ValueError: If `k` is not a positive integer, or deeper than was ranked.

    Source: Voorhees, "The TREC-8 question answering track report" (1999).

    Example:
        >>> import torch
        >>> lists, truth = torch.tensor([[3, 1, 4]]), torch.tensor([[0, 0], [1, 9]])
        >>> mrr(RankedEdges.from_topk(lists, truth), k=3)
        tensor([0.5000], dtype=torch.float64)
    """
    is_first_hit = ranked.is_hit(k) & (ranked.position == 1)
    return ranked.sum(is_first_hit / ranked.rank.double())


@metric()
def map(ranked: RankedEdges, k: int) -> Tensor:
    r"""The average precision at the ranks of the relevant items; its mean is the MAP.

    .. math::
        \text{map@}k = \frac{1}{\min(k, R)} \sum_{j:\, r_j \leq k} \frac{j}{r_j}

    where :math:`r_j` is the rank of the user's `j`-th relevant item and `R` the number of all its
    relevant items: :math:`j / r_j` is the precision at that rank.

    Args:
        ranked (RankedEdges): The ranked ground truth.
        k (int): The cut-off.

    Returns:
        A double-precision tensor of shape `[num_users]` in [0, 1]; `NaN` for users without truth.

    Raises:
        ValueError: If `k` is not a positive integer, or deeper than was ranked.

    Source: Manning, Raghavan and Schütze, "Introduction to Information Retrieval", 8.4 (2008),
    normalised as PyG's :class:`~torch_geometric.metrics.LinkPredMAP` does.

    Example:
        >>> import torch
        >>> lists, truth = torch.tensor([[3, 1, 4]]), torch.tensor([[0, 0], [1, 9]])
        >>> map(RankedEdges.from_topk(lists, truth), k=3)
        tensor([0.2500], dtype=torch.float64)
    """
    precision_at_rank = ranked.position / ranked.rank.double()
    return ranked.sum(ranked.is_hit(k) * precision_at_rank) / ranked.degree.clamp(max=k)


@metric(upper_bound=torch.inf)
def dcg(ranked: RankedEdges, k: int, gain: Gain = "linear") -> Tensor:
    r"""The discounted cumulative gain: what a user gains, less of it further down.

    .. math::
        \text{dcg@}k = \sum_{j:\, r_j \leq k} \frac{g(w_j)}{\log_2(r_j + 1)}

    where :math:`r_j` is the rank of the user's `j`-th relevant item and :math:`w_j` its weight,
    or one if the ground truth has no weights.

    Args:
        ranked (RankedEdges): The ranked ground truth.
        k (int): The cut-off.
        gain (str, optional): What a weight is worth: `"linear"` is :math:`g(w) = w`,
            `"exponential"` is :math:`2^w - 1`, `"binary"` is one. (default: `"linear"`)

    Returns:
        A double-precision tensor of shape `[num_users]`, zero or more, not bounded above; `NaN`
        for users without truth.

    Raises:
        ValueError: If `k` is not a positive integer, or deeper than was ranked, or `gain` is none
            of these.

    Source: Järvelin and Kekäläinen, "Cumulated gain-based evaluation of IR techniques" (2002);
    for the exponential gain, Burges et al., "Learning to rank using gradient descent" (2005).

    Example:
        >>> import torch
        >>> lists, truth = torch.tensor([[3, 1, 4]]), torch.tensor([[0, 0], [1, 9]])
        >>> dcg(RankedEdges.from_topk(lists, truth), k=3)
        tensor([0.6309], dtype=torch.float64)
    """
    return ranked.sum(ranked.is_hit(k) * _gain(ranked, gain) * _discount(ranked.rank))


@metric()
def ndcg(ranked: RankedEdges, k: int, gain: Gain = "linear") -> Tensor:
    r"""The discounted cumulative gain as a fraction of the best possible one.

    .. math::
        \text{ndcg@}k = \frac{\text{dcg@}k}{\text{idcg@}k}, \qquad
        \text{idcg@}k = \sum_{j=1}^{\min(k, R)} \frac{g(w_{(j)})}{\log_2(j + 1)}

    where :math:`w_{(j)}` is the `j`-th largest weight of the user's `R` relevant items, retrieved
    or not, and :math:`g` the gain (see :func:`dcg`). Without weights, the binary NDCG.

    Args:
        ranked (RankedEdges): The ranked ground truth.
        k (int): The cut-off.
        gain (str, optional): What a weight is worth: `"linear"`, `"exponential"` or `"binary"`.
            (default: `"linear"`)

    Returns:
        A double-precision tensor of shape `[num_users]` in [0, 1]; `NaN` for users without truth.

    Raises:
        ValueError: If `k` is not a positive integer, or deeper than was ranked, or `gain` is none
            of these.

    Source: Järvelin and Kekäläinen, "Cumulated gain-based evaluation of IR techniques" (2002).

    Example:
        >>> import torch
        >>> lists, truth = torch.tensor([[3, 1, 4]]), torch.tensor([[0, 0], [1, 9]])
        >>> ndcg(RankedEdges.from_topk(lists, truth), k=3)
        tensor([0.3869], dtype=torch.float64)
    """
    gains = _gain(ranked, gain)
    by_gain = gains.argsort(descending=True, stable=True)
    by_gain = by_gain[ranked.edge_index[0, by_gain].argsort(stable=True)]
    ideal = ranked.sum((ranked.position <= k) * gains[by_gain] * _discount(ranked.position))
    return ranked.sum(ranked.is_hit(k) * gains * _discount(ranked.rank)) / ideal


def _gain(ranked: RankedEdges, gain: Gain) -> Tensor:
    if ranked.weight is None or gain == "binary":
        return torch.ones_like(ranked.rank, dtype=torch.float64)
    return ranked.weight if gain == "linear" else torch.exp2(ranked.weight) - 1


def _discount(rank: Tensor) -> Tensor:
    return 1 / torch.log2(rank.double() + 1)
