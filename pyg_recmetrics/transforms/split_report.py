"""A report on a split: its leaks, sizes and cold nodes."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd
import torch
from torch import Tensor
from torch_geometric.data import Data, HeteroData
from torch_geometric.typing import EdgeType
from torch_geometric.utils import scatter

from pyg_recmetrics.checks import check_device
from pyg_recmetrics.tables import Table, Tabular
from pyg_recmetrics.task.edges import coalesce_edges, contains, number_pairs
from pyg_recmetrics.task.graph import UserItemEdges, read_data
from pyg_recmetrics.utils import arguments_of

#: What is counted in each part of a split, and how a table calls it.
_LABELS = {
    "num_edges": "message-passing edges",
    "num_truth": "truth edges",
    "num_leaks": "leaks: truth in message-passing edges",
    "num_reverse_leaks": "  in reverse edges, or of other types",
    "num_earlier": "  in an earlier part",
    "num_unmasked": "earlier truth that is a candidate",
    "num_timed": "edges with times",
    "num_later": "message passing later than own truth",
    "num_before_others": "truth before some message passing",
    "num_users_without_truth": "users without truth",
    "num_empty_users": "users without any edge",
    "num_empty_items": "items without any edge",
    "num_cold_users": "cold users: truth, no message passing",
    "num_cold_items": "cold items",
}

#: What numbers above zero mean in a part.
_FINDINGS = {
    "num_leaks": "of {1:,} truth edges of the {0} are among its message-passing edges: a leak",
    "num_reverse_leaks": "of {1:,} truth edges of the {0} are in reverse or other edges: a leak",
    "num_earlier": "of {1:,} truth edges of the {0} are edges of an earlier part: a leak",
    "num_unmasked": "truth edges of earlier parts are candidates of the {0}, which count as wrong",
    "num_later": "of {2:,} message-passing edges of the {0} are later than truth of their user",
}


@dataclass(frozen=True, eq=False)
class SplitReport(Tabular):
    """What is counted in training, validation and test, side by side. It is printed as a table.

    Repeated edges count once, and repeated truth at its last time. Each part has these numbers, as
    in `report.test.num_leaks`:

    - `num_edges`: message-passing edges.
    - `num_truth`: ground-truth edges.
    - `num_leaks`: truth edges that are also message-passing edges. `None` for training, which may
      learn from these.
    - `num_reverse_leaks`: truth edges that are among the edges of other types, such as reverse
      ones, in either direction, or whose opposite is a message-passing edge of an undirected graph
      of one type. `None` for training.
    - `num_earlier`: truth edges that an earlier part has as truth or for message passing. `None`
      for training.
    - `num_unmasked`: truth edges of earlier parts that are candidates of this part, as they are not
      among its message-passing edges. `None` for training.
    - `num_timed`: edges that have a time, `time` or `edge_label_time`.
    - `num_later`: message-passing edges that are later than the first truth of their user. `None`
      for training, and unless all edges have times.
    - `num_before_others`: truth edges that are earlier than some message-passing edge, of any user:
      a model then knows what came after. `None` as above.
    - `num_users_without_truth`: users to evaluate that have no truth.
    - `num_empty_users`, `num_empty_items`: users and items without any edge.
    - `num_cold_users`, `num_cold_items`: those with truth but no message-passing edge.

    Attributes:
        train (pd.Series): The numbers of training.
        val (pd.Series): The numbers of validation.
        test (pd.Series): The numbers of the test.

    Example:
        >>> from pyg_recmetrics import datasets, transforms
        >>> data = datasets.synthetic_interactions(num_users=100, num_items=50)
        >>> report = transforms.check_split(*transforms.PerUserSplit()(data))
        >>> report.has_leaks, report.test.num_leaks
        (False, 0)
    """

    train: Any
    val: Any
    test: Any

    @property
    def has_leaks(self) -> bool:
        """Whether a model may see any truth of validation or test before it is evaluated on it."""
        return any(
            part.num_leaks or part.num_reverse_leaks or part.num_earlier
            for part in (self.val, self.test)
        )

    def findings(self) -> list[str]:
        """Returns a sentence for all leaks of a kind, and for what else makes means wrong.

        Example:
            >>> from pyg_recmetrics import datasets, transforms
            >>> data = datasets.synthetic_interactions(num_users=100, num_items=50)
            >>> report = transforms.check_split(*transforms.PerUserSplit()(data))
            >>> report.findings()
            []
        """
        return [
            f"{part[name]:,} {text.format(called, part.num_truth, part.num_edges)}"
            for called, part in (("validation", self.val), ("test", self.test))
            for name, text in _FINDINGS.items()
            if part[name]
        ]

    def to_pandas(self) -> pd.DataFrame:
        """Returns a data frame with a column for each part, and a row for each of its numbers.

        Example:
            >>> from pyg_recmetrics import datasets, transforms
            >>> data = datasets.synthetic_interactions(num_users=100, num_items=50)
            >>> report = transforms.check_split(*transforms.PerUserSplit()(data))
            >>> report.to_pandas().loc["num_leaks", "test"]
            0
        """
        return pd.DataFrame(arguments_of(self))

    def table(self) -> Table:
        """Returns the printed table."""
        rows = [
            [_LABELS[name], *("-" if number is None else f"{number:,}" for number in numbers)]
            for name, *numbers in self.to_pandas().itertuples()
        ]
        notes = self.findings() or ["none of the leaks that were looked for"]
        if self.train.num_timed and None in (self.val.num_later, self.test.num_later):
            notes.append("not all edges have times, so nothing tells which come first")
        return Table(["", "train", "val", "test"], rows, tuple(notes))


def check_split(
    train: Data | HeteroData,
    val: Data | HeteroData,
    test: Data | HeteroData,
    edge_type: EdgeType | None = None,
    num_users: int | None = None,
) -> SplitReport:
    r"""Reports the leaks of a split, and its sizes and cold nodes.

    It works on any split in PyG's convention, such as one of
    :class:`~torch_geometric.transforms.RandomLinkSplit`. Training may learn from its own
    message-passing edges. Truth of validation or test is a leak if it is also a message-passing
    edge of the same part, in either direction, or an edge of an earlier part. Truth of an earlier
    part that a later part does not propagate over is a candidate there, and counts as wrong.
    :func:`~pyg_recmetrics.evaluate` warns of the leaks that a single part shows.

    Args:
        train (Data or HeteroData): The training data.
        val (Data or HeteroData): The validation data.
        test (Data or HeteroData): The test data.
        edge_type (tuple, optional): The type of the edges from users to items in a `HeteroData`.
            (default: `None`, the only one with ground truth; of opposite ones, that from `"user"`
            nodes)
        num_users (int, optional): The number of users in a homogeneous `Data`.
            (default: `None`, the `num_users` of the data)

    Returns:
        A report with the attributes `train`, `val` and `test`, which is printed as a table.

    Raises:
        TypeError: If `train`, `val` or `test` is neither `Data` nor `HeteroData`.
        ValueError: If edges are not found, or if `train`, `val` and `test` differ in their number
            of users or items, or in their device.

    Example:
        >>> from pyg_recmetrics import datasets
        >>> from pyg_recmetrics.transforms import LeaveLastOut, check_split
        >>> data = datasets.synthetic_interactions(num_users=50, num_items=40, mean_degree=5)
        >>> report = check_split(*LeaveLastOut()(data))
        >>> report.has_leaks, report.val.num_cold_items
        (False, 1)
        >>> print(report)
                                               train  val  test
        -------------------------------------------------------
        message-passing edges                    150  150   200
        truth edges                              150   50    50
        leaks: truth in message-passing edges      -    0     0
          in reverse edges, or of other types      -    0     0
          in an earlier part                       -    0     0
        earlier truth that is a candidate          -    0     0
        edges with times                         300  200   250
        message passing later than own truth       -    0     0
        truth before some message passing          -   45    44
        users without truth                        0    0     0
        users without any edge                     0    0     0
        items without any edge                     1    0     0
        cold users: truth, no message passing      0    0     0
        cold items                                 0    1     0
        none of the leaks that were looked for
    """
    parts = []
    for name, data in (("train", train), ("val", val), ("test", test)):
        try:
            parts.append(read_data(data, edge_type, num_users, name))
        except ValueError as error:
            raise ValueError(f"'{name}': {error}") from None
        check_device(parts[-1].truth, name, parts[0].truth.device, "train")
    sizes = [(part.num_users, part.num_items) for part in parts]
    if len(set(sizes)) > 1:
        raise ValueError(
            f"'train', 'val' and 'test' need to have the same users and items (got {sizes} of them)"
        )
    counts = [_count(part, parts[:place]) for place, part in enumerate(parts)]
    return SplitReport(*counts)


def _count(part: UserItemEdges, earlier: Sequence[UserItemEdges]) -> "pd.Series[Any]":
    """Counts what is in a part. Training has no earlier parts, and no leaks."""
    num_users, num_items = part.num_users, part.num_items

    def joined(*edges: Tensor) -> Tensor:
        return coalesce_edges(torch.cat([part.truth[:, :0], *edges], dim=1), num_items)

    def is_among(edges: Tensor) -> Tensor:
        return contains(edges, truth, num_items)

    seen, (truth, pair_of_truth) = joined(part.seen), number_pairs(part.truth, num_items)
    degree = torch.bincount(truth[0], minlength=num_users)
    evaluated = degree if part.users is None else degree[part.users]
    is_counted = {"num_users_without_truth": evaluated == 0}
    for row, side, num_nodes in ((0, "users", num_users), (1, "items", num_items)):
        has_edge = torch.bincount(seen[row], minlength=num_nodes) > 0
        has_truth = torch.bincount(truth[row], minlength=num_nodes) > 0
        is_counted[f"num_empty_{side}"] = ~has_truth & ~has_edge
        is_counted[f"num_cold_{side}"] = has_truth & ~has_edge
    if earlier:
        was_truth = joined(*(other.truth for other in earlier))
        is_known = contains(joined(seen, truth), was_truth, num_items)
        is_counted["num_leaks"] = is_among(seen)
        # In a homogeneous graph, there are no other types: `seen` already has both directions.
        others = [edges for each in (part, *earlier) for edges in each.others.values()]
        is_counted["num_reverse_leaks"] = is_among(joined(*others))
        is_counted["num_earlier"] = is_among(joined(was_truth, *(other.seen for other in earlier)))
        is_counted["num_unmasked"] = ~is_known & (degree[was_truth[0]] > 0)
    numbers = {name: int(mask.sum()) for name, mask in is_counted.items()}
    numbers |= {"num_edges": seen.size(1), "num_truth": truth.size(1)}
    seen_at, truth_at = _times(part, "time", part.seen), _times(part, "edge_label_time", part.truth)
    numbers["num_timed"] = sum(at.numel() for at in (seen_at, truth_at) if at is not None)
    if earlier and seen_at is not None and truth_at is not None:
        last = scatter(truth_at, pair_of_truth, dim_size=truth.size(1), reduce="max")
        first = scatter(last, truth[0], dim_size=num_users, reduce="min")
        user = part.seen[0]
        is_later = (degree[user] > 0) & (seen_at > first[user])
        numbers["num_later"] = joined(part.seen[:, is_later]).size(1)
        latest = seen_at.max() if seen_at.numel() else -torch.inf
        numbers["num_before_others"] = int((last < latest).sum())
    return pd.Series({name: numbers.get(name) for name in _LABELS}, dtype=object)


def _times(part: UserItemEdges, name: str, edges: Tensor) -> Tensor | None:
    """Returns the times of edges. In a homogeneous graph, `time` may be that of nodes."""
    times: Tensor | None = part.store.get(name)
    return None if times is None or times.shape != edges[0].shape else times
