"""Recommenders that score by a function, ask a model, or have their lists at hand."""

from abc import abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch_geometric.typing import Adj

from pyg_recmetrics.checks import check_device, check_integers, check_scores, check_shape
from pyg_recmetrics.kernels.lists import without_repeats
from pyg_recmetrics.kernels.scratch import Scratch
from pyg_recmetrics.ranking.recommender import DenseRecommender, Recommender
from pyg_recmetrics.ranking.schedule import Chunk
from pyg_recmetrics.task import RankingTask

#: How many users an error names.
_MAX_NAMED = 8


class FunctionRecommender(DenseRecommender):
    """Scores by a function `users -> scores [len(users), num_items]`."""

    def __init__(self, function: Callable[[Tensor], Tensor], task: RankingTask) -> None:
        self.function = function
        self.num_items = task.num_items
        self.num_wrong = torch.zeros((), dtype=torch.long, device=task.device)

    def scores(self, users: Tensor, scratch: Scratch) -> Tensor:
        with name_users_in_errors(users):
            scores = check_scores(self.function(users), "recommender")
        check_shape(
            scores, "recommender", (users.numel(), self.num_items), "scores [len(users), num_items]"
        )
        check_device(scores, "recommender", users.device, "task")
        self.num_wrong += (~scores.isfinite()).sum()
        dtype = torch.promote_types(scores.dtype, torch.float32)
        return scratch("function.scores", tuple(scores.shape), dtype).copy_(scores)

    def check(self) -> None:
        if num_wrong := int(self.num_wrong):
            raise ValueError(
                f"'recommender' needs to give finite scores (got {num_wrong} NaN or infinite)"
            )


class ListRecommender(Recommender):
    """Recommends from lists of items, after dropping the excluded ones."""

    #: What a model takes that scores all items and sorts them.
    bytes_per_pair = 24

    def __init__(self, task: RankingTask) -> None:
        self.num_items = task.num_items
        self.num_wrong = torch.zeros((), dtype=torch.long, device=task.device)

    def top_k(self, chunk: Chunk, k: int) -> Tensor:
        items = self.lists(chunk.users, k + chunk.max_excluded)
        is_wrong = (items < -1) | (items >= self.num_items)
        self.num_wrong += is_wrong.sum()
        items = items.masked_fill(is_wrong, -1)
        # A stable sort moves what is dropped to the end, and keeps the order of the others.
        is_dropped, order = chunk.must_not_retrieve(items).sort(dim=1, stable=True)
        items = items.gather(1, order).masked_fill_(is_dropped, -1)[:, :k]
        return without_repeats(F.pad(items, (0, k - items.size(1)), value=-1))

    @abstractmethod
    def lists(self, users: Tensor, k: int) -> Tensor:
        """Returns at least `k` local item ids for every user, or all there are: `[len(users), ?]`.

        `-1` is no item.
        """

    def check(self) -> None:
        if num_wrong := int(self.num_wrong):
            raise ValueError(
                f"'recommender' needs to recommend item ids in [0, {self.num_items}) or -1 "
                f"(got {num_wrong} others)"
            )


class FixedListRecommender(ListRecommender):
    """Recommends from a matrix `[num_users, K]` of item ids."""

    def __init__(self, pred_index_mat: Tensor, task: RankingTask) -> None:
        super().__init__(task)
        self.pred_index_mat = pred_index_mat
        self.max_depth = pred_index_mat.size(1)

    def lists(self, users: Tensor, k: int) -> Tensor:
        return self.pred_index_mat[users].long()


class ModelRecommender(ListRecommender):
    """Asks a model's `recommend`, which numbers its items from `num_users` on."""

    def __init__(
        self, model: Any, edge_index: Adj, edge_weight: Tensor | None, task: RankingTask
    ) -> None:
        super().__init__(task)
        self.model = model
        self.edges = (edge_index, edge_weight)
        self.num_users = task.num_users
        items = torch.arange(task.num_items, device=task.device)
        if task.candidates is not None and task.candidates.dim() == 1:
            items = task.candidates
        self.dst_index = items + task.num_users

    def lists(self, users: Tensor, k: int) -> Tensor:
        edge_index, edge_weight = self.edges
        num_left_out = self.num_items - self.dst_index.numel()
        with name_users_in_errors(users):
            recommended = self.model.recommend(
                edge_index,
                edge_weight,
                src_index=users,
                dst_index=self.dst_index,
                k=min(k - num_left_out, self.dst_index.numel()),
            )
        recommended = check_integers(recommended, "recommender.recommend()")
        if recommended.dim() != 2 or recommended.size(0) != users.numel():
            raise ValueError(
                f"'recommender.recommend()' needs to return shape [{users.numel()}, k] "
                f"(got {list(recommended.shape)})"
            )
        check_device(recommended, "recommender.recommend()", users.device, "task")
        # The id of a user is as wrong as one past the last item; -1 stays what it is.
        items = (recommended - self.num_users).masked_fill_(
            recommended < self.num_users, self.num_items
        )
        return items.masked_fill_(recommended == -1, -1)


@contextmanager
def name_users_in_errors(users: Tensor) -> Iterator[None]:
    """Adds to an error the users for whom it was raised, and leaves its type as it is."""
    try:
        yield
    except Exception as error:
        first = ", ".join(str(user) for user in users[:_MAX_NAMED].tolist())
        rest = ", ..." if users.numel() > _MAX_NAMED else ""
        note = f"(while {users.numel()} users were ranked: {first}{rest})"
        if add_note := getattr(error, "add_note", None):  # since Python 3.11
            add_note(note)
        elif error.args and isinstance(error.args[0], str):
            error.args = (f"{error.args[0]} {note}", *error.args[1:])
        raise
