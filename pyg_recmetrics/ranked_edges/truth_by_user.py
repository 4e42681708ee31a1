"""What the ground truth of each user says by itself, wherever its items rank."""

from collections.abc import Callable, Hashable
from functools import cached_property

import torch
import torch.nn.functional as F
from torch import Tensor

#: How many results are kept of what metrics found out.
_MAX_KNOWN = 16


class TruthByUser:
    """Ground-truth edges, grouped by user. All rankings of a task may share one.

    Args:
        user (torch.Tensor): The user of every edge, sorted, of shape `[num_edges]`.
        ptr (torch.Tensor): The edges of user `u` are those from `ptr[u]` to `ptr[u + 1]`. Of shape
            `[num_users + 1]`.
    """

    def __init__(self, user: Tensor, ptr: Tensor) -> None:
        self.user, self.ptr = user, ptr
        self._known: dict[Hashable, Tensor] = {}

    @classmethod
    def of(cls, user: Tensor, num_users: int) -> "TruthByUser":
        """Groups edges by their users, given in ascending order."""
        return cls(user, F.pad(torch.bincount(user, minlength=num_users).cumsum(0), (1, 0)))

    @property
    def num_users(self) -> int:
        """The number of users, with or without truth."""
        return self.ptr.numel() - 1

    @cached_property
    def degree(self) -> Tensor:
        """The number of relevant items R of every user, of shape `[num_users]`."""
        return self.ptr.diff()

    @cached_property
    def has_none(self) -> Tensor:
        """Whether each user has no truth, of shape `[num_users]`."""
        return self.degree == 0

    @cached_property
    def num_with_truth(self) -> int:
        """The number of users with truth."""
        return self.num_users - int(self.has_none.sum())

    @cached_property
    def high_half(self) -> Tensor:
        """The user of every edge, times `2**32`, so that a rank fits beside it: `[num_edges]`."""
        return self.user << 32

    @cached_property
    def position(self) -> Tensor:
        """The 1-based position of every edge among its user's edges, of shape `[num_edges]`."""
        return torch.arange(1, self.user.numel() + 1, device=self.user.device) - self.ptr[self.user]

    def once(self, key: Hashable, make: Callable[[], Tensor]) -> Tensor:
        """Returns what a metric found out about the truth before, or finds it out.

        Args:
            key (hashable): The name of what it is, and all that it depends on besides the truth.
            make (callable): Finds it out.
        """
        if key not in self._known:
            if len(self._known) >= _MAX_KNOWN:
                self._known.clear()
            self._known[key] = make()
        return self._known[key]
