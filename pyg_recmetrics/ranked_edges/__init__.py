"""Ranked edges: every ground-truth edge with its rank, the one meeting point of all the rest.

Recommenders stand on one side of it and metrics on the other. This package may import the task and
all layers below it.
"""

from pyg_recmetrics.ranked_edges.lists import Lists
from pyg_recmetrics.ranked_edges.ranked_edges import (
    RankedEdges,
    candidates_of,
    catalogue_of,
    count_irrelevant,
    evaluated_mask,
    fields_of,
    from_fields,
    grouped_truth,
    has_constant_scores,
    lists_of,
    positions,
    select_edges,
    select_users,
    sort_edges,
    to_ranx,
    write_trec,
)
from pyg_recmetrics.ranked_edges.sources import Origin

__all__ = [
    "Lists",
    "Origin",
    "RankedEdges",
    "candidates_of",
    "catalogue_of",
    "count_irrelevant",
    "evaluated_mask",
    "fields_of",
    "from_fields",
    "grouped_truth",
    "has_constant_scores",
    "lists_of",
    "positions",
    "select_edges",
    "select_users",
    "sort_edges",
    "to_ranx",
    "write_trec",
]
