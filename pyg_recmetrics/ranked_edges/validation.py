"""Checks of a ranking that comes from outside, such as from a file. All others trust theirs."""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch_geometric.index import index2ptr

from pyg_recmetrics.checks import (
    check_finite,
    check_ids,
    check_positive_integer,
    check_shape,
    check_tensor,
)
from pyg_recmetrics.kernels.exact.lists import NOT_RETRIEVED
from pyg_recmetrics.ranked_edges.ties import break_ties, check_ties
from pyg_recmetrics.task.edges import coalesce_edges


class Column(NamedTuple):
    """What holds for a tensor of a ranking.

    Attributes:
        name: Its name.
        dtype: Its dtype.
        shape: Its sizes, by name or as a number.
        above: All its values are larger than this number.
        is_optional: Whether it may be `None`.
    """

    name: str
    dtype: torch.dtype
    shape: tuple[str | int, ...]
    above: int
    is_optional: bool = False

    def check(self, value: object, sizes: Mapping[str, int]) -> None:
        """Raises if a tensor is another one."""
        if value is None and self.is_optional:
            return
        tensor = check_tensor(value, self.name)
        if tensor.dtype != self.dtype:
            raise ValueError(f"'{self.name}' needs to hold {self.dtype} (got {tensor.dtype})")
        shape = tuple(sizes[size] if isinstance(size, str) else size for size in self.shape)
        check_shape(tensor, self.name, shape, "numbers")
        check_finite(tensor, self.name)
        if tensor.numel() and (lowest := tensor.min().item()) <= self.above:
            raise ValueError(
                f"'{self.name}' needs to hold numbers above {self.above} (got {lowest})"
            )


#: All tensors of a ranking.
RANKING = (
    Column("edge_label_index", torch.int64, (2, "num_edges"), above=-1),
    Column("ptr", torch.int64, ("num_users + 1",), above=-1),
    Column("weight", torch.float64, ("num_edges",), above=0, is_optional=True),
    Column("num_candidates", torch.int64, ("num_users",), above=-1, is_optional=True),
    Column("users", torch.int64, ("num_evaluated",), above=-1, is_optional=True),
    Column("num_above", torch.int64, ("num_edges",), above=-1, is_optional=True),
    Column("num_tied", torch.int64, ("num_edges",), above=-2, is_optional=True),
    Column("num_masked", torch.int64, ("num_users",), above=-1, is_optional=True),
    Column("person", torch.int64, ("num_users",), above=-1, is_optional=True),
    Column("user_of_row", torch.int64, ("num_users",), above=-1, is_optional=True),
    Column("is_candidate", torch.bool, ("num_edges",), above=-1, is_optional=True),
)

#: The ranks, which may be halves if they are means.
RANK = Column("rank", torch.int64, ("num_edges",), above=0)
MEAN_RANK = RANK._replace(dtype=torch.float64)

#: The fields that may hold a value for every edge.
PER_EDGE = [column.name for column in (RANK, *RANKING) if column.shape == RANK.shape]

#: All tensors of lists.
LISTS = (
    Column("item", torch.int64, ("num_places",), above=-2),
    Column("ptr", torch.int64, ("num_users + 1",), above=-1),
)


def check_ranking(fields: Mapping[str, Any]) -> None:
    """Raises if the tensors and numbers of a ranking do not fit together."""
    rank, ptr = (check_tensor(fields[name], name) for name in ("rank", "ptr"))
    check_ties(fields["ties"], seed=0)
    users = fields["users"]
    _check_columns(
        [*RANKING, MEAN_RANK if fields["ties"] == "mean" else RANK],
        fields,
        num_edges=rank.numel(),
        num_users=max(ptr.numel() - 1, 0),
        num_evaluated=0 if users is None else check_tensor(users, "users").numel(),
    )
    _check_order(fields["edge_label_index"], rank, ptr)
    _check_users(users, fields["edge_label_index"][0], ptr.numel() - 1)
    _check_tied(fields)
    if fields["seed"] is not None:
        check_ties(fields["ties"], fields["seed"])
    ranked_by = fields["ranked_by"]
    if not isinstance(ranked_by, str | None):
        raise TypeError(f"'ranked_by' needs to be a string (got {type(ranked_by).__name__})")
    if fields["depth"] is not None:
        check_positive_integer(fields["depth"], "depth")
    num_candidates = fields["num_candidates"]
    if num_candidates is not None:
        user = fields["edge_label_index"][0, rank < NOT_RETRIEVED]
        num_retrieved = torch.bincount(user, minlength=ptr.numel() - 1)
        is_count = num_candidates >= num_retrieved
        _check_each(is_count, "'num_candidates' needs to count all retrieved items", "user")


def check_lists(fields: Mapping[str, Any], num_users: int) -> None:
    """Raises if there is not one list for every user, or a list holds an item twice."""
    item, ptr = (check_tensor(fields[name], name) for name in ("item", "ptr"))
    _check_columns(LISTS, fields, num_places=item.numel(), num_users=num_users)
    if ptr[0] != 0 or ptr[-1] != item.numel():
        raise ValueError(f"'ptr' needs to rise from 0 to {item.numel()}, the number of places")
    _check_each(ptr[1:] >= ptr[:-1], "'ptr' needs to rise from user to user", "user")
    user = torch.arange(num_users, device=ptr.device).repeat_interleave(ptr.diff())
    _check_unique(torch.stack([user, item])[:, item >= 0], "lists")


def _check_columns(columns: Iterable[Column], fields: Mapping[str, Any], **sizes: int) -> None:
    sizes["num_users + 1"] = sizes["num_users"] + 1
    for column in columns:
        column.check(fields[column.name], sizes)


def _check_order(edge_label_index: Tensor, rank: Tensor, ptr: Tensor) -> None:
    """Raises if edges are not sorted by user, rank and item, or `ptr` does not point at them."""
    (user, item), num_users = edge_label_index, ptr.numel() - 1
    check_ids(user, "edge_label_index", "user", num_users)
    is_sorted = user[1:] >= user[:-1]
    _check_each(is_sorted, "'edge_label_index' needs to be sorted by user", "edge", after=1)
    is_start = index2ptr(user.contiguous(), num_users) == ptr
    _check_each(is_start, "'ptr' needs to point at the edges of each user", "entry")
    is_not_retrieved = (rank[1:] == rank[:-1]) & (rank[1:] == NOT_RETRIEVED)
    rises = torch.where(is_not_retrieved, item[1:] > item[:-1], rank[1:] > rank[:-1])
    rises |= user[1:] > user[:-1]
    _check_each(rises, "'rank' needs to rise from edge to edge of each user", "edge", after=1)
    _check_unique(edge_label_index, "edge_label_index")


def _check_users(users: Tensor | None, user: Tensor, num_users: int) -> None:
    """Raises if users are not sorted, or somebody else has an edge."""
    if users is None:
        return
    check_ids(users, "users", "user", num_users)
    is_sorted = users[1:] > users[:-1]
    _check_each(is_sorted, "'users' needs to be sorted, and to hold every user once", "entry", 1)
    is_user = torch.isin(user, users)
    _check_each(is_user, "'edge_label_index' needs to hold edges of 'users' alone", "edge")


def _check_tied(fields: Mapping[str, Any]) -> None:
    """Raises if ranks are not those that their ties leave open, down to the depth."""
    rank, above, tied = (fields[name] for name in ("rank", "num_above", "num_tied"))
    if above is None or tied is None:
        if above is not tied:
            known = "num_tied" if above is None else "num_above"
            raise ValueError(f"'num_above' and 'num_tied' need to come together (got '{known}')")
        return
    is_retrieved, is_known = rank < NOT_RETRIEVED, above < NOT_RETRIEVED
    lowest = 1 + above.masked_fill(~is_known, 0) + tied
    depth = torch.full_like(lowest, NOT_RETRIEVED)
    if fields["depth"] is not None:
        degree = fields["ptr"].diff().clamp(min=fields["depth"])
        depth = degree[fields["edge_label_index"][0]]
    is_possible = torch.where(
        is_retrieved,
        (rank > above) & (rank <= lowest),
        ~is_known | (lowest > depth),
    )
    # A relevant item that is no candidate has `-1`.
    is_count = torch.where(is_known, tied >= 0, tied <= 0)
    is_possible &= is_count
    _check_each(is_possible, "'rank' needs to fit 'num_above' and 'num_tied'", "edge")
    if fields["ties"] in ("best", "worst", "mean"):
        edges, weight, ties = fields["edge_label_index"], fields["weight"], fields["ties"]
        wanted = break_ties(edges, weight, above, tied, ties, seed=0)
        is_wanted = wanted.masked_fill_(wanted > depth, NOT_RETRIEVED) == rank
        _check_each(is_wanted, f"'rank' needs to be as '{ties}' ranks ties", "edge")


def _check_unique(edges: Tensor, name: str) -> None:
    """Raises if an edge from a user to an item is there twice."""
    # Items are numbered anew, so that no key is too large.
    items, item = edges[1].unique(return_inverse=True)
    distinct = coalesce_edges(torch.stack([edges[0], item]), max(items.numel(), 1))
    is_unique = torch.bincount(distinct[0]) == torch.bincount(edges[0])
    _check_each(is_unique, f"'{name}' needs to hold every item of a user once", "user")


def _check_each(is_right: Tensor, message: str, kind: str, after: int = 0) -> None:
    """Raises if something does not hold for each user, edge or entry; the error names the first.

    Args:
        is_right (torch.Tensor): Whether it holds, of shape `[num]`.
        message (str): What needs to hold.
        kind (str): What there are `num` of.
        after (int, optional): How many of these come before the first that was looked at.
    """
    wrong = (~is_right).nonzero()
    if wrong.numel():
        raise ValueError(f"{message} (fails at {kind} {int(wrong[0]) + after})")
