"""Ranked edges: every ground-truth edge with its rank, the one meeting point of all the rest.

Imports the task and the kernels. Recommenders stand on one side of it and metrics on the other.
"""

from pyg_recmetrics.ranked_edges.ranked_edges import RankedEdges

__all__ = ["RankedEdges"]
