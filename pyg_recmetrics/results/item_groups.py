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


def measure_item_groups(
    ranked: RankedEdges,
    recall: Metric,
    is_counted: Tensor,
    group: Tensor,
    labels: Sequence[Hashable],
    *,
    person: Tensor | None,
    name: str,
    level: float,
) -> Cohorts:
    """Measures groups of items, see :meth:`EvaluationResult.by_item_group`.

    Args:
        ranked (RankedEdges): The ranked ground truth, with lists.
        recall (Metric): What to measure for the relevant items of each group.
        is_counted (torch.Tensor): The users who count, a mask of shape `[num_users]`.
        group (torch.Tensor): The number of each item's group, of shape `[num_items]`; `-1` for
            items without a group.
        labels (sequence): The label of each group.
        person (torch.Tensor or None): The person to whom each row belongs, of shape `[num_users]`.
        name (str): What the recall is called.
        level (float): The level of the confidence intervals.
    """
    groups = _ItemGroups(ranked, recall, is_counted, group, person, name)
    means: dict[Hashable, dict[str, CohortMean]] = {}
    for number, label in enumerate(labels):
        means[label] = {
            metric: CohortMean(x.value, *x.interval(level), num_users)
            for metric, (x, num_users) in groups.estimates(number).items()
        }
    numbers = {label: number for number, label in enumerate(labels)}
    estimate = partial(_estimate_of_label, groups, numbers)
    return Cohorts(means, estimate, "items", level, (note_on_intervals(level, person),))


class _ItemGroups:
    """Estimates of groups of items, which are made when they are asked for.

    The arguments are those of :func:`measure_item_groups`.
    """

    def __init__(
        self,
        ranked: RankedEdges,
        recall: Metric,
        is_counted: Tensor,
        group: Tensor,
        person: Tensor | None,
        name: str,
    ) -> None:
        self.ranked, self.recall, self.is_counted, self.person = ranked, recall, is_counted, person
        k = recall.k or 1
        self.metrics = name, f"exposure@{k}", "relevance", f"exposure@{k} / relevance"
        user, rank, item = ranked.lists_down_to(k).places(k)
        self.of_edge = group[ranked.edge_label_index[1]]
        edge = torch.ones_like(ranked.rank, dtype=torch.double)
        self.shares = {
            self.metrics[1]: (user, group[item], 1 / torch.log2(rank.double() + 1)),
            self.metrics[2]: (ranked.edge_label_index[0], self.of_edge, edge),
        }
        self.totals = {
            share: self._sum_by_user(of_user, amount)
            for share, (of_user, _, amount) in self.shares.items()
        }

    def estimates(self, number: int) -> dict[str, tuple[Estimate, int]]:
        """Returns all numbers of a group, and how many users count in each."""
        name, exposure, relevance, ratio = self.metrics
        recall, num_counted = self._recall(number), int(self.is_counted.sum())
        shares = [self._share(number, share) for share in (exposure, relevance)]
        return {
            name: (mean_of_users(recall, self.person), int((~recall.isnan()).sum())),
            exposure: (shares[0], num_counted),
            relevance: (shares[1], num_counted),
            ratio: (shares[0].over(shares[1]), num_counted),
        }

    def estimate(self, number: int, metric: str) -> Estimate:
        """Returns one number of a group."""
        name, exposure, relevance, _ = self.metrics
        if metric == name:
            return mean_of_users(self._recall(number), self.person)
        if metric in self.shares:
            return self._share(number, metric)
        return self._share(number, exposure).over(self._share(number, relevance))

    def _share(self, number: int, metric: str) -> Estimate:
        of_user, of_item, amount = self.shares[metric]
        own = (of_item == number).nonzero().squeeze(1)
        part = self._sum_by_user(of_user[own], amount[own])
        return ratio_of_sums(part, self.totals[metric], self.person)

    def _recall(self, number: int) -> Tensor:
        value = self.recall(self.ranked.select_edges(self.of_edge == number))
        return value.masked_fill(~self.is_counted, torch.nan)

    def _sum_by_user(self, user: Tensor, amount: Tensor) -> Tensor:
        """Adds up amounts of users, and leaves out those who do not count."""
        total = amount.new_zeros(self.ranked.num_users).index_add_(0, user, amount)
        return total.masked_fill(~self.is_counted, 0.0)


def _estimate_of_label(
    groups: _ItemGroups, numbers: Mapping[Hashable, int], label: Hashable, metric: str
) -> Estimate:
    return groups.estimate(numbers[label], metric)
