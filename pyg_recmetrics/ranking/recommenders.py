"""Recommenders that score by a function, or have lists at hand."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
import torch.nn.functional as F
from torch import Tensor

from pyg_recmetrics.checks import check_device, check_scores, check_shape
from pyg_recmetrics.kernels.lists import without_repeats
from pyg_recmetrics.kernels.scratch import Scratch
from pyg_recmetrics.ranking.recommender import DenseRecommender, Recommender
from pyg_recmetrics.ranking.schedule import Chunk
from pyg_recmetrics.ranking.score_mask import ScoreMask
from pyg_recmetrics.task import RankingTask
from pyg_recmetrics.wording import list_some


class FunctionRecommender(DenseRecommender):
    """Scores by a function `users -> scores [len(users), num_items]`."""

    mask: ScoreMask

    def __init__(self, function: Callable[[Tensor], Tensor], task: RankingTask) -> None:
        self.function = function
        self.num_items = task.num_items
        self.mask = ScoreMask(task)

    def scores(self, users: Tensor, scratch: Scratch) -> Tensor:
        with name_users_in_errors(users):
            # A function may overwrite what it is given.
            scores = check_scores(self.function(users.clone()), "recommender")
        check_shape(
            scores, "recommender", (users.numel(), self.num_items), "scores [len(users), num_items]"
        )
        check_device(scores, "recommender", users.device, "task")
        dtype = torch.promote_types(scores.dtype, torch.float32)
        return scratch("function.scores", tuple(scores.shape), dtype).copy_(scores)

    def check(self) -> None:
        self.mask.check()

    def _masked_scores(self, chunk: Chunk) -> Tensor:
        scores = self.scores(chunk.users, chunk.scratch)
        lowest, _ = self.mask.check_scores(scores)
        chunk.mask_(scores, -torch.inf)
        # A CPU sees at once whether there is anything to count. A GPU counts without waiting.
        if scores.device.type != "cpu" or bool(lowest.isneginf()):
            num_candidates = (scores > -torch.inf).sum(dim=1)
            self.mask.note(chunk, num_candidates, scores[chunk.truth.row, chunk.truth.item])
        return scores


class ListRecommender(Recommender):
    """Recommends from lists of items, after dropping the excluded ones."""

    #: What a model takes that scores all items and sorts them.
    bytes_per_pair = 24

    def __init__(self, task: RankingTask) -> None:
        self.num_items = task.num_items
        self.num_wrong = torch.zeros((), dtype=torch.long, device=task.device)

    def best_allowed(self, items: Tensor, chunk: Chunk, k: int) -> Tensor:
        """Returns the `k` best items `[num_rows, k]` out of longer lists of local ids.

        `-1` is no item.
        """
        is_wrong = (items < -1) | (items >= self.num_items)
        self.num_wrong += is_wrong.sum()
        items = items.masked_fill(is_wrong, -1)
        # A stable sort moves what is dropped to the end, and keeps the order of the others.
        is_dropped, order = chunk.must_not_retrieve(items).sort(dim=1, stable=True)
        items = items.gather(1, order).masked_fill_(is_dropped, -1)[:, :k]
        return without_repeats(F.pad(items, (0, k - items.size(1)), value=-1))

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

    def top_k(self, chunk: Chunk, k: int) -> Tensor:
        return self.best_allowed(self.pred_index_mat[chunk.users].long(), chunk, k)


@contextmanager
def name_users_in_errors(users: Tensor) -> Iterator[None]:
    """Adds to an error the users for whom it was raised, and leaves its type as it is."""
    try:
        yield
    except Exception as error:
        named = list_some([str(user) for user in users.tolist()])
        note = f"(while {users.numel()} users were ranked: {named})"
        if add_note := getattr(error, "add_note", None):  # since Python 3.11
            add_note(note)
        elif error.args and isinstance(error.args[0], str):
            error.args = (f"{error.args[0]} {note}", *error.args[1:])
        raise
