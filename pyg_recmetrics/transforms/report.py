"""What there is to know about a split before its numbers are believed."""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch_geometric.data import Data, HeteroData
from torch_geometric.typing import EdgeType
from torch_geometric.utils import coalesce

from pyg_recmetrics.tables import Table, Tabular
from pyg_recmetrics.task.edges import contains
from pyg_recmetrics.task.graph import UserItemEdges, is_reversed, read_data


@dataclass(frozen=True)
class Distribution:
    """How a number is distributed over those that have it."""

    min: int
    median: float
    mean: float
    max: int

    def __str__(self) -> str:
        return f"{self.min} / {self.median:g} / {self.mean:.1f} / {self.max}"


@dataclass(frozen=True)
class PartReport:
    """What there is to know about one part of a split. Repeated edges count once.

    Attributes:
        num_edges: The number of message-passing edges.
        num_repeated_edges: How many more there are that repeat one of them.
        num_truth: The number of ground-truth edges.
        num_repeated_truth: How many more there are that repeat one of them.
        num_leaks: Truth that is among the message-passing edges of the part. `None` for
            training, which may learn from these.
        num_reverse_leaks: Truth whose reverse edge is among the edges of an edge type in the
            opposite direction. `None` for training.
        num_earlier: Truth that is among the edges of an earlier part. `None` for training.
        num_users_without_truth: The number of users to evaluate that have no truth.
        num_empty_users: The number of users without any edge.
        num_empty_items: The number of items without any edge.
        num_cold_users: The number of users with truth but no message-passing edge.
        num_cold_items: The number of items with truth but no message-passing edge.
        user_degree: Message-passing edges of users, over those who have any; else `None`.
        item_degree: The same of items.
        user_truth: Ground-truth edges of users, over those who have any; else `None`.
        item_truth: The same of items.
    """

    num_edges: int
    num_repeated_edges: int
    num_truth: int
    num_repeated_truth: int
    num_leaks: int | None
    num_reverse_leaks: int | None
    num_earlier: int | None
    num_users_without_truth: int
    num_empty_users: int
    num_empty_items: int
    num_cold_users: int
    num_cold_items: int
    user_degree: Distribution | None
    item_degree: Distribution | None
    user_truth: Distribution | None
    item_truth: Distribution | None


#: The lines of the table, and the attributes in them.
_LINES = (
    ("message-passing edges", "num_edges"),
    ("  repeated", "num_repeated_edges"),
    ("  per user: min / median / mean / max", "user_degree"),
    ("  per item", "item_degree"),
    ("truth edges", "num_truth"),
    ("  repeated", "num_repeated_truth"),
    ("  per user", "user_truth"),
    ("  per item", "item_truth"),
    ("leaks: truth in message-passing edges", "num_leaks"),
    ("  in reverse edges", "num_reverse_leaks"),
    ("  in an earlier part", "num_earlier"),
    ("users without truth", "num_users_without_truth"),
    ("users without any edge", "num_empty_users"),
    ("items without any edge", "num_empty_items"),
    ("cold users: truth, no message passing", "num_cold_users"),
    ("cold items", "num_cold_items"),
)


@dataclass(frozen=True)
class SplitReport(Tabular):
    """The parts of a split side by side; printed as a table.

    Attributes:
        train: What there is to know about training.
        val: About validation.
        test: About the test.
    """

    train: PartReport
    val: PartReport
    test: PartReport

    @property
    def has_leaks(self) -> bool:
        """Whether any truth of validation or test is known before it is asked for."""
        return any(
            part.num_leaks or part.num_reverse_leaks or part.num_earlier
            for part in (self.val, self.test)
        )

    def _table(self) -> Table:
        parts = (self.train, self.val, self.test)
        rows = [
            [label, *(_format(getattr(part, name)) for part in parts)] for label, name in _LINES
        ]
        verdict = "There are leaks." if self.has_leaks else "No leaks."
        return Table(["", "train", "val", "test"], rows, (verdict,))


def check_split(
    train: Data | HeteroData,
    val: Data | HeteroData,
    test: Data | HeteroData,
    edge_type: EdgeType | None = None,
    num_users: int | None = None,
) -> SplitReport:
    r"""Looks for leaks in a split, and for what else decides what its numbers mean.

    Works on any split in PyG's convention, such as of
    :class:`~torch_geometric.transforms.RandomLinkSplit`. Training may learn from its own
    message-passing edges, everything else that is known before it is asked for is a leak.
    :func:`~pyg_recmetrics.evaluate` warns of the leaks that one part alone shows.

    Args:
        train (Data or HeteroData): The training part.
        val (Data or HeteroData): The validation part.
        test (Data or HeteroData): The test part.
        edge_type (tuple, optional): The type of the edges from users to items in a `HeteroData`.
            (default: `None`, the only one with ground truth)
        num_users (int, optional): The number of users in a homogeneous `Data`.
            (default: `None`, the `num_users` of the data)

    Returns:
        A report with the attributes `train`, `val` and `test`, printed as a table.

    Raises:
        TypeError: If a part is neither `Data` nor `HeteroData`.
        ValueError: If the edges of a part are not found, or the parts are of different graphs.

    Example:
        >>> from pyg_recmetrics import datasets
        >>> from pyg_recmetrics.transforms import LeaveLastOut, check_split
        >>> data = datasets.synthetic_interactions(num_users=50, num_items=40, mean_degree=5)
        >>> report = check_split(*LeaveLastOut()(data))
        >>> report.has_leaks, report.val.num_cold_items
        (False, 1)
        >>> print(report)
                                                          train               val              test
        -------------------------------------------------------------------------------------------
        message-passing edges                               150               150               200
          repeated                                            0                 0                 0
          per user: min / median / mean / max  1 / 2 / 3.0 / 18  1 / 2 / 3.0 / 18  2 / 3 / 4.0 / 19
          per item                             1 / 3 / 3.8 / 15  1 / 3 / 3.8 / 15  1 / 4 / 5.0 / 18
        truth edges                                         150                50                50
          repeated                                            0                 0                 0
          per user                             1 / 2 / 3.0 / 18   1 / 1 / 1.0 / 1   1 / 1 / 1.0 / 1
          per item                             1 / 3 / 3.8 / 15   1 / 1 / 1.9 / 6   1 / 1 / 1.7 / 6
        leaks: truth in message-passing edges                 -                 0                 0
          in reverse edges                                    -                 0                 0
          in an earlier part                                  -                 0                 0
        users without truth                                   0                 0                 0
        users without any edge                                0                 0                 0
        items without any edge                                1                 0                 0
        cold users: truth, no message passing                 0                 0                 0
        cold items                                            0                 1                 0
        No leaks.
    """
    parts = [read_data(part, edge_type, num_users) for part in (train, val, test)]
    sizes = [(part.num_users, part.num_items) for part in parts]
    if len(set(sizes)) > 1:
        raise ValueError(
            f"'train', 'val' and 'test' need to have the same users and items (got {sizes} of them)"
        )
    reports: list[PartReport] = []
    earlier: list[Tensor] = []
    for number, part in enumerate(parts):
        known, truth = _coalesce(part, part.seen), _coalesce(part, part.truth)
        reports.append(_report(part, known, truth, earlier if number > 0 else None))
        earlier += [known, truth]
    return SplitReport(*reports)


def _report(
    part: UserItemEdges, known: Tensor, truth: Tensor, earlier: list[Tensor] | None
) -> PartReport:
    num_nodes = (part.num_users, part.num_items)
    degrees, truths = (
        [torch.bincount(row, minlength=size) for row, size in zip(edges, num_nodes, strict=True)]
        for edges in (known, truth)
    )
    is_empty = [(t == 0) & (d == 0) for t, d in zip(truths, degrees, strict=True)]
    is_cold = [(t > 0) & (d == 0) for t, d in zip(truths, degrees, strict=True)]
    evaluated = truths[0] if part.users is None else truths[0][part.users]
    num_leaks = num_reverse_leaks = num_earlier = None
    if earlier is not None:
        num_leaks = _count(contains(known, truth, part.num_items))
        num_reverse_leaks = _count(is_reversed(part, truth))
        is_earlier = torch.zeros_like(truth[0], dtype=torch.bool)
        for edges in earlier:
            is_earlier |= contains(edges, truth, part.num_items)
        num_earlier = _count(is_earlier)
    return PartReport(
        num_edges=known.size(1),
        num_repeated_edges=_num_repeated(part, known),
        num_truth=truth.size(1),
        num_repeated_truth=part.truth.size(1) - truth.size(1),
        num_leaks=num_leaks,
        num_reverse_leaks=num_reverse_leaks,
        num_earlier=num_earlier,
        num_users_without_truth=_count(evaluated == 0),
        num_empty_users=_count(is_empty[0]),
        num_empty_items=_count(is_empty[1]),
        num_cold_users=_count(is_cold[0]),
        num_cold_items=_count(is_cold[1]),
        user_degree=_distribution(degrees[0]),
        item_degree=_distribution(degrees[1]),
        user_truth=_distribution(truths[0]),
        item_truth=_distribution(truths[1]),
    )


def _num_repeated(part: UserItemEdges, known: Tensor) -> int:
    # An edge and its reverse are no repetition, so either direction is looked at by itself.
    num_edges = part.seen.size(1)
    is_forward = part.edge_index[0, :num_edges] < part.num_users
    if bool(is_forward.all()):
        return num_edges - known.size(1)
    directions = (part.seen[:, is_forward], part.seen[:, ~is_forward])
    return max(edges.size(1) - _coalesce(part, edges).size(1) for edges in directions)


def _coalesce(part: UserItemEdges, edges: Tensor) -> Tensor:
    coalesced: Tensor = coalesce(edges, num_nodes=max(part.num_users, part.num_items))
    return coalesced


def _count(mask: Tensor) -> int:
    return int(mask.sum())


def _distribution(degree: Tensor) -> Distribution | None:
    degree = degree[degree > 0].sort().values
    if degree.numel() == 0:
        return None
    middle = degree[[(degree.numel() - 1) // 2, degree.numel() // 2]]
    return Distribution(
        min=int(degree[0]),
        median=float(middle.double().mean()),
        mean=float(degree.double().mean()),
        max=int(degree[-1]),
    )


def _format(value: object) -> str:
    if value is None:
        return "-"
    return f"{value:,}" if isinstance(value, int) else str(value)
