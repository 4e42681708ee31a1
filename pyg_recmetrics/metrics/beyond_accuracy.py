"""Metrics of the recommended items: how many different ones, how popular, how diverse.

They look at the lists of recommended items and not at the ground truth, and cover all users who
have a list, with or without truth. The exception is serendipity, which asks for relevant items. The
lists take memory for `[num_users, k]` items.

Lists by original ids may hold items that the task does not have. They count as items that no user
has seen and about which nothing is known. Coverage and the Gini index, which are about the items of
the catalogue, leave them out.
"""

import math
from collections.abc import Iterator
from itertools import pairwise
from typing import Annotated, Literal, TypeAlias

import torch
import torch.nn.functional as F
from torch import Tensor
from torch_geometric.index import index2ptr
from torch_geometric.utils import scatter, segment

from pyg_recmetrics.metrics.registry import register, register_aggregate
from pyg_recmetrics.ranked_edges import RankedEdges, catalogue_of, lists_of
from pyg_recmetrics.task import Catalogue

Head: TypeAlias = Annotated[int, "the tail is what is not in the {} percent head", range(1, 101)]
Over: TypeAlias = Annotated[
    Literal["category", "embedding"],
    {"category": "cosine of categories", "embedding": "cosine of embeddings"},
]

#: The share of the user's history that calibration mixes into the recommended items, so that no
#: logarithm is infinite. The value is that of Steck.
SMOOTHING = 0.01

#: How many sums of features are in memory at once, each of 8 bytes.
_NUM_SUMS_AT_ONCE = 2**22


def exposure(ranked: RankedEdges, k: int) -> Tensor:
    """Counts for each item how many lists hold it in their top `k`.

    The counts of separate groups of users add up to the counts of all users.

    Args:
        ranked (RankedEdges): The ranked ground truth, with its lists and the number of items.
        k (int): The cut-off.

    Returns:
        A double-precision tensor of shape `[num_items]`.

    Raises:
        ValueError: If `ranked` does not hold lists or does not know the number of items.
    """
    _, item = lists_of(ranked, k).edges(k)
    return torch.bincount(item, minlength=catalogue_of(ranked).num_items).double()


def exposure_with_others(ranked: RankedEdges, k: int) -> Tensor:
    """Counts the same as :func:`exposure`, and then for each listed item out of the catalogue."""
    _, item = _edges_with_others(ranked, k)
    return torch.bincount(item, minlength=catalogue_of(ranked).num_items).double()


def sum_of_lists(ranked: RankedEdges, k: int) -> Tensor:
    """Adds up the top `k` of all lists as vectors of length one, and counts the lists.

    The vector of a list has an element for every item. The elements of the items in the list are
    all the same positive number, and the others are zero. The sums of separate groups of users add
    up to the sums of all users.

    Args:
        ranked (RankedEdges): The ranked ground truth, with its lists and the number of items.
        k (int): The cut-off.

    Returns:
        A double-precision tensor of shape `[1 + num_items]`, and longer if lists hold items that
        the catalogue does not have: the number of lists that are not empty, followed by the sum of
        the vectors.

    Raises:
        ValueError: If `ranked` does not hold lists or does not know the number of items.
    """
    user, item = _edges_with_others(ranked, k)
    length = lists_of(ranked, k).length(k)
    weight = length.double().rsqrt()[user]
    total = torch.bincount(item, weight, minlength=catalogue_of(ranked).num_items)
    return torch.cat([(length > 0).double().sum().unsqueeze(0), total])


@register_aggregate(state=exposure, aliases=("item_coverage",))
def coverage(exposure: Tensor) -> Tensor:
    r"""The fraction of all items that are in the top `k` of at least one user.

    .. math::
        \text{coverage@}k = \frac{1}{n} \left\lvert \bigcup_u L_u \right\rvert

    where :math:`L_u` are the top `k` items of user `u`, and `n` is the number of all items,
    including those that no user has among the candidates. There is one value for all users
    together. It grows with the number of users.
    Items in lists that the catalogue does not have are left out.

    Args:
        ranked (RankedEdges): The ranked ground truth, with its lists and the number of items.
        k (int): The cut-off.

    Returns:
        A double-precision tensor with one number in [0, 1]; zero, and not `NaN`, if there are no
        lists.

    Raises:
        ValueError: If `k` is not a positive integer, or is larger than the depth of the ranking, or
            if `ranked` does not hold lists or does not know the number of items.

    Source: Ge, Delgado-Battenfeld and Jannach, "Beyond accuracy: evaluating recommender systems by
    coverage and serendipity" (2010).

    Example:
        >>> import torch
        >>> from pyg_recmetrics import Catalogue, RankedEdges, metrics
        >>> lists, truth = torch.tensor([[3, 1], [3, 2]]), torch.tensor([[0], [1]])
        >>> ranked = RankedEdges.from_topk(lists, truth).with_catalogue(Catalogue(num_items=5))
        >>> metrics.coverage(ranked, k=2)
        tensor(0.6000, dtype=torch.float64)
    """
    return (exposure > 0).double().mean()


@register_aggregate(state=exposure, higher_is_better=False, aliases=("gini_index",))
def gini(exposure: Tensor) -> Tensor:
    r"""How unequally items are recommended, from zero (all equally often); lower is better.

    .. math::
        \text{gini@}k = \frac{\sum_{i=1}^{n} (2 i - n - 1) \, e_{(i)}}{n \sum_{i=1}^{n} e_{(i)}}

    where `n` is the number of all items, recommended or not. Each item is in some number of lists,
    and :math:`e_{(i)}` is the `i`-th smallest of these `n` numbers. There is one value for all
    users together. Lower means more equal. Some libraries report one minus this value.
    Items in lists that the catalogue does not have are left out.

    Args:
        ranked (RankedEdges): The ranked ground truth, with its lists and the number of items.
        k (int): The cut-off.

    Returns:
        A double-precision tensor with one number in [0, 1); `NaN` if there are no lists.

    Raises:
        ValueError: If `k` is not a positive integer, or is larger than the depth of the ranking, or
            if `ranked` does not hold lists or does not know the number of items.

    Source: Fleder and Hosanagar, "Blockbuster culture's next rise or fall: the impact of
    recommender systems on sales diversity" (2009).

    Example:
        >>> import torch
        >>> from pyg_recmetrics import Catalogue, RankedEdges, metrics
        >>> lists, truth = torch.tensor([[3, 1], [3, 2]]), torch.tensor([[0], [1]])
        >>> ranked = RankedEdges.from_topk(lists, truth).with_catalogue(Catalogue(num_items=5))
        >>> metrics.gini(ranked, k=2)
        tensor(0.5000, dtype=torch.float64)
    """
    ordered = exposure.sort().values
    num_items = ordered.numel()
    i = torch.arange(1, num_items + 1, device=ordered.device)
    return ((2 * i - num_items - 1) * ordered).sum() / (num_items * ordered.sum())


@register_aggregate(state=exposure_with_others, range=(0.0, torch.inf))
def entropy(exposure: Tensor) -> Tensor:
    r"""The Shannon entropy of the recommended items, in bits: higher means more evenly spread.

    .. math::
        \text{entropy@}k = - \sum_{i:\, e_i > 0} p_i \log_2 p_i, \qquad
        p_i = \frac{e_i}{\sum_j e_j}

    where :math:`e_i` is the number of lists that item `i` is in. The largest possible value is
    :math:`\log_2 n`, if all `n` items are in the same number of lists. There is one value for all
    users together. RecBole uses natural logarithms and divides by the number of recommended items.
    Items in lists that the catalogue does not have count like all others.

    Args:
        ranked (RankedEdges): The ranked ground truth, with its lists and the number of items.
        k (int): The cut-off.

    Returns:
        A double-precision tensor with one number, zero or more; `NaN` if there are no lists.

    Raises:
        ValueError: If `k` is not a positive integer, or is larger than the depth of the ranking, or
            if `ranked` does not hold lists or does not know the number of items.

    Source: Adomavicius and Kwon, "Improving aggregate recommendation diversity using ranking-based
    techniques" (2012); Shannon, "A mathematical theory of communication" (1948).

    Example:
        >>> import torch
        >>> from pyg_recmetrics import Catalogue, RankedEdges, metrics
        >>> lists, truth = torch.tensor([[3, 1], [3, 2]]), torch.tensor([[0], [1]])
        >>> ranked = RankedEdges.from_topk(lists, truth).with_catalogue(Catalogue(num_items=5))
        >>> metrics.entropy(ranked, k=2)
        tensor(1.5000, dtype=torch.float64)
    """
    nats: Tensor = torch.special.entr(exposure / exposure.sum()).sum()
    return nats / math.log(2)


@register_aggregate(state=sum_of_lists)
def personalization(sum_of_lists: Tensor) -> Tensor:
    r"""How different the lists of two users are on average: zero if all lists are the same.

    .. math::
        \text{personalization@}k = 1 - \frac{2}{m (m - 1)} \sum_{u < v}
        \frac{\lvert L_u \cap L_v \rvert}{\sqrt{\lvert L_u \rvert \lvert L_v \rvert}}

    where :math:`L_u` are the top `k` items of user `u`, and `m` is the number of users who have at
    least one. There is one value for all users together, over all pairs of users. The computation
    need not go through the pairs: each list is a vector of length one, and the squared length of
    the sum of these vectors is `m` plus twice the sum of the cosines of all pairs. PyG looks only
    at the pairs of the first 4096 users.
    Items in lists that the catalogue does not have count like all others.

    Args:
        ranked (RankedEdges): The ranked ground truth, with its lists and the number of items.
        k (int): The cut-off.

    Returns:
        A double-precision tensor with one number in [0, 1]; `NaN` for fewer than two lists.

    Raises:
        ValueError: If `k` is not a positive integer, or is larger than the depth of the ranking, or
            if `ranked` does not hold lists or does not know the number of items.

    Source: Zhou et al., "Solving the apparent diversity-accuracy dilemma of recommender systems"
    (2010), who define it as the distance of lists of equal length.

    Example:
        >>> import torch
        >>> from pyg_recmetrics import Catalogue, RankedEdges, metrics
        >>> lists, truth = torch.tensor([[3, 1], [3, 2]]), torch.tensor([[0], [1]])
        >>> ranked = RankedEdges.from_topk(lists, truth).with_catalogue(Catalogue(num_items=5))
        >>> metrics.personalization(ranked, k=2)
        tensor(0.5000, dtype=torch.float64)
    """
    num_lists, total = sum_of_lists[0], sum_of_lists[1:]
    cosine = (total.square().sum() - num_lists) / (num_lists * (num_lists - 1))
    # Only rounding errors make it negative.
    return (1 - cosine).clamp(min=0.0).masked_fill(num_lists < 2, torch.nan)


@register(
    range=(0.0, torch.inf),
    higher_is_better=False,
    needs_truth=False,
    needs=("items", "popularity"),
    aliases=("average_popularity", "arp"),
)
def popularity(ranked: RankedEdges, k: int) -> Tensor:
    r"""How many users saw a recommended item on average, the ARP; lower is better.

    .. math::
        \text{popularity@}k = \frac{1}{\lvert L \rvert} \sum_{i \in L} \phi_i

    where :math:`L` are the user's top `k` items and :math:`\phi_i` is the number of users who have
    seen item `i`, its popularity. It is zero if the catalogue does not have the item.

    Args:
        ranked (RankedEdges): The ranked ground truth, with its lists and the seen edges.
        k (int): The cut-off.

    Returns:
        A double-precision tensor of shape `[num_users]`, zero or more; `NaN` for users without a
        list.

    Raises:
        ValueError: If `k` is not a positive integer, or is larger than the depth of the ranking, or
            if `ranked` does not hold lists or does not know the seen edges.

    Source: Yin et al., "Challenging the long tail recommendation" (2012).

    Example:
        >>> import torch
        >>> from pyg_recmetrics import Catalogue, RankedEdges, metrics
        >>> lists, truth = torch.tensor([[3, 1], [3, 2]]), torch.tensor([[0], [1]])
        >>> catalogue = Catalogue(num_items=5, seen=torch.tensor([[0, 0, 1], [0, 1, 1]]))
        >>> metrics.popularity(RankedEdges.from_topk(lists, truth).with_catalogue(catalogue), k=2)
        tensor([1., 0.], dtype=torch.float64)
    """
    return _mean_over_list(ranked, k, _popularity(ranked))


@register(range=(0.0, torch.inf), needs_truth=False, needs=("items", "popularity"))
def novelty(ranked: RankedEdges, k: int) -> Tensor:
    r"""The mean self-information of the recommended items, in bits: high if few users saw them.

    .. math::
        \text{novelty@}k = \frac{1}{\lvert L \rvert} \sum_{i \in L}
        -\log_2 \frac{\max(\phi_i, 1)}{m}

    where :math:`L` are the user's top `k` items, :math:`\phi_i` is the number of users who have
    seen item `i`, and `m` is the number of users who have seen any item. An item that no user has
    seen, or that the catalogue does not have, counts like an item that one user has seen:
    :math:`\log_2 m` bits, the largest possible value.

    Args:
        ranked (RankedEdges): The ranked ground truth, with its lists and the seen edges.
        k (int): The cut-off.

    Returns:
        A double-precision tensor of shape `[num_users]`, from zero to :math:`\log_2 m`; `NaN` for
        users without a list.

    Raises:
        ValueError: If `k` is not a positive integer, or is larger than the depth of the ranking, or
            if `ranked` does not hold lists or does not know the seen edges.

    Source: Zhou et al., "Solving the apparent diversity-accuracy dilemma of recommender systems"
    (2010); Castells, Vargas and Wang, "Novelty and diversity metrics for recommender systems:
    choice, discovery and relevance" (2011). Unseen items are treated as in RecTools.

    Example:
        >>> import torch
        >>> from pyg_recmetrics import Catalogue, RankedEdges, metrics
        >>> lists, truth = torch.tensor([[3, 1], [3, 2]]), torch.tensor([[0], [1]])
        >>> catalogue = Catalogue(num_items=5, seen=torch.tensor([[0, 0, 1], [0, 1, 1]]))
        >>> metrics.novelty(RankedEdges.from_topk(lists, truth).with_catalogue(catalogue), k=2)
        tensor([0.5000, 1.0000], dtype=torch.float64)
    """
    num_seen_by = _popularity(ranked).clamp(min=1).double()
    # The logarithm of the inverse, because minus the logarithm of one is a negative zero.
    bits = (catalogue_of(ranked).num_active_users / num_seen_by).log2()
    return _mean_over_list(ranked, k, bits)


@register(needs_truth=False, needs=("items", "popularity"), aliases=("aplt",))
def tail_share(ranked: RankedEdges, k: int, head: Head = 80) -> Tensor:
    r"""The fraction of the recommended items that are in the long tail; its mean is the APLT.

    .. math::
        \text{tail\_share@}k = \frac{\lvert L \cap T \rvert}{\lvert L \rvert}

    where :math:`L` are the user's top `k` items, and :math:`T` is the tail: all items that are not
    in the head. The head consists of the most popular items that together have `head` percent of
    the seen edges. Items that are as popular as the last item of the head are in the head too.
    Items that no user has seen, or that the catalogue does not have, are in the tail.

    Args:
        ranked (RankedEdges): The ranked ground truth, with its lists and the seen edges.
        k (int): The cut-off.
        head (int, optional): The percentage of the seen edges that the head has. (default: `80`)

    Returns:
        A double-precision tensor of shape `[num_users]` in [0, 1]; `NaN` for users without a list.

    Raises:
        ValueError: If `k` is not a positive integer, or is larger than the depth of the ranking, if
            `head` is not an integer from 1 to 100, or if `ranked` does not hold lists or does not
            know the seen edges.

    Source: Abdollahpouri, Burke and Mobasher, "Managing popularity bias in recommender systems
    with personalized re-ranking" (2019).

    Example:
        >>> import torch
        >>> from pyg_recmetrics import Catalogue, RankedEdges, metrics
        >>> lists, truth = torch.tensor([[0, 1], [3, 2]]), torch.tensor([[0], [1]])
        >>> seen = torch.tensor([[0, 0, 1, 1, 1], [0, 1, 0, 1, 2]])
        >>> catalogue = Catalogue(num_items=5, seen=seen)
        >>> metrics.tail_share(RankedEdges.from_topk(lists, truth).with_catalogue(catalogue), k=2)
        tensor([0., 1.], dtype=torch.float64)
    """
    popularity = _popularity(ranked)
    ordered = popularity.sort(descending=True).values
    covered = ordered.cumsum(dim=0)
    is_enough = 100 * covered >= head * covered[-1]
    least_popular = ordered[(~is_enough).sum()]  # of the head
    return _mean_over_list(ranked, k, popularity < least_popular)


@register(range=(0.0, 2.0), needs_truth=False, needs=("items", "item_{over}"))
def diversity(ranked: RankedEdges, k: int, over: Over = "category") -> Tensor:
    r"""How different two items of a list are on average: one minus their mean cosine.

    .. math::
        \text{diversity@}k = 1 - \frac{2}{\lvert L \rvert (\lvert L \rvert - 1)}
        \sum_{i < j \in L} \cos(x_i, x_j)

    where :math:`L` are the user's top `k` items, and :math:`x_i` is the embedding of item `i` or
    the vector of its categories. If every item has one category, the cosine of two items is one if
    they have the same category, and zero if not. A vector of zeros, such as that of an item without
    a category or out of the catalogue, has a cosine of zero with all other vectors. Over
    categories, the value is at most one.

    Args:
        ranked (RankedEdges): The ranked ground truth, with its lists and the categories or
            embeddings of items.
        k (int): The cut-off.
        over (str, optional): What to compare: `"category"` for the categories of the items,
            `"embedding"` for their embeddings. (default: `"category"`)

    Returns:
        A double-precision tensor of shape `[num_users]` in [0, 2]; `NaN` for users with a list of
        fewer than two items, so for all users if `k` is one.

    Raises:
        ValueError: If `k` is not a positive integer, or is larger than the depth of the ranking, if
            `over` is not `"category"` or `"embedding"`, or if `ranked` does not hold lists or does
            not know the categories or embeddings.

    Source: Smyth and McClave, "Similarity vs. diversity" (2001); Ziegler et al., "Improving
    recommendation lists through topic diversification" (2005). Their intra-list similarity is the
    sum that is subtracted from one.

    Example:
        >>> import torch
        >>> from pyg_recmetrics import Catalogue, RankedEdges, metrics
        >>> lists, truth = torch.tensor([[0, 1, 2], [3, 2, -1]]), torch.tensor([[0], [1]])
        >>> catalogue = Catalogue(num_items=4, item_category=torch.tensor([0, 0, 1, 1]))
        >>> metrics.diversity(RankedEdges.from_topk(lists, truth).with_catalogue(catalogue), k=3)
        tensor([0.6667, 0.0000], dtype=torch.float64)
    """
    feature = _scaled(catalogue_of(ranked).get(f"item_{over}"), p=2)
    lists = lists_of(ranked, k)
    user, item = recommended = lists.edges(k)
    sums_of_users = _sums_by_chunk(recommended, ranked.num_users, feature)
    squares = torch.cat([sums.square().sum(dim=1) for sums in sums_of_users])
    # The squares include the cosine of each item with itself: one, or zero for a vector of zeros.
    has_cosine = torch.ones_like(item) if feature.dim() == 1 else feature.any(dim=1)[item]
    itself = scatter(has_cosine.double(), user, dim_size=ranked.num_users)
    length = lists.length(k)
    cosine: Tensor = (squares - itself) / (length * (length - 1))
    # Only rounding errors make it negative.
    return (1 - cosine).clamp(min=0.0).masked_fill(length < 2, torch.nan)


@register(needs=("items", "popularity"))
def serendipity(ranked: RankedEdges, k: int) -> Tensor:
    r"""How much of the list is relevant and would not be recommended for its popularity alone.

    .. math::
        \text{serendipity@}k = \frac{1}{\lvert L \rvert} \sum_{j:\, r_j \leq k}
        \max\left(\frac{n + 1 - r_j}{n} - b_j, 0\right)

    where :math:`L` are the user's top `k` items, also those that the catalogue does not have,
    :math:`r_j` is the rank of the user's `j`-th relevant item, and `n` is the number of all items.
    The comparison is with a recommender of popular items, for which
    :math:`b_j = (n + 1 - s_j) / n`. Here :math:`s_j` is the rank of the item's popularity among all
    different popularities, one for the most popular items. For an item that no user has seen,
    :math:`b_j` is zero.

    Args:
        ranked (RankedEdges): The ranked ground truth, with its lists and the seen edges.
        k (int): The cut-off.

    Returns:
        A double-precision tensor of shape `[num_users]` in [0, 1]; `NaN` for users without truth,
        zero for users with truth but without a list.

    Raises:
        ValueError: If `k` is not a positive integer, or is larger than the depth of the ranking, or
            if `ranked` does not hold lists or does not know the seen edges.

    Source: Murakami, Mori and Orihara, "Metrics for evaluating the serendipity of recommendation
    lists" (2008), with the probabilities of RecTools.

    Example:
        >>> import torch
        >>> from pyg_recmetrics import Catalogue, RankedEdges, metrics
        >>> lists, truth = torch.tensor([[0, 1], [3, 2]]), torch.tensor([[0, 1], [0, 2]])
        >>> catalogue = Catalogue(num_items=5, seen=torch.tensor([[0, 1, 1], [1, 0, 1]]))
        >>> metrics.serendipity(RankedEdges.from_topk(lists, truth).with_catalogue(catalogue), k=2)
        tensor([0.1000, 0.4000], dtype=torch.float64)
    """
    length = lists_of(ranked, k).length(k)
    num_items = catalogue_of(ranked).num_items
    expected = _chance_by_popularity(catalogue_of(ranked))[ranked.edge_label_index[1]]
    chance = (num_items + 1 - ranked.rank.clamp(max=num_items + 1)).double() / num_items
    unexpected = ranked.sum(ranked.is_hit(k) * (chance - expected).clamp(min=0.0))
    return unexpected / length.clamp(min=1)


@register(
    range=(0.0, -math.log(SMOOTHING)),
    higher_is_better=False,
    needs_truth=False,
    needs=("items", "seen", "item_category"),
)
def calibration(ranked: RankedEdges, k: int) -> Tensor:
    r"""How far the categories of the list are from those of the user's history; lower is better.

    .. math::
        \text{calibration@}k = \sum_{c:\, p_c > 0} p_c \ln \frac{p_c}{0.99 \, q_c + 0.01 \, p_c}

    where :math:`p_c` is the share of category `c` in the items that the user has seen, and
    :math:`q_c` is its share in the user's top `k` items. An item of several categories counts for
    each of them in equal parts, or in proportion to the numbers that `item_category` holds for
    them. This is the Kullback-Leibler divergence, with 0.01 of the history mixed into the list so
    that a missing category does not make it infinite. It is zero if the shares are the same, and
    :math:`\ln 100` if history and list have no category in common. Items without a category, or out
    of the catalogue, do not count.

    Args:
        ranked (RankedEdges): The ranked ground truth, with its lists, the seen edges and the
            categories of items.
        k (int): The cut-off.

    Returns:
        A double-precision tensor of shape `[num_users]` from 0 to 4.61; `NaN` for users who have
        no item with a category in their history or in their list.

    Raises:
        ValueError: If `k` is not a positive integer, or is larger than the depth of the ranking, or
            if `ranked` does not hold lists or does not know the seen edges or the categories.

    Source: Steck, "Calibrated recommendations" (2018).

    Example:
        >>> import torch
        >>> from pyg_recmetrics import Catalogue, RankedEdges, metrics
        >>> lists, truth = torch.tensor([[2, 3], [0, 1]]), torch.tensor([[0], [2]])
        >>> seen, category = torch.tensor([[0, 0, 1], [0, 1, 3]]), torch.tensor([0, 1, 1, 0])
        >>> catalogue = Catalogue(num_items=4, seen=seen, item_category=category)
        >>> metrics.calibration(RankedEdges.from_topk(lists, truth).with_catalogue(catalogue), k=2)
        tensor([0.0000, 0.6832], dtype=torch.float64)
    """
    catalogue = catalogue_of(ranked)
    share = _scaled(catalogue.get("item_category"), p=1)
    seen = _sums_by_chunk(catalogue.interactions, ranked.num_users, share)
    listed = _sums_by_chunk(lists_of(ranked, k).edges(k), ranked.num_users, share)
    return torch.cat([_divergence(p, q) for p, q in zip(seen, listed, strict=True)])


def _edges_with_others(ranked: RankedEdges, k: int) -> tuple[Tensor, Tensor]:
    """The edges to all listed items. What the catalogue does not have is numbered behind it."""
    user, item = lists_of(ranked, k).edges(k, with_others=True)
    is_other = item < 0
    if bool(is_other.any()):
        number = item[is_other].unique(return_inverse=True)[1]
        item[is_other] = catalogue_of(ranked).num_items + number
    return user, item


def _popularity(ranked: RankedEdges) -> Tensor:
    """The popularity of every item, and last that of an item which the catalogue does not have."""
    return F.pad(catalogue_of(ranked).popularity, (0, 1))


def _mean_over_list(ranked: RankedEdges, k: int, value: Tensor) -> Tensor:
    """The mean of a value of each item, as :func:`_popularity` has them, over each list."""
    user, item = lists_of(ranked, k).edges(k, with_others=True)
    ptr = index2ptr(user, ranked.num_users)
    mean: Tensor = segment(value.double()[item.clamp(min=-1)], ptr, reduce="sum") / ptr.diff()
    return mean


def _chance_by_popularity(catalogue: Catalogue) -> Tensor:
    """How likely a recommender of popular items recommends each item: `[num_items]`."""
    popularity, num_items = catalogue.popularity, catalogue.num_items
    levels = popularity[popularity > 0].unique()
    rank = levels.numel() - torch.searchsorted(levels, popularity)
    chance = (num_items + 1 - rank).double() / num_items
    return torch.where(popularity > 0, chance, 0.0)


def _scaled(feature: Tensor, p: int) -> Tensor:
    """Scales rows to a `p`-norm of one. Rows of zeros and single categories stay as they are."""
    if feature.dim() == 1:
        return feature
    feature = feature.double()
    # The squares of large numbers overflow, and those of small ones vanish. The scale is exact.
    exponent = feature.abs().amax(dim=1, keepdim=True).frexp().exponent
    scaled: Tensor = F.normalize(feature / exponent.double().exp2(), p=p, dim=1)
    return scaled


def _sums_by_chunk(edges: Tensor, num_users: int, feature: Tensor) -> Iterator[Tensor]:
    """Adds up the features of the items of each user, one chunk of users after another.

    Yields:
        Tensors of shape `[num_users_in_chunk, num_features]`.
    """
    is_category = feature.dim() == 1
    width = int(feature.max()) + 1 if is_category else feature.size(1)
    chunk_size = max(1, _NUM_SUMS_AT_ONCE // width)
    ptr = index2ptr(edges[0], num_users)
    # If there are no users, there is one chunk of none.
    starts = list(range(0, max(num_users, 1), chunk_size))
    # Copied to the host once, so that no chunk waits for the device.
    places: list[int] = ptr[[*starts, num_users]].tolist()
    for start, (first, last) in zip(starts, pairwise(places), strict=True):
        user, item = edges[:, first:last]
        chunk_ptr = ptr[start : start + chunk_size + 1]
        size = chunk_ptr.numel() - 1
        if is_category:
            category = (user - start) * width + feature[item]
            ones = torch.ones_like(item, dtype=torch.float64)
            yield scatter(ones, category, dim_size=size * width).view(size, width)
        else:
            bounds = chunk_ptr - first
            yield F.embedding_bag(item, feature, bounds, mode="sum", include_last_offset=True)


def _divergence(history: Tensor, listed: Tensor) -> Tensor:
    """The smoothed divergence of the listed categories from the history, one row for each user."""
    p = history / history.sum(dim=1, keepdim=True)
    q = listed / listed.sum(dim=1, keepdim=True)
    mixed = (1 - SMOOTHING) * q + SMOOTHING * p
    divergence = torch.where(p > 0, p * (p / mixed).log(), 0.0).sum(dim=1)
    is_undefined = (history.sum(dim=1) == 0) | (listed.sum(dim=1) == 0)
    # Only rounding errors make it negative.
    return divergence.clamp(min=0.0).masked_fill(is_undefined, torch.nan)
