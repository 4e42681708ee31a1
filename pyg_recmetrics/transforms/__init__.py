r"""Splits of user-item graphs, and other transforms of such graphs before an evaluation.

A split says how edges are divided: :class:`PerUserSplit` at random within each user,
:class:`LeaveLastOut` by the time within each user, and :class:`TemporalSplit` at the same moments
for all users. The argument `users` of the first two says who is evaluated: all users,
:class:`SeparatedUsers` or :class:`JoinedUsers`. :class:`KCore` filters a graph before a split,
:class:`SampledCandidates` adds candidates after it, and :func:`check_split` reports leaks.

A split returns training, validation and test data, the parts of the split, in PyG's own
convention, as :class:`~torch_geometric.transforms.RandomLinkSplit` does:

- `edge_index` holds the message-passing edges of a part. Training learns from its own
  message-passing edges. Validation passes messages over the training edges, and the test over
  the training and the validation edges.
- `edge_label_index` holds the truth of a part, from users to items.
- `edge_label` holds ones, or the labels of the edges if they have an `edge_label`.
- `edge_label_time` holds the times of the truth if the split is by time.

All attributes follow their edges, and reverse edges follow the edges they reverse. No truth of
validation or test is therefore among the message-passing edges of its part, in either direction.
Repeated edges never end up on both sides. There are no sampled negatives: full ranking does not
need them, and loaders sample their own.

`evaluate(model, test)`, :meth:`RankingTask.from_data` and PyG's loaders take the parts as they are.
"""

from pyg_recmetrics.transforms.split_report import SplitReport, check_split
from pyg_recmetrics.transforms.splits import (
    JoinedUsers,
    KCore,
    LeaveLastOut,
    PerUserSplit,
    SampledCandidates,
    SeparatedUsers,
    TemporalSplit,
)

__all__ = [
    "JoinedUsers",
    "KCore",
    "LeaveLastOut",
    "PerUserSplit",
    "SampledCandidates",
    "SeparatedUsers",
    "SplitReport",
    "TemporalSplit",
    "check_split",
]
__dir__ = __all__.copy  # what completion shows
