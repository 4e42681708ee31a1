"""What can be ranked: a model, embeddings, scores, or lists.

Each kind is a :class:`Recommender`, which answers one question: the best items for some users.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeAlias

import torch
from torch import Tensor
from torch_geometric.nn.models import LightGCN

from pyg_recmetrics.checks import (
    check_device,
    check_edges,
    check_finite,
    check_ids,
    check_integers,
    check_scores,
)
from pyg_recmetrics.counting import count_above, count_ranks, count_ties_before
from pyg_recmetrics.ranked_edges import without_repeats
from pyg_recmetrics.scores import scaled, scaled_by_all, scaled_by_row
from pyg_recmetrics.task import RankingTask
from pyg_recmetrics.topk import Scratch, top_k

#: Whatever :func:`as_recommender` understands.
RecommenderLike: TypeAlias = (
    torch.nn.Module
    | Tensor
    | tuple[Tensor, Tensor]
    | tuple[Tensor, Tensor, Tensor]
    | Callable[[Tensor], Tensor]
)


#: How many bytes all item embeddings may take in double precision. More go through in tiles.
MOST_BYTES_OF_ITEMS = 2**30


@dataclass(frozen=True)
class Chunk:
    """Some users, and what is asked for them.

    Attributes:
        users: User ids of shape `[num_rows]`.
        num_items: The number of items.
        excluded_between: Returns a boolean adjacency of shape `[num_rows, last - first]`: which of
            the items from `first` to `last` must not be retrieved. It is valid until the next call.
        depth: How many items each user needs, at most `num_items`.
        most_excluded: The largest number of excluded items of a user of the chunk.
        scratch: Buffers to compute in.
    """

    users: Tensor
    num_items: int
    excluded_between: Callable[[int, int], Tensor]
    depth: int
    most_excluded: int
    scratch: Scratch

    @property
    def excluded(self) -> Tensor:
        """What must not be retrieved, among all items: `[num_rows, num_items]`."""
        return self.excluded_between(0, self.num_items)


class Recommender(ABC):
    """The best items for the users of a chunk."""

    #: Memory that a chunk takes for each of its users and items, besides the adjacency.
    bytes_per_pair: int

    #: How many items a chunk looks at at once, if not at all of them.
    items_at_once: int | None = None

    #: How long the lists can be at most, if not as long as wanted.
    max_depth: int | None = None

    @abstractmethod
    def top_k(self, chunk: Chunk) -> Tensor:
        """Returns item ids `[num_rows, depth]`, best first, `-1` where no item is left."""

    def check(self) -> None:  # noqa: B027 (there may be nothing to check)
        """Raises if something was wrong with what came in during the ranking.

        What a device finds is noted there and asked for once, after the last chunk.
        """


class ScoreRecommender(Recommender):
    """Ranks by a score for every user and item; equal scores by the lower item id."""

    bytes_per_pair = 24  # score 4 or 8, key 8, sign bits 4, and what a sort takes

    def top_k(self, chunk: Chunk) -> Tensor:
        return top_k(self.masked_scores(chunk), chunk.depth, chunk.scratch)

    def ranks(self, chunk: Chunk, row: Tensor, item: Tensor) -> Tensor:
        """Returns the rank of items for rows of the chunk, however deep: `[num_ranked]`."""
        return count_ranks(self.masked_scores(chunk), row, item, chunk.scratch)

    def is_constant(self, chunk: Chunk) -> Tensor:
        """Returns which users have one score for all candidates: `[num_rows]`."""
        scores, excluded = self.scores(chunk.users, chunk.scratch), chunk.excluded
        highest = scores.masked_fill_(excluded, -torch.inf).amax(dim=1)
        return highest <= scores.masked_fill_(excluded, torch.inf).amin(dim=1)

    def masked_scores(self, chunk: Chunk) -> Tensor:
        """Returns scores `[num_rows, num_items]` with `-inf` where nothing must be retrieved."""
        return self.scores(chunk.users, chunk.scratch).masked_fill_(chunk.excluded, -torch.inf)

    @abstractmethod
    def scores(self, users: Tensor, scratch: Scratch) -> Tensor:
        """Returns finite scores `[len(users), num_items]` that may be overwritten."""


class EmbeddingRecommender(ScoreRecommender):
    """Scores by the inner product of embeddings, see :mod:`pyg_recmetrics.scores`."""

    def __init__(self, user: Tensor, item: Tensor) -> None:
        self.user = user
        self.item = scaled_by_all(item)

    def scores(self, users: Tensor, scratch: Scratch) -> Tensor:
        shape = (users.numel(), self.item.size(0))
        product = scratch("product", shape, torch.float64)
        torch.mm(scaled_by_row(self.user[users]), self.item.t(), out=product)
        return scratch("scores", shape, torch.float32).copy_(product)


class BiasedRecommender(ScoreRecommender):
    """Scores by the inner product of embeddings plus a bias for each item."""

    def __init__(self, user: Tensor, item: Tensor, bias: Tensor) -> None:
        self.user, self.item, self.bias = user, item.double(), bias.double()

    def scores(self, users: Tensor, scratch: Scratch) -> Tensor:
        shape = (users.numel(), self.item.size(0))
        product = scratch("product", shape, torch.float64)
        torch.addmm(self.bias, self.user[users].double(), self.item.t(), out=product)
        return scratch("scores", shape, torch.float32).copy_(product)


class TiledRecommender(ScoreRecommender):
    """Scores by inner products, as the two above, with embeddings that are never all looked at.

    They may lie in the memory of the host, or in a file that is mapped into it. Items go through
    the device in tiles, once for every chunk, and users chunk by chunk. Of the scores of a tile
    only what is wanted is kept: the best so far, or how many are above.
    """

    items_at_once = 2**13
    bytes_per_pair = 48  # score 8 and 4, that and the id beside those of the best 12, to sort 20

    def __init__(
        self, user: Tensor, item: Tensor, bias: Tensor | None, device: torch.device
    ) -> None:
        self.user, self.item, self.bias, self.device = user, item, bias, device
        self.num_items = item.size(0)
        self.largest: Tensor | None = None
        if bias is None:
            tiles = item.split(self.items_at_once)
            self.largest = torch.stack([self._on_device(tile).abs().max() for tile in tiles]).max()

    def scores(self, users: Tensor, scratch: Scratch) -> Tensor:
        user = self._users(users)
        return torch.cat(
            [self._scores(user, first, last, scratch).clone() for first, last in self._tiles()],
            dim=1,
        )

    def top_k(self, chunk: Chunk) -> Tensor:
        num_rows = chunk.users.numel()
        best_scores = torch.empty(num_rows, 0, device=self.device)
        best = torch.empty(num_rows, 0, dtype=torch.long, device=self.device)
        for first, last, scores in self._masked(chunk):
            # The best so far have lower ids and stand first: so they win where scores are equal.
            scores = torch.cat([best_scores, scores], dim=1)
            ids = torch.arange(first, last, device=self.device).expand(num_rows, -1)
            ids = torch.cat([best, ids], dim=1)
            column = top_k(scores.clone(), min(chunk.depth, scores.size(1)), chunk.scratch)
            is_none, column = column < 0, column.clamp(min=0)
            best_scores = scores.gather(1, column).masked_fill_(is_none, -torch.inf)
            best = ids.gather(1, column).masked_fill_(is_none, -1)
        return best

    def ranks(self, chunk: Chunk, row: Tensor, item: Tensor) -> Tensor:
        order = item.argsort(stable=True)
        row, item = row[order], item[order]
        own = self._scores_of_pairs(self._users(chunk.users), row, item)
        starts = torch.tensor([*range(0, self.num_items, self.items_at_once), self.num_items])
        place = torch.searchsorted(item, starts.to(self.device)).tolist()
        # What is as high is above the next smaller number.
        below_own = own.nextafter(torch.full_like(own, -torch.inf))
        rank = torch.ones_like(row)
        for number, (first, _, scores) in enumerate(self._masked(chunk)):
            inside, behind = slice(place[number], place[number + 1]), place[number + 1]
            threshold = torch.cat([own[:behind], below_own[behind:]])
            rank += count_above(scores, row, threshold, chunk.scratch)
            rank[inside] += count_ties_before(
                scores, row[inside], item[inside] - first, own[inside]
            )
        return torch.empty_like(rank).scatter_(0, order, rank)

    def is_constant(self, chunk: Chunk) -> Tensor:
        highest = torch.full(chunk.users.shape, -torch.inf, device=self.device)
        lowest = -highest
        user = self._users(chunk.users)
        for first, last in self._tiles():
            scores = self._scores(user, first, last, chunk.scratch)
            excluded = chunk.excluded_between(first, last)
            highest = highest.maximum(scores.masked_fill_(excluded, -torch.inf).amax(dim=1))
            lowest = lowest.minimum(scores.masked_fill_(excluded, torch.inf).amin(dim=1))
        return highest <= lowest

    def _tiles(self) -> Iterator[tuple[int, int]]:
        for first in range(0, self.num_items, self.items_at_once):
            yield first, min(first + self.items_at_once, self.num_items)

    def _masked(self, chunk: Chunk) -> Iterator[tuple[int, int, Tensor]]:
        user = self._users(chunk.users)
        for first, last in self._tiles():
            scores = self._scores(user, first, last, chunk.scratch)
            excluded = chunk.excluded_between(first, last)
            yield first, last, scores.masked_fill_(excluded, -torch.inf)

    def _users(self, users: Tensor) -> Tensor:
        user = self.user[users.to(self.user.device)].to(self.device)
        return scaled_by_row(user) if self.bias is None else user.double()

    def _items(self, index: Tensor | slice) -> Tensor:
        item = self.item[index].to(self.device)
        return item.double() if self.largest is None else scaled(item, self.largest)

    def _scores(self, user: Tensor, first: int, last: int, scratch: Scratch) -> Tensor:
        shape = (user.size(0), last - first)
        product = scratch("product", shape, torch.float64)
        torch.mm(user, self._items(slice(first, last)).t(), out=product)
        if self.bias is not None:
            product += self._on_device(self.bias[first:last])
        return scratch("scores", shape, torch.float32).copy_(product)

    def _scores_of_pairs(self, user: Tensor, row: Tensor, item: Tensor) -> Tensor:
        parts = []
        at_once = max(1, _NUMBERS_AT_ONCE // max(1, user.size(1)))
        for some_rows, some_items in zip(row.split(at_once), item.split(at_once), strict=True):
            there = some_items.to(self.item.device)
            score = (user[some_rows] * self._items(there)).sum(dim=1)
            if self.bias is not None:
                score += self._on_device(self.bias[some_items.to(self.bias.device)])
            parts.append(score.float())
        return torch.cat(parts)

    def _on_device(self, part: Tensor) -> Tensor:
        return part.to(self.device).double()


_NUMBERS_AT_ONCE = 2**22


class FunctionRecommender(ScoreRecommender):
    """Scores by a function `users -> scores [len(users), num_items]`."""

    def __init__(self, function: Callable[[Tensor], Tensor], task: RankingTask) -> None:
        self.function = function
        self.num_items = task.num_items
        self.num_wrong = torch.zeros((), dtype=torch.long, device=task.device)

    def scores(self, users: Tensor, scratch: Scratch) -> Tensor:
        with naming(users):
            scores = check_scores(self.function(users), "recommender")
        _check_shape(scores, (users.numel(), self.num_items), "scores [len(users), num_items]")
        check_device(scores, "recommender", users.device, "task")
        self.num_wrong += (~scores.isfinite()).sum()
        dtype = torch.promote_types(scores.dtype, torch.float32)
        return scratch("scores", tuple(scores.shape), dtype).copy_(scores)

    def check(self) -> None:
        if num_wrong := int(self.num_wrong):
            raise ValueError(
                f"'recommender' needs to give finite scores (got {num_wrong} NaN or infinite)"
            )


class ListRecommender(Recommender):
    """Recommends from lists of items, out of which the excluded ones are dropped."""

    bytes_per_pair = 24  # a model that scores all items, and sorts lists of them

    def __init__(self, task: RankingTask) -> None:
        self.num_items = task.num_items
        self.num_wrong = torch.zeros((), dtype=torch.long, device=task.device)

    def top_k(self, chunk: Chunk) -> Tensor:
        items = self.lists(chunk.users, chunk.depth + chunk.most_excluded)
        is_wrong = (items < -1) | (items >= self.num_items)
        self.num_wrong += is_wrong.sum()
        items = items.masked_fill(is_wrong, -1)
        is_dropped = chunk.excluded.gather(1, items.clamp(min=0)) & (items >= 0)
        # A stable sort moves what is dropped to the end and keeps the order of all else.
        is_dropped, order = is_dropped.sort(dim=1, stable=True)
        items = items.gather(1, order).masked_fill_(is_dropped, -1)[:, : chunk.depth]
        missing = chunk.depth - items.size(1)
        return without_repeats(torch.nn.functional.pad(items, (0, missing), value=-1))

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
    """Recommends from a matrix `[num_users, K]` that holds all there is."""

    def __init__(self, pred_index_mat: Tensor, task: RankingTask) -> None:
        super().__init__(task)
        self.pred_index_mat = pred_index_mat
        self.max_depth = pred_index_mat.size(1)

    def lists(self, users: Tensor, k: int) -> Tensor:
        return self.pred_index_mat[users].long()


class ModelRecommender(ListRecommender):
    """Asks a model's `recommend`, which numbers its items from `num_users` on."""

    def __init__(
        self, model: Any, edge_index: Any, edge_weight: Tensor | None, task: RankingTask
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
        with naming(users):
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


def as_recommender(
    value: RecommenderLike,
    task: RankingTask,
    edge_index: Any = None,
    edge_weight: Tensor | None = None,
) -> Recommender:
    """Finds out what `value` is, and checks that it fits the task."""
    if isinstance(value, torch.nn.Module):
        return _from_model(value, task, edge_index, edge_weight)
    if isinstance(value, tuple | list):
        return _from_embeddings(task, *_check_embeddings(tuple(value), task))
    if isinstance(value, Tensor):
        return _from_tensor(value, task)
    if callable(value):
        return FunctionRecommender(value, task)
    raise TypeError(
        f"'recommender' needs to be a module with 'recommend', a pair of embeddings, a tensor of "
        f"scores or item ids, or a function of users (got {type(value).__name__})"
    )


@contextmanager
def evaluation_mode(recommender: Any) -> Iterator[None]:
    """Puts a model in eval mode without gradients, and leaves it as it was found."""
    model = getattr(recommender, "__self__", recommender)  # a model's own method is a function
    modules = list(model.modules()) if isinstance(model, torch.nn.Module) else []
    was_training = [module.training for module in modules]
    try:
        for module in modules[:1]:
            module.eval()
        with torch.no_grad():
            yield
    finally:
        for module, training in zip(modules, was_training, strict=True):
            module.training = training


@contextmanager
def naming(users: Tensor) -> Iterator[None]:
    """Adds to an error for which users it was raised, and leaves its type as it is."""
    try:
        yield
    except Exception as error:
        first = ", ".join(str(user) for user in users[:_NUM_NAMED].tolist())
        rest = ", ..." if users.numel() > _NUM_NAMED else ""
        note = f"(while {users.numel()} users were ranked: {first}{rest})"
        if add_note := getattr(error, "add_note", None):  # since Python 3.11
            add_note(note)
        elif error.args and isinstance(error.args[0], str):
            error.args = (f"{error.args[0]} {note}", *error.args[1:])
        raise


_NUM_NAMED = 8


def _from_model(
    model: torch.nn.Module, task: RankingTask, edge_index: Any, edge_weight: Tensor | None
) -> Recommender:
    name = type(model).__name__
    if not callable(getattr(model, "recommend", None)):
        raise TypeError(f"'recommender' needs to have a method 'recommend' (got {name} without)")
    if edge_index is None:
        edge_index, edge_weight = task.edge_index, task.edge_weight
    if edge_index is None:
        raise ValueError(
            f"'edge_index' needs to be given for {name}: the edges it propagates over, in its own "
            f"numbering (a task that was read from data knows them)"
        )
    num_nodes = task.num_users + task.num_items
    if isinstance(edge_index, Tensor) and edge_index.layout == torch.strided:
        edge_index = check_edges(edge_index, "edge_index")
        check_ids(edge_index, "edge_index", "node", num_nodes)
        check_device(edge_index, "edge_index", task.device, "task")
    parameter = next(model.parameters(), None)
    if parameter is not None:
        check_device(parameter, "recommender", task.device, "task")
    if not isinstance(model, LightGCN) or type(model).recommend is not LightGCN.recommend:
        return ModelRecommender(model, edge_index, edge_weight, task)
    if model.num_nodes != num_nodes:
        raise ValueError(
            f"'recommender' needs to have a node for each of {task.num_users} users and "
            f"{task.num_items} items (got {model.num_nodes} nodes)"
        )
    # LightGCN scores by inner products of embeddings that it propagates anew in each call.
    embedding = model.get_embedding(edge_index, edge_weight)
    user, item = embedding.split([task.num_users, task.num_items])
    return _from_embeddings(task, *_check_embeddings((user, item), task))


def _check_embeddings(parts: tuple[Any, ...], task: RankingTask) -> tuple[Tensor, ...]:
    if len(parts) not in (2, 3):
        raise ValueError(
            f"'recommender' needs to be (user_embedding, item_embedding) or (user_embedding, "
            f"item_embedding, item_bias) (got {len(parts)} parts)"
        )
    parts = tuple(check_scores(part, "recommender") for part in parts)
    dim = parts[0].size(-1) if parts[0].dim() else 0
    _check_shape(parts[0], (task.num_users, dim), "user embeddings")
    _check_shape(parts[1], (task.num_items, dim), "item embeddings")
    if len(parts) == 3:
        _check_shape(parts[2], (task.num_items,), "item biases")
    for part in parts:
        if part.device.type != "cpu":  # from where it can go to any device
            check_device(part, "recommender", task.device, "task")
        check_finite(part, "recommender")
    return parts


def _from_embeddings(
    task: RankingTask, user: Tensor, item: Tensor, bias: Tensor | None = None
) -> Recommender:
    if bias is not None:
        _check_range(user, item, bias)
    is_elsewhere = any(
        part.device != task.device for part in (user, item, bias) if part is not None
    )
    if is_elsewhere or item.numel() * 8 > MOST_BYTES_OF_ITEMS:
        return TiledRecommender(user, item, bias, task.device)
    return EmbeddingRecommender(user, item) if bias is None else BiasedRecommender(user, item, bias)


def _check_range(user: Tensor, item: Tensor, bias: Tensor) -> None:
    largest = _largest(user) * _largest(item) * user.size(1) + _largest(bias)
    if largest > torch.finfo(torch.float32).max:
        raise ValueError(
            f"'recommender' needs to have scores in the range of single precision (got embeddings "
            f"whose scores may reach {largest:.1e})"
        )


def _largest(values: Tensor) -> float:
    return max(abs(float(bound)) for bound in values.aminmax())


def _from_tensor(value: Tensor, task: RankingTask) -> Recommender:
    check_device(value, "recommender", task.device, "task")
    if not value.is_floating_point():
        return _from_lists(value, task)
    if value.dim() == 1:
        _check_shape(value, (task.num_items,), "one score per item")
        check_finite(value, "recommender")
        return _from_item_scores(value, task)
    _check_shape(value, (task.num_users, task.num_items), "scores [num_users, num_items]")
    return FunctionRecommender(lambda users: value[users], task)


def _from_item_scores(scores: Tensor, task: RankingTask) -> Recommender:
    # One sort breaks all ties for everybody: what is left to rank by are distinct places.
    place = torch.empty_like(scores, dtype=torch.float64)
    order = scores.argsort(descending=True, stable=True)
    place[order] = -torch.arange(scores.numel(), dtype=torch.float64, device=scores.device)
    exact = place.float() if scores.numel() <= 2**24 else place
    return FunctionRecommender(lambda users: exact.expand(users.numel(), -1), task)


def _from_lists(value: Tensor, task: RankingTask) -> Recommender:
    if value.dtype == torch.bool or value.is_complex():
        raise ValueError(f"'recommender' needs to hold scores or item ids (got {value.dtype})")
    if value.dim() != 2 or value.size(0) != task.num_users:
        raise ValueError(
            f"'recommender' needs to hold item ids of shape [{task.num_users}, K] "
            f"(got {list(value.shape)})"
        )
    return FixedListRecommender(value, task)


def _check_shape(value: Tensor, shape: tuple[int, ...], what: str) -> None:
    if tuple(value.shape) != shape:
        raise ValueError(
            f"'recommender' needs to hold {what} of shape {list(shape)} (got {list(value.shape)})"
        )
