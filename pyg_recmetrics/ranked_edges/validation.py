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
)

#: The ranks, which may be halves if they are means.
RANK = Column("rank", torch.int64, ("num_edges",), above=0)
MEAN_RANK = RANK._replace(dtype=torch.float64)

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
    if fields["depth"] is not None:
        check_positive_integer(fields["depth"], "depth")
    num_candidates = fields["num_candidates"]
    if num_candidates is not None:
        user = fields["edge_label_index"][0, rank < NOT_RETRIEVED]
        num_retrieved = torch.bincount(user, minlength=ptr.numel() - 1)
        if bool((num_candidates < num_retrieved).any()):
            raise ValueError("'num_candidates' needs to count all retrieved items (got fewer)")


def check_lists(fields: Mapping[str, Any], num_users: int) -> None:
    """Raises if there is not one list for every user, or a list holds an item twice."""
    item, ptr = (check_tensor(fields[name], name) for name in ("item", "ptr"))
    _check_columns(LISTS, fields, num_places=item.numel(), num_users=num_users)
    if ptr[0] != 0 or ptr[-1] != item.numel() or bool((ptr[1:] < ptr[:-1]).any()):
        raise ValueError("'ptr' needs to rise from zero to the number of places (got others)")
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
    if bool((user[1:] < user[:-1]).any()):
        raise ValueError("'edge_label_index' needs to be sorted by user (got another order)")
    if not torch.equal(index2ptr(user.contiguous(), num_users), ptr):
        raise ValueError("'ptr' needs to point at the edges of each user (got others)")
    is_not_retrieved = (rank[1:] == rank[:-1]) & (rank[1:] == NOT_RETRIEVED)
    rises = torch.where(is_not_retrieved, item[1:] > item[:-1], rank[1:] > rank[:-1])
    if not bool((rises | (user[1:] > user[:-1])).all()):
        raise ValueError("'rank' needs to rise from edge to edge of each user (got others)")
    _check_unique(edge_label_index, "edge_label_index")


def _check_users(users: Tensor | None, user: Tensor, num_users: int) -> None:
    """Raises if users are not sorted, or somebody else has an edge."""
    if users is None:
        return
    check_ids(users, "users", "user", num_users)
    if bool((users[1:] <= users[:-1]).any()):
        raise ValueError("'users' needs to be sorted, and to hold every user once (got others)")
    if not bool(torch.isin(user, users).all()):
        raise ValueError("'edge_label_index' needs to hold edges of 'users' alone (got others)")


def _check_tied(fields: Mapping[str, Any]) -> None:
    """Raises if ranks are not those that their ties leave open, down to the depth."""
    rank, above, tied = (fields[name] for name in ("rank", "num_above", "num_tied"))
    if above is None or tied is None:
        if above is not tied:
            raise ValueError("'num_above' and 'num_tied' need to come together (got one of them)")
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
    if not bool((is_possible & is_count).all()):
        raise ValueError("'rank' needs to fit 'num_above' and 'num_tied' (got another)")
    if fields["ties"] in ("best", "worst", "mean"):
        edges, weight, ties = fields["edge_label_index"], fields["weight"], fields["ties"]
        wanted = break_ties(edges, weight, above, tied, ties, seed=0)
        if not torch.equal(wanted.masked_fill_(wanted > depth, NOT_RETRIEVED), rank):
            raise ValueError(f"'rank' needs to be as '{ties}' ranks ties (got another)")


def _check_unique(edges: Tensor, name: str) -> None:
    """Raises if an edge from a user to an item is there twice."""
    # Items are numbered anew, so that no key is too large.
    items, item = edges[1].unique(return_inverse=True)
    keys = edges[0] * items.numel() + item
    if keys.unique().numel() < keys.numel():
        raise ValueError(f"'{name}' needs to hold every item of a user once (got one twice)")
