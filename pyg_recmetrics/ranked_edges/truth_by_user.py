"""What the ground truth of each user says by itself, wherever its items rank."""

from collections.abc import Callable, Hashable
from functools import cached_property

import torch
import torch.nn.functional as F
from torch import Tensor

from pyg_recmetrics.frozen import Memory
from pyg_recmetrics.task import RankingTask

#: How many bits a rank takes beside the user of an edge. All larger ranks are alike.
_BITS_OF_RANK = 32

#: How many bits a rank, the user and the number of an edge may take together.
_MAX_BITS = 63

#: How many results are kept of what metrics found out.
_MAX_KNOWN = 16


class TruthByUser:
    """Ground-truth edges, grouped by user.

    Args:
        user (torch.Tensor): The user of every edge, sorted, of shape `[num_edges]`.
        ptr (torch.Tensor): The edges of user `u` are those from `ptr[u]` to `ptr[u + 1]`. Of shape
            `[num_users + 1]`.
    """

    def __init__(self, user: Tensor, ptr: Tensor) -> None:
        self.user, self.ptr = user, ptr
        self._known = Memory(_MAX_KNOWN)

    @classmethod
    def of(cls, user: Tensor, num_users: int) -> "TruthByUser":
        """Groups edges by their users, given in ascending order."""
        return cls(user, F.pad(torch.bincount(user, minlength=num_users).cumsum(0), (1, 0)))

    @classmethod
    def of_task(cls, task: RankingTask) -> "TruthByUser":
        """Groups the truth of a task, which knows it from the last time."""

        def make() -> TruthByUser:
            grouped = cls(task.truth[0], F.pad(task.degree.cumsum(0), (1, 0)))
            grouped.degree, grouped.num_with_truth = task.degree, task._extremes.num_with_truth
            return grouped

        return task._once("truth by user", make)

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

    def order(self, rank: Tensor) -> Tensor:
        """Returns the edges sorted by user and rank; equal ranks stay in order: `[num_edges]`.

        Args:
            rank (torch.Tensor): The rank of every edge, of shape `[num_edges]`.
        """
        bits = self._bits_of_edge
        fits = self.num_users.bit_length() + _BITS_OF_RANK + bits <= _MAX_BITS
        if rank.is_floating_point() or rank.device.type != "cpu" or not fits:
            return order_of_edges(self.user, rank)
        # If the edge is the last part of the number, sorting need not say where it was, and NumPy
        # does it by vector instructions.
        key = rank.clamp(max=2**_BITS_OF_RANK - 1) << bits
        key.bitwise_or_(self._user_and_edge).numpy().sort()
        return key.bitwise_and_(2**bits - 1)

    @property
    def _bits_of_edge(self) -> int:
        """How many bits the number of an edge takes."""
        return self.user.numel().bit_length()

    @cached_property
    def _user_and_edge(self) -> Tensor:
        """The user and the number of every edge, with room for a rank between: `[num_edges]`."""
        edge = torch.arange(self.user.numel(), device=self.user.device)
        return (self.user << (_BITS_OF_RANK + self._bits_of_edge)) | edge

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
        return self._known.once(key, make)


def order_of_edges(user: Tensor, rank: Tensor) -> Tensor:
    """Returns edges sorted by user and rank; equal ranks stay in order: `[num_edges]`.

    Args:
        user (torch.Tensor): The user of every edge, of shape `[num_edges]`.
        rank (torch.Tensor): Their ranks, which may be halves.
    """
    if rank.is_floating_point():
        order = rank.argsort(stable=True)
        return order[user[order].argsort(stable=True)]
    # Both fit into one number, and to sort once takes half the time.
    key = rank.clamp(max=2**_BITS_OF_RANK - 1).bitwise_or_(user << _BITS_OF_RANK)
    return key.argsort(stable=True)
