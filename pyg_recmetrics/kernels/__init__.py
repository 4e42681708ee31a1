"""The arithmetic of ranking: tensors in, tensors out.

The kernels know neither tasks nor recommenders, and may import nothing else of the package. Inside
the package, their modules are imported one by one.
"""

from pyg_recmetrics.kernels.bounded_counting import BoundedCount
from pyg_recmetrics.kernels.counting import count_ranks
from pyg_recmetrics.kernels.lists import (
    NOT_RETRIEVED,
    ranks_in_lists,
    ranks_in_ragged_lists,
    without_repeats,
)
from pyg_recmetrics.kernels.scratch import Scratch
from pyg_recmetrics.kernels.searching import Search
from pyg_recmetrics.kernels.sorting import top_k

__all__ = [
    "NOT_RETRIEVED",
    "BoundedCount",
    "Scratch",
    "Search",
    "count_ranks",
    "ranks_in_lists",
    "ranks_in_ragged_lists",
    "top_k",
    "without_repeats",
]
