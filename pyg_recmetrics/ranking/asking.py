"""Ranks by what a model recommends: the path of models with a `recommend` of their own.

For a chunk of users at a time:

1. The model is asked for as many items as the deepest user needs, and for as many more as may be
   dropped because they were seen.
2. An adjacency `[chunk, num_items]` on the device marks what must not be retrieved. A gather at the
   recommended items finds what to drop.
3. A table of the ground truth holds the number of each edge. A gather at the items that are left
   finds the hits, and a scatter gives every edge the place of its item: its *rank*.
"""

import torch
from torch import Tensor

from pyg_recmetrics.checks import check_device, check_integers
from pyg_recmetrics.kernels.exact.ranks import NOT_RETRIEVED, Ranks
from pyg_recmetrics.ranking.models import Recommend
from pyg_recmetrics.ranking.recommenders import (
    ListRecommender,
    begins_behind_users,
    name_users_in_errors,
)
from pyg_recmetrics.ranking.schedule import Chunk
from pyg_recmetrics.task import RankingTask
from pyg_recmetrics.utils import warn


class ModelRecommender(ListRecommender):
    """Ranks by what a model recommends.

    If it is given items, it numbers them from `num_users` on, as they are given. If not, it numbers
    them from zero on, as lists do.

    Args:
        recommend (callable): The `recommend`, which has its edges already, and is asked by
            `src_index`, `dst_index` and `k`.
        task (RankingTask): The task.
        takes_items (bool): Whether it is given items.
    """

    def __init__(self, recommend: Recommend, task: RankingTask, takes_items: bool) -> None:
        num_excluded = task.num_items - task.num_candidates[task.users]
        super().__init__(task, int(num_excluded.max()) if num_excluded.numel() else 0)
        # The scores of a model take up to 8 bytes, and the number of an edge 4.
        self.bytes_per_pair += 12
        self.recommend, self.num_users = recommend, task.num_users
        self.first_item = task.num_users if takes_items else 0
        # Behind what all lists note: whether each item was returned, and a place for none.
        self.noted = torch.zeros(task.num_items + 2, dtype=torch.int8, device=task.device)
        items = torch.arange(task.num_items, device=task.device)
        if takes_items and task.candidates is not None and task.candidates.dim() == 1:
            items = task.candidates
        self.dst_index = items + self.first_item
        self.num_wrong = torch.zeros((), dtype=torch.long, device=task.device)

    def find(self, chunk: Chunk, k: int) -> tuple[Ranks, Tensor]:
        num_not_asked = self.num_items - self.dst_index.numel()
        items = self._ask(chunk.users, chunk.num_needed - num_not_asked)
        # A user has the places that are needed for it alone, whatever other users are asked about.
        num_own = chunk.depth + self.num_items - self.num_candidates[chunk.users] - num_not_asked
        place = torch.arange(1, items.size(1) + 1, device=items.device)
        is_own = place <= num_own.unsqueeze(1)
        items.masked_fill_(~is_own, -1)
        is_excluded = chunk.adjacency().gather(1, items.clamp(min=0)) & (items >= 0)
        best = self.keep(items, is_own & ~is_excluded, chunk, k)

        row, item = chunk.truth.pairs
        shape, num_edges = (chunk.users.numel(), self.num_items + 1), item.numel()
        edge_of = torch.full(shape, num_edges, dtype=torch.int, device=item.device)
        edge_of[row, item] = torch.arange(num_edges, dtype=torch.int, device=item.device)
        edge = edge_of.gather(1, best % (self.num_items + 1)).long()  # -1 is in the last column
        place = place[: best.size(1)].expand_as(best)
        rank = torch.full((num_edges + 1,), NOT_RETRIEVED, device=item.device)
        rank = rank.scatter_(0, edge.flatten(), place.flatten())[:num_edges]
        return Ranks.unknown(item)._replace(rank=rank), best

    def _ask(self, users: Tensor, k: int) -> Tensor:
        """Returns local ids of items: `[len(users), ?]`."""
        k = min(k, self.dst_index.numel())
        with name_users_in_errors(users):
            # A model may overwrite what it is given.
            answer = self.recommend(src_index=users.clone(), dst_index=self.dst_index.clone(), k=k)
        answer = check_integers(answer, "recommender.recommend()")
        if answer.dim() != 2 or answer.size(0) != users.numel() or answer.size(1) == 0:
            raise ValueError(
                f"'recommender.recommend()' needs to return shape [{users.numel()}, k] with k > 0 "
                f"(got {list(answer.shape)})"
            )
        check_device(answer, "recommender.recommend()", users.device, "task")
        items = (answer.long() - self.first_item).masked_fill_(answer == -1, -1)
        is_wrong = (answer != -1) & ((items < 0) | (items >= self.num_items))
        self.num_wrong += is_wrong.sum()
        items.masked_fill_(is_wrong, -1)
        self.noted[1:][items] = 1  # of no item at the end
        return items

    def check(self) -> None:
        if num_wrong := int(self.num_wrong):
            first, end = self.first_item, self.first_item + self.num_items
            raise ValueError(
                f"'recommender.recommend()' needs to return item ids in [{first}, {end}), or -1: a "
                f"model that is given items numbers them from 'num_users' on, any other from 0 on "
                f"(got {num_wrong} ids outside)"
            )

    def warn(self) -> None:
        super().warn()
        returned = self.noted[1:-1].nonzero()
        if self.first_item == 0 and begins_behind_users(returned, self.num_users, self.num_items):
            warn(
                f"'recommender.recommend()' returned no item below {self.num_users}, the number of "
                f"users. A model that is not given items numbers them from 0 on: subtract "
                f"'num_users' if it numbers them from there on"
            )
