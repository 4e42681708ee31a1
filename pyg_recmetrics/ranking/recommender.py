"""The interface of a recommender: the best items for the users of a chunk."""

from abc import ABC, abstractmethod

from torch import Tensor

from pyg_recmetrics.kernels.counting import count_ranks
from pyg_recmetrics.kernels.scratch import Scratch
from pyg_recmetrics.kernels.sorting import top_k
from pyg_recmetrics.ranking.schedule import Chunk


class Recommender(ABC):
    """Recommends items to the users of a chunk."""

    #: How many bytes a chunk takes for each of its users and items, besides the adjacency.
    bytes_per_pair: int

    #: How many items a chunk looks at at once; `None` for all of them.
    items_at_once: int | None = None

    #: How long the lists can be at most; `None` if they can be as long as wanted.
    max_depth: int | None = None

    @abstractmethod
    def top_k(self, chunk: Chunk, k: int) -> Tensor:
        """Returns the ids of the `k` best items `[num_rows, k]`, best first.

        `-1` stands where no item is left.
        """

    def check(self) -> None:  # noqa: B027 (there may be nothing to check)
        """Raises if the recommender returned invalid scores or ids.

        Chunks only count them, on the device. The count is looked at once, after the last chunk.
        """


class ScoreRecommender(Recommender):
    """Ranks by a score for every user and item; equal scores by the lower item id."""

    @abstractmethod
    def ranks(self, chunk: Chunk) -> Tensor:
        """Returns the rank of the truth edges of a chunk, however deep: `[num_edges]`."""

    @abstractmethod
    def is_constant(self, chunk: Chunk) -> Tensor:
        """Returns which users have the same score for all candidates: `[num_rows]`."""


class DenseRecommender(ScoreRecommender):
    """Computes the scores of all items for the users of a chunk at once."""

    #: The score takes 4 or 8 bytes, the key 8 and the sign bits 4; the rest is what sorting takes.
    bytes_per_pair = 24

    @abstractmethod
    def scores(self, users: Tensor, scratch: Scratch) -> Tensor:
        """Returns finite scores `[len(users), num_items]` that may be overwritten."""

    def top_k(self, chunk: Chunk, k: int) -> Tensor:
        return top_k(self._masked_scores(chunk), k, chunk.scratch)

    def ranks(self, chunk: Chunk) -> Tensor:
        truth = chunk.truth
        return count_ranks(self._masked_scores(chunk), truth.row, truth.item, chunk.scratch)

    def is_constant(self, chunk: Chunk) -> Tensor:
        scores = self.scores(chunk.users, chunk.scratch)
        highest = chunk.mask_(scores, -float("inf")).amax(dim=1)
        return highest <= chunk.mask_(scores, float("inf")).amin(dim=1)

    def _masked_scores(self, chunk: Chunk) -> Tensor:
        return chunk.mask_(self.scores(chunk.users, chunk.scratch), -float("inf"))
