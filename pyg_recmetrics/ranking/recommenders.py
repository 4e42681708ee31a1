"""What recommends: scores, lists, embeddings, pairs and models, all with one interface."""

import inspect
import math
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from torch import Tensor

from pyg_recmetrics.checks import (
    as_tensor,
    check_device,
    check_integers,
    check_positive_integer,
    check_scores,
    check_shape,
    misfit,
)
from pyg_recmetrics.kernels.card import Error
from pyg_recmetrics.kernels.devices import Scratch, at_once, copied
from pyg_recmetrics.kernels.exact.ranks import (
    Ranks,
    count_ranks,
    first_kept,
    ranks_in_lists,
    ranks_within_rows,
    top_k,
    without_repeats,
)
from pyg_recmetrics.kernels.exact.scores import (
    BoundedFactors,
    ItemFactors,
    bounded,
    inner_product_matrix,
    relative_error,
    scaled_by_row,
    with_column,
)
from pyg_recmetrics.kernels.fast.rounded_items import matrix_product
from pyg_recmetrics.kernels.fast.searching import GivenScores
from pyg_recmetrics.ranked_edges import Lists, ListStatistics
from pyg_recmetrics.ranking.models import Recommend
from pyg_recmetrics.ranking.schedule import BYTES_PER_POSITION, Chunk
from pyg_recmetrics.sums import Numbers
from pyg_recmetrics.task import RankingTask
from pyg_recmetrics.task.edges import contains
from pyg_recmetrics.utils import Memory, V, set_attributes, verb, warn


class ScoreMask:
    """Collects, chunk by chunk, which candidates have a score of `-inf`.

    It counts on the device. The counts are looked at once, after the last chunk.

    Args:
        task (RankingTask): The task.

    Attributes:
        allows_empty (bool): Whether a user with truth may be left without a candidate, such as one
            that a fitted model does not know.
        num_candidates (torch.Tensor): How many items each user can be recommended, of shape
            `[num_users]`. Scores of users without truth are not used, unless lists are kept.
        is_masked (torch.Tensor): Which truth edges can never be retrieved, of shape `[num_edges]`.
        num_masked (torch.Tensor or None): How many items of each user have a score of `-inf`, of
            shape `[num_users]`; `None` if none has. It is known after :meth:`check`.
    """

    def __init__(self, task: RankingTask) -> None:
        self.task = task
        self.allows_empty = False
        self.num_candidates = task.num_candidates.clone()
        self.is_masked = torch.zeros_like(task.truth[1], dtype=torch.bool)
        self.num_masked: Tensor | None = None
        self._highest: Tensor | None = None

    def note_highest(self, score: Tensor) -> None:
        """Notes the highest of some scores: `inf` or NaN if one of them is."""
        self._highest = score if self._highest is None else self._highest.maximum(score)

    def note(self, chunk: Chunk, num_candidates: Tensor, of_truth: Tensor) -> None:
        """Notes the candidates of the users of a chunk whose scores are not `-inf`.

        Args:
            chunk (Chunk): The chunk.
            num_candidates (torch.Tensor): How many each user has, of shape `[num_rows]`.
            of_truth (torch.Tensor): The scores of the truth edges, of shape `[num_edges]`.
        """
        self.num_candidates[chunk.users] = num_candidates
        self.is_masked[chunk.truth.index] = of_truth.isneginf()

    def check(self) -> None:
        """Raises if there are scores that nothing can be ranked by."""
        if self._highest is None:
            return
        task, num_masked = self.task, self.task.num_candidates - self.num_candidates
        highest, total = torch.stack([self._highest.double(), num_masked.sum()]).tolist()
        if not highest < torch.inf:
            raise ValueError(
                "'recommender' needs to give scores that are finite, or '-inf' for items that must "
                "not be retrieved (got NaN or 'inf')"
            )
        if total == 0:
            return
        self.num_masked = num_masked
        # A user without truth may be left without an item. Only lists look at such users.
        is_empty = (self.num_candidates == 0) & (num_masked > 0) & (task.degree > 0)
        if not self.allows_empty and (num_empty := int(is_empty.sum())):
            first = int(is_empty.nonzero()[0])
            raise ValueError(
                f"'recommender' needs to give every user a candidate with a finite score (got only "
                f"'-inf' for {num_empty} users, such as user {first})"
            )

    def warn(self) -> None:
        """Warns of truth edges that can never be retrieved."""
        if self.num_masked is not None and (num_edges := int(self.is_masked.sum())):
            warn(
                f"{num_edges} of {self.is_masked.numel()} ground-truth edges "
                f"{verb(num_edges, 'have')} a score of '-inf': such an edge can never be "
                f"retrieved, and counts as missed"
            )


#: What to look at if there are other numbers of users and items than the task has.
COUNTS = (
    "; 'num_users' and 'num_items' of the task count users alone and items alone, and a row of "
    "'task.query' is a user"
)


@contextmanager
def asked(task: RankingTask) -> Iterator[None]:
    """Names the numbers of users and items if what is asked does not know some of them."""
    try:
        yield
    except IndexError as error:
        if not re.search("out of bounds|out of range in self", str(error)):
            raise
        raise ValueError(
            f"'recommender' needs to know {task.num_users} users and {task.num_items} items (got "
            f"'{error}' from it){COUNTS}"
        ) from error


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

    #: How long the lists are at most, whatever the number of items; `None` if they have no length.
    max_depth: int | None = None

    #: Whether it is known how many candidates score higher than a relevant item, or the same.
    has_scores = False

    #: What its scores keep out of the rankings; `None` if they keep nothing out.
    mask: ScoreMask | None = None

    #: What the list of each user holds, see :class:`ListStatistics`; `None` if it gives scores.
    listed: Tensor | None = None

    #: Whether it is propagated over what users have seen, and prefers it also where it is wrong.
    is_propagated = False

    @abstractmethod
    def rank(self, chunk: Chunk, k: int) -> tuple[Ranks, Tensor | None]:
        """Returns the ranks of the truth edges of a chunk, and the `k` best items of its users.

        Scores tell ranks however deep. Lists hold `-1` where no item is left, and may be shorter
        than `k`.
        """

    def scores_across(self, pairs: Tensor) -> Numbers | None:
        """Returns the scores of users and items of pairs of edges; `None` if it has no table.

        They are as they come, and may overflow.

        Args:
            pairs (torch.Tensor): The users of both edges of each pair, and then their items, of
                shape `[2, 2, num_pairs]`.

        Returns:
            The scores of both users of each pair and both items, of shape `[2, 2, num_pairs]`.
        """
        return None

    def check(self) -> None:
        """Raises if the recommender returned invalid scores or ids.

        Chunks only count them, on the device. The count is looked at once, after the last chunk.
        """
        if self.mask is not None:
            self.mask.check()

    def warn(self) -> None:
        """Warns if the recommender left out what it was asked for."""
        if self.mask is not None:
            self.mask.warn()


#: Of how many pairs of seen edges the scores are compared at most, how many of these have to tell
#: users apart, and up to how many standard errors are chance.
_NUM_PAIRS, _ENOUGH_PAIRS, _NUM_ERRORS = 1024, 100, 3

#: Of how many pairs of ground-truth edges the scores are compared at most.
_NUM_PAIRS_OF_TRUTH = 256


def ask_about_order(recommender: Recommender, task: RankingTask) -> None:
    """Warns if scores know as little of what users have seen as those of other users would.

    If rows of users or items are in another order, a user prefers what another one has seen as
    often as the opposite. This is unlikely where scores of seen items are lowered. Nothing is said
    if users prefer their own ground truth: scores may know it, and order all else at random.

    Args:
        recommender (Recommender): What has scores. Nothing is said of what has no table of them,
            such as a function: what it was asked for is no longer there, and to ask again may take
            long. A line of the result compares its hits with chance.
        task (RankingTask): The task, which is told once of each form of a recommender.
    """
    if task.seen.size(1) < _NUM_PAIRS or recommender.is_propagated:
        return
    told = task._once("order", set[str])
    if recommender.in_words in told:
        return
    seen, truth = _sample(task.seen, _NUM_PAIRS), _sample(task.truth, _NUM_PAIRS_OF_TRUTH)
    if (scores := recommender.scores_across(torch.cat([seen, truth], dim=2))) is None:
        return
    num_apart, preference = _preference(scores[..., : seen.size(2)])
    if num_apart < _ENOUGH_PAIRS or abs(preference) > _NUM_ERRORS * num_apart**0.5:
        return
    num_apart, preference = _preference(scores[..., seen.size(2) :])
    # Few that tell users apart may prefer their own without exception.
    if preference <= _NUM_ERRORS * num_apart**0.5 and not 0 < num_apart == preference:
        told.add(recommender.in_words)
        warn(
            "'recommender' prefers what a user has seen over what others have seen no more often "
            "than by chance. Is it trained, and do its rows stand for users and items in the order "
            "of the task, that of 'user_ids' and 'item_ids' if these are known?"
        )


def _sample(edges: Tensor, most: int) -> Tensor:
    """Returns some pairs of edges: their users and their items, of shape `[2, 2, num_pairs]`."""
    num_pairs = min(most, edges.size(1) // 2)
    step = max(1, edges.size(1) // (2 * most))
    return edges[:, : 2 * num_pairs * step : step].view(2, 2, -1)


def _preference(scores: Numbers) -> tuple[int, float]:
    """Returns how many pairs tell users apart, and how many more prefer their own than the other.

    Two users with an edge each may disagree on which of the two items is better. They then prefer
    their own more often than not, whatever is popular. Scores that are the same for all users tell
    nothing.

    Args:
        scores (numpy.ndarray): The scores of both users for both items, of shape
            `[2, 2, num_pairs]`.
    """
    with np.errstate(all="ignore"):
        prefers_first = np.sign(scores[:, 0] - scores[:, 1])
    apart = prefers_first[0, prefers_first[0] * prefers_first[1] == -1]
    return len(apart), float(apart.sum())


# Recommenders that score by the inner product of embeddings.
#
# :mod:`pyg_recmetrics.kernels.exact.scores` says what exactly this product is.

#: How many bytes the embeddings of all items may take in double precision. Larger tables pass
#: through the device in tiles.
MAX_BYTES_OF_ITEMS = 2**30

#: How many items a tile has.
ITEMS_IN_TILE = 2**13


class EmbeddingRecommender(Recommender):
    """Ranks by the inner product of embeddings; equal scores by the lower item id.

    The embeddings may stay in the memory of the host, or in a file that is mapped into it. Users
    pass through the device chunk by chunk. So do items in tiles, once for every chunk, if their
    table is large. Of the scores of each tile, only the best items so far are kept, or how many are
    above.

    Args:
        user (torch.Tensor): User embeddings of shape `[num_users, dim]`.
        item (torch.Tensor): Item embeddings of shape `[num_items, dim]`.
        bias (torch.Tensor, optional): Item biases of shape `[num_items]`. (default: `None`)
        device (torch.device): The device to compute on.
        largest (float, optional): See :class:`ItemFactors`. (default: `None`)
    """

    has_scores = True

    #: Scores take 4 bytes. Those and the ids beside the best so far take 12, sorting 20.
    bytes_per_pair = 40

    items_at_once: int

    def __init__(
        self,
        user: Tensor,
        item: Tensor,
        bias: Tensor | None = None,
        *,
        device: torch.device,
        largest: float | None = None,
    ) -> None:
        self.user, self.device = user, device
        self.items = ItemFactors(item, bias, device, largest)
        self.has_bias = bias is not None
        self._known = Memory()
        self.in_words = "embeddings and item biases" if self.has_bias else "embeddings"
        num_bytes = self.items.num_items * self.items.dim * torch.double.itemsize
        is_large = num_bytes > at_once(MAX_BYTES_OF_ITEMS, device)
        self.items_at_once = at_once(ITEMS_IN_TILE, device) if is_large else self.items.num_items
        self._is_whole = self.items_at_once >= self.items.num_items

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

    def scores_of_pairs(self, user: Tensor, item: Tensor) -> Tensor:
        """Returns the scores of pairs of a user and an item, of shape `[num_pairs]`."""
        users, row = user.unique_consecutive(return_inverse=True)
        return self.items.exact_scores(self.users(users), row, item)

    def scores_across(self, pairs: Tensor) -> Numbers:
        user, item = pairs.flatten(1)
        table, bias = self.items.embedding, self.items.bias
        items = copied(table.index_select(0, item.to(table.device)), self.device)
        # Both come to the host in one copy.
        vectors = _as_numbers(torch.cat([self.vectors(user), items]))
        both = vectors.reshape(2, 2, -1, table.size(1))
        scores: Numbers = np.einsum("und,ind->uin", *both)
        return scores if bias is None else scores + _as_numbers(bias[pairs[1].to(bias.device)])

    def rank(self, chunk: Chunk, k: int) -> tuple[Ranks, Tensor | None]:
        user = self.users(chunk.users)
        own = self.items.exact_scores(user, *chunk.truth.pairs)
        item = key = torch.empty(user.size(0), 0, dtype=torch.long, device=self.device)

        def tiles() -> Iterator[tuple[int, Tensor]]:
            nonlocal item, key
            for part, factors in self._parts("bounded", self._bounded):
                scores = inner_product_matrix(user, factors, chunk.scratch)
                chunk.mask_(scores, -torch.inf, part.start)
                yield part.start, scores  # which are overwritten once they are counted
                if k == 0:
                    continue
                column, key_of_column = top_k(scores, min(k, scores.size(1)), chunk.scratch)
                found = (column + part.start).masked_fill_(column < 0, -1)
                item, key = torch.cat([item, found], dim=1), torch.cat([key, key_of_column], dim=1)
                # Where keys are equal, the best so far have lower ids, and stand first.
                order = key.argsort(dim=1, descending=True, stable=True)[:, :k]
                item, key = item.gather(1, order), key.gather(1, order)

        ranks = count_ranks(tiles(), chunk.truth.pairs, own, chunk.scratch)
        return ranks, item

    def products(self, user: Tensor, dtype: torch.dtype, scratch: Scratch) -> tuple[Tensor, Error]:
        """Returns products of some users with all items, and how far they can be off.

        That is a number of each user, in double precision, times one of each item.

        Args:
            user (torch.Tensor): The scaled embeddings of the users, in double precision.
            dtype (torch.dtype): The precision of the products, single or double.
            scratch (Scratch): The buffers to compute in.
        """
        factor = user.norm(dim=1)
        errors = self._known.once(("errors", dtype), partial(self._errors, dtype))
        if dtype == torch.float32:
            user, factor = self.items.for_single(user).float(), factor.mul_(self.items.scale)
            if self._is_whole:
                [(_, item)] = self._tables(dtype)
                return matrix_product(user, item, scratch, "products"), (factor, errors)
        scores = scratch("products", (user.size(0), self.items.num_items), dtype)
        for part, item in self._tables(dtype):
            torch.mm(user, item.t(), out=scores[:, part])
        return scores, (factor, errors)

    def _errors(self, dtype: torch.dtype) -> Tensor:
        """Returns the norm of each item times the error of a product, of shape `[num_items]`."""
        norm = torch.cat([item.norm(dim=1) for _, item in self._tables(dtype)])
        error = norm.mul_(relative_error(self.items.dim, dtype))
        # What is added is far more than underflow changes a product by.
        return error.add_(error.amax(), alpha=2.0**-30)

    def _tables(self, dtype: torch.dtype) -> Iterator[tuple[slice, Tensor]]:
        """Yields the embeddings of items in single or double precision."""
        return self._parts(dtype, self.items.double if dtype == torch.double else self.items.single)

    def _bounded(self, part: slice) -> BoundedFactors:
        return bounded(self.items.double(part))

    def _parts(self, key: Hashable, read: Callable[[slice], V]) -> Iterator[tuple[slice, V]]:
        """Yields all items in one part, which is read once, or a large table part by part."""
        for first in range(0, self.items.num_items, self.items_at_once):
            part = slice(first, first + self.items_at_once)
            read_part = partial(read, part)
            yield part, self._known.once(key, read_part) if self._is_whole else read_part()


def _as_numbers(values: Tensor) -> Numbers:
    numbers: Numbers = (values if values.element_size() > 2 else values.float()).cpu().numpy()
    return numbers


class GivenScoresRecommender(Recommender):
    """Ranks by scores that are given for all items; equal scores by the lower item id.

    Args:
        task (RankingTask): The task.
    """

    has_scores = True

    #: The score takes 4 or 8 bytes, the key 8 and the sign bits 4; the rest is what sorting takes.
    bytes_per_pair = 24

    mask: ScoreMask

    def __init__(self, task: RankingTask) -> None:
        self.task = task
        self.mask = ScoreMask(task)

    @abstractmethod
    def given(self, users: Tensor) -> tuple[Tensor, Tensor]:
        """Returns a matrix of scores, which is only read, and the row of each user in it."""

    def copied(self, chunk: Chunk) -> Tensor:
        """Returns a copy of the scores of a chunk, with zeros for what is no candidate."""
        matrix, row = self.given(chunk.users)
        dtype = torch.promote_types(matrix.dtype, torch.float32)
        return chunk.ignore_(matrix.index_select(0, row).to(dtype))

    def rank(self, chunk: Chunk, k: int) -> tuple[Ranks, Tensor | None]:
        scores, truth = self.copied(chunk), chunk.truth.pairs
        # To count what is wrong would take longer than to rank.
        lowest, highest = scores.aminmax()
        self.mask.note_highest(highest)
        chunk.mask_(scores, -torch.inf)
        # A CPU sees at once whether there is anything to count. A GPU counts without waiting.
        if scores.device.type != "cpu" or bool(lowest.isneginf()):
            self.mask.note(chunk, (scores > -torch.inf).sum(dim=1), scores[truth])
        ranks = count_ranks([(0, scores)], truth, scores[truth], chunk.scratch)
        return ranks, top_k(scores, min(k, scores.size(1)), chunk.scratch).column if k else None

    def learn_from(self, scores: GivenScores, chunk: Chunk) -> None:
        """Notes what a search came across."""
        self.mask.note_highest(scores.highest)
        if not bool(scores.num_missing.any()):
            return
        seen = chunk.seen
        is_seen = scores.exactly(*seen.pairs).isneginf() & (scores.column[seen.item] >= 0)
        num_missing = scores.num_missing.scatter_add(0, seen.row, -is_seen.long())
        num_candidates = self.task.num_candidates[chunk.users] - num_missing
        self.mask.note(chunk, num_candidates, scores.exactly(*chunk.truth.pairs))


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

    def scores_across(self, pairs: Tensor) -> Numbers:
        user, item = pairs
        return _as_numbers(self.matrix[user.unsqueeze(1), item.unsqueeze(0)])


class FunctionRecommender(GivenScoresRecommender):
    """Ranks by a function `users -> scores [len(users), num_items]`."""

    in_words = "a function of users"

    #: What the function returns takes up to 8 bytes.
    bytes_per_score = 8

    def __init__(self, function: Callable[[Tensor], Tensor], task: RankingTask) -> None:
        super().__init__(task)
        if wrong := misfit(function, task.users):
            raise TypeError(
                f"'recommender' needs to be a function of user ids that returns the scores of all "
                f"items ({wrong}); write PairScorer(function) around a function of users and "
                f"items, and pass a model itself and not one of its methods"
            )
        self.function = function

    def given(self, users: Tensor) -> tuple[Tensor, Tensor]:
        with asked(self.task):
            given = self.function(users.clone())  # which a function may overwrite
        scores = as_tensor(given, "recommender()")
        if isinstance(given, tuple) or not scores.is_floating_point():
            raise ValueError(
                f"'recommender()' needs to return floating-point scores of all items (got "
                f"{type(given).__name__} of {scores.dtype}); lists of items are passed without a "
                f"function, as in evaluate(scores.topk(20).indices, data)"
            )
        scores = check_scores(scores, "recommender()")
        shape = (users.numel(), self.task.num_items)
        check_shape(scores, "recommender()", shape, "scores [len(users), num_items]", COUNTS)
        check_device(scores, "recommender()", users.device, "task")
        return scores, torch.arange(users.numel(), device=users.device)


#: What happens by chance once in a million times is no chance: minus the logarithm of that.
NO_CHANCE = 14


def are_hardly_chance(items: Tensor, num_expected: int, num_items: int) -> bool:
    """Returns whether items drawn at random would hardly all be among so many given ones."""
    if not 0 < num_expected < num_items:
        return False
    return items.numel() * math.log(num_items / num_expected) > NO_CHANCE


def begins_behind_users(items: Tensor, num_users: int, num_items: int) -> bool:
    """Returns whether different items begin at the number of users, which is hardly chance."""
    is_odd = are_hardly_chance(items, num_items - num_users, num_items)
    return is_odd and int(items.min()) >= num_users


class ListRecommender(Recommender):
    """Ranks by lists of items, after dropping the excluded ones: a rank is a place in a list.

    Args:
        task (RankingTask): The task.
        width (int): How long the lists are at most, besides the depth to which users are ranked.

    Attributes:
        has_repeats (torch.Tensor): Whether an item came more than once.
        listed (torch.Tensor): What the list of each user holds, the columns of
            :class:`ListStatistics`.
    """

    listed: Tensor

    def __init__(self, task: RankingTask, width: int) -> None:
        self.task, self.num_items = task, task.num_items
        self.num_candidates = task.num_candidates
        self.bytes_per_pair = BYTES_PER_POSITION * width // task.num_items
        self.has_repeats = torch.zeros((), dtype=torch.bool, device=task.device)
        shape = (task.num_users, len(ListStatistics._fields))
        self.listed = torch.full(shape, -1, device=task.device)

    @abstractmethod
    def read(self, chunk: Chunk) -> tuple[Tensor, Tensor]:
        """Returns the lists of the users of a chunk, and which of their places count."""

    def rank(self, chunk: Chunk, k: int) -> tuple[Ranks, Tensor]:
        items, is_listed = self.read(chunk)
        is_left = is_listed & ~chunk.must_not_retrieve(items.clamp(min=-1))
        best = self.keep(items, is_left, chunk, k)
        rank = ranks_in_lists(best, *chunk.truth.pairs, self.num_items)
        return Ranks.unknown(chunk.truth.item)._replace(rank=rank), best

    def keep(self, items: Tensor, is_left: Tensor, chunk: Chunk, k: int) -> Tensor:
        """Returns the first `k` places that are left of lists, and notes what these lack.

        Args:
            items (torch.Tensor): The lists `[num_rows, K]`: `-1` is no item, and lower numbers are
                items that the task does not have.
            is_left (torch.Tensor): Which places are left, of the same shape.
            chunk (Chunk): The chunk.
            k (int): How many places to return at most.
        """
        kept = first_kept(items, is_left, min(k, items.size(1)))
        best = without_repeats(kept)
        self.has_repeats |= (best != kept).any()
        place = torch.arange(1, best.size(1) + 1, device=best.device)
        place_left, depth = is_left.cumsum(dim=1), chunk.depth.unsqueeze(1)
        is_own = place <= depth
        is_item = (best != -1) & is_own
        is_unknown = (best < -1) & is_own
        length = (is_item * place).amax(dim=1)
        # A list goes on where an item follows further down that was not there before.
        follows = (items != -1) & is_left & (place_left > depth)
        is_short = follows.any(dim=1) & (length < chunk.depth)
        # To look at these few alone, a device would have to tell the host how many they are.
        rows = is_short.nonzero().squeeze(1) if is_short.device.type == "cpu" else slice(None)
        follows &= is_short.unsqueeze(1)
        goes_on = (follows[rows] & (without_repeats(items[rows]) != -1)).any(dim=1)
        length[rows] = torch.where(goes_on, chunk.depth[rows], length[rows])
        num_known = (is_item & ~is_unknown).sum(dim=1)
        num_unknown = is_unknown.sum(dim=1)
        self.listed[chunk.users] = torch.stack([length, num_known, num_unknown], dim=1)
        return best

    def warn(self) -> None:
        if bool(self.has_repeats):
            warn(
                "'recommender' recommends an item more than once to a user. Only the first place "
                "counts, and the others count as places without an item"
            )


class FixedListRecommender(ListRecommender):
    """Ranks by given lists, in which each truth edge is looked up."""

    max_depth: int

    def __init__(self, lists: Lists, task: RankingTask, in_words: str) -> None:
        super().__init__(task, lists.width)
        self.lists = lists
        self.max_depth = lists.width
        self.in_words = in_words

    def read(self, chunk: Chunk) -> tuple[Tensor, Tensor]:
        items = self.lists.rows(chunk.users).long()
        place = torch.arange(items.size(1), device=items.device)
        return items, place < self.lists.ptr.diff()[chunk.users].unsqueeze(1)


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
        if wrong := _misfit_of_pairs(self.function):
            raise TypeError(
                f"'function' needs to take user ids and item ids ({wrong}); write "
                f"PairScorer(lambda user, item: model.decode(user, item))"
            )
        set_attributes(self, batch_size=check_positive_integer(self.batch_size, "batch_size"))


def _misfit_of_pairs(function: Callable[..., object]) -> str | None:
    """Returns why a function does not take users and then items; `None` if it may."""
    wrong = misfit(function, "user", "item")
    with suppress(ValueError, TypeError):
        first, second = [*inspect.signature(function).parameters][:2]
        if first.startswith("item") and second.startswith("user"):
            return f"it takes '{first}' before '{second}'"
    return wrong


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
        self.scorer, self.task = scorer, task
        self.num_items = task.num_items
        self.mask = ScoreMask(task) if mask is None else mask
        self.items = torch.arange(task.num_items, device=task.device)
        num_asked = task.num_items
        if task.candidates is not None and task.candidates.dim() == 1:
            self.items, num_asked = task.candidates, task.candidates.numel()
        elif task.candidates is not None:
            num_asked = int(torch.bincount(task.candidates[0], minlength=1).max())
        self.items_at_once = num_asked

    def rank(self, chunk: Chunk, k: int) -> tuple[Ranks, Tensor]:
        row, item = self._pairs(chunk)
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
        with asked(self.task):  # by copies, which a function may overwrite
            given = self.scorer.function(user.clone(), item.clone())
        score = check_scores(given, "recommender()")
        remedy = "; .squeeze(1) turns [num_pairs, 1] into it"
        check_shape(score, "recommender()", (user.numel(),), "scores [num_pairs]", remedy)
        check_device(score, "recommender()", user.device, "task")
        self.mask.note_highest(score.max())
        return score.clone()  # since a function may use its own tensor for the next batch


class ModelRecommender(ListRecommender):
    """Ranks by what a model recommends, for a chunk of users at a time.

    1. The model is asked for as many items as the deepest user needs, and for as many more as may
       be dropped because they were seen.
    2. An adjacency `[chunk, num_items]` on the device marks what must not be retrieved. A gather at
       the recommended items finds what to drop.
    3. A table of the ground truth holds the number of each edge. A gather at the items that are
       left finds the hits, and a scatter gives every edge the place of its item: its *rank*.

    If it is given items, it numbers them from `num_users` on, as they are given. If not, it numbers
    them from zero on, as lists do.

    Args:
        recommend (callable): The `recommend`, which has its edges already, and is asked by
            `src_index`, `dst_index` and `k`.
        task (RankingTask): The task.
        takes_items (bool): Whether it is given items.
    """

    def __init__(self, recommend: Recommend, task: RankingTask, takes_items: bool) -> None:
        num_excluded = task.num_items - task.num_candidates[task.users]
        super().__init__(task, int(num_excluded.max()) if num_excluded.numel() else 0)
        self.bytes_per_pair += 8  # which the scores of a model take at most
        self.recommend, self.num_users = recommend, task.num_users
        self.first_item = task.num_users if takes_items else 0
        #: Whether each item was returned, and a place for none.
        self.is_returned = torch.zeros(task.num_items + 1, dtype=torch.bool, device=task.device)
        items = torch.arange(task.num_items, device=task.device)
        if takes_items and task.candidates is not None and task.candidates.dim() == 1:
            items = task.candidates
        self.dst_index = items + self.first_item
        self.num_wrong = torch.zeros((), dtype=torch.long, device=task.device)

    def read(self, chunk: Chunk) -> tuple[Tensor, Tensor]:
        num_not_asked = self.num_items - self.dst_index.numel()
        items = self._ask(chunk.users, chunk.num_needed - num_not_asked)
        # A user has the places that are needed for it alone, whatever other users are asked about.
        num_own = chunk.depth + self.num_items - self.num_candidates[chunk.users] - num_not_asked
        place = torch.arange(1, items.size(1) + 1, device=items.device)
        is_own = place <= num_own.unsqueeze(1)
        return items.masked_fill_(~is_own, -1), is_own

    def _ask(self, users: Tensor, k: int) -> Tensor:
        """Returns local ids of items: `[len(users), ?]`."""
        k = min(k, self.dst_index.numel())
        with asked(self.task):  # by copies, which a model may overwrite
            answer = self.recommend(src_index=users.clone(), dst_index=self.dst_index.clone(), k=k)
        answer = check_integers(answer, "recommender.recommend()")
        if answer.dim() != 2 or answer.size(0) != users.numel() or answer.size(1) == 0:
            raise ValueError(
                f"'recommender.recommend()' needs to return shape [{users.numel()}, k] with k > 0 "
                f"(got {list(answer.shape)})"
            )
        check_device(answer, "recommender.recommend()", users.device, "task")
        items = (answer.long() - self.first_item).masked_fill_(answer == -1, -1)
        is_wrong = (answer != -1) & ((items < 0) | (items >= self.num_items))
        self.num_wrong += is_wrong.sum()
        items.masked_fill_(is_wrong, -1)
        self.is_returned[items] = True  # of no item at the end
        return items

    def check(self) -> None:
        if num_wrong := int(self.num_wrong):
            first, end = self.first_item, self.first_item + self.num_items
            raise ValueError(
                f"'recommender.recommend()' needs to return item ids in [{first}, {end}), or -1: a "
                f"model that is given items numbers them from 'num_users' on, any other from 0 on "
                f"(got {num_wrong} ids outside)"
            )

    def warn(self) -> None:
        super().warn()
        returned = self.is_returned[:-1].nonzero()
        if self.first_item == 0 and begins_behind_users(returned, self.num_users, self.num_items):
            warn(
                f"'recommender.recommend()' returned no item below {self.num_users}, the number of "
                f"users. A model that is not given items numbers them from 0 on: subtract "
                f"'num_users' if it numbers them from there on"
            )
