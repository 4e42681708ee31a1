"""What scores of `-inf` keep out of the rankings: these items are never retrieved."""

import torch
from torch import Tensor

from pyg_recmetrics.kernels.exact.ranks import Ranks
from pyg_recmetrics.messages import warn
from pyg_recmetrics.ranking.schedule import Chunk
from pyg_recmetrics.task import RankingTask


class ScoreMask:
    """Collects, chunk by chunk, which candidates have a score of `-inf`.

    It counts on the device. The counts are looked at once, after the last chunk.

    Args:
        task (RankingTask): The task.

    Attributes:
        num_candidates (torch.Tensor): How many items each user can be recommended, of shape
            `[num_users]`. For users without truth, scores do not count.
        is_masked (torch.Tensor): Which truth edges can never be retrieved, of shape `[num_edges]`.
        allows_empty (bool): Whether a user with truth may be left without a candidate, such as one
            whom a fitted model does not know.
    """

    def __init__(self, task: RankingTask) -> None:
        self.task, self.allows_empty = task, False
        self.num_candidates = task.num_candidates.clone()
        self.is_masked = torch.zeros_like(task.truth[1])
        self._is_wrong = torch.zeros((), dtype=torch.bool, device=task.device)

    def check_scores(self, scores: Tensor) -> Tensor:
        """Notes scores that are NaN or `inf`. Returns the lowest of all."""
        # To count what is wrong would take longer than to rank.
        lowest, highest = scores.aminmax()
        self.note_highest(highest)
        return lowest

    def note_highest(self, highest: Tensor) -> None:
        """Notes the highest of some scores: NaN or `inf` if one of them is."""
        self._is_wrong |= highest.isnan() | highest.isposinf()

    def note(self, chunk: Chunk, num_candidates: Tensor, of_truth: Tensor) -> None:
        """Notes the candidates of the users of a chunk whose scores are not `-inf`.

        Args:
            chunk (Chunk): The chunk.
            num_candidates (torch.Tensor): How many each user has, of shape `[num_rows]`.
            of_truth (torch.Tensor): The scores of the truth edges, of shape `[num_edges]`.
        """
        self.num_candidates[chunk.users] = num_candidates
        self.is_masked[chunk.truth.index] = of_truth.isneginf().long()

    def check(self) -> None:
        """Raises if there are scores that nothing can be ranked by."""
        if bool(self._is_wrong):
            raise ValueError(
                "'recommender' needs to give scores that are finite, or '-inf' for items that must "
                "not be retrieved (got NaN or 'inf')"
            )
        # A user without truth may be left without an item. Only lists look at such users.
        is_empty = (self.num_candidates == 0) & (self.task.num_candidates > 0)
        is_empty &= self.task.degree > 0
        if not self.allows_empty and (num_empty := int(is_empty.sum())):
            first = int(is_empty.nonzero()[0])
            raise ValueError(
                f"'recommender' needs to give every user a candidate with a finite score (got only "
                f"'-inf' for {num_empty} users, such as user {first})"
            )

    @property
    def num_masked(self) -> Tensor | None:
        """How many items of each user have such a score, `[num_users]`; `None` if none has."""
        num_masked = self.task.num_candidates - self.num_candidates
        return num_masked if bool(num_masked.any()) else None

    def apply(self, ranks: Ranks) -> None:
        """Leaves truth edges that can never be retrieved out of the ranks."""
        # Users without truth are looked at only if lists are kept, which must not matter here.
        counts = (self.num_candidates, self.task.num_candidates)
        self.num_candidates = torch.where(self.task.degree > 0, *counts)
        ranks.leave_out(self.is_masked.bool())

    def warn(self) -> None:
        """Warns of truth edges that can never be retrieved."""
        if num_masked := int(self.is_masked.sum()):
            warn(
                f"{num_masked} of {self.is_masked.numel()} ground-truth edges have a score of "
                f"'-inf': they can never be retrieved, and count as missed"
            )
