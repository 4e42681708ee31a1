"""RankingTask: who is ranked, over what, what is relevant, what is seen, and its catalogue."""

from __future__ import annotations

import copy
from collections.abc import Callable, Hashable, Sequence
from functools import cached_property
from typing import Any, NamedTuple, TypeVar, cast

import torch
from torch import Tensor
from torch_geometric.data import Data, HeteroData
from torch_geometric.typing import Adj, EdgeType

from pyg_recmetrics.checks import (
    EdgesLike,
    TensorLike,
    as_matrix,
    as_tensor,
    check_boolean,
    check_device,
    check_edges,
    check_finite,
    check_integers,
    check_labels,
    check_natural_number,
    check_pairs,
    check_positive_integer,
    check_raw_ids,
    check_scores,
    check_weighted_edges,
    is_edges_like,
    unless_all_one,
    written,
)
from pyg_recmetrics.task.data_frames import FrameLike, read_frames
from pyg_recmetrics.task.edges import (
    Missing,
    QueriesLike,
    TriplesLike,
    TruthByUser,
    are_candidates,
    check_truth_of,
    coalesce_edges,
    contains,
    count_candidates,
    digest_of,
    find_relevant,
    keep_retrievable,
    read_candidates,
    read_count,
    read_events,
    read_message_passing,
    read_missing,
    read_num_relations,
    read_person,
    read_queries,
    read_query,
    read_relevant,
    read_seen,
    read_threshold,
    read_triples,
    read_truth,
    read_users,
    read_weight,
    select,
    to_bipartite,
    truth_of,
    warn_about_low_ratings,
    warn_about_numbering,
    warn_about_zero_ratings,
)
from pyg_recmetrics.task.graph import (
    check_directions,
    check_ratings,
    read_data,
    to_homogeneous,
    warn_of_one_direction,
)
from pyg_recmetrics.utils import (
    Frozen,
    Memory,
    arguments_of,
    names_of_arguments,
    set_attributes,
    warn,
    written_as,
)

#: How a program and how the command gives what a metric may need to know, but for facts of items.
_HOW_TO_GIVE = {
    "num_items": ("the number of items: attach a 'Catalogue' by 'ranked.with_catalogue'",) * 2,
    "seen": (
        "what users have seen: give 'seen' edges to the 'RankingTask' (or to the 'Catalogue')",
        "what users have seen: pass --train",
    ),
}


class Catalogue(Frozen):
    r"""What is known about the items: how often they were seen, and what they are like.

    Every :class:`~pyg_recmetrics.RankingTask` has a catalogue with its seen edges, and
    :func:`~pyg_recmetrics.evaluate` takes one with embeddings and categories. For lists that come
    from elsewhere, :meth:`RankedEdges.with_catalogue` attaches one.

    Args:
        num_items (int): The number of items.
        seen (torch.Tensor, optional): The interactions of users with items before the evaluation,
            edges of shape `[2, num_seen]`. Repeated edges are one edge. (default: `None`)
        item_embedding (torch.Tensor, optional): Floating-point features of every item, of shape
            `[num_items, num_features]`. (default: `None`)
        item_category (torch.Tensor, optional): The category of every item as an integer, of shape
            `[num_items]`. If items have several categories or none, a matrix of shape
            `[num_items, num_categories]` that is true or positive where an item has a category.
            (default: `None`)

    Raises:
        TypeError: If an argument does not hold numbers.
        ValueError: If an argument has a wrong shape or dtype, or holds wrong ids, or numbers that
            are not finite.

    Example:
        >>> import torch
        >>> from pyg_recmetrics import Catalogue
        >>> seen = torch.tensor([[0, 0, 1], [1, 2, 1]])
        >>> Catalogue(num_items=4, seen=seen).popularity
        tensor([0, 2, 1, 0])
    """

    #: `None` if there are no seen edges: popularity is then undefined.
    seen: Tensor | None
    item_embedding: Tensor | None = None
    item_category: Tensor | None = None

    def __init__(
        self,
        num_items: int,
        *,
        seen: EdgesLike | None = None,
        item_embedding: TensorLike | None = None,
        item_category: TensorLike | None = None,
    ) -> None:
        self.num_items = num_items = check_positive_integer(num_items, "num_items")
        self.seen = None if seen is None else _check_seen(seen, num_items)
        if item_embedding is not None:
            shapes = {2: f"[{num_items=}, num_features]"}
            features = _read_rows(item_embedding, "item_embedding", num_items, shapes)
            self.item_embedding = check_scores(features, "item_embedding")
        if item_category is not None:
            shapes = {1: f"[{num_items=}]", 2: f"[{num_items=}, num_categories]"}
            category = _read_rows(item_category, "item_category", num_items, shapes)
            self.item_category = _check_category(category)
        self._freeze()

    @cached_property
    def interactions(self) -> Tensor:
        """The seen edges, sorted by user and each of them once, of shape `[2, num_seen]`.

        Raises:
            ValueError: If seen edges are not known.
        """
        return coalesce_edges(self.get("seen"), self.num_items)

    @cached_property
    def popularity(self) -> Tensor:
        """The number of users who have seen each item, of shape `[num_items]`."""
        return torch.bincount(self.interactions[1], minlength=self.num_items)

    @cached_property
    def num_active_users(self) -> int:
        """The number of users who have seen any item."""
        return int(self.interactions[0].unique_consecutive().numel())

    def get(self, name: str) -> Tensor:
        """Returns `seen`, `item_embedding` or `item_category`.

        Raises:
            ValueError: If it is not known; the error says how to give it.
        """
        check_has(self, name, "catalogue")
        value: Tensor = getattr(self, name)
        return value

    def _check_device(self, device: torch.device, owner: str) -> None:
        """Raises if a tensor is on another device than its `owner`."""
        for name, value in self._tensors().items():
            check_device(value, name, device, owner)

    def to(self, device: torch.device | str) -> Catalogue:
        """Returns a copy on another device, or itself if it is there already.

        Example:
            >>> import torch
            >>> from pyg_recmetrics import Catalogue
            >>> items = Catalogue(num_items=3, item_category=torch.tensor([0, 1, 1]))
            >>> items.to("cpu").item_category
            tensor([0, 1, 1])
        """
        device = torch.device(device)
        if all(value.device == device for value in self._tensors().values()):
            return self
        moved = {name: value.to(device) for name, value in self._tensors().items()}
        return type(self)(**self.to_dict() | moved)

    def to_dict(self) -> dict[str, Any]:
        """Returns the arguments that the catalogue was made of."""
        return {name: value for name, value in arguments_of(self).items() if value is not None}

    def __repr__(self) -> str:
        shapes = [f"{name}={list(value.shape)}" for name, value in self._tensors().items()]
        return f"{type(self).__name__}({', '.join([f'num_items={self.num_items}', *shapes])})"

    def _tensors(self) -> dict[str, Tensor]:
        return {name: x for name, x in self.to_dict().items() if isinstance(x, Tensor)}


def check_catalogue(catalogue: object) -> None:
    """Raises if something else was passed as a catalogue."""
    if not isinstance(catalogue, Catalogue):
        raise TypeError(f"'catalogue' needs to be a 'Catalogue' (got {type(catalogue).__name__})")


def check_has(catalogue: Catalogue | None, name: str, metric: str) -> None:
    """Raises if a catalogue lacks what a metric needs, and says how to give it."""
    source = "seen" if name == "popularity" else name
    if getattr(catalogue, source, None) is None:
        fact = f"the {source.removeprefix('item_')} of every item"
        of_items = (
            f"{fact}: pass catalogue=Catalogue(..., {source}=...)",
            f"{fact}, for which there is no option",
        )
        how = written_as(*_HOW_TO_GIVE.get(source, of_items))
        raise ValueError(f"'{metric}' needs {how} (got none)")


def _check_seen(seen: object, num_items: int) -> Tensor | None:
    edges = check_edges(seen, "seen", num_columns=num_items)
    if edges.size(1) == 0:
        return None
    check_pairs(edges, "seen", int(edges[0].max()) + 1, num_items)
    return edges


def _read_rows(value: object, name: str, num_items: int, shapes: dict[int, str]) -> Tensor:
    """Returns finite numbers with a row for every item, in one of some numbers of dimensions."""
    check_labels(value, name, None)
    tensor = as_tensor(value, name)
    if tensor.dim() not in shapes or tensor.size(0) != num_items:
        wanted = " or ".join(shapes.values())
        raise ValueError(f"'{name}' needs to have shape {wanted} (got {list(tensor.shape)})")
    check_finite(tensor, name)
    return tensor


def _check_category(tensor: Tensor) -> Tensor:
    is_one_each = tensor.dim() == 1
    if is_one_each:
        tensor = check_integers(tensor, "item_category")
    if bool((tensor < 0).any()):
        raise ValueError(f"'item_category' needs to be zero or more (got {tensor.min()})")
    # Categories are renumbered from zero on, so that large ids do not take memory.
    return tensor.unique(return_inverse=True)[1] if is_one_each else tensor


T = TypeVar("T")

#: So many things that were found out about a task are kept, such as the order of users by depth.
_MAX_KNOWN = 4

#: What follows from the truth of a task.
_OF_TRUTH = ("degree", "max_degree", "_extremes", "users_with_truth")

#: What is printed of a task, in this order.
_SHOWN = (
    *("num_users", "num_items", "truth", "threshold", "seen", "exclude_seen", "candidates"),
    *("missing", "users", "person", "query", "num_relations"),
)


class Extremes(NamedTuple):
    """Numbers of a task that the host has to know, in one copy.

    Attributes:
        max_degree: The largest number of relevant items of a user.
        num_with_truth: How many users have any.
        max_candidates: The largest number of candidates of a user.
    """

    max_degree: int
    num_with_truth: int
    max_candidates: int


class PartOf(NamedTuple):
    """What a part of a task knows of the whole.

    Attributes:
        num_own: How many of the users the part has, with or without truth.
        num_users: How many users the task has.
        num_edges: How many ground-truth edges.
        digest: What tells the truth, the candidates, the seen edges and all else of the task from
            those of any other.
        number: The number of the part; of a part of a part, that of the larger one.
        num_parts: How many parts there are; zero if it is not known which these are.
    """

    num_own: int
    num_users: int
    num_edges: int
    digest: str
    number: int = 0
    num_parts: int = 0


class RankingTask(Frozen):
    r"""The task of a recommender: which items to rank for which users, and what is relevant.

    Ids are local, as in a bipartite :class:`~torch_geometric.data.HeteroData` store: users are
    numbered from `0` to `num_users - 1` and items from `0` to `num_items - 1`. The task is
    prepared once (edges are sorted and coalesced), and can then be ranked any number of times.
    Edges may also come as an :class:`~torch_geometric.EdgeIndex`, as arrays or lists, as a pair of
    user ids and item ids, or as a sparse matrix of users and items. All other tensors may be arrays
    or lists.

    Truth, seen edges and message-passing edges are three different things. The items that a user
    has *seen* are left out of that user's ranking, so they can never be retrieved. The task
    therefore removes ground-truth edges that are also seen, with one warning that counts them. A
    user who has seen everything has no candidates, and stays among the users as one without truth.
    With `exclude_seen=False`, seen items are ranked like all others, but still count for
    popularity. The option `missing` says how to treat truth that is no candidate.

    Args:
        truth (torch.Tensor): The ground-truth edges of shape `[2, num_edges]`, integers. Repeated
            edges are one edge, with the largest of their weights. The values of a sparse matrix are
            weights, unless all of them are one.
        num_users (int): The number of users.
        num_items (int): The number of items.
        seen (torch.Tensor, optional): What users have seen before, edges of shape `[2, num_seen]`,
            usually the message-passing edges. They say how popular items are. (default: `None`)
        exclude_seen (bool, optional): Whether the items that a user has seen are left out of that
            user's ranking. (default: `True`)
        weight (torch.Tensor, optional): How relevant each ground-truth edge is, of shape
            `[num_edges]`, for graded metrics. As in PyG's `LinkPred*` metrics, edges of weight
            zero or less are not truth. (default: `None`, all are equally relevant)
        threshold (float, optional): The smallest weight of a relevant item, a positive number, as
            in "at least 4 stars". Edges of less weight are not truth, and their items remain
            candidates that are not relevant. The others keep their weights, which graded metrics
            use: choose `ndcg(gain=binary)@k` to treat them alike. (default: `None`, all edges of
            positive weight are truth. If some weights are neither 0 nor 1, a warning says how many
            edges have a weight of zero or less)
        candidates (torch.Tensor, optional): The items to rank: item ids of shape
            `[num_candidates]` that all users share, or edges of shape `[2, num_candidates]` where
            each user has its own candidates. (default: `None`, all items)
        missing (str, optional): How to treat truth that is not among the candidates. `"count"`
            counts it as not retrieved, at any k: a model that re-ranks the candidates of a first
            stage cannot find what that stage has missed. `"drop"` takes it out of the truth, with a
            warning that counts it. (default: `None`, which is `"count"` if each user has candidates
            of its own, and `"drop"` if all users share them)
        users (torch.Tensor, optional): The ids of the users to evaluate. The others are not
            ranked, and their truth is ignored. (default: `None`, all users)
        user_ids (sequence, optional): The original id of every user, such as a name. Results,
            lists and files call the users by them. (default: `None`, users are called by their
            number)
        item_ids (sequence, optional): The original id of every item. (default: `None`)
        person (torch.Tensor or sequence, optional): The person behind each row, of shape
            `[num_users]`, if a person may have several rows, such as one for each session:
            integers or names. Intervals and tests then treat persons as independent of each other,
            and not rows. (default: `None`, every row is a person)
        query (torch.Tensor, optional): The query that each row of users stands for, integers of
            shape `[num_users, num_columns]`, as :meth:`from_queries` numbers them.
            (default: `None`, every row is a user)
        num_relations (int, optional): The number of relations, if queries are those of
            :meth:`from_triples`. (default: `None`, they are not)

    Raises:
        TypeError: If an edge list does not hold numbers, `exclude_seen` is not a boolean, or
            original ids cannot be hashed.
        ValueError: If ids are out of range, shapes, dtypes or devices do not fit, `threshold` is
            not positive, comes without weights or is above all of them, there is no such way to
            treat missing truth, original ids, persons or queries are not as many as there are
            users or items, ids repeat, or no user has truth that can be retrieved.

    Example:
        >>> import torch
        >>> from pyg_recmetrics import RankingTask
        >>> truth = torch.tensor([[0, 0, 1], [2, 3, 0]])
        >>> seen = torch.tensor([[0, 1, 1], [0, 1, 2]])
        >>> RankingTask(truth, num_users=3, num_items=4, seen=seen)
        RankingTask(num_users=3, num_items=4, truth=[2, 3], seen=[2, 3])
    """

    user_ids: tuple[Hashable, ...] | None = None
    item_ids: tuple[Hashable, ...] | None = None
    #: The number of the person that each user belongs to, of shape `[num_users]`.
    person: Tensor | None = None
    #: The query that each row of users stands for, of shape `[num_users, num_columns]`.
    query: Tensor | None = None
    num_relations: int | None = None
    threshold: float | None = None
    candidates: Tensor | None = None
    missing: Missing = "drop"
    #: The number of items that can be recommended to each user, of shape `[num_users]`.
    num_candidates: Tensor
    #: What is known about the items, such as their popularity among the seen edges.
    catalogue: Catalogue
    #: The message-passing edges for models that propagate, in the numbering of a homogeneous
    #: graph, where items come after the users. Known if the task was read from data.
    edge_index: Adj | None = None
    edge_weight: Tensor | None = None
    #: Whether it was said what users have seen, which ground-truth edges alone do not say.
    knows_seen: bool = True
    #: What it is a part of, see :meth:`part`; `None` if it is whole.
    part_of: PartOf | None = None

    @written("RankingTask(test, seen=train, num_users=..., num_items=...)")
    def __init__(
        self,
        truth: EdgesLike,
        *,
        num_users: int,
        num_items: int,
        seen: EdgesLike | None = None,
        exclude_seen: bool = True,
        weight: TensorLike | None = None,
        threshold: float | None = None,
        candidates: EdgesLike | None = None,
        missing: Missing | None = None,
        users: TensorLike | None = None,
        user_ids: Sequence[Hashable] | None = None,
        item_ids: Sequence[Hashable] | None = None,
        person: TensorLike | Sequence[Hashable] | None = None,
        query: TensorLike | None = None,
        num_relations: int | None = None,
    ) -> None:
        self.num_users = num_users = check_positive_integer(num_users, "num_users")
        self.num_items = num_items = check_positive_integer(num_items, "num_items")
        self.user_ids = None if user_ids is None else check_raw_ids(user_ids, "user_ids", num_users)
        self.item_ids = None if item_ids is None else check_raw_ids(item_ids, "item_ids", num_items)
        edges, raw_weight = check_weighted_edges(
            truth, weight, "truth", "weight", num_users, num_items
        )
        check_pairs(edges, "truth", num_users, num_items)
        device = edges.device
        self.person = read_person(person, num_users, device, self.user_ids)
        self.query = read_query(query, num_users, device)
        self.num_relations = read_num_relations(num_relations, self.query)
        self.seen = read_seen(seen, num_users, num_items, device)
        self.exclude_seen = check_boolean(exclude_seen, "exclude_seen")
        self.candidates = read_candidates(candidates, num_users, num_items, device)
        self.missing = read_missing(missing, self.candidates)
        self.users = read_users(users, num_users, device)
        every_weight = read_weight(raw_weight, edges)
        self.threshold = read_threshold(threshold, raw_weight)
        self._find_truth(edges, every_weight)
        self._complete()

    def _find_truth(self, edges: Tensor, weight: Tensor | None) -> None:
        """Sets the truth, of edges that are checked and of the other arguments."""
        truth, weight = find_relevant(edges, weight, self.threshold, self.num_items)
        if self.users.numel() < self.num_users:
            truth, weight = truth_of(truth, weight, self.users, self.num_users)
            check_truth_of(self.users, truth)
        if self.num_users < self.num_items and self.query is None and self.candidates is None:
            warn_about_numbering(truth, self.seen, self.num_users, self.num_items)
        self.truth, self.weight = keep_retrievable(
            truth, weight, self.excluded, self.candidates, self.num_items, self.missing
        )

    def _warn_of_leaks(self, edges: Tensor, description: str, remedy: str) -> None:
        """Warns of truth among coalesced edges, but for seen edges that are not left out."""
        is_there = contains(edges, self.truth, self.num_items)
        if not self.exclude_seen:
            # An evaluation on message-passing edges is on purpose.
            is_there &= ~contains(self.seen, self.truth, self.num_items)
        if num_leaks := int(is_there.sum()):
            warn(
                f"{num_leaks} of {self.truth.size(1)} ground-truth edges leak: they are among "
                f"{description}. {remedy}"
            )

    def _complete(self) -> None:
        """Sets what follows from the arguments, once they are prepared."""
        self.catalogue = catalogue = Catalogue.__new__(Catalogue)
        catalogue.num_items = self.num_items
        catalogue.seen = self.seen if self.seen.size(1) else None
        catalogue._freeze()
        self.num_candidates = count_candidates(
            self.candidates, self.excluded, self.num_users, self.num_items
        )
        self._freeze()

    @classmethod
    def from_data(
        cls,
        data: Data | HeteroData,
        edge_type: EdgeType | None = None,
        *,
        num_users: int | None = None,
        exclude_seen: bool = True,
        threshold: float | None = None,
        candidates: EdgesLike | None = None,
        missing: Missing | None = None,
        users: TensorLike | None = None,
        user_ids: Sequence[Hashable] | None = None,
        item_ids: Sequence[Hashable] | None = None,
    ) -> RankingTask:
        r"""Reads a task from one part of a split, in PyG's own convention.

        The truth is `edge_label_index` (or `pos_edge_label_index`), and the message-passing edges
        are `edge_index`, as :class:`~torch_geometric.transforms.RandomLinkSplit` leaves them.
        Edges with `edge_label == 0` are sampled negatives and never truth. Other labels are
        weights, unless all of them are one. For ratings, `threshold` is the smallest rating of a
        truth edge; without it, a warning says that all ratings are truth. (`RandomLinkSplit` adds
        one to integer labels when it samples negatives, so split ratings with
        `neg_sampling_ratio=0.0`. Zeros beside integers of two or more raise an error, as this has
        probably happened. If there are ones, too, a warning is given.)

        The splits of :mod:`~pyg_recmetrics.transforms` may also say which users are evaluated
        (`eval_mask`, a mask of the nodes) and what the candidates of each user are
        (`candidate_edge_index`). A homogeneous graph may say how many users it has (`num_users`).
        Arguments take precedence over what the data says.

        A warning is given for each other type of edges, in either direction, that holds truth: a
        model that propagates over them knows the answers. Such edges are, for example, those that
        :class:`~torch_geometric.transforms.ToUndirected` adds.

        Args:
            data (Data or HeteroData): A part of a split. In a homogeneous
                :class:`~torch_geometric.data.Data`, as `LightGCN` takes it, users come first
                and items are numbered from `num_users` on. Edges may run in one direction or in
                both.
            edge_type (tuple, optional): The type of the edges from users to items.
                (default: `None`, the only one with ground truth; of opposite ones, that from
                `"user"` nodes)
            num_users (int, optional): The number of users in a homogeneous graph. A `HeteroData`
                knows its own. (default: `None`, the `num_users` of the data)
            exclude_seen (bool, optional): See :class:`RankingTask`; what users have seen are the
                message-passing edges. (default: `True`)
            threshold (float, optional): The smallest `edge_label` of an edge that is truth, see
                :class:`RankingTask`. (default: `None`)
            candidates (torch.Tensor, optional): See :class:`RankingTask`.
                (default: `None`, those of the data, or all items)
            missing (str, optional): See :class:`RankingTask`. (default: `None`)
            users (torch.Tensor, optional): See :class:`RankingTask`.
                (default: `None`, those of the data, or all users)
            user_ids (sequence, optional): See :class:`RankingTask`. (default: `None`)
            item_ids (sequence, optional): See :class:`RankingTask`. (default: `None`)

        Returns:
            A task whose seen edges are the message-passing edges. It keeps these and their weights
            for models that propagate.

        Raises:
            TypeError: If `data` is neither `Data` nor `HeteroData`, or `exclude_seen` is not a
                boolean.
            ValueError: If the edge type does not exist or is not the only one, `num_users` is
                missing, there is no ground truth, edges do not connect users with items, edges run
                from items to users without an `edge_type`, `RandomLinkSplit` has shifted ratings or
                split an undirected graph as a directed one, or `threshold` is not positive, comes
                without `edge_label` or is above all labels.

        Example:
            >>> import torch
            >>> from torch_geometric.data import Data
            >>> from pyg_recmetrics import RankingTask
            >>> data = Data(num_nodes=5)  # two users, three items
            >>> data.edge_index = torch.tensor([[0, 2, 1, 3], [2, 0, 3, 1]])
            >>> data.edge_label_index = torch.tensor([[0, 1], [3, 4]])
            >>> task = RankingTask.from_data(data, num_users=2)
            >>> task.truth
            tensor([[0, 1],
                    [1, 2]])
        """
        edges = read_data(data, edge_type, num_users)
        check_ratings(edges)
        if isinstance(data, Data):
            check_directions(edges)
        warn_of_one_direction(edges)
        weight = edges.weight
        if threshold is None:
            warn_about_zero_ratings(edges.num_zero_ratings)
            if edges.weight is not None and not edges.num_zero_ratings:
                warn_about_low_ratings(edges.weight)
            weight = unless_all_one(weight)
        task = cls(
            edges.truth,
            weight=weight,
            threshold=threshold,
            seen=edges.seen,
            exclude_seen=exclude_seen,
            num_users=edges.num_users,
            num_items=edges.num_items,
            candidates=edges.candidates if candidates is None else candidates,
            missing=missing,
            users=edges.users if users is None else users,
            user_ids=user_ids,
            item_ids=item_ids,
        )
        task = task._with(edge_index=edges.edge_index, edge_weight=edges.edge_weight)
        remedy = (
            "If these are reverse edges, name them as 'rev_edge_types' of 'RandomLinkSplit', or "
            "split by 'pyg_recmetrics.transforms'; if they are of the same type, split by "
            "'RandomLinkSplit(is_undirected=True)'; if they are other events, such as views that "
            "come later, remove the pairs of the truth from them"
        )
        for key, other in edges.others.items():
            between = coalesce_edges(other, task.num_items)
            task._warn_of_leaks(
                between, f"the edges {key}, which a model may propagate over", remedy
            )
        return task

    @classmethod
    def from_matrix(
        cls,
        *,
        train: EdgesLike | None = None,
        test: EdgesLike,
        exclude_seen: bool = True,
        threshold: float | None = None,
        user_ids: Sequence[Hashable] | None = None,
        item_ids: Sequence[Hashable] | None = None,
    ) -> RankingTask:
        r"""Reads a task from matrices of users and items, in which other entries are zero.

        A model that propagates does so over the interactions of `train`, in both directions.

        Args:
            train (matrix, optional): The interactions that the model was trained on, which are what
                users have seen, of the shape of `test`. Its entries may have any value but zero.
                (default: `None`)
            test (matrix): The ground truth, which was held out, of shape `[num_users, num_items]`:
                a sparse matrix of SciPy or PyTorch, or a dense array or tensor. Its entries are
                weights, such as ratings, unless all of them are one.
            exclude_seen (bool, optional): See :class:`RankingTask`. (default: `True`)
            threshold (float, optional): The smallest entry that is truth, see
                :class:`RankingTask`. (default: `None`, all positive entries are truth)
            user_ids (sequence, optional): See :class:`RankingTask`. (default: `None`)
            item_ids (sequence, optional): See :class:`RankingTask`. (default: `None`)

        Returns:
            A task with a user for every row and an item for every column.

        Raises:
            TypeError: If a matrix does not hold numbers.
            ValueError: If `test` or `train` is not a matrix, they differ in shape, entries are not
                finite, or an option is not as :class:`RankingTask` needs it.

        Example:
            >>> import numpy as np
            >>> from pyg_recmetrics import RankingTask
            >>> test, train = np.array([[0, 0, 5], [4, 0, 0]]), np.array([[3, 0, 0], [0, 0, 2]])
            >>> task = RankingTask.from_matrix(train=train, test=test)
            >>> task.truth.tolist(), task.weight.tolist(), task.seen.tolist()
            ([[0, 1], [2, 0]], [5.0, 4.0], [[0, 1], [0, 2]])
        """
        check_labels(test, "test", user_ids, item_ids)
        check_labels(train, "train", user_ids, item_ids)
        truth = as_matrix(test, "test")
        seen = None if train is None else as_matrix(train, "train")
        check_finite(truth.value, "test")
        if seen is not None:
            check_finite(seen.value, "train")
            if seen.shape != truth.shape:
                raise ValueError(
                    f"'train' needs to have the shape of 'test', {list(truth.shape)} "
                    f"(got {list(seen.shape)})"
                )
        num_users, num_items = truth.shape
        return cls._of_interactions(
            truth=truth.edges,
            weight=unless_all_one(truth.value) if threshold is None else truth.value,
            seen=None if seen is None else seen.edges,
            num_users=num_users,
            num_items=num_items,
            exclude_seen=exclude_seen,
            threshold=threshold,
            user_ids=user_ids,
            item_ids=item_ids,
        )

    @classmethod
    @written("RankingTask.from_frames(test=frame, train=other_frame)")
    def from_frames(
        cls,
        test: FrameLike,
        *,
        train: FrameLike | None = None,
        user: str | None = None,
        item: str | None = None,
        rating: str | None = None,
        users: Sequence[Hashable] | None = None,
        items: Sequence[Hashable] | None = None,
        candidates: FrameLike | Sequence[Hashable] | None = None,
        missing: Missing | None = None,
        exclude_seen: bool = True,
        threshold: float | None = None,
    ) -> RankingTask:
        r"""Reads a task from data frames with a row for every interaction, of pandas or polars.

        The ids of users and items may be of any type. Users and items of all frames are numbered
        in the order of their ids, whatever the order of the rows. :attr:`user_ids` and
        :attr:`item_ids` keep what each number stands for: row `u` of the embeddings or scores of a
        recommender is that of `user_ids[u]`. A warning names ids that only occur in `test`, as
        nothing could be learned about them.

        Unless `candidates` are given, the candidates are all items: those of the frames, or
        `items`. If the frames hold a part of the data, such as a sample of users, some items may
        be missing, and metrics look better with fewer candidates: pass the ids of all items. A
        warning is given if `test` comes without `train` and `items`.

        A model that propagates does so over the interactions of `train`, in both directions.
        Swapped frames cannot be detected: `train` is left out of all rankings, and `test` is the
        ground truth.

        Args:
            test (data frame): The ground truth: the interactions that were held out.
            train (data frame, optional): The interactions that the model was trained on, which are
                what users have seen. (default: `None`)
            user (str, optional): The column of user ids.
                (default: `None`, the one with a usual name, such as `user_id`, `userId` or `uid`)
            item (str, optional): The column of item ids.
                (default: `None`, the one with a usual name, such as `item_id`, `movieId` or `asin`)
            rating (str, optional): The column of `test` that says how relevant an item is.
                (default: `None`, all rows are equally relevant)
            users (sequence, optional): The ids of all users, each of them once, in the order of
                their numbers. (default: `None`, those of the frames)
            items (sequence, optional): The ids of all items, each of them once, in the order of
                their numbers: a sequence, an array, or a column of a frame of items.
                (default: `None`, those of the frames)
            candidates (data frame or sequence, optional): The user-item pairs to rank, a row for
                each, by the same ids; or the ids of the items that all users share.
                (default: `None`, all items)
            missing (str, optional): How to treat truth that is no candidate, see
                :class:`RankingTask`. (default: `None`, it counts as not retrieved if users have
                candidates of their own, and leaves the truth otherwise)
            exclude_seen (bool, optional): See :class:`RankingTask`. (default: `True`)
            threshold (float, optional): The smallest rating that is truth, see
                :class:`RankingTask`. (default: `None`, all positive ratings are truth, with a
                warning)

        Returns:
            A task whose `user_ids` and `item_ids` say what its numbers stand for.

        Raises:
            TypeError: If `test` or `train` is not a data frame, or `users` or `items` is one.
            ValueError: If there is no such column, ids or ratings are missing, ids of both frames
                have two types and none in common, ids are not among `users` or `items`, or an
                option is not as :class:`RankingTask` needs it.

        Example:
            >>> import pandas as pd
            >>> from pyg_recmetrics import RankingTask
            >>> train = pd.DataFrame({"user_id": ["ann", "bob"], "item_id": ["tea", "jam"]})
            >>> test = pd.DataFrame({"user_id": ["bob", "ann"], "item_id": ["tea", "jam"]})
            >>> task = RankingTask.from_frames(train=train, test=test)
            >>> task.user_ids, task.item_ids, task.truth.tolist()
            (('ann', 'bob'), ('jam', 'tea'), [[0, 1], [0, 1]])
        """
        if threshold is not None and rating is None:
            raise ValueError(
                f"'threshold' needs a column of ratings, which 'rating' names (got {threshold!r})"
            )
        read = read_frames(
            test,
            train,
            user=user,
            item=item,
            rating=rating,
            users=users,
            items=items,
            candidates=candidates,
        )
        if threshold is None and read["weight"] is not None:
            warn_about_low_ratings(read["weight"])
        how: dict[str, Any] = {"exclude_seen": exclude_seen, "threshold": threshold}
        return cls._of_interactions(**read, **how, missing=missing)

    @classmethod
    def from_queries(
        cls,
        query: QueriesLike,
        item: TensorLike,
        *,
        num_items: int,
        seen: tuple[QueriesLike, TensorLike] | None = None,
        candidates: TensorLike | tuple[QueriesLike, TensorLike] | None = None,
        missing: Missing | None = None,
        weight: TensorLike | None = None,
        threshold: float | None = None,
        exclude_seen: bool = True,
        person: TensorLike | Sequence[Hashable] | None = None,
    ) -> RankingTask:
        r"""Reads a task in which items are ranked for queries, which consist of several numbers.

        A query may be an entity and a relation, a source and a moment, or a session and a position.
        Equal queries are one query, and all of its items are its truth. Queries take the place of
        users, in lexicographic order: row `u` of the embeddings or scores of a recommender is that
        of `task.query[u]`. The numbers of a column may be of any size.

        `seen` and `candidates` may hold queries that are not in `query`, which are ignored. A
        relevant item stays in the ranking and in the truth even if it is among the seen items, as
        in the filtered setting of knowledge graphs, and there is no warning.

        Args:
            query (tuple of torch.Tensor): The columns of the query of each edge, integers of shape
                `[num_edges]` that are not negative, or their rows: a tensor of shape
                `[num_edges, num_columns]`.
            item (torch.Tensor): The item of each edge, of shape `[num_edges]`.
            num_items (int): The number of items.
            seen (tuple, optional): What is left out of the rankings: the columns of queries, as in
                `query`, and an item for each. (default: `None`)
            candidates (torch.Tensor or tuple, optional): The items to rank, of shape
                `[num_candidates]`, that all queries share; or the columns of queries and an item
                for each, where each query has its own. (default: `None`, all items)
            missing (str, optional): How to treat truth that is not among the candidates, see
                :class:`RankingTask`. (default: `None`)
            weight (torch.Tensor, optional): How relevant each edge is, see :class:`RankingTask`.
                (default: `None`)
            threshold (float, optional): See :class:`RankingTask`. (default: `None`)
            exclude_seen (bool, optional): Whether seen items are left out of the rankings. If not,
                `seen` keeps edges that are ground truth, too. (default: `True`)
            person (torch.Tensor, optional): The person that each query belongs to: a label for each
                edge of shape `[num_edges]`, which is the same for all edges of a query.
                (default: `None`, every query is a person)

        Returns:
            A task with a query in place of each user. Its `query` holds the numbers of each.

        Raises:
            TypeError: If an argument does not hold numbers, or `exclude_seen` is not a boolean.
            ValueError: If columns differ in length or number, hold negative numbers or other things
                than integers, a query belongs to several persons, or an option is not as
                :class:`RankingTask` needs it.

        Example:
            >>> import torch
            >>> from pyg_recmetrics import RankingTask
            >>> session, position = torch.tensor([7, 7, 3]), torch.tensor([2, 1, 1])
            >>> item = torch.tensor([0, 3, 1])
            >>> task = RankingTask.from_queries((session, position), item, num_items=4)
            >>> task.query.tolist(), task.truth.tolist()
            ([[3, 1], [7, 1], [7, 2]], [[0, 1, 2], [1, 3, 0]])
        """
        read = read_queries(query, item, num_items, seen, candidates, person)
        if seen is not None and check_boolean(exclude_seen, "exclude_seen"):
            truth = read_relevant(read["truth"], weight, threshold, num_items)
            read["seen"] = read["seen"][:, ~contains(truth, read["seen"], num_items)]
        return cls(
            **read, exclude_seen=exclude_seen, weight=weight, threshold=threshold, missing=missing
        )

    @classmethod
    def from_triples(
        cls,
        test: TriplesLike,
        known: TriplesLike | Sequence[TriplesLike] | None = None,
        *,
        num_entities: int,
        num_relations: int | None = None,
        candidates: TensorLike | None = None,
    ) -> RankingTask:
        r"""Reads a task of link prediction in a knowledge graph, in the filtered setting.

        Each distinct :math:`(h, r, ?)` is a query, and so is each :math:`(?, r, t)`. The row of
        `task.query` is `(h, r)` for the one, and `(t, r + num_relations)` for the other. Its truth
        are the answers in `test`, and other answers that are known are left out of its ranking.
        Models of :mod:`torch_geometric.nn.kge` can be ranked as they are.

        Triples are stacked as `(head, relation, tail)`. Those of PyG's data are
        `(data.edge_index[0], data.edge_type, data.edge_index[1])`.

        Args:
            test (torch.Tensor): The triples to rank, of shape `[3, num_triples]`, or three tensors
                of shape `[num_triples]`.
            known (torch.Tensor or sequence, optional): All other triples that are true, of shape
                `[3, num_triples]`, or a sequence of such parts: `[train, valid]`. Those of `test`
                among them do no harm. (default: `None`, with a warning that these compete)
            num_entities (int): The number of entities.
            num_relations (int, optional): The number of relations.
                (default: `None`, those that `test` and `known` have)
            candidates (torch.Tensor, optional): The entities to rank, of shape `[num_candidates]`.
                (default: `None`, all entities)

        Returns:
            A task with a query for each distinct :math:`(h, r, ?)` and :math:`(?, r, t)`.

        Raises:
            TypeError: If an argument does not hold numbers.
            ValueError: If ids are out of range, or shapes or dtypes do not fit.

        Example:
            >>> import torch
            >>> from pyg_recmetrics import RankingTask
            >>> test, train = torch.tensor([[0], [1], [2]]), torch.tensor([[0, 3], [1, 1], [3, 2]])
            >>> task = RankingTask.from_triples(test, [train], num_entities=4, num_relations=2)
            >>> task.query.tolist()  # the tail of (0, 1, ?), and the head of (?, 1, 2)
            [[0, 1], [2, 3]]
            >>> task.truth.tolist(), task.seen.tolist()
            ([[0, 1], [2, 0]], [[0, 1], [3, 3]])
        """
        num_relations, read = read_triples(test, known, num_entities, num_relations)
        task = cls.from_queries(**read, candidates=candidates)
        return task._with(num_relations=num_relations)

    @classmethod
    def from_events(
        cls,
        src: TensorLike,
        dst: TensorLike,
        t: TensorLike,
        is_test: TensorLike,
        *,
        num_items: int,
        repeats: bool = True,
        exclude_seen: bool = True,
        candidates: TensorLike | None = None,
    ) -> RankingTask:
        r"""Reads a task of link prediction in a temporal graph, at the moment of each event.

        A query is a source and a moment at which it has test events. Their destinations are its
        truth. What the source was connected to strictly before that moment, in whatever event, is
        left out of the ranking. A person is a source.

        A :class:`~torch_geometric.data.TemporalData` has `src`, `dst` and `t`. To rank all of its
        nodes, pass `num_items=data.num_nodes`; to rank its destinations alone, pass
        `candidates=data.dst.unique()`, too.

        Args:
            src (torch.Tensor): The source of each event, of shape `[num_events]`. Events may be in
                any order.
            dst (torch.Tensor): The destination of each event, of shape `[num_events]`.
            t (torch.Tensor): The moment of each event as an integer of any unit and size, of shape
                `[num_events]`.
            is_test (torch.Tensor): Which events are ranked, booleans of shape `[num_events]`, as in
                `t > t_valid`. The others only say what was seen.
            num_items (int): The number of destinations.
            repeats (bool, optional): Whether a destination that the source was connected to before
                is truth again. It is then ranked, although it was seen. If not, such events are
                not ranked. (default: `True`)
            exclude_seen (bool, optional): Whether other destinations that the source was connected
                to before are left out of the ranking. A repeated destination then has none but new
                ones beside it, which a warning counts. (default: `True`)
            candidates (torch.Tensor, optional): The destinations to rank, of shape
                `[num_candidates]`. (default: `None`, all of them)

        Returns:
            A task with a query for each source and moment that has test events.

        Raises:
            TypeError: If an argument does not hold numbers, or `repeats` or `exclude_seen` is not a
                boolean.
            ValueError: If shapes, dtypes or devices do not fit, ids are out of range, or no event
                is ranked.

        Example:
            >>> import torch
            >>> from pyg_recmetrics import RankingTask
            >>> src, dst = torch.tensor([0, 0, 0, 0]), torch.tensor([1, 2, 3, 0])
            >>> t = torch.tensor([10, 20, 30, 30])
            >>> task = RankingTask.from_events(src, dst, t, t > 20, num_items=4)
            >>> task.query.tolist(), task.truth.tolist(), task.seen.tolist()
            ([[0, 30]], [[0, 0], [0, 3]], [[0, 0], [1, 2]])
        """
        moments, num_repeated, read = read_events(src, dst, t, is_test, num_items, repeats)
        task = cls.from_queries(**read, candidates=candidates, exclude_seen=exclude_seen)
        if exclude_seen and num_repeated:
            warn(
                f"{num_repeated:,} of {read['item'].numel():,} events repeat an earlier one, and "
                f"are ranked among destinations that are new to their source, which is easy for a "
                f"memory of the past. Write exclude_seen=False to rank them among all, or "
                f"repeats=False"
            )
        source, moment = cast(Tensor, task.query).unbind(1)
        return task._with(query=torch.stack([source, moments[moment]], dim=1))

    @classmethod
    def _of_interactions(cls, **fields: Any) -> RankingTask:
        """Returns a task whose message-passing edges are what users have seen."""
        task = cls(**fields)
        if fields["seen"] is None:
            return task
        return task._with(edge_index=to_homogeneous(task.seen, task.num_users))

    @property
    def device(self) -> torch.device:
        """The device of all edges."""
        return self.truth.device

    @property
    def excluded(self) -> Tensor:
        """The edges whose items are left out of their user's ranking, of shape `[2, num_edges]`.

        These are all seen edges, or none with `exclude_seen=False`.
        """
        return self.seen if self.exclude_seen else self.seen[:, :0]

    @cached_property
    def degree(self) -> Tensor:
        """The number of relevant items R of every user, of shape `[num_users]`."""
        return torch.bincount(self.truth[0], minlength=self.num_users)

    @cached_property
    def max_degree(self) -> int:
        """The largest number of relevant items of a user; of a part, that of the whole task."""
        return self._extremes.max_degree

    @cached_property
    def _extremes(self) -> Extremes:
        """What is most and least among its users."""
        ends = self.degree.max(), self.degree.count_nonzero(), self.num_candidates.max()
        return Extremes(*torch.stack(ends).tolist())

    @cached_property
    def users_with_truth(self) -> Tensor:
        """The ids of those of its users who have truth, of shape `[num_with_truth]`."""
        if self._extremes.num_with_truth == self.users.numel():
            return self.users
        return self.users[self.degree[self.users] > 0]

    def _with_truth(self, users: Tensor) -> Tensor:
        """Returns those of some users who have truth, which of all its users are known."""
        return self.users_with_truth if users is self.users else users[self.degree[users] > 0]

    @cached_property
    def _by_user(self) -> TruthByUser:
        """Its truth, grouped by user."""
        grouped = TruthByUser.of(self.truth[0], self.num_users)
        grouped.degree, grouped.num_with_truth = self.degree, self._extremes.num_with_truth
        return grouped

    def _once(self, key: Hashable, make: Callable[[], T]) -> T:
        """Returns what was found out about the task before, such as a schedule, or finds it out.

        Copies and files of a task do not have it.

        Args:
            key (hashable): What it is, with all that it depends on besides the task.
            make (callable): Finds it out.
        """
        return self._known.once(key, make)

    @cached_property
    def _known(self) -> Memory:
        return Memory(_MAX_KNOWN)

    def __getstate__(self) -> dict[str, Any]:
        found_out = ("_known", "_by_user")
        return {name: value for name, value in vars(self).items() if name not in found_out}

    @property
    def is_candidate(self) -> Tensor | None:
        """Whether each ground-truth edge is among the candidates, `[num_edges]`; `None` if all are.

        Others are left only with `missing="count"`.
        """
        if self.missing == "drop":
            return None
        is_candidate = are_candidates(self.truth, self.candidates, self.num_items)
        return None if bool(is_candidate.all()) else is_candidate

    def _without_missing(self, is_candidate: Tensor | None) -> RankingTask:
        """Returns the same task without truth that is no candidate; the degrees stay as they are.

        Args:
            is_candidate (torch.Tensor, optional): See :attr:`is_candidate`.
        """
        if is_candidate is None:
            return self
        truth, weight = select(self.truth, self.weight, is_candidate)
        return self._with(truth=truth, weight=weight, degree=self.degree)

    def select_users(self, users: TensorLike) -> RankingTask:
        """Returns the same task for only some of its users.

        Args:
            users (torch.Tensor): The ids of the users, of shape `[num_users]`.

        Raises:
            ValueError: If ids are out of range, or none of the users has ground truth.

        Example:
            >>> import torch
            >>> from pyg_recmetrics import RankingTask
            >>> task = RankingTask(torch.tensor([[0, 1], [2, 0]]), num_users=2, num_items=3)
            >>> task.select_users([1]).truth
            tensor([[1],
                    [0]])
        """
        chosen = read_users(users, self.num_users, self.device)
        chosen = chosen[torch.isin(chosen, self.users)]
        selected = self._of_users(chosen)
        check_truth_of(chosen, selected.truth)
        if self.part_of is None:
            return selected
        return selected._with(part_of=self.part_of._replace(num_own=chosen.numel()))

    def part(self, index: int, num_parts: int) -> RankingTask:
        r"""Returns the task of every `num_parts`-th user from `index` on: same items, same ids.

        The results of all parts make the result of the whole task, see
        :func:`~pyg_recmetrics.merge`. A part may have no user with ground truth.

        Args:
            index (int): The number of the part, from `0` to `num_parts - 1`.
            num_parts (int): The number of parts, at most the number of users.

        Raises:
            ValueError: If `num_parts` is not a positive integer, there are fewer users, or there is
                no such part.

        Example:
            >>> import torch
            >>> from pyg_recmetrics import RankingTask
            >>> task = RankingTask(torch.tensor([[0, 1, 2], [2, 0, 1]]), num_users=3, num_items=3)
            >>> task.part(0, 2).users, task.part(1, 2).users
            (tensor([0, 2]), tensor([1]))
        """
        num_parts = check_positive_integer(num_parts, "num_parts")
        index = check_natural_number(index, "index")
        if index >= num_parts:
            raise ValueError(
                f"'index' needs to be smaller than 'num_parts', {num_parts} (got {index})"
            )
        num_users = self.users.numel()
        if num_parts > num_users:
            raise ValueError(
                f"'num_parts' needs to be at most the number of users, {num_users} "
                f"(got {num_parts})"
            )
        part = self._of_users(self.users[index::num_parts])
        whole = self.part_of
        if whole is None:
            digest = self._once("digest", lambda: digest_of(arguments_of(self)))
            whole = PartOf(0, num_users, self.truth.size(1), digest, index, num_parts)
        whole = whole._replace(num_own=part.users.numel())
        return part._with(max_degree=self.max_degree, part_of=whole)

    def _of_users(self, users: Tensor) -> RankingTask:
        """Returns the same task for some of its users, who may have no truth."""
        truth, weight = truth_of(self.truth, self.weight, users, self.num_users)
        return self._with(users=users, truth=truth, weight=weight)

    def with_person(self, person: TensorLike | Sequence[Hashable]) -> RankingTask:
        """Returns the same task, with the person that each row of users belongs to.

        Args:
            person (torch.Tensor or sequence): See :class:`RankingTask`.

        Raises:
            TypeError: If `person` does not hold integers or names.
            ValueError: If there is not one for every user.

        Example:
            >>> import torch
            >>> from pyg_recmetrics import RankingTask
            >>> task = RankingTask(torch.tensor([[0, 1], [2, 0]]), num_users=2, num_items=3)
            >>> task.with_person(["ann", "ann"]).person
            tensor([0, 0])
        """
        number = read_person(person, self.num_users, self.device, self.user_ids)
        return self._with(person=number)

    def to_dict(self) -> dict[str, Any]:
        """Returns the arguments that the task was made of, as it has prepared them.

        Message-passing edges are not among them. `part_of` and `knows_seen` are, which are none.
        """
        return arguments_of(self) | {"part_of": self.part_of, "knows_seen": self.knows_seen}

    @classmethod
    def from_dict(cls, fields: dict[str, Any]) -> RankingTask:
        """Returns what :meth:`to_dict` was called on, which is prepared already.

        Raises:
            KeyError: If a field is missing.
        """
        task = cls.__new__(cls)
        for name in names_of_arguments(cls):
            value = fields[name]  # files keep original ids as lists
            setattr(task, name, tuple(value) if isinstance(value, list) else value)
        task.knows_seen = fields["knows_seen"]
        task.part_of = fields["part_of"] and PartOf(*fields["part_of"])
        task._complete()
        return task

    def to(self, device: torch.device | str) -> RankingTask:
        """Returns a copy of the task on another device.

        Example:
            >>> import torch
            >>> from pyg_recmetrics import RankingTask
            >>> task = RankingTask(torch.tensor([[0, 1], [2, 0]]), num_users=2, num_items=3)
            >>> task.to("cpu").device
            device(type='cpu')
        """
        task = copy.copy(self)
        moved = {name: x.to(device) for name, x in vars(task).items() if hasattr(x, "to")}
        set_attributes(task, **moved)
        return task

    def __repr__(self) -> str:
        is_left_out = {
            "seen": self.seen.size(1) == 0,
            "exclude_seen": self.exclude_seen,
            "missing": self.candidates is None,
            "users": self.users.numel() == self.num_users,
        }
        shown = []
        for name in _SHOWN:
            value = getattr(self, name)
            if value is not None and not is_left_out.get(name):
                value = list(value.shape) if isinstance(value, Tensor) else value
                shown.append(f"{name}={value!r}")
        return f"{type(self).__name__}({', '.join(shown)})"

    def _with(self, **changes: Any) -> RankingTask:
        """Returns a copy in which some attributes are others. Nothing is checked or prepared."""
        task = copy.copy(self)
        for name in _OF_TRUTH if "truth" in changes else ():
            vars(task).pop(name, None)
        set_attributes(task, **changes)
        return task


def as_task(
    data: RankingTask | Data | HeteroData | EdgesLike,
    num_users: int | None = None,
    num_items: int | None = None,
    edge_index: EdgesLike | None = None,
    exclude_seen: bool | None = None,
) -> RankingTask:
    """Returns the task of one part of a split, or of ground-truth edges; a task as it is.

    Message-passing edges take the place of those of a graph or a task. They are what users have
    seen if the ground truth comes as edges.

    Raises:
        TypeError: If `data` is neither a task nor a graph, nor holds edges.
        ValueError: If there is no task in it, or an option is given that says how to read something
            else.
    """
    if isinstance(data, RankingTask):
        options = {"num_users": num_users, "num_items": num_items, "exclude_seen": exclude_seen}
        for name, value in options.items():
            if value is not None:
                raise ValueError(
                    f"'{name}' says how to read a graph or edges, and needs to be None for a task "
                    f"(got {value!r}); write RankingTask(..., {name}={value!r})"
                )
        return _propagate_over(edge_index, data)
    if isinstance(data, Data | HeteroData):
        if num_items is not None:
            raise ValueError(
                f"'num_items' needs to be None for a graph, which knows its items (got {num_items})"
            )
        is_excluded = True if exclude_seen is None else exclude_seen
        task = RankingTask.from_data(data, num_users=num_users, exclude_seen=is_excluded)
        return _propagate_over(edge_index, task)
    if not is_edges_like(data):
        raise TypeError(
            f"'data' needs to be one part of a split, a 'RankingTask' or ground-truth edges (got "
            f"{type(data).__name__}); write evaluate(recommender, data, metrics) or "
            f"Evaluator(data, metrics) in this order, with RankingTask.from_frames(test=frame) for "
            f"a data frame, such as pd.DataFrame([(user, item) for user, row in data.items() for "
            f"item in row], columns=['user_id', 'item_id']) for a dictionary of lists"
        )
    task = RankingTask.__new__(RankingTask)
    task.num_users = num_users = read_count(num_users, "num_users", data)
    task.num_items = num_items = read_count(num_items, "num_items", data)
    edges, weight = read_truth(data, num_users, num_items)
    task.seen, task.knows_seen = edges.new_empty(2, 0), edge_index is not None
    if edge_index is not None:
        nodes, task.edge_index, task.edge_weight = read_message_passing(
            edge_index, num_users + num_items, edges.device
        )
        task.seen = coalesce_edges(to_bipartite(nodes, "edge_index", num_users), num_items)
    task.exclude_seen = exclude_seen is None or check_boolean(exclude_seen, "exclude_seen")
    task.users = torch.arange(num_users, device=edges.device)
    if weight is not None:
        read_threshold(None, weight)
    task._find_truth(edges, read_weight(weight, edges))
    task._complete()
    return task


def _propagate_over(edge_index: EdgesLike | None, task: RankingTask) -> RankingTask:
    """Returns a task with other message-passing edges, if some are given."""
    if edge_index is None:
        return task
    num_nodes = task.num_users + task.num_items
    nodes, edges, weight = read_message_passing(edge_index, num_nodes, task.device)
    if task.exclude_seen or task.seen.size(1):  # otherwise, it may be on purpose
        between = nodes.sort(dim=0).values - nodes.new_tensor([[0], [task.num_users]])
        between = between[:, between[1] >= 0]  # without those between two users
        between = coalesce_edges(between, task.num_items)
        remedy = "Pass message-passing edges without the truth"
        task._warn_of_leaks(between, "'edge_index', which a model may propagate over", remedy)
        # A task may well have seen more than its model is to know. None of these edges may be among
        # them if a model propagates over edges of another kind.
        num_left = int((~contains(between, task.seen, task.num_items)).sum())
        if task.edge_index is not None and 0 < num_left < task.seen.size(1):
            warn(
                f"{num_left:,} of {task.seen.size(1):,} seen edges are not in 'edge_index', over "
                f"which a model propagates. Leave it out, unless this is on purpose: the data have "
                f"all of them"
            )
    return task._with(edge_index=edges, edge_weight=weight)
