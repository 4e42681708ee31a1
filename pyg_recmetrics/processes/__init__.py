"""What processes that rank together tell each other: their shares, errors and results."""

from pyg_recmetrics.processes.digests import check_same, digest
from pyg_recmetrics.processes.errors import fail_together, look_around, watching
from pyg_recmetrics.processes.exchange import (
    gather,
    gather_parts,
    take_largest,
    take_smallest,
    take_sum,
)
from pyg_recmetrics.processes.group import (
    is_alone,
    num_processes,
    process_index,
    share,
    timeout_in_seconds,
)

__all__ = [
    "check_same",
    "digest",
    "fail_together",
    "gather",
    "gather_parts",
    "is_alone",
    "look_around",
    "num_processes",
    "process_index",
    "share",
    "take_largest",
    "take_smallest",
    "take_sum",
    "timeout_in_seconds",
    "watching",
]
