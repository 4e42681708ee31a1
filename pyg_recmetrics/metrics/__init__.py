"""Metrics: functions of :class:`~pyg_recmetrics.RankedEdges`, their registry and their grammar.

Each returns a tensor of shape `[num_users]`, which is `NaN` where the metric is undefined. A few,
such as :func:`coverage`, return one number for all users together.
"""

import types as _types

from pyg_recmetrics.metrics.accuracy import (
    dcg as dcg,
    err as err,
    f1 as f1,
    fall_out as fall_out,
    hit_rate as hit_rate,
    map as map,
    mrr as mrr,
    ndcg as ndcg,
    precision as precision,
    r_precision as r_precision,
    rbp as rbp,
    recall as recall,
    truncated_precision as truncated_precision,
)
from pyg_recmetrics.metrics.beyond_accuracy import (
    calibration as calibration,
    coverage as coverage,
    diversity as diversity,
    entropy as entropy,
    gini as gini,
    novelty as novelty,
    personalization as personalization,
    popularity as popularity,
    serendipity as serendipity,
    tail_share as tail_share,
)
from pyg_recmetrics.metrics.curves import (
    curve as curve,
    precision_recall_curve as precision_recall_curve,
    recall_at_fixed_precision as recall_at_fixed_precision,
)
from pyg_recmetrics.metrics.full_ranking import (
    adjusted_mean_rank as adjusted_mean_rank,
    adjusted_mean_rank_index as adjusted_mean_rank_index,
    mean_rank as mean_rank,
    median_rank as median_rank,
    partial_auc as partial_auc,
    pr_auc as pr_auc,
    roc_auc as roc_auc,
)
from pyg_recmetrics.metrics.registry import (
    Definition as Definition,
    Metric as Metric,
    Value as Value,
    aliases as aliases,
    definition as definition,
    names as names,
    parse as parse,
    parse_all as parse_all,
    register as register,
    register_aggregate as register_aggregate,
)

#: All that is imported here.
__all__ = [
    name
    for name, value in sorted(globals().items())
    if name[0] != "_" and not isinstance(value, _types.ModuleType)
]
__dir__ = __all__.copy  # what completion shows
