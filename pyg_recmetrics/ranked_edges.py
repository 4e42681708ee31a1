"""RankedEdges: every ground-truth edge with its rank. All metrics are functions of it."""

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch_geometric.index import index2ptr
from torch_geometric.utils import segment

from pyg_recmetrics import trec
from pyg_recmetrics.catalogue import Catalogue
from pyg_recmetrics.checks import (
    check_bipartite,
    check_device,
    check_finite,
    check_integers,
    check_scores,
    check_tensor,
    check_weight,
)
from pyg_recmetrics.counting import count_ranks
from pyg_recmetrics.edges import coalesce_truth
from pyg_recmetrics.extras import importing
from pyg_recmetrics.task import RankingTask
from pyg_recmetrics.topk import Scratch

#: The rank of an edge whose item was not retrieved: larger than any k.
NOT_RETRIEVED = torch.iinfo(torch.int64).max


@dataclass(frozen=True, repr=False)
class RankedEdges:
    r"""Ground-truth edges with the rank at which a recommender retrieved them, grouped by user.

    Made by :func:`~pyg_recmetrics.rank` from a model, or by :meth:`from_topk`,
    :meth:`from_scores` and :meth:`from_pairs` from what another system computed.

    Attributes:
        edge_index (torch.Tensor): The edges of shape `[2, num_edges]`, sorted by user and rank;
            edges that were not retrieved come last, sorted by item.
        rank (torch.Tensor): The 1-based rank of every edge, of shape `[num_edges]`; larger than
            any k where the item was not retrieved.
        ptr (torch.Tensor): Of shape `[num_users + 1]`: the edges of user `u` are those from
            `ptr[u]` to `ptr[u + 1]`.
        weight (torch.Tensor or None): How relevant each edge is, of shape `[num_edges]`.
        num_candidates (torch.Tensor or None): How many items each user could have been
            recommended, of shape `[num_users]`; `None` where only lists are known.
        depth (int or None): Ranks are known down to this k (and always down to the user's own
            number of relevant items). `None` if there is nothing below: the ranking is complete,
            or the lists are all there is.
        items (torch.Tensor or None): The lists of recommended items, of shape `[num_users, K]`,
            `-1` where there is none, if they were kept.
        catalogue (Catalogue or None): What is known of the items.
        user_ids (tuple or None): What user `u` is called where the ranking comes from; `None` if
            users are just numbers.
        item_ids (tuple or None): What item `i` is called there.

    Example:
        >>> import torch
        >>> from pyg_recmetrics import RankedEdges, metrics
        >>> ranked = RankedEdges.from_topk(
        ...     pred_index_mat=torch.tensor([[2, 0, 1], [1, 0, -1]]),
        ...     edge_label_index=torch.tensor([[0, 0, 1], [1, 2, 2]]),
        ... )
        >>> ranked.rank[:2], ranked.rank[2:] > 3
        (tensor([1, 3]), tensor([True]))
        >>> metrics.recall(ranked, k=2)
        tensor([0.5000, 0.0000], dtype=torch.float64)
    """

    edge_index: Tensor
    rank: Tensor
    ptr: Tensor
    weight: Tensor | None = None
    num_candidates: Tensor | None = None
    depth: int | None = None
    items: Tensor | None = None
    catalogue: Catalogue | None = None
    user_ids: tuple[str, ...] | None = None
    item_ids: tuple[str, ...] | None = None

    @classmethod
    def from_ranks(
        cls, truth: Tensor, rank: Tensor, num_users: int, weight: Tensor | None = None, **rest: Any
    ) -> "RankedEdges":
        """Groups coalesced `truth` edges of known `rank` by user; `rest` is taken as it is."""
        # Two stable sorts: edges of a user by rank, and by item where ranks are equal.
        order = rank.argsort(stable=True)
        order = order[truth[0, order].argsort(stable=True)]
        return cls(
            edge_index=truth[:, order],
            rank=rank[order],
            ptr=index2ptr(truth[0, order], num_users),
            weight=None if weight is None else weight[order],
            **rest,
        )

    @classmethod
    def from_topk(
        cls,
        pred_index_mat: Tensor,
        edge_label_index: Tensor | tuple[Tensor, Tensor],
        edge_label_weight: Tensor | None = None,
    ) -> "RankedEdges":
        r"""Ranks edges by their position in given lists, with PyG's argument names.

        The lists are all there is: an item that is not in its user's list is not retrieved at
        any k. The padding `-1` is nobody's item but keeps its position. A repeated item counts
        once, at its first position. Repeated edges are one edge.

        Args:
            pred_index_mat (torch.Tensor): The recommended items of every user, best first, of
                shape `[num_users, K]`, integers; `-1` where there is none.
            edge_label_index (torch.Tensor or tuple): The ground-truth edges of shape
                `[2, num_edges]`: rows of `pred_index_mat` and item ids.
            edge_label_weight (torch.Tensor, optional): How relevant each edge is, of shape
                `[num_edges]`. Edges of weight zero or less are not truth. (default: `None`)

        Raises:
            TypeError: If an argument is not a tensor.
            ValueError: If shapes, dtypes, devices or ids are off.
        """
        items = _check_lists(pred_index_mat)
        if isinstance(edge_label_index, tuple):
            edge_label_index = torch.stack(edge_label_index)
        num_items = _max_id(items, edge_label_index) + 1
        truth, weight = _check_truth(
            edge_label_index, edge_label_weight, items.size(0), num_items, items, "pred_index_mat"
        )
        return cls.from_ranks(
            truth,
            ranks_in_lists(items, truth[0], truth[1], num_items),
            num_users=items.size(0),
            weight=weight,
            items=without_repeats(items),
        )

    @classmethod
    def from_scores(
        cls,
        scores: Tensor,
        edge_label_index: Tensor,
        edge_label_weight: Tensor | None = None,
        seen: Tensor | None = None,
    ) -> "RankedEdges":
        r"""Ranks edges by a dense score matrix, all items of a user at once.

        This is for matrices that are at hand anyway, and makes a copy of them.
        :func:`~pyg_recmetrics.rank` takes the same matrix in chunks of bounded memory.

        Args:
            scores (torch.Tensor): Floating-point scores of shape `[num_users, num_items]`, higher
                is better; equal scores rank the lower item id first.
            edge_label_index (torch.Tensor): The ground-truth edges of shape `[2, num_edges]`.
            edge_label_weight (torch.Tensor, optional): How relevant each edge is, of shape
                `[num_edges]`. (default: `None`)
            seen (torch.Tensor, optional): Edges of shape `[2, num_seen]` whose items are left out
                of their user's ranking. (default: `None`)

        Raises:
            TypeError: If an argument is not a tensor.
            ValueError: If shapes, dtypes, devices or ids are off, scores are not finite, or no
                user has truth that can be retrieved.

        Example:
            >>> import torch
            >>> scores = torch.tensor([[0.1, 0.9, 0.5], [0.2, 0.2, 0.2]])
            >>> truth = torch.tensor([[0, 1], [2, 1]])
            >>> RankedEdges.from_scores(scores, truth).rank
            tensor([2, 2])
        """
        scores = check_scores(scores, "scores")
        if scores.dim() != 2:
            raise ValueError(
                f"'scores' needs to have shape [num_users, num_items] (got {list(scores.shape)})"
            )
        check_finite(scores, "scores")
        num_users, num_items = scores.shape
        task = RankingTask(
            edge_label_index,
            weight=edge_label_weight,
            seen=seen,
            num_users=num_users,
            num_items=num_items,
        )
        check_device(task.truth, "edge_label_index", scores.device, "scores")
        masked = scores.to(torch.promote_types(scores.dtype, torch.float32), copy=True)
        masked[task.seen[0], task.seen[1]] = -torch.inf
        row, item = task.truth
        return cls.from_ranks(
            task.truth,
            count_ranks(masked, row, item, Scratch(scores.device)),
            num_users=num_users,
            weight=task.weight,
            num_candidates=task.num_candidates,
        )

    @classmethod
    def from_pairs(cls, preds: Tensor, target: Tensor, indexes: Tensor) -> "RankedEdges":
        r"""Ranks scored pairs within their query, with torchmetrics' argument names.

        Pairs of equal score rank in the order they are given. Unlike torchmetrics, scores may
        have any sign. R is the number of relevant pairs *that are passed*: pass all of them, not
        only those of a top-k list.

        Args:
            preds (torch.Tensor): Floating-point scores of shape `[num_pairs]` (others are
                flattened), higher is better.
            target (torch.Tensor): The relevance of each pair: booleans or integers, or floating-
                point weights. Zero or less is not relevant.
            indexes (torch.Tensor): The query (user) each pair belongs to, integers of any size.
                Result row `r` is the query with the `r`-th smallest index.

        Raises:
            TypeError: If an argument is not a tensor.
            ValueError: If shapes, dtypes or devices differ, or scores are not finite.

        Example:
            >>> import torch
            >>> ranked = RankedEdges.from_pairs(
            ...     preds=torch.tensor([0.2, 0.7, 0.9, -0.1]),
            ...     target=torch.tensor([True, False, True, True]),
            ...     indexes=torch.tensor([0, 0, 5, 5]),
            ... )
            >>> ranked.rank, ranked.ptr
            (tensor([2, 1, 2]), tensor([0, 1, 3]))
        """
        preds = check_scores(preds, "preds").flatten()
        check_finite(preds, "preds")
        indexes = check_integers(indexes, "indexes").flatten()
        target = check_tensor(target, "target").flatten()
        for value, name in ((target, "target"), (indexes, "indexes")):
            check_device(value, name, preds.device, "preds")
            if value.shape != preds.shape:
                raise ValueError(
                    f"'{name}' needs to have as many elements as 'preds', {preds.numel()} "
                    f"(got {value.numel()})"
                )
        check_finite(target, "target")
        queries, user, num_candidates = indexes.unique(return_inverse=True, return_counts=True)
        order = preds.argsort(descending=True, stable=True)
        order = order[user[order].argsort(stable=True)]
        first = index2ptr(user[order], queries.numel())[user[order]]
        position = torch.arange(order.numel(), device=order.device) - first
        is_relevant = target[order] > 0
        relevant = order[is_relevant]
        weight = None if _is_binary(target) else target[relevant].double()
        return cls.from_ranks(
            torch.stack([user[relevant], relevant]),
            position[is_relevant] + 1,
            num_users=queries.numel(),
            weight=weight,
            num_candidates=num_candidates,
        )

    @classmethod
    def from_trec(cls, run: str | Path, qrels: str | Path) -> "RankedEdges":
        r"""Reads a run and its qrels, the files of trec_eval.

        Items are ordered by score, and equal scores by their place in the file; the column of ranks
        is not looked at, as trec_eval does not. Users are those of both files: who is not in the
        run has no item retrieved, and who is not in the qrels has no truth. Ids may be any
        strings: they are numbered, by value if all are integers, and what each number stands for
        is kept in `user_ids` and `item_ids`.

        Args:
            run (str or Path): A file with lines `user Q0 item rank score tag`.
            qrels (str or Path): A file with lines `user 0 item relevance`. A relevance of zero or
                less is not relevant; others are weights unless all are one.

        Raises:
            FileNotFoundError: If there is no such file.
            ValueError: If a line is malformed or repeats an item; file and line are named.

        Example:
            >>> import tempfile
            >>> folder = Path(tempfile.mkdtemp())
            >>> _ = (folder / "run").write_text("ann Q0 x 1 0.9 me\nann Q0 y 2 0.5 me\n")
            >>> _ = (folder / "qrels").write_text("ann 0 y 1\nbob 0 x 1\n")
            >>> ranked = RankedEdges.from_trec(folder / "run", folder / "qrels")
            >>> ranked.user_ids, ranked.item_ids, ranked.rank[0]
            (('ann', 'bob'), ('x', 'y'), tensor(2))
        """
        scored, judged = trec.read_run(run), trec.read_qrels(qrels)
        if not scored and not judged:
            raise ValueError(f"'run' and 'qrels' need to hold lines (got none in {run}, {qrels})")
        users = trec.number({user for user, _, _ in (*scored, *judged)})
        items = trec.number({item for _, item, _ in (*scored, *judged)})
        lists: list[list[int]] = [[] for _ in users]
        for user, item, _ in sorted(scored, key=lambda line: -line[2]):
            lists[users[user]].append(items[item])
        rows = [torch.tensor(row, dtype=torch.long) for row in lists]
        edges = [(users[user], items[item]) for user, item, _ in judged]
        relevance = torch.tensor([value for _, _, value in judged], dtype=torch.float64)
        is_binary = bool((relevance[relevance > 0] == 1).all())
        ranked = cls.from_topk(
            torch.nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=-1),
            torch.tensor(edges, dtype=torch.long).reshape(-1, 2).t(),
            relevance,
        )
        return dataclasses.replace(
            ranked,
            weight=None if is_binary else ranked.weight,
            user_ids=tuple(users),
            item_ids=tuple(items),
        )

    def to_trec(self, run: str | Path, qrels: str | Path) -> None:
        r"""Writes the lists and the ground truth for trec_eval and other tools to check.

        Args:
            run (str or Path): Where to write the lists, as `user Q0 item rank score tag`; scores
                fall by one with each rank.
            qrels (str or Path): Where to write the truth, as `user 0 item relevance`.

        Raises:
            ValueError: If lists were not kept, or weights are not whole numbers.
        """
        trec.write_run(run, self._named_lists())
        trec.write_qrels(qrels, self._named_truth())

    def to_ranx(self) -> tuple[Any, Any]:
        r"""Returns the ground truth and the lists as a `(ranx.Qrels, ranx.Run)`.

        Users without truth are left out, as ranx refuses runs and qrels of different users.

        Raises:
            ImportError: If ranx is not installed.
            ValueError: If lists were not kept, or weights are not whole numbers.
        """
        with importing("ranx", "peers", "to_ranx"):
            import ranx
        qrels: dict[str, dict[str, int]] = {}
        for user, item, relevance in self._named_truth():
            qrels.setdefault(user, {})[item] = relevance
        run = {
            user: {item: float(len(items) - place) for place, item in enumerate(items)}
            for user, items in self._named_lists()
            if user in qrels
        }
        return ranx.Qrels(qrels), ranx.Run(run)

    def _named_lists(self) -> Iterator[tuple[str, list[str]]]:
        if self.items is None:
            raise ValueError(
                "'ranked' needs to hold lists to be exported, see 'keep_items' (got none)"
            )
        for user, items in enumerate(self.items.tolist()):
            yield self._user_id(user), [self._item_id(item) for item in items if item >= 0]

    def _named_truth(self) -> Iterator[tuple[str, str, int]]:
        weight = torch.ones_like(self.rank) if self.weight is None else self.weight
        if bool((weight != weight.round()).any()):
            raise ValueError("'weight' needs to hold whole numbers to be exported (got others)")
        for user, item, relevance in zip(
            *self.edge_index.tolist(), weight.long().tolist(), strict=True
        ):
            yield self._user_id(user), self._item_id(item), relevance

    def _user_id(self, user: int) -> str:
        return str(user) if self.user_ids is None else self.user_ids[user]

    def _item_id(self, item: int) -> str:
        return str(item) if self.item_ids is None else self.item_ids[item]

    @property
    def num_users(self) -> int:
        """The number of users, with or without truth."""
        return self.ptr.numel() - 1

    @property
    def degree(self) -> Tensor:
        """The number of relevant items R of every user, of shape `[num_users]`."""
        return self.ptr.diff()

    @cached_property
    def position(self) -> Tensor:
        """The 1-based place of every edge among its user's edges, of shape `[num_edges]`."""
        user = self.edge_index[0]
        return torch.arange(1, user.numel() + 1, device=user.device) - self.ptr[user]

    @property
    def known_candidates(self) -> Tensor:
        """The number of candidates of every user, of shape `[num_users]`.

        Raises:
            ValueError: If it is not known.
        """
        if self.num_candidates is None:
            raise ValueError("'ranked' needs to know the number of candidates (got lists alone)")
        return self.num_candidates

    @property
    def known_catalogue(self) -> Catalogue:
        """What is known of the items.

        Raises:
            ValueError: If nothing is.
        """
        if self.catalogue is None:
            raise ValueError("'ranked' needs to know its items, see 'with_catalogue' (got nothing)")
        return self.catalogue

    @property
    def known_items(self) -> Tensor:
        """The lists of recommended items, of shape `[num_users, K]`.

        Raises:
            ValueError: If they were not kept.
        """
        if self.items is None:
            raise ValueError(
                "'ranked' needs to hold the lists of recommended items: rank with "
                "'keep_items=True' (got none)"
            )
        return self.items

    @property
    def has_list(self) -> Tensor:
        """Whether each user has a list with any item, of shape `[num_users]`.

        Raises:
            ValueError: If lists were not kept.
        """
        return (self.known_items >= 0).any(dim=1)

    def with_lists_of(self, users: Tensor) -> "RankedEdges":
        """Returns a copy with empty lists for all but the users of a mask `[num_users]`.

        Raises:
            ValueError: If lists were not kept.
        """
        items = self.known_items.masked_fill(~users.unsqueeze(1), -1)
        return dataclasses.replace(self, items=items)

    def recommended(self, k: int) -> Tensor:
        """An edge from every user to each item of its list, of shape `[2, num_recommended]`.

        They are sorted by user and rank, down to `k`. Padding is none of them.

        Raises:
            ValueError: If lists were not kept, or not down to `k`.
        """
        items = self.known_items
        width = items.size(1)
        # Lists that were given are all there is, but of a ranking more could have been kept.
        if self.num_candidates is not None and width < min(k, int(self.num_candidates.max())):
            raise ValueError(
                f"'k' needs to be at most {width}, the number of items kept of each list (got {k})"
            )
        user, place = (items[:, :k] >= 0).nonzero(as_tuple=True)
        return torch.stack([user, items[user, place]])

    def is_hit(self, k: int | Tensor | None) -> Tensor:
        """Whether every edge is retrieved at `k`, its own user's `k`, or at all: `[num_edges]`."""
        if k is None:
            return self.rank < NOT_RETRIEVED
        return self.rank <= (k[self.edge_index[0]] if isinstance(k, Tensor) else k)

    def hits(self, k: int | Tensor | None) -> Tensor:
        """How many relevant items each user has in the top `k`, of shape `[num_users]`."""
        if isinstance(k, Tensor):
            return self.sum(self.is_hit(k))
        if k not in self._hits:
            self._hits[k] = self.sum(self.is_hit(k))
        return self._hits[k].clone()

    @cached_property
    def _hits(self) -> dict[int | None, Tensor]:
        """The hits at every `k` that was asked for, as most metrics ask for the same ones."""
        return {}

    def list_length(self, k: int) -> Tensor:
        """How many items each user's list has down to `k`, of shape `[num_users]`.

        Raises:
            ValueError: If neither lists nor the number of candidates are known.
        """
        if self.num_candidates is not None:
            return self.num_candidates.clamp(max=k)
        if self.items is not None:
            return (self.items[:, :k] >= 0).sum(dim=1)
        raise ValueError("'ranked' needs to hold lists, or the number of candidates (got neither)")

    def sum(self, values: Tensor) -> Tensor:
        """Sums a value per edge for each user, in double precision: `[num_users]`."""
        # Double precision makes the sum independent of the order in which a device adds up.
        total: Tensor = segment(values.double(), self.ptr, reduce="sum")
        return total

    def with_catalogue(self, catalogue: Catalogue) -> "RankedEdges":
        r"""Returns a copy that knows its items, for the metrics that look at them.

        Args:
            catalogue (Catalogue): What is known of the items.

        Raises:
            TypeError: If it is no catalogue.
            ValueError: If it is on another device, or holds less items than there are.

        Example:
            >>> import torch
            >>> from pyg_recmetrics import Catalogue, RankedEdges
            >>> lists, truth = torch.tensor([[2, 0], [1, 0]]), torch.tensor([[0, 1], [1, 2]])
            >>> ranked = RankedEdges.from_topk(lists, truth).with_catalogue(Catalogue(num_items=4))
            >>> ranked.catalogue, ranked.recommended(k=1)[1]
            (Catalogue(num_items=4), tensor([2, 1]))
        """
        if not isinstance(catalogue, Catalogue):
            raise TypeError(
                f"'catalogue' needs to be a 'Catalogue' (got {type(catalogue).__name__})"
            )
        catalogue.check_device(self.rank.device, "ranked")
        largest = _max_id(self.rank[:0] if self.items is None else self.items, self.edge_index[1])
        if largest >= catalogue.num_items:
            raise ValueError(
                f"'catalogue' needs to hold all items of the ranking, up to {largest} "
                f"(got num_items={catalogue.num_items})"
            )
        return dataclasses.replace(self, catalogue=catalogue)

    def select_edges(self, mask: Tensor) -> "RankedEdges":
        """Returns some of the edges as if the truth had no others; ranks stay what they are.

        Args:
            mask (torch.Tensor): Which edges, booleans of shape `[num_edges]`.
        """
        return dataclasses.replace(
            self,
            edge_index=self.edge_index[:, mask],
            rank=self.rank[mask],
            ptr=index2ptr(self.edge_index[0, mask], self.num_users),
            weight=None if self.weight is None else self.weight[mask],
        )

    def to(self, device: torch.device | str) -> "RankedEdges":
        """Returns a copy on another device."""
        moved: dict[str, Any] = {
            field.name: value.to(device)
            for field in dataclasses.fields(self)
            if isinstance(value := getattr(self, field.name), Tensor | Catalogue)
        }
        return dataclasses.replace(self, **moved)

    def __repr__(self) -> str:
        depth = "complete" if self.depth is None else self.depth
        return (
            f"{type(self).__name__}(num_users={self.num_users}, "
            f"num_edges={self.rank.numel()}, depth={depth})"
        )


def ranks_in_lists(items: Tensor, row: Tensor, item: Tensor, num_items: int) -> Tensor:
    """Returns the rank of every edge (`row`, `item`) in its row of `items`.

    Edges are sorted by (row, item). Each place of each list looks up its edge, if it has one,
    and offers its position as that edge's rank: the first position wins.
    """
    num_edges = row.numel()
    rank = torch.full((num_edges + 1,), NOT_RETRIEVED, device=items.device)
    if num_edges == 0 or items.numel() == 0:
        return rank[:num_edges]
    known = row * num_items + item
    first_key = torch.arange(items.size(0), device=items.device).unsqueeze(1) * num_items
    asked = torch.where(items < 0, -1, items + first_key)
    place = torch.searchsorted(known, asked).clamp_(max=num_edges - 1)
    place = torch.where(known[place] == asked, place, num_edges)
    position = torch.arange(1, items.size(1) + 1, device=items.device).expand_as(place)
    return rank.scatter_reduce_(0, place.flatten(), position.flatten(), "amin")[:num_edges]


def without_repeats(items: Tensor) -> Tensor:
    """Replaces repetitions of an item within a row by the padding `-1`."""
    ordered, order = items.sort(dim=1, stable=True)
    ordered[:, 1:].masked_fill_(ordered[:, 1:] == ordered[:, :-1], -1)
    return torch.empty_like(items).scatter_(1, order, ordered)


def _check_lists(pred_index_mat: Any) -> Tensor:
    items = check_integers(pred_index_mat, "pred_index_mat")
    if items.dim() != 2:
        raise ValueError(
            f"'pred_index_mat' needs to have shape [num_users, K] (got {list(items.shape)})"
        )
    if items.numel() and int(items.min()) < -1:
        raise ValueError(
            f"'pred_index_mat' needs to hold item ids, or -1 for none (got {int(items.min())})"
        )
    return items


def _check_truth(
    edges: Any, weight: Any, num_users: int, num_items: int, owner: Tensor, owner_name: str
) -> tuple[Tensor, Tensor | None]:
    edges = check_bipartite(edges, "edge_label_index", num_users, num_items)
    check_device(edges, "edge_label_index", owner.device, owner_name)
    if weight is not None:
        weight = check_weight(weight, "edge_label_weight", edges)
        check_device(weight, "edge_label_weight", owner.device, owner_name)
    return coalesce_truth(edges, weight, max(num_users, num_items))


def _max_id(items: Tensor, edges: Any) -> int:
    largest = int(items.max()) if items.numel() else 0
    if isinstance(edges, Tensor) and edges.numel():
        largest = max(largest, int(edges.max()))
    return max(largest, 0)


def _is_binary(target: Tensor) -> bool:
    return target.dtype == torch.bool or bool(
        (target <= 1).all() & (target == target.round()).all()
    )
