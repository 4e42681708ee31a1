"""Recommenders that score by the inner product of embeddings.

:mod:`pyg_recmetrics.kernels.exact.scores` says what exactly this product is.
"""

from collections.abc import Iterator
from functools import cached_property

import torch
from torch import Tensor

from pyg_recmetrics.kernels.devices import at_once, copied
from pyg_recmetrics.kernels.entries import Entries
from pyg_recmetrics.kernels.exact.counting import count_ranks
from pyg_recmetrics.kernels.exact.factors import (
    ItemFactors,
    is_moderate,
    largest_number,
    with_column,
)
from pyg_recmetrics.kernels.exact.ranks import Ranks
from pyg_recmetrics.kernels.exact.scores import BoundedFactors, inner_product_matrix, scaled_by_row
from pyg_recmetrics.kernels.exact.sorting import key_of, top_k
from pyg_recmetrics.ranking.base import BestItems, ScoreRecommender
from pyg_recmetrics.ranking.schedule import Chunk

#: How many bytes the embeddings of all items may take in double precision. Larger tables pass
#: through the device in tiles.
MAX_BYTES_OF_ITEMS = 2**30

#: How many items a tile has.
ITEMS_IN_TILE = 2**13


class EmbeddingRecommender(ScoreRecommender):
    """Scores by the inner product of embeddings.

    The embeddings may stay in the memory of the host, or in a file that is mapped into it. Users
    pass through the device chunk by chunk. So do items in tiles, once for every chunk, if their
    table is large. Of the scores of each tile, only the best items so far are kept, or how many are
    above.

    Args:
        user (torch.Tensor): User embeddings of shape `[num_users, dim]`.
        item (torch.Tensor): Item embeddings of shape `[num_items, dim]`.
        bias (torch.Tensor or None): Item biases of shape `[num_items]`.
        device (torch.device): The device to compute on.
        largest (float, optional): See :class:`ItemFactors`. (default: `None`)
        largest_of_user (float, optional): The largest number of users, whatever its sign.
            (default: `None`, it is looked for)
    """

    #: Scores take 4 bytes. Those and the ids beside the best so far take 12, sorting 20.
    bytes_per_pair = 40

    items_at_once: int

    def __init__(
        self,
        user: Tensor,
        item: Tensor,
        bias: Tensor | None,
        device: torch.device,
        largest: float | None = None,
        largest_of_user: float | None = None,
    ) -> None:
        self.user, self.device = user, device
        self.tables = (user, item, bias)
        self._largest_of_user = largest_of_user
        self.items = ItemFactors(item, bias, device, largest)
        self.has_bias = bias is not None
        self.in_words = self.words(self.has_bias)
        num_bytes = self.items.num_items * self.items.dim * torch.double.itemsize
        is_large = num_bytes > at_once(MAX_BYTES_OF_ITEMS, device)
        self.items_at_once = at_once(ITEMS_IN_TILE, device) if is_large else self.items.num_items

    @staticmethod
    def words(has_bias: bool) -> str:
        """Says what ranks, in words."""
        return "embeddings and item biases" if has_bias else "embeddings"

    def answer(self, users: Tensor) -> object:
        return self.tables

    def users(self, users: Tensor) -> Tensor:
        """Returns the scaled embeddings of users, in double precision."""
        user = self.vectors(users)
        return scaled_by_row(
            with_column(user, torch.ones_like(user[:, 0])) if self.has_bias else user
        )

    def vectors(self, users: Tensor) -> Tensor:
        """Returns the embeddings of users as they are."""
        # To index takes several times as long.
        return copied(self.user.index_select(0, users.to(self.user.device)), self.device)

    def given_users(self, users: Tensor) -> Tensor | None:
        """Returns the embeddings of users as they are, in single precision.

        `None` if users or items have numbers that are not in single precision, or need to be
        scaled first.
        """
        if not self._is_moderate:
            return None
        user = self.vectors(users).float()
        return with_column(user, torch.ones_like(user[:, 0])) if self.has_bias else user

    @cached_property
    def _is_moderate(self) -> bool:
        largest = self._largest_of_user
        if largest is None:
            largest = largest_number(self.user)
        return self.items.is_moderate and is_moderate(self.user, largest)

    def scores_of_pairs(self, user: Tensor, item: Tensor) -> Tensor:
        """Returns the scores of pairs of a user and an item, of shape `[num_pairs]`."""
        users, row = user.unique_consecutive(return_inverse=True)
        return self.items.exact_scores(self.users(users), row, item)

    def best(self, chunk: Chunk, k: int) -> BestItems:
        user, items, keys = self.users(chunk.users), [], []
        for first, scores in self._masked_tiles(chunk, user):
            column, key, _ = top_k(scores, min(k, scores.size(1)), chunk.scratch)
            items.append((column + first).masked_fill_(column < 0, -1))
            keys.append(key)
            if len(items) > 1:
                # Where keys are equal, the best so far have lower ids, and stand first.
                item, key = torch.cat(items, dim=1), torch.cat(keys, dim=1)
                key, order = (x[:, :k] for x in key.sort(dim=1, descending=True, stable=True))
                items, keys = [item.gather(1, order)], [key]
        own = self.items.exact_scores(user, *chunk.truth.pairs)
        return BestItems(items[0], keys[0], key_of(own))

    def ranks(self, chunk: Chunk) -> Ranks:
        user = self.users(chunk.users)
        return self.count(chunk, user, self.items.exact_scores(user, *chunk.truth.pairs))

    def count(self, chunk: Chunk, user: Tensor, own: Tensor) -> Ranks:
        """Returns the ranks of truth edges of given scores, however deep."""
        ranked = Entries(*chunk.truth.pairs, user.size(0))
        return count_ranks(self._masked_tiles(chunk, user), ranked, own, chunk.scratch)

    def _tiles(self) -> Iterator[tuple[int, BoundedFactors]]:
        if self.items_at_once >= self.items.num_items:
            yield 0, self._all_items
            return
        for first in range(0, self.items.num_items, self.items_at_once):
            tile = slice(first, first + self.items_at_once)
            yield first, BoundedFactors(self.items.double(tile))

    @cached_property
    def _all_items(self) -> BoundedFactors:
        return BoundedFactors(self.items.double(slice(None)))

    def _masked_tiles(self, chunk: Chunk, user: Tensor) -> Iterator[tuple[int, Tensor]]:
        for first, items in self._tiles():
            yield (
                first,
                chunk.mask_(inner_product_matrix(user, items, chunk.scratch), -torch.inf, first),
            )
