"""Recommenders that score by a function, or have lists at hand."""

from abc import abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from torch import Tensor

from pyg_recmetrics.checks import check_device, check_scores, check_shape
from pyg_recmetrics.kernels.entries import Entries
from pyg_recmetrics.kernels.exact.counting import count_ranks
from pyg_recmetrics.kernels.exact.lists import first_kept, without_repeats
from pyg_recmetrics.kernels.exact.ranks import Ranks
from pyg_recmetrics.kernels.exact.sorting import top_k
from pyg_recmetrics.kernels.fast.given_scores import GivenScores
from pyg_recmetrics.messages import list_some, warn
from pyg_recmetrics.ranking.base import BestItems, Recommender, ScoreRecommender
from pyg_recmetrics.ranking.schedule import BYTES_PER_POSITION, Chunk
from pyg_recmetrics.ranking.score_mask import ScoreMask
from pyg_recmetrics.task import RankingTask

#: What to do with integers that are no item ids.
SCORES_ARE_FLOATS = (
    "scores need to be floating-point numbers, as '.float()' or, outside of torch, "
    "'.astype(float)' makes them"
)

#: What to do with integers that are original ids.
IDS_ARE_IN_DICTS = "original ids need to be in a dict, as in dict(zip(task.user_ids, lists))"


class GivenScoresRecommender(ScoreRecommender):
    """Ranks by scores that are given for all items.

    Args:
        task (RankingTask): The task.
    """

    #: The score takes 4 or 8 bytes, the key 8 and the sign bits 4; the rest is what sorting takes.
    bytes_per_pair = 24

    mask: ScoreMask

    def __init__(self, task: RankingTask) -> None:
        self.task = task
        self.mask = ScoreMask(task)

    @abstractmethod
    def given(self, users: Tensor) -> tuple[Tensor, Tensor]:
        """Returns a matrix of scores, which is only read, and the row of each user in it."""

    def answer(self, users: Tensor) -> object:
        scores, row = self.given(users)
        return scores[row]

    def best(self, chunk: Chunk, k: int) -> BestItems:
        item, key, keys = top_k(self._masked_scores(chunk), k, chunk.scratch)
        return BestItems(item, key, keys[chunk.truth.pairs])

    def ranks(self, chunk: Chunk) -> Ranks:
        scores, pairs = self._masked_scores(chunk), chunk.truth.pairs
        ranked = Entries(*pairs, scores.size(0))
        return count_ranks([(0, scores)], ranked, scores[pairs], chunk.scratch)

    def fast_scores(self, chunk: Chunk) -> GivenScores:
        """Returns the scores of the users of a chunk, to be searched."""
        return GivenScores(*self.given(chunk.users), self.task.candidates)

    def learn_from(self, scores: GivenScores, chunk: Chunk) -> None:
        """Notes what a search came across."""
        seen, of_truth = chunk.seen, scores.exactly(*chunk.truth.pairs)
        self.mask.note_highest(scores.highest)
        num_missing = scores.num_missing
        if bool(num_missing.any()):
            is_missing = scores.exactly(*seen.pairs).isneginf()
            is_missing &= scores.column[seen.item] >= 0
            num_missing = num_missing.scatter_add(0, seen.row, -is_missing.long())
        self.mask.note(chunk, self.task.num_candidates[chunk.users] - num_missing, of_truth)

    def check(self) -> None:
        self.mask.check()

    def _masked_scores(self, chunk: Chunk) -> Tensor:
        matrix, row = self.given(chunk.users)
        dtype = torch.promote_types(matrix.dtype, torch.float32)
        scores = chunk.scratch("given.scores", (row.numel(), matrix.size(1)), dtype)
        chunk.ignore_(scores.copy_(matrix[row]))
        lowest = self.mask.check_scores(scores)
        chunk.mask_(scores, -torch.inf)
        # A CPU sees at once whether there is anything to count. A GPU counts without waiting.
        if scores.device.type != "cpu" or bool(lowest.isneginf()):
            num_candidates = (scores > -torch.inf).sum(dim=1)
            self.mask.note(chunk, num_candidates, scores[chunk.truth.pairs])
        return scores


class MatrixRecommender(GivenScoresRecommender):
    """Ranks by a matrix of scores `[num_users, num_items]`."""

    in_words = "a matrix of scores"

    def __init__(self, matrix: Tensor, task: RankingTask) -> None:
        super().__init__(task)
        self.matrix = matrix

    def given(self, users: Tensor) -> tuple[Tensor, Tensor]:
        return self.matrix, users

    def scores_of_pairs(self, user: Tensor, item: Tensor) -> Tensor:
        """Returns the scores of pairs of a user and an item, of shape `[num_pairs]`."""
        return self.matrix[user, item]


class FunctionRecommender(GivenScoresRecommender):
    """Ranks by a function `users -> scores [len(users), num_items]`."""

    in_words = "a function of users"

    #: What the function returns takes up to 8 bytes.
    bytes_per_score = 8

    def __init__(self, function: Callable[[Tensor], Tensor], task: RankingTask) -> None:
        super().__init__(task)
        self.function = function

    def given(self, users: Tensor) -> tuple[Tensor, Tensor]:
        with name_users_in_errors(users):
            # A function may overwrite what it is given.
            scores = check_scores(self.function(users.clone()), "recommender()")
        shape = (users.numel(), self.task.num_items)
        check_shape(scores, "recommender()", shape, "scores [len(users), num_items]")
        check_device(scores, "recommender()", users.device, "task")
        return scores, torch.arange(users.numel(), device=users.device)


class ListRecommender(Recommender):
    """Recommends from lists of items, after dropping the excluded ones.

    Args:
        task (RankingTask): The task.
        width (int): How long the lists are at most, besides the depth to which users are ranked.

    Attributes:
        noted (torch.Tensor): Whether an item came more than once.
    """

    noted: Tensor

    def __init__(self, task: RankingTask, width: int) -> None:
        self.num_items = task.num_items
        self.bytes_per_pair = BYTES_PER_POSITION * width // task.num_items
        self.num_wrong = torch.zeros((), dtype=torch.long, device=task.device)
        self.noted = torch.zeros(1, dtype=torch.long, device=task.device)
        self.has_ids = task.item_ids is not None

    def best_allowed(self, items: Tensor, chunk: Chunk, k: int) -> Tensor:
        """Returns the `k` best items `[num_rows, k]` out of longer lists of local ids.

        `-1` is no item.
        """
        is_wrong = (items < -1) | (items >= self.num_items)
        self.num_wrong += is_wrong.sum()
        items = items.masked_fill(is_wrong, -1)
        kept = first_kept(items, ~chunk.must_not_retrieve(items), k)
        best = without_repeats(kept)
        self.note(0, (best != kept).any())
        return best

    def note(self, index: int, number: Tensor | int) -> None:
        """Notes a number that is warned about, if it is the largest so far."""
        self.noted[index].clamp_(min=number)

    def check(self) -> None:
        if num_wrong := int(self.num_wrong):
            raise ValueError(
                f"'recommender' needs to hold item ids in [0, {self.num_items}) or -1 "
                f"(got {num_wrong} ids outside); {SCORES_ARE_FLOATS}"
                + (f", and {IDS_ARE_IN_DICTS}" if self.has_ids else "")
            )

    def warn(self) -> None:
        if bool(self.noted[0]):
            warn(
                "'recommender' recommends an item more than once to a user. Only the first place "
                "counts, and the others count as places without an item"
            )


class FixedListRecommender(ListRecommender):
    """Recommends from a matrix `[num_users, K]` of item ids."""

    in_words = "lists of items"

    def __init__(self, pred_index_mat: Tensor, task: RankingTask) -> None:
        super().__init__(task, pred_index_mat.size(1))
        self.pred_index_mat = pred_index_mat
        self.max_depth = pred_index_mat.size(1)

    def answer(self, users: Tensor) -> object:
        return self.pred_index_mat[users]

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
