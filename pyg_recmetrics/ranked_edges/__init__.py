"""Ranked edges: every ground-truth edge with its rank, the one meeting point of all the rest.

Recommenders stand on one side of it and metrics on the other. This package may import the task and
all layers below it.
"""

from pyg_recmetrics.ranked_edges.lists import Listed, Lists, describe_lack
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
    length_of_lists,
    lists_of,
    num_with_other_places,
    positions,
    select_edges,
    select_users,
    sort_edges,
)
from pyg_recmetrics.ranked_edges.sources import Origin

__all__ = [
    "Listed",
    "Lists",
    "Origin",
    "RankedEdges",
    "candidates_of",
    "catalogue_of",
    "count_irrelevant",
    "describe_lack",
    "evaluated_mask",
    "fields_of",
    "from_fields",
    "grouped_truth",
    "has_constant_scores",
    "length_of_lists",
    "lists_of",
    "num_with_other_places",
    "positions",
    "select_edges",
    "select_users",
    "sort_edges",
]
