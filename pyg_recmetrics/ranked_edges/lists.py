"""Lists: the recommended items of all users, and what they lack."""

import dataclasses
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from pyg_recmetrics.utils import list_some


class ListStatistics(NamedTuple):
    """Counts of items in the lists of users, down to the depth of each ranking: `[num_users]` each.

    All of them are `-1` for users whose lists were not looked at.

    Attributes:
        length: How long the list is, up to the last place that holds an item.
        num_items: How many of its items are candidates.
        num_unknown: How many of its items the task does not have.
        num_empty: How many of its places hold no item, though there are candidates for them.
        num_dropped: How many items were left out of it, as the user must not get them.
    """

    length: Tensor
    num_items: Tensor
    num_unknown: Tensor
    num_empty: Tensor
    num_dropped: Tensor


def describe_lack(
    table: Tensor,
    degree: Tensor,
    num_candidates: Tensor,
    depth: int | None,
    needs_degree: bool,
    user_ids: Sequence[Hashable] | None = None,
    users: str = "users",
) -> str | None:
    """Says how many users with truth have too few items in their lists, and why; or `None`.

    Args:
        table (torch.Tensor): The columns of :class:`ListStatistics`, of shape `[num_users, 5]`.
        degree (torch.Tensor): How many items are relevant to each user, of shape `[num_users]`.
        num_candidates (torch.Tensor): How many items each can get, of shape `[num_users]`.
        depth (int or None): How many items are looked at; `None` for all candidates.
        needs_degree (bool): Whether as many items as are relevant are looked at, too.
        user_ids (sequence, optional): The original ids of users. (default: `None`, row numbers)
        users (str, optional): What the users are called. (default: `"users"`)
    """
    is_counted = (degree > 0) & (table[:, 0] >= 0)
    listed = ListStatistics(*table[is_counted].unbind(1))
    wanted, what = num_candidates[is_counted], "fewer items than candidates"
    if depth is not None:
        deepest = degree[is_counted] if needs_degree else torch.zeros_like(wanted)
        wanted = wanted.minimum(deepest.clamp(min=depth).to(wanted))
        what = f"fewer than {depth} items" + (", or than are relevant" if needs_degree else "")
        if depth == 1 and needs_degree:
            what = "fewer items than are relevant"
    num_places = listed.num_items + listed.num_unknown
    is_short, is_none = num_places < wanted, listed.length == 0
    if not bool(is_short.any()):
        return None
    num_seen, num_empty, num_none = (
        int(number[is_short].sum()) for number in (listed.num_dropped, listed.num_empty, is_none)
    )
    reasons = []
    if num_seen:
        top = "" if depth is None else f" before taking the top {depth}"
        reasons.append(
            f"{num_seen:,} of theirs may not be retrieved, such as seen ones: leave these out{top}"
        )
    if num_empty:
        share = float(listed.num_empty.sum() / (num_places + listed.num_empty).sum())
        reasons.append(f"{share:.1%} of all places hold no item")
    if num_none:
        rows = is_counted.nonzero().squeeze(1)[is_none & is_short].tolist()
        named = list_some([repr(row if user_ids is None else user_ids[row]) for row in rows])
        reasons.append(f"there is no list for {num_none:,} ({named})")
    why = ", and ".join(reasons) or "the lists are shorter"
    return f"{what} for {int(is_short.sum()):,} of {is_short.numel():,} {users}, as {why}"


@dataclass(frozen=True, eq=False)
class Lists:
    """The recommended items of every user, best first, one list after the other.

    A matrix of lists is one without being copied. Lists of different length, as files hold them, do
    not have to be padded to the longest.

    Attributes:
        item: Item ids of shape `[num_places]`; `-1` for a place without an item.
        ptr: The places of user `u` are those from `ptr[u]` to `ptr[u + 1]`. Of shape
            `[num_users + 1]`.
    """

    item: Tensor
    ptr: Tensor

    @classmethod
    def from_matrix(cls, items: Tensor) -> "Lists":
        """Reads a matrix of shape `[num_users, K]`, in which `-1` is no item."""
        num_users, width = items.shape
        return cls(items.reshape(-1), torch.arange(num_users + 1, device=items.device) * width)

    def to_matrix(self) -> Tensor:
        """Returns a matrix of shape `[num_users, K]`, padded with `-1` to the longest list."""
        num_users = self.ptr.numel() - 1
        if self._is_matrix:
            return self.item.view(num_users, self.width)
        return self.rows(torch.arange(num_users, device=self.ptr.device))

    def rows(self, users: Tensor) -> Tensor:
        """Returns the rows that some users have in :meth:`to_matrix`."""
        if self._is_matrix:
            return self.to_matrix()[users]
        place = torch.arange(self.width, device=self.ptr.device)
        entry = self.ptr[users].unsqueeze(1) + place
        is_listed = entry < self.ptr[users + 1].unsqueeze(1)
        items = self.item[entry.clamp_(max=self.item.numel() - 1)]
        return items.masked_fill_(~is_listed, -1)

    @property
    def _is_matrix(self) -> bool:
        """Whether all lists have one length."""
        return self.item.numel() == (self.ptr.numel() - 1) * self.width

    @cached_property
    def width(self) -> int:
        """The number of places of the longest list."""
        return int(self.ptr.diff().max()) if self.ptr.numel() > 1 else 0

    def edges(self, k: int) -> Tensor:
        """Returns an edge from every user to each item in its top `k`: `[2, num_recommended]`.

        Edges are sorted by user and rank. There are none for places without an item.
        """
        length = self.ptr.diff().clamp(max=k)
        user = torch.arange(length.numel(), device=length.device).repeat_interleave(length)
        item = self.item
        if user.numel() < item.numel():
            # What the cut-off leaves out of the lists before moves the places of a list.
            left_out = self.ptr[:-1] - (length.cumsum(0) - length)
            item = item[torch.arange(user.numel(), device=user.device) + left_out[user]]
        edges, is_item = torch.stack([user, item]), item >= 0
        return edges if bool(is_item.all()) else edges[:, is_item]

    def places(self, k: int, users: Tensor | None = None) -> tuple[Tensor, Tensor, Tensor]:
        """Returns the users, the ranks and the items in the top `k`, of shape `[num_places]` each.

        Places without an item keep their rank, and are left out.

        Args:
            k (int): The cut-off.
            users (torch.Tensor, optional): Some users, in the order in which they are wanted.
                (default: `None`, all)
        """
        if users is None:
            users = torch.arange(self.ptr.numel() - 1, device=self.ptr.device)
        length = self.ptr.diff()[users].clamp(max=k)
        user = users.repeat_interleave(length)
        first = (length.cumsum(0) - length).repeat_interleave(length)
        rank = 1 + torch.arange(user.numel(), device=user.device) - first
        item = self.item[self.ptr[user] + rank - 1]
        is_item = item >= 0
        return user[is_item], rank[is_item], item[is_item]

    def length(self, k: int) -> Tensor:
        """Returns how many items each user has in its top `k`, of shape `[num_users]`."""
        num_before = F.pad((self.item >= 0).cumsum(0), (1, 0))
        start, length = self.ptr[:-1], self.ptr.diff().clamp(max=k)
        return num_before[start + length] - num_before[start]

    def of(self, users: Tensor) -> "Lists":
        """Returns the same lists without the items of all but the users of a mask `[num_users]`."""
        is_kept = users.repeat_interleave(self.ptr.diff())
        return dataclasses.replace(self, item=self.item.masked_fill(~is_kept, -1))

    def to(self, device: torch.device | str) -> "Lists":
        """Returns a copy on another device."""
        return Lists(self.item.to(device), self.ptr.to(device))
