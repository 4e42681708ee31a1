r"""Splits of user-item graphs as PyG transforms, and what goes with them.

A split returns training, validation and test data in PyG's own convention, as
:class:`~torch_geometric.transforms.RandomLinkSplit` does: `edge_index` are the message-passing
edges of a part, `edge_label_index` its truth, from users to items, and `edge_label` ones or, if
the edges have an `edge_label`, theirs. The training part learns from its own message-passing
edges; validation passes messages over the training edges, and the test over those and the
validation edges. All attributes follow their edges, and reverse edges the edges they reverse, so
that no truth of validation or test is among the message-passing edges of its part in any
direction; the times of truth edges are `edge_label_time` if the split is by time. Repeated edges
never end up on both sides. There are no sampled negatives: full ranking has no use for them, and
loaders sample their own.

`evaluate(model, test)`, :meth:`RankingTask.from_data` and PyG's loaders take the parts as they are.
"""

from pyg_recmetrics.transforms.candidates import SampledCandidates
from pyg_recmetrics.transforms.k_core import KCore
from pyg_recmetrics.transforms.per_user import LeaveLastOut, PerUserSplit
from pyg_recmetrics.transforms.report import SplitReport, check_split
from pyg_recmetrics.transforms.temporal import TemporalSplit

__all__ = [
    "KCore",
    "LeaveLastOut",
    "PerUserSplit",
    "SampledCandidates",
    "SplitReport",
    "TemporalSplit",
    "check_split",
]
