"""The interface of a recommender: the best items for the users of a chunk."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import NamedTuple

from torch import Tensor

from pyg_recmetrics.kernels.exact.ranks import Ranks
from pyg_recmetrics.ranking.schedule import Chunk
from pyg_recmetrics.ranking.score_mask import ScoreMask


class Recommender(ABC):
    """Recommends items to the users of a chunk."""

    #: What ranks, in words.
    in_words: str

    #: How many bytes a chunk takes for each of its users and items, besides the adjacency.
    bytes_per_pair: int

    #: How many bytes the scores of a chunk take for each of its users and items, before anything
    #: is done with them.
    bytes_per_score = 0

    #: How many items a chunk looks at at once; `None` for all of them.
    items_at_once: int | None = None

    #: How long the lists can be at most; `None` if they can be as long as wanted.
    max_depth: int | None = None

    #: How long the lists have to be for what is measured. Users are ranked down to their own number
    #: of relevant items in any case, but only some metrics look there.
    needed_depth: int

    #: Whether it is known how many candidates score higher than a relevant item, or the same.
    has_scores = False

    #: What its scores keep out of the rankings; `None` if they keep nothing out.
    mask: ScoreMask | None = None

    #: The state of the model behind it, and the edges it propagates over, if it has a state.
    state: Mapping[str, Tensor] | None = None

    #: Numbers that are warned about in the end: the largest of all chunks and processes count.
    noted: Tensor | None = None

    @abstractmethod
    def answer(self, users: Tensor) -> object:
        """Returns what tells it from other recommenders: its tables, or what it says of users."""

    @abstractmethod
    def top_k(self, chunk: Chunk, k: int) -> Tensor:
        """Returns the ids of the `k` best items `[num_rows, k]`, best first.

        `-1` stands where no item is left.
        """

    def check(self) -> None:  # noqa: B027 (there may be nothing to check)
        """Raises if the recommender returned invalid scores or ids.

        Chunks only count them, on the device. The count is looked at once, after the last chunk.
        """

    def warn(self) -> None:  # noqa: B027 (there may be nothing to warn about)
        """Warns if the recommender left out what it was asked for."""


class BestItems(NamedTuple):
    """The best items of the users of a chunk, with numbers in the order of their scores.

    Attributes:
        item: Item ids of shape `[num_rows, k]`, best first; `-1` where no item is left.
        key: A number for the score of each of these items, of shape `[num_rows, k]`.
        truth_key: A number for the score of every truth edge, of shape `[num_edges]`.
    """

    item: Tensor
    key: Tensor
    truth_key: Tensor


class ScoreRecommender(Recommender):
    """Ranks by a score for every user and item; equal scores by the lower item id."""

    has_scores = True

    @abstractmethod
    def best(self, chunk: Chunk, k: int) -> BestItems:
        """Returns the `k` best items with their scores, and the scores of the truth edges."""

    @abstractmethod
    def ranks(self, chunk: Chunk) -> Ranks:
        """Returns the ranks of the truth edges of a chunk, however deep."""

    def top_k(self, chunk: Chunk, k: int) -> Tensor:
        return self.best(chunk, k).item
