"""Models that are asked by their `recommend`."""

import torch
from torch import Tensor

from pyg_recmetrics import processes
from pyg_recmetrics.checks import check_device, check_integers
from pyg_recmetrics.messages import warn
from pyg_recmetrics.ranking.found_model import Recommend
from pyg_recmetrics.ranking.schedule import Chunk
from pyg_recmetrics.ranking.scores_and_lists import ListRecommender, name_users_in_errors
from pyg_recmetrics.task import RankingTask

#: What the scores of a model take at most, which it computes for all items.
_BYTES_PER_SCORE = 8


class ModelRecommender(ListRecommender):
    """Asks a model's `recommend`, which numbers its items from `num_users` on.

    Args:
        recommend (callable): The `recommend`, with its edges.
        task (RankingTask): The task.
    """

    def __init__(self, recommend: Recommend, task: RankingTask) -> None:
        max_excluded = int((task.num_items - task.num_candidates[task.users]).max())
        super().__init__(task, max_excluded)
        # A model may propagate whenever it is asked, so the fewer calls, the better.
        self.bytes_per_pair += _BYTES_PER_SCORE
        self.recommend = recommend
        self.num_users = task.num_users
        items = torch.arange(task.num_items, device=task.device)
        if task.candidates is not None and task.candidates.dim() == 1:
            items = task.candidates
        self.dst_index = items + task.num_users
        self.num_candidates = task.num_candidates
        self.device = task.device
        # Answers that are shorter than was asked for: how many items were asked for at most, how
        # many came at least, and whether anybody has fewer than are needed because of that.
        self.most_asked, self.fewest_returned = 0, task.num_items
        self.is_short = torch.zeros((), dtype=torch.bool, device=task.device)

    def top_k(self, chunk: Chunk, k: int) -> Tensor:
        num_left_out = self.num_items - self.dst_index.numel()
        num_asked = min(chunk.num_needed - num_left_out, self.dst_index.numel())
        answer = self._ask(chunk.users, num_asked)
        lists = self.best_allowed(answer, chunk, k)
        if answer.size(1) < num_asked:
            self.most_asked = max(self.most_asked, num_asked)
            self.fewest_returned = min(self.fewest_returned, answer.size(1))
            num_needed = chunk.depth.minimum(self.num_candidates[chunk.users])
            self.is_short |= ((lists >= 0).sum(dim=1) < num_needed).any()
        return lists

    def check(self) -> None:
        if num_wrong := int(self.num_wrong):
            first, end = self.num_users, self.num_users + self.num_items
            raise ValueError(
                f"'recommender.recommend()' needs to return item ids in [{first}, {end}), since "
                f"items are numbered from 'num_users' on, or -1 (got {num_wrong} ids outside)"
            )

    def warn(self) -> None:
        seen_here = [int(self.is_short), self.most_asked, -self.fewest_returned]
        seen = torch.tensor(seen_here, device=self.device)
        processes.take_largest(seen)
        is_short, most_asked, fewest_returned = seen.tolist()
        if is_short:
            warn(
                f"'recommender.recommend()' returned {-fewest_returned} of {most_asked} requested "
                f"items. Missing items count as not retrieved, so values for the largest k or R "
                f"are too low"
            )

    def _ask(self, users: Tensor, k: int) -> Tensor:
        """Returns local ids of items: `[len(users), ?]`."""
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
        # The id of a user is as wrong as one past the last item; -1 stays what it is.
        items = (answer - self.num_users).masked_fill_(answer < self.num_users, self.num_items)
        return items.masked_fill_(answer == -1, -1)
