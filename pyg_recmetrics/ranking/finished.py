"""Which users of a long ranking are finished, so that it can go on from there."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from pyg_recmetrics import processes
from pyg_recmetrics.messages import list_some, warn
from pyg_recmetrics.ranking.resume_folder import Part, ResumeFolder
from pyg_recmetrics.ranking.schedule import edges_of
from pyg_recmetrics.task import RankingTask

#: After how many seconds those who have finished are written.
SECONDS_BETWEEN = 30.0


@dataclass(frozen=True, eq=False)
class Tables:
    """What is known about all edges and users, in tensors of integers that are written in place.

    Attributes:
        task (RankingTask): The task.
        by_edge (mapping): Tensors of shape `[num_edges]`.
        by_user (mapping): Tensors of shape `[num_users, ...]`.
        noted (torch.Tensor or None): Numbers about everybody, of which the largest count.
    """

    task: RankingTask
    by_edge: Mapping[str, Tensor]
    by_user: Mapping[str, Tensor]
    noted: Tensor | None

    def of(self, users: Tensor) -> dict[str, Tensor]:
        """Returns what is known about some users, and who they are."""
        known = {"users": users}
        for tables, index in self._at(users):
            known |= {name: table[index] for name, table in tables.items()}
        return known if self.noted is None else known | {"noted": self.noted}

    def fit(self, part: Part) -> bool:
        """Returns whether a part of a folder is about users of the task."""
        users = part.get("users", torch.empty(0, 0)).to(self.task.device)
        if users.dim() != 1 or not bool(torch.isin(users, self.task.users).all()):
            return False
        wanted = self.of(users)
        return part.keys() == wanted.keys() and all(
            part[name].shape == known.shape for name, known in wanted.items()
        )

    def put(self, part: Part) -> None:
        """Takes over what a part of a folder knows about its users."""
        for tables, index in self._at(part["users"].to(self.task.device)):
            for name, table in tables.items():
                table[index] = part[name].to(table.device)
        if self.noted is not None:
            self.noted.clamp_(min=part["noted"].to(self.noted.device))

    def _at(self, users: Tensor) -> tuple[tuple[Mapping[str, Tensor], Tensor], ...]:
        """Returns the tables, and where some users stand in them."""
        edges = edges_of(self.task.truth, users, self.task.num_users)
        return (self.by_edge, edges), (self.by_user, users)


class Finished:
    """Those who were finished in a folder, and those who have finished since.

    Args:
        folder (ResumeFolder): The folder.
        kind (str): What its files are called.
        tables (callable): Returns what is known about everybody.
    """

    def __init__(self, folder: ResumeFolder, kind: str, tables: Callable[[], Tables]) -> None:
        self._folder, self._kind, self._tables = folder, kind, tables
        self._ranked: list[Tensor] = []
        self._last_time = time.monotonic()
        known, unread = tables(), []
        task = known.task
        self._is_finished = torch.zeros(task.num_users, dtype=torch.long, device=task.device)
        for path, part in folder.read(kind):
            if part is not None and known.fit(part):
                known.put(part)
                self._is_finished[part["users"].to(task.device)] = 1
            else:
                unread.append(path.name)
        if unread:
            warn(
                f"'resume' has files that are damaged, or belong to another ranking. What they "
                f"hold is ranked again: {list_some(unread)}"
            )

    def agree(self) -> None:
        """Counts those as finished of whom all processes know it."""
        processes.take_smallest(self._is_finished)

    def without(self, users: Tensor) -> Tensor:
        """Returns those of some users who were not finished in the folder."""
        return users[self._is_finished[users] == 0]

    def add(self, users: Tensor) -> None:
        """Adds users who have been ranked."""
        self._ranked.append(users)

    @property
    def is_due(self) -> bool:
        """Whether it is time to write."""
        return time.monotonic() - self._last_time >= SECONDS_BETWEEN

    def write(self, is_unsettled: Tensor) -> None:
        """Writes those who have been ranked since then.

        Args:
            is_unsettled (torch.Tensor): Who has been ranked but is not finished, of shape
                `[num_users]`.
        """
        users = torch.cat(self._ranked) if self._ranked else is_unsettled.new_empty(0).long()
        users = users[~is_unsettled[users]].sort().values
        if users.numel() > 0:
            self._folder.write(self._kind, users, self._tables().of(users))
        self._ranked.clear()
        self._last_time = time.monotonic()
