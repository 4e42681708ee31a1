"""How fair lists are to groups of items: what of them is found, and how much exposure they get."""

from collections.abc import Hashable, Mapping, Sequence
from functools import partial

import torch
from torch import Tensor

from pyg_recmetrics.metrics import Metric
from pyg_recmetrics.ranked_edges import RankedEdges
from pyg_recmetrics.results.cohorts import CohortMean, Cohorts
from pyg_recmetrics.results.estimates import Estimate, mean_of_users, ratio_of_sums
from pyg_recmetrics.results.recipe import note_on_intervals


def by_item_groups(
    ranked: RankedEdges,
    recall: Metric,
    is_counted: Tensor,
    group: Tensor,
    labels: Sequence[Hashable],
    *,
    owner: Tensor | None,
    name: str,
    level: float,
) -> Cohorts:
    """Measures groups of items, see :meth:`EvaluationResult.by_item`.

    Args:
        ranked (RankedEdges): The ranked ground truth, with lists.
        recall (Metric): What to measure for the relevant items of each group.
        is_counted (torch.Tensor): The users who count, a mask of shape `[num_users]`.
        group (torch.Tensor): The number of each item's group, of shape `[num_items]`; `-1` for
            items without a group.
        labels (sequence): The label of each group.
        owner (torch.Tensor or None): The person to whom each row belongs, of shape `[num_users]`.
        name (str): What the recall is called.
        level (float): The level of the confidence intervals.
    """
    k = recall.k or 1
    user, rank, item = ranked.lists_down_to(k).places(k)
    exposure = 1 / torch.log2(rank.double() + 1)
    is_listed, is_relevant = is_counted[user], is_counted[ranked.edge_index[0]]
    shares = {
        f"exposure@{k}": (user[is_listed], group[item[is_listed]], exposure[is_listed]),
        "relevance": (
            ranked.edge_index[0, is_relevant],
            group[ranked.edge_index[1, is_relevant]],
            torch.ones_like(exposure[:1]).expand(int(is_relevant.sum())),
        ),
    }
    estimates: dict[Hashable, dict[str, Estimate]] = {}
    means: dict[Hashable, dict[str, CohortMean]] = {}
    of_edge = group[ranked.edge_index[1]]
    for number, label in enumerate(labels):
        value = recall(ranked.select_edges(of_edge == number))
        value = value.masked_fill(~is_counted, torch.nan)
        of_group = {name: mean_of_users(value, owner)}
        for share, (of_user, of_item, amount) in shares.items():
            total = amount.new_zeros(ranked.num_users).index_add_(0, of_user, amount)
            own = amount.masked_fill(of_item != number, 0.0)
            part = amount.new_zeros(ranked.num_users).index_add_(0, of_user, own)
            of_group[share] = ratio_of_sums(part, total, owner)
        received, deserved = (of_group[share] for share in shares)
        of_group[f"exposure@{k} / relevance"] = received.over(deserved)
        estimates[label] = of_group
        num_users = {metric: int(is_counted.sum()) for metric in of_group}
        num_users[name] = int((~value.isnan()).sum())
        means[label] = {
            metric: CohortMean(x.value, *x.interval(level), num_users[metric])
            for metric, x in of_group.items()
        }
    return Cohorts(
        means, partial(_lookup, estimates), "items", level, (note_on_intervals(level, owner),)
    )


def _lookup(
    estimates: Mapping[Hashable, Mapping[str, Estimate]], label: Hashable, metric: str
) -> Estimate:
    return estimates[label][metric]
