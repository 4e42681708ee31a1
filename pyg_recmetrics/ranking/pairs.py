"""A scorer of pairs, for models that cannot score all items of a user cheaply."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from pyg_recmetrics.checks import check_device, check_positive_integer, check_scores, check_shape
from pyg_recmetrics.frozen import settle
from pyg_recmetrics.kernels.exact.ranks import Ranks, ranks_within_rows
from pyg_recmetrics.ranking.base import Recommender
from pyg_recmetrics.ranking.schedule import Chunk
from pyg_recmetrics.ranking.score_mask import ScoreMask
from pyg_recmetrics.ranking.scores_and_lists import name_users_in_errors
from pyg_recmetrics.task import RankingTask
from pyg_recmetrics.task.edges import contains


@dataclass(frozen=True, eq=False)
class PairScorer:
    r"""A recommender that scores pairs of a user and an item, such as a model with an MLP on top.

    It is asked for the candidates of each user, without what the user has seen, and for no other
    pairs. With few `candidates` in the :class:`RankingTask`, this takes a fraction of the time that
    the scores of all items would take. Each pair is asked for once.

    Args:
        function (callable): Takes user ids and item ids of shape `[num_pairs]`, and returns the
            score of each pair, higher is better, of shape `[num_pairs]`: floating-point numbers
            that are finite, or `-inf` for items that must not be retrieved. Ids are those of the
            task. A module is put in evaluation mode, also if the function is one of its methods.
        batch_size (int, optional): The largest number of pairs that the function is given at once.
            (default: `65536`)

    Raises:
        TypeError: If `function` cannot be called.
        ValueError: If `batch_size` is not a positive integer.

    Example:
        >>> import torch
        >>> from pyg_recmetrics import PairScorer, RankingTask, evaluate
        >>> truth, candidates = torch.tensor([[0], [2]]), torch.tensor([[0, 0], [1, 2]])
        >>> task = RankingTask(truth, num_users=1, num_items=1000, candidates=candidates)
        >>> scorer = PairScorer(lambda user, item: -(item - 3.0).abs())
        >>> evaluate(scorer, task, "mrr@10")["mrr@10"]
        1.0
    """

    function: Callable[[Tensor, Tensor], Tensor]
    batch_size: int = 2**16

    def __post_init__(self) -> None:
        if not callable(self.function):
            raise TypeError(
                f"'function' needs to be a function of users and items "
                f"(got {type(self.function).__name__})"
            )
        settle(self, batch_size=check_positive_integer(self.batch_size, "batch_size"))


class PairRecommender(Recommender):
    """Ranks by the scores of pairs: of all candidates of each user, and of nothing else.

    Args:
        scorer (PairScorer): What scores the pairs.
        task (RankingTask): The task.
        mask (ScoreMask, optional): Where to note scores of `-inf`. (default: `None`, a new mask)
    """

    has_scores = True
    in_words = "a function of pairs"

    #: Ids and keys take 40 bytes, the score takes up to 8, and sorting takes the rest.
    bytes_per_pair = 128

    mask: ScoreMask

    def __init__(
        self, scorer: PairScorer, task: RankingTask, mask: ScoreMask | None = None
    ) -> None:
        self.scorer = scorer
        self.num_items, self.truth = task.num_items, task.truth
        self.mask = ScoreMask(task) if mask is None else mask
        self.items = torch.arange(task.num_items, device=task.device)
        num_asked = task.num_items
        if task.candidates is not None and task.candidates.dim() == 1:
            self.items, num_asked = task.candidates, task.candidates.numel()
        elif task.candidates is not None:
            num_asked = int(torch.bincount(task.candidates[0]).max())
        self.items_at_once = num_asked

    def answer(self, users: Tensor) -> object:
        user, item = self.truth[:, torch.isin(self.truth[0], users)]
        return self._scores(user, item)

    def top_k(self, chunk: Chunk, k: int) -> Tensor:
        return self.find(chunk, k)[1]

    def find(self, chunk: Chunk, k: int) -> tuple[Ranks, Tensor]:
        """Returns the ranks of the truth edges of a chunk, and the `k` best items of its users."""
        row, item = self._pairs(chunk)
        with name_users_in_errors(chunk.users):
            score = self._scores(chunk.users[row], item)
        ranks = ranks_within_rows(row, score)
        is_candidate = score > -torch.inf
        # Everything beyond the end of the lists goes to one more column.
        lists = torch.full((chunk.users.numel(), k + 1), -1, device=item.device)
        column = (ranks.rank - 1).clamp(max=k).masked_fill_(~is_candidate, k)
        lists[row, column] = item
        of_truth = torch.searchsorted(
            row * self.num_items + item, chunk.truth.row * self.num_items + chunk.truth.item
        )
        num_candidates = torch.zeros_like(chunk.users)
        num_candidates.scatter_add_(0, row, is_candidate.long())
        self.mask.note(chunk, num_candidates, score[of_truth])
        return Ranks(*(found[of_truth] for found in ranks)), lists[:, :k]

    def check(self) -> None:
        self.mask.check()

    def _pairs(self, chunk: Chunk) -> tuple[Tensor, Tensor]:
        """Returns the rows and the items of the candidates of a chunk, sorted by both."""
        if chunk.candidates is not None:
            row, item = chunk.candidates.row, chunk.candidates.item
        else:
            rows = torch.arange(chunk.users.numel(), device=self.items.device)
            row = rows.repeat_interleave(self.items.numel())
            item = self.items.repeat(chunk.users.numel())
        seen = torch.stack([chunk.seen.row, chunk.seen.item])
        is_seen = contains(seen, torch.stack([row, item]), self.num_items)
        # As their number is known, the others can be taken without waiting for the device.
        is_asked = is_seen.argsort(stable=True)[: chunk.num_candidates]
        return row[is_asked], item[is_asked]

    def _scores(self, user: Tensor, item: Tensor) -> Tensor:
        batch_size = self.scorer.batch_size
        batches = zip(user.split(batch_size), item.split(batch_size), strict=True)
        scores = [self._ask(users, items) for users, items in batches if items.numel()]
        return torch.cat(scores) if scores else torch.empty(0, device=item.device)

    def _ask(self, user: Tensor, item: Tensor) -> Tensor:
        # A function may overwrite what it is given.
        score = check_scores(self.scorer.function(user.clone(), item.clone()), "recommender()")
        check_shape(score, "recommender()", (user.numel(),), "scores [num_pairs]")
        check_device(score, "recommender()", user.device, "task")
        self.mask.check_scores(score)
        return score.clone()  # since a function may use its own tensor for the next batch
