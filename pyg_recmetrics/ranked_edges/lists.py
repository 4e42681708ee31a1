"""Lists: the recommended items of all users, in memory for as many items as there are."""

import dataclasses
from dataclasses import dataclass
from functools import cached_property

import torch
import torch.nn.functional as F
from torch import Tensor


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
