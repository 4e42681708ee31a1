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
    "dcg",
    "definition",
    "f1",
    "hit_rate",
    "map",
    "metric",
    "mrr",
    "names",
    "ndcg",
    "parse",
    "parse_all",
    "precision",
    "r_precision",
    "recall",
    "truncated_precision",
]
