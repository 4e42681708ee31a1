"""Ranked edges: every ground-truth edge with its rank, the one meeting point of all the rest.

Recommenders stand on one side of it and metrics on the other. This package may import the task and
all layers below it. Other rooms import from here what is named `as` itself.
"""

from pyg_recmetrics.ranked_edges.ranked_edges import RankedEdges as RankedEdges
from pyg_recmetrics.ranked_edges.ranked_edges import candidates_of as candidates_of
from pyg_recmetrics.ranked_edges.ranked_edges import catalogue_of as catalogue_of
from pyg_recmetrics.ranked_edges.ranked_edges import count_irrelevant as count_irrelevant
from pyg_recmetrics.ranked_edges.ranked_edges import evaluated_mask as evaluated_mask
from pyg_recmetrics.ranked_edges.ranked_edges import fields_of as fields_of
from pyg_recmetrics.ranked_edges.ranked_edges import from_fields as from_fields
from pyg_recmetrics.ranked_edges.ranked_edges import grouped_truth as grouped_truth
from pyg_recmetrics.ranked_edges.ranked_edges import has_constant_scores as has_constant_scores
from pyg_recmetrics.ranked_edges.ranked_edges import length_of_lists as length_of_lists
from pyg_recmetrics.ranked_edges.ranked_edges import lists_of as lists_of
from pyg_recmetrics.ranked_edges.ranked_edges import num_with_other_places as num_with_other_places
from pyg_recmetrics.ranked_edges.ranked_edges import positions as positions
from pyg_recmetrics.ranked_edges.ranked_edges import select_edges as select_edges
from pyg_recmetrics.ranked_edges.ranked_edges import select_users as select_users
from pyg_recmetrics.ranked_edges.ranked_edges import sort_edges as sort_edges
from pyg_recmetrics.ranked_edges.sources import ONE_SCORE_PER_ITEM as ONE_SCORE_PER_ITEM
from pyg_recmetrics.ranked_edges.sources import Lists as Lists
from pyg_recmetrics.ranked_edges.sources import ListStatistics as ListStatistics
from pyg_recmetrics.ranked_edges.sources import Provenance as Provenance
from pyg_recmetrics.ranked_edges.sources import describe_lack as describe_lack
