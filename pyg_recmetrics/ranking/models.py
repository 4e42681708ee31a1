"""Models that are asked by their `recommend`."""

import torch
from torch import Tensor

from pyg_recmetrics.checks import check_device, check_integers
from pyg_recmetrics.messages import warn
from pyg_recmetrics.ranking.recommend_forms import Recommend
from pyg_recmetrics.ranking.schedule import Chunk
from pyg_recmetrics.ranking.scores_and_lists import ListRecommender, name_users_in_errors
from pyg_recmetrics.task import RankingTask

#: What the scores of a model take at most, which it computes for all items.
_BYTES_PER_SCORE = 8


#: How many items a model is asked for, to tell it from another.
_NUM_ASKED = 10

#: What is noted about answers besides repeats. Of answers that are shorter than was asked for:
#: whether anybody has fewer items than are needed because of that, how many were asked for at most,
#: and how many came at least. Of all answers: the lowest id of an item. What counts is the largest,
#: and what counts by its smallest is noted with a minus.
_IS_SHORT, _MOST_ASKED, _FEWEST_RETURNED, _LOWEST = range(1, 5)


class ModelRecommender(ListRecommender):
    """Asks a model's `recommend`.

    If it is given items, it numbers them from `num_users` on, as they are given. If not, it numbers
    them from zero on, as lists do. If it is not given users, it is asked once about all of them.

    Args:
        recommend (callable): The `recommend`, with its edges.
        task (RankingTask): The task.
        takes_users (bool, optional): Whether it is given users. (default: `True`)
        takes_items (bool, optional): Whether it is given items. (default: `True`)
    """

    def __init__(
        self,
        recommend: Recommend,
        task: RankingTask,
        *,
        takes_users: bool = True,
        takes_items: bool = True,
    ) -> None:
        num_excluded = task.num_items - task.num_candidates[task.users]
        self.max_excluded = int(num_excluded.max()) if num_excluded.numel() else 0
        super().__init__(task, self.max_excluded)
        # A model may propagate whenever it is asked, so the fewer calls, the better.
        self.bytes_per_pair += _BYTES_PER_SCORE
        self.recommend = recommend
        self.num_users = task.num_users
        self.first_item = task.num_users if takes_items else 0
        items = torch.arange(task.num_items, device=task.device)
        if takes_items and task.candidates is not None and task.candidates.dim() == 1:
            items = task.candidates
        self.dst_index = items + self.first_item
        self.takes_users = takes_users
        #: What came when all users were asked about at once, and how many items were asked for.
        self.of_all_users, self.num_asked_of_all = items.new_empty(self.num_users, 0), 0
        self.num_candidates = task.num_candidates
        self.device = task.device
        noted = [0, 0, 0, -task.num_items, -task.num_items]
        self.noted = torch.tensor(noted, device=task.device)

    def answer(self, users: Tensor) -> object:
        k = min(_NUM_ASKED, self.dst_index.numel())
        return self._ask(users, k) if self.takes_users else self._ask_about_all(k)

    def top_k(self, chunk: Chunk, k: int) -> Tensor:
        num_left_out = self.num_items - self.dst_index.numel()
        num_asked = min(chunk.num_needed - num_left_out, self.dst_index.numel())
        answer = self._answer(chunk, num_asked)
        lists = self.best_allowed(answer, chunk, k)
        if answer.size(1) < num_asked:
            num_needed = self.num_candidates[chunk.users].minimum(chunk.depth)
            num_needed = num_needed.clamp_(max=self.needed_depth)
            self.note(_IS_SHORT, ((lists >= 0).sum(dim=1) < num_needed).any())
            self.note(_MOST_ASKED, num_asked)
            self.note(_FEWEST_RETURNED, -answer.size(1))
        return lists

    def check(self) -> None:
        if num_wrong := int(self.num_wrong):
            first, end = self.first_item, self.first_item + self.num_items
            since = (
                "items are numbered from 'num_users' on"
                if first
                else "a model that is not given items numbers them from 0 on"
            )
            raise ValueError(
                f"'recommender.recommend()' needs to return item ids in [{first}, {end}), since "
                f"{since}, or -1 (got {num_wrong} ids outside)"
            )

    def warn(self) -> None:
        super().warn()
        _, is_short, most_asked, fewest_returned, lowest = self.noted.tolist()
        if is_short:
            warn(
                f"'recommender.recommend()' returned {-fewest_returned} of {most_asked} requested "
                f"items. Missing items count as not retrieved, so values for the largest k or R "
                f"are too low"
            )
        if self.first_item == 0 and self.num_users <= -lowest < self.num_items:
            warn(
                f"'recommender.recommend()' returned no item below {self.num_users}, the number of "
                f"users. A model that is not given items numbers them from 0 on: subtract "
                f"'num_users' if it numbers them from there on"
            )

    def _answer(self, chunk: Chunk, k: int) -> Tensor:
        """Returns local ids of items for the users of a chunk: `[num_rows, ?]`."""
        if self.takes_users:
            return self._ask(chunk.users, k)
        if k > self.num_asked_of_all:
            # Of users who are ranked together, the first chunk is the deepest.
            self.num_asked_of_all = min(chunk.max_depth + self.max_excluded, self.num_items)
            self.of_all_users = self._ask_about_all(self.num_asked_of_all)
        return self.of_all_users[chunk.users, :k]

    def _ask_about_all(self, k: int) -> Tensor:
        return self._ask(torch.arange(self.num_users, device=self.device), k)

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
        items = (answer - self.first_item).masked_fill_(answer < self.first_item, self.num_items)
        self.note(_LOWEST, -items.amin())
        return items.masked_fill_(answer == -1, -1)
