"""Ranked edges: every ground-truth edge with its rank, the one meeting point of all the rest.

Recommenders stand on one side of it and metrics on the other. This package may import the task and
all layers below it.
"""

from pyg_recmetrics.ranked_edges.lists import Lists
from pyg_recmetrics.ranked_edges.ranked_edges import RankedEdges

__all__ = ["Lists", "RankedEdges"]
