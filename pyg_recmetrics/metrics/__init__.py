"""Metrics: functions of :class:`~pyg_recmetrics.RankedEdges` that return a value per user.

Each returns a tensor of shape `[num_users]`, `NaN` where the metric is undefined.
"""

from pyg_recmetrics.metrics.accuracy import (
    dcg,
    f1,
    hit_rate,
    map,
    mrr,
    ndcg,
    precision,
    r_precision,
    recall,
    truncated_precision,
)
from pyg_recmetrics.metrics.curves import curve, precision_recall_curve
from pyg_recmetrics.metrics.full_ranking import (
    mean_rank,
    median_rank,
    partial_auc,
    pr_auc,
    roc_auc,
)
from pyg_recmetrics.metrics.registry import (
    Metric,
    Value,
    definition,
    metric,
    names,
    parse,
    parse_all,
)

__all__ = [
    "Metric",
    "Value",
    "curve",
    "dcg",
    "definition",
    "f1",
    "hit_rate",
    "map",
    "mean_rank",
    "median_rank",
    "metric",
    "mrr",
    "names",
    "ndcg",
    "parse",
    "parse_all",
    "partial_auc",
    "pr_auc",
    "precision",
    "precision_recall_curve",
    "r_precision",
    "recall",
    "roc_auc",
    "truncated_precision",
]
