"""What a process finds out about the users that it ranks becomes known to all processes."""

from functools import cached_property
from itertools import accumulate

import torch
from torch import Tensor
from torch_geometric.index import index2ptr

from pyg_recmetrics import processes
from pyg_recmetrics.kernels.exact.lists import NOT_RETRIEVED
from pyg_recmetrics.kernels.exact.ranks import Ranks
from pyg_recmetrics.processes import Axis
from pyg_recmetrics.ranking.schedule import edges_of
from pyg_recmetrics.task import RankingTask


class UserShares:
    """Which process ranks which users.

    Numbers are sent by the one process that knows them, in as few bytes as they fit into.

    Args:
        task (RankingTask): The task.
        axis (Axis): The processes among which users are divided.
        parts (list of torch.Tensor): The users of each of them.
    """

    def __init__(self, task: RankingTask, axis: Axis, parts: list[Tensor]) -> None:
        self._task, self.axis, self._parts = task, axis, parts

    @property
    def own(self) -> Tensor:
        """The users of this process."""
        return self._parts[self.axis.index]

    def combine_by_user(self, values: Tensor, limit: int) -> None:
        """Combines, in place, numbers `[num_users, ...]` from zero to below a limit."""
        users, num_users = torch.cat(self._parts), [part.numel() for part in self._parts]
        values[users] = self._collect(values[self.own], num_users, limit)

    def combine_by_edge(self, values: Tensor, limit: int) -> None:
        """Combines, in place, numbers `[num_edges]` from zero to below a limit."""
        values[self._edges] = self._collect(values[self._own_edges], self._num_edges, limit)

    def combine_ranks(self, ranks: Ranks, max_rank: int, *, has_scores: bool) -> None:
        """Combines ranks in place.

        Args:
            ranks (Ranks): What is known of every truth edge of the task.
            max_rank (int): The largest rank that there can be.
            has_scores (bool): Whether it is known what scores higher, or the same.
        """
        own = Ranks(*(known[self._own_edges] for known in ranks))
        sent = own.rank.masked_fill(own.rank > max_rank, 0)
        rank = self._collect(sent, self._num_edges, max_rank + 1)
        of_all = _without_ties(rank.masked_fill_(rank == 0, NOT_RETRIEVED))
        if has_scores:
            self._combine_ties(own, of_all, max_rank)
        else:
            of_all.num_above.fill_(NOT_RETRIEVED)
        ranks.update(self._edges, of_all)

    def _combine_ties(self, own: Ranks, of_all: Ranks, max_rank: int) -> None:
        """Overwrites, in place, what the rank alone does not say, as other items tie.

        Args:
            own (Ranks): What this process knows of its own edges.
            of_all (Ranks): What is known of the edges of all processes, as if nothing tied.
            max_rank (int): The largest rank that there can be.
        """
        guess = _without_ties(own.rank)
        place = (own.num_above != guess.num_above) | (own.num_tied != guess.num_tied)
        place = place.nonzero().squeeze(1)
        num_ties = self.axis.numbers(place.numel(), place.device)
        if max(num_ties) == 0:
            return
        num_above = own.num_above[place] + 1  # what is out of reach is sent as zero
        num_above = num_above.masked_fill_(own.num_above[place] > max_rank, 0)
        num_above = self._collect(num_above, num_ties, max_rank + 2) - 1
        num_tied = self._collect(own.num_tied[place] + 1, num_ties, self._task.num_items + 1) - 1
        place = self._collect(place, num_ties, max(self._num_edges))
        first = torch.tensor([0, *accumulate(self._num_edges[:-1])], device=place.device)
        place += first.repeat_interleave(torch.tensor(num_ties, device=place.device))
        of_all.num_above[place] = num_above.masked_fill_(num_above < 0, NOT_RETRIEVED)
        of_all.num_tied[place] = num_tied

    @cached_property
    def _edges(self) -> Tensor:
        """The truth edges of all these users, process after process."""
        return edges_of(self._task.truth, torch.cat(self._parts), self._task.num_users)

    @cached_property
    def _own_edges(self) -> Tensor:
        """Those of the users of this process."""
        of_each: tuple[Tensor, ...] = self._edges.split(self._num_edges)
        return of_each[self.axis.index]

    @cached_property
    def _num_edges(self) -> list[int]:
        """How many edges the users of each process have."""
        ptr = index2ptr(self._task.truth[0], self._task.num_users)
        nums = torch.stack([(ptr[part + 1] - ptr[part]).sum() for part in self._parts])
        return list(map(int, nums.tolist()))

    def _collect(self, values: Tensor, num_rows: list[int], limit: int) -> Tensor:
        """Returns the numbers of all processes, from zero to below a limit."""
        content = self.axis.collect(processes.pack(values, limit), num_rows)
        return processes.unpack(content, limit)


def _without_ties(rank: Tensor) -> Ranks:
    """Returns what is known by a rank if no other item has the same score."""
    num_above = torch.where(rank == NOT_RETRIEVED, NOT_RETRIEVED, rank - 1)
    return Ranks(rank, num_above, torch.zeros_like(rank))
