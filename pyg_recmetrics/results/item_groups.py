"""How fair lists are to groups of items: what of them is found, and how much exposure they get."""

from collections.abc import Hashable, Mapping, Sequence
from functools import partial

import torch
from torch import Tensor

from pyg_recmetrics.results.cohorts import CohortMean, Cohorts, Intervals, PartialRecall
from pyg_recmetrics.results.estimates import Estimate, mean_of_users, ratio_of_sums


def measure_item_groups(
    recall: PartialRecall, group: Tensor, labels: Sequence[Hashable], intervals: Intervals
) -> Cohorts:
    """Measures groups of items, see :meth:`EvaluationResult.by_item_group`.

    Args:
        recall (PartialRecall): What to measure for the relevant items of each group. Its ranking
            needs to have lists.
        group (torch.Tensor): The number of each item's group, of shape `[num_items]`; `-1` for
            items without a group.
        labels (sequence): The label of each group.
        intervals (Intervals): The persons, and the level of the intervals.
    """
    groups = _ItemGroups(recall, group, intervals)
    means: dict[Hashable, dict[str, CohortMean]] = {}
    for number, label in enumerate(labels):
        means[label] = {
            metric: CohortMean(estimate.value, *estimate.interval(intervals.level), num_users)
            for metric, (estimate, num_users) in groups.estimates(number).items()
        }
    numbers = {label: number for number, label in enumerate(labels)}
    estimate = partial(_estimate_of_label, groups, numbers)
    notes = intervals.notes()
    return Cohorts(means, estimate, "items", notes, intervals)


class _ItemGroups:
    """Estimates of groups of items, which are made when they are asked for.

    The arguments are those of :func:`measure_item_groups`.
    """

    def __init__(self, recall: PartialRecall, group: Tensor, intervals: Intervals) -> None:
        self.recall, self.intervals = recall, intervals
        ranked, k = recall.ranked, recall.metric.k or 1
        self.metrics = recall.name, f"exposure@{k}", "relevance", f"exposure@{k} / relevance"
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
        recall, num_counted = self._recall(number), int(self.recall.is_counted.sum())
        shares = [self._share(number, share) for share in (exposure, relevance)]
        return {
            name: (self._mean(recall), int((~recall.isnan()).sum())),
            exposure: (shares[0], num_counted),
            relevance: (shares[1], num_counted),
            ratio: (shares[0].over(shares[1]), num_counted),
        }

    def estimate(self, number: int, metric: str) -> Estimate:
        """Returns one number of a group."""
        name, exposure, relevance, _ = self.metrics
        if metric == name:
            return self._mean(self._recall(number))
        if metric in self.shares:
            return self._share(number, metric)
        return self._share(number, exposure).over(self._share(number, relevance))

    def _share(self, number: int, metric: str) -> Estimate:
        of_user, of_item, amount = self.shares[metric]
        own = (of_item == number).nonzero().squeeze(1)
        part = self._sum_by_user(of_user[own], amount[own])
        return ratio_of_sums(part, self.totals[metric], self.intervals.person)

    def _mean(self, values: Tensor) -> Estimate:
        return mean_of_users(values, self.intervals.person)

    def _recall(self, number: int) -> Tensor:
        return self.recall.of(self.of_edge == number)

    def _sum_by_user(self, user: Tensor, amount: Tensor) -> Tensor:
        """Adds up amounts of users, and leaves out those who do not count."""
        is_counted = self.recall.is_counted
        total = amount.new_zeros(is_counted.numel()).index_add_(0, user, amount)
        return total.masked_fill(~is_counted, 0.0)


def _estimate_of_label(
    groups: _ItemGroups, numbers: Mapping[Hashable, int], label: Hashable, metric: str
) -> Estimate:
    return groups.estimate(numbers[label], metric)
