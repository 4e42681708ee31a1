"""Embeddings with a task, and the bare product of all users and items."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from pyg_recmetrics import RankingTask

#: How many users a strip of the product has.
NUM_USERS_IN_STRIP = 64


@dataclass(frozen=True, eq=False)
class Embeddings:
    """Embeddings of users and items, and the task that they are evaluated on."""

    user: Tensor
    item: Tensor
    task: RankingTask

    @cached_property
    def scores(self) -> Tensor:
        """The scores of all items for all users."""
        return self.user @ self.item.t()

    @cached_property
    def unmasked_task(self) -> RankingTask:
        """The same task, with nothing seen."""
        num_users, num_items = self.task.num_users, self.task.num_items
        return RankingTask(self.task.truth, num_users=num_users, num_items=num_items)


def trained_embeddings(folder: Path, device: str = "cpu") -> Embeddings:
    """Reads `graph.npz` (`train` and `test` edges) and `lightgcn.npz` (`user` and `item`)."""
    graph, model = np.load(folder / "graph.npz"), np.load(folder / "lightgcn.npz")
    train, test = (torch.from_numpy(graph[name]).long() for name in ("train", "test"))
    user, item = (torch.from_numpy(model[name]).float().to(device) for name in ("user", "item"))
    task = RankingTask(test, num_users=len(user), num_items=len(item), seen=train).to(device)
    return Embeddings(user, item, task)


def random_embeddings(
    num_users: int, num_items: int, *, dim: int = 64, num_relevant: int = 7, num_seen: int = 20
) -> Embeddings:
    """Draws items of uneven norm, users near their truth, and edges by a power law."""
    generator = torch.Generator().manual_seed(0)
    user = torch.randn(num_users, dim, generator=generator)
    item = torch.randn(num_items, dim, generator=generator)
    item *= 2 * (torch.rand(num_items, 1, generator=generator).square() + 0.1)
    popularity = torch.arange(1, num_items + 1).float() ** -0.8

    def edges(num_per_user: int) -> Tensor:
        place = torch.multinomial(
            popularity, num_users * num_per_user, replacement=True, generator=generator
        )
        order = torch.randperm(num_items, generator=generator)
        return torch.stack([torch.arange(num_users).repeat_interleave(num_per_user), order[place]])

    truth, seen = edges(num_relevant), edges(num_seen)
    near = torch.zeros_like(user).index_add_(0, truth[0], item[truth[1]])
    user = 0.5 * user + 1.2 * near / num_relevant**0.5
    is_truth = torch.isin(seen[0] * num_items + seen[1], truth[0] * num_items + truth[1])
    task = RankingTask(truth, num_users=num_users, num_items=num_items, seen=seen[:, ~is_truth])
    return Embeddings(user, item, task)


def product_in_strips(data: Embeddings) -> None:
    """All products of users and items in single precision, some users by all items at once."""
    scores = data.user.new_empty(NUM_USERS_IN_STRIP, len(data.item))
    for user in data.user.split(NUM_USERS_IN_STRIP):
        torch.mm(user, data.item.t(), out=scores[: len(user)])


def product_in_tiles(data: Embeddings) -> None:
    """The same, in tiles that stay in the cache of the processor."""
    for user in data.user.split(1024):
        for item in data.item.split(4096):
            torch.mm(user, item.t())
