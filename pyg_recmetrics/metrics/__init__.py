"""Metrics: functions of :class:`~pyg_recmetrics.RankedEdges`, their registry and their grammar.

Each returns a tensor of shape `[num_users]`, which is `NaN` where the metric is undefined. A few,
such as :func:`coverage`, return one number for all users together.
"""

from pyg_recmetrics.metrics.accuracy import (
    dcg,
    err,
    f1,
    fall_out,
    hit_rate,
    map,
    mrr,
    ndcg,
    precision,
    r_precision,
    rbp,
    recall,
    truncated_precision,
)
from pyg_recmetrics.metrics.beyond_accuracy import (
    calibration,
    coverage,
    diversity,
    entropy,
    gini,
    novelty,
    personalization,
    popularity,
    serendipity,
    tail_share,
)
from pyg_recmetrics.metrics.curves import (
    curve,
    precision_recall_curve,
    recall_at_fixed_precision,
)
from pyg_recmetrics.metrics.definitions import AggregateDefinition, Definition, Value
from pyg_recmetrics.metrics.full_ranking import (
    adjusted_mean_rank,
    adjusted_mean_rank_index,
    mean_rank,
    median_rank,
    partial_auc,
    pr_auc,
    roc_auc,
)
from pyg_recmetrics.metrics.metric import Metric
from pyg_recmetrics.metrics.registry import aliases, definition, names, register, register_aggregate
from pyg_recmetrics.metrics.spelling import parse, parse_all

__all__ = [
    "AggregateDefinition",
    "Definition",
    "Metric",
    "Value",
    "adjusted_mean_rank",
    "adjusted_mean_rank_index",
    "aliases",
    "calibration",
    "coverage",
    "curve",
    "dcg",
    "definition",
    "diversity",
    "entropy",
    "err",
    "f1",
    "fall_out",
    "gini",
    "hit_rate",
    "map",
    "mean_rank",
    "median_rank",
    "mrr",
    "names",
    "ndcg",
    "novelty",
    "parse",
    "parse_all",
    "partial_auc",
    "personalization",
    "popularity",
    "pr_auc",
    "precision",
    "precision_recall_curve",
    "r_precision",
    "rbp",
    "recall",
    "recall_at_fixed_precision",
    "register",
    "register_aggregate",
    "roc_auc",
    "serendipity",
    "tail_share",
    "truncated_precision",
]
