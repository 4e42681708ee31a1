"""Recommenders that score by the inner product of embeddings.

:mod:`pyg_recmetrics.kernels.scores` says what exactly this product is.

A bias is appended to the embedding of its item, as one more dimension in which every user has a
one.
"""

from collections.abc import Iterator
from functools import cached_property

import torch
from torch import Tensor

from pyg_recmetrics.kernels.counting import count_above_and_tied, count_ties_before
from pyg_recmetrics.kernels.ranks import Ranks
from pyg_recmetrics.kernels.scores import (
    BoundedFactors,
    inner_product_matrix,
    inner_products,
    scaled,
    scaled_by_all,
    scaled_by_row,
)
from pyg_recmetrics.kernels.scratch import Scratch
from pyg_recmetrics.kernels.sorting import top_k
from pyg_recmetrics.ranking.recommender import BestItems, DenseRecommender, ScoreRecommender
from pyg_recmetrics.ranking.schedule import Chunk

#: How many numbers of the embeddings of pairs are held at once.
_NUM_EMBEDDED = 2**22


class EmbeddingRecommender(DenseRecommender):
    """Scores by the inner product of embeddings.

    Args:
        user (torch.Tensor): User embeddings of shape `[num_users, dim]`.
        item (torch.Tensor): Item embeddings of shape `[num_items, dim]`.
        bias (torch.Tensor, optional): Item biases of shape `[num_items]`. (default: `None`)
    """

    def __init__(self, user: Tensor, item: Tensor, bias: Tensor | None = None) -> None:
        self.user = user if bias is None else _with_ones(user)
        self.item = scaled_by_all(item if bias is None else _with_column(item, bias))

    def scores(self, users: Tensor, scratch: Scratch) -> Tensor:
        user = scaled_by_row(self.user[users])
        return inner_product_matrix(user, self._bounded_item, scratch)

    @cached_property
    def _bounded_item(self) -> BoundedFactors:
        return BoundedFactors(self.item)


class TiledRecommender(ScoreRecommender):
    """Scores by the inner product of embeddings that never are on the device as a whole.

    The embeddings may stay in the memory of the host, or in a file that is mapped into it. Items
    pass through the device in tiles, once for every chunk, and users pass chunk by chunk. Of the
    scores of each tile, only the best items so far are kept, or how many are above.

    Args:
        user (torch.Tensor): User embeddings of shape `[num_users, dim]`.
        item (torch.Tensor): Item embeddings of shape `[num_items, dim]`.
        bias (torch.Tensor, optional): Item biases of shape `[num_items]`.
        device (torch.device): The device to compute on.
    """

    items_at_once = 2**13

    #: Scores take 4 bytes. Those and the ids beside the best so far take 12, sorting 20.
    bytes_per_pair = 40

    def __init__(
        self, user: Tensor, item: Tensor, bias: Tensor | None, device: torch.device
    ) -> None:
        self.user, self.item, self.bias, self.device = user, item, bias, device
        self.num_items = item.size(0)
        tiles = (self._unscaled_items(slice(first, last)) for first, last in self._tiles())
        self.largest = torch.stack([tile.abs().max() for tile in tiles]).max()

    def best(self, chunk: Chunk, k: int) -> BestItems:
        num_rows = chunk.users.numel()
        best_scores = torch.empty(num_rows, 0, device=self.device)
        best = torch.empty(num_rows, 0, dtype=torch.long, device=self.device)
        for first, last, scores in self._masked_tiles(chunk):
            # The best so far have lower ids and stand first, so they win where scores are equal.
            scores = torch.cat([best_scores, scores], dim=1)
            ids = torch.arange(first, last, device=self.device).expand(num_rows, -1)
            ids = torch.cat([best, ids], dim=1)
            column = top_k(scores.clone(), min(k, scores.size(1)), chunk.scratch).column
            is_padding, column = column < 0, column.clamp(min=0)
            best_scores = scores.gather(1, column).masked_fill_(is_padding, -torch.inf)
            best = ids.gather(1, column).masked_fill_(is_padding, -1)
        truth = chunk.truth
        own = self._scores_of_pairs(self._users(chunk.users), truth.row, truth.item)
        return BestItems(best, best_scores, own)

    def ranks(self, chunk: Chunk) -> Ranks:
        order = chunk.truth.item.argsort(stable=True)
        row, item = chunk.truth.row[order], chunk.truth.item[order]
        own = self._scores_of_pairs(self._users(chunk.users), row, item)
        bounds = [*range(0, self.num_items, self.items_at_once), self.num_items]
        first_edge = torch.searchsorted(item, torch.tensor(bounds, device=self.device)).tolist()
        num_above, num_before = torch.zeros_like(row), torch.zeros_like(row)
        num_tied = torch.full_like(row, -1)  # since an item ties with itself
        for tile, (first, _, scores) in enumerate(self._masked_tiles(chunk)):
            inside, behind = slice(first_edge[tile], first_edge[tile + 1]), first_edge[tile + 1]
            above, tied = count_above_and_tied(scores, row, own, chunk.scratch)
            num_above += above
            num_tied += tied
            num_before[behind:] += tied[behind:]
            num_before[inside] += count_ties_before(
                scores, row[inside], item[inside] - first, own[inside]
            )
        ranks = Ranks(1 + num_above + num_before, num_above, num_tied)
        return Ranks(*(torch.empty_like(x).scatter_(0, order, x) for x in ranks))

    def _tiles(self) -> Iterator[tuple[int, int]]:
        for first in range(0, self.num_items, self.items_at_once):
            yield first, min(first + self.items_at_once, self.num_items)

    def _masked_tiles(self, chunk: Chunk) -> Iterator[tuple[int, int, Tensor]]:
        user = self._users(chunk.users)
        for first, last in self._tiles():
            scores = self._scores(user, first, last, chunk.scratch)
            yield first, last, chunk.mask_(scores, -torch.inf, first)

    def _users(self, users: Tensor) -> Tensor:
        user = self.user[users.to(self.user.device)].to(self.device)
        return scaled_by_row(user if self.bias is None else _with_ones(user))

    def _items(self, index: Tensor | slice) -> Tensor:
        return scaled(self._unscaled_items(index), self.largest)

    def _unscaled_items(self, index: Tensor | slice) -> Tensor:
        item = _copy_rows(self.device, self.item, index)
        if self.bias is None:
            return item
        return _with_column(item, _copy_rows(self.device, self.bias, index))

    def _scores(self, user: Tensor, first: int, last: int, scratch: Scratch) -> Tensor:
        item = self._items(slice(first, last))
        return inner_product_matrix(user, BoundedFactors(item), scratch)

    def _scores_of_pairs(self, user: Tensor, row: Tensor, item: Tensor) -> Tensor:
        pairs_at_once = max(1, _NUM_EMBEDDED // max(1, user.size(1)))
        parts = zip(row.split(pairs_at_once), item.split(pairs_at_once), strict=True)
        scores = []
        for rows, items in parts:
            place = torch.arange(items.numel(), device=self.device)
            scores.append(inner_products(user, rows, self._items(items), place))
        return torch.cat(scores)


def _copy_rows(device: torch.device, table: Tensor, index: Tensor | slice) -> Tensor:
    """Copies some rows of a table to a device."""
    index = index if isinstance(index, slice) else index.to(table.device)
    return table[index].to(device)


def _with_column(embedding: Tensor, column: Tensor) -> Tensor:
    """Appends one more dimension, in a precision that loses nothing."""
    dtype = torch.promote_types(embedding.dtype, column.dtype)
    return torch.cat([embedding.to(dtype), column.to(dtype).unsqueeze(1)], dim=1)


def _with_ones(embedding: Tensor) -> Tensor:
    return _with_column(embedding, torch.ones_like(embedding[:, 0]))
