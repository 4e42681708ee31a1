"""What processes that rank together tell each other: their shares, errors and results."""

from pyg_recmetrics.processes.axes import Axis
from pyg_recmetrics.processes.digests import check_same, digest
from pyg_recmetrics.processes.errors import fail_together, look_around, watching
from pyg_recmetrics.processes.exchange import (
    add_up,
    collect,
    collect_objects,
    collect_parts,
    deal,
    take_largest,
    take_smallest,
)
from pyg_recmetrics.processes.group import (
    is_alone,
    num_processes,
    on_its_own,
    process_index,
    share,
    shares,
    timeout_in_seconds,
)
from pyg_recmetrics.processes.packing import bytes_of, pack, unpack

__all__ = [
    "Axis",
    "add_up",
    "bytes_of",
    "check_same",
    "collect",
    "collect_objects",
    "collect_parts",
    "deal",
    "digest",
    "fail_together",
    "is_alone",
    "look_around",
    "num_processes",
    "on_its_own",
    "pack",
    "process_index",
    "share",
    "shares",
    "take_largest",
    "take_smallest",
    "timeout_in_seconds",
    "unpack",
    "watching",
]
