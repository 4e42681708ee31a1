"""What processes that rank together tell each other: what they found out, and their errors."""

from pyg_recmetrics.processes.digests import check_same, digest
from pyg_recmetrics.processes.group import (
    collect,
    fail_together,
    num_processes,
    on_its_own,
    process_index,
    share,
)

__all__ = [
    "check_same",
    "collect",
    "digest",
    "fail_together",
    "num_processes",
    "on_its_own",
    "process_index",
    "share",
]
