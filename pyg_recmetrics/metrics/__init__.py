"""Metrics: functions of :class:`~pyg_recmetrics.RankedEdges`, their registry and their grammar.

Each returns a tensor of shape `[num_users]`, which is `NaN` where the metric is undefined. A few,
such as :func:`coverage`, return one number for all users together.
"""

import types as _types

from pyg_recmetrics.metrics.accuracy import dcg as dcg
from pyg_recmetrics.metrics.accuracy import err as err
from pyg_recmetrics.metrics.accuracy import f1 as f1
from pyg_recmetrics.metrics.accuracy import fall_out as fall_out
from pyg_recmetrics.metrics.accuracy import hit_rate as hit_rate
from pyg_recmetrics.metrics.accuracy import map as map
from pyg_recmetrics.metrics.accuracy import mrr as mrr
from pyg_recmetrics.metrics.accuracy import ndcg as ndcg
from pyg_recmetrics.metrics.accuracy import precision as precision
from pyg_recmetrics.metrics.accuracy import r_precision as r_precision
from pyg_recmetrics.metrics.accuracy import rbp as rbp
from pyg_recmetrics.metrics.accuracy import recall as recall
from pyg_recmetrics.metrics.accuracy import truncated_precision as truncated_precision
from pyg_recmetrics.metrics.beyond_accuracy import calibration as calibration
from pyg_recmetrics.metrics.beyond_accuracy import coverage as coverage
from pyg_recmetrics.metrics.beyond_accuracy import diversity as diversity
from pyg_recmetrics.metrics.beyond_accuracy import entropy as entropy
from pyg_recmetrics.metrics.beyond_accuracy import gini as gini
from pyg_recmetrics.metrics.beyond_accuracy import novelty as novelty
from pyg_recmetrics.metrics.beyond_accuracy import personalization as personalization
from pyg_recmetrics.metrics.beyond_accuracy import popularity as popularity
from pyg_recmetrics.metrics.beyond_accuracy import serendipity as serendipity
from pyg_recmetrics.metrics.beyond_accuracy import tail_share as tail_share
from pyg_recmetrics.metrics.curves import curve as curve
from pyg_recmetrics.metrics.curves import precision_recall_curve as precision_recall_curve
from pyg_recmetrics.metrics.curves import recall_at_fixed_precision as recall_at_fixed_precision
from pyg_recmetrics.metrics.full_ranking import adjusted_mean_rank as adjusted_mean_rank
from pyg_recmetrics.metrics.full_ranking import adjusted_mean_rank_index as adjusted_mean_rank_index
from pyg_recmetrics.metrics.full_ranking import mean_rank as mean_rank
from pyg_recmetrics.metrics.full_ranking import median_rank as median_rank
from pyg_recmetrics.metrics.full_ranking import partial_auc as partial_auc
from pyg_recmetrics.metrics.full_ranking import pr_auc as pr_auc
from pyg_recmetrics.metrics.full_ranking import roc_auc as roc_auc
from pyg_recmetrics.metrics.registry import Definition as Definition
from pyg_recmetrics.metrics.registry import Metric as Metric
from pyg_recmetrics.metrics.registry import Value as Value
from pyg_recmetrics.metrics.registry import aliases as aliases
from pyg_recmetrics.metrics.registry import definition as definition
from pyg_recmetrics.metrics.registry import names as names
from pyg_recmetrics.metrics.registry import parse as parse
from pyg_recmetrics.metrics.registry import parse_all as parse_all
from pyg_recmetrics.metrics.registry import register as register
from pyg_recmetrics.metrics.registry import register_aggregate as register_aggregate

#: All that is imported here.
__all__ = [
    name
    for name, value in sorted(globals().items())
    if name[0] != "_" and not isinstance(value, _types.ModuleType)
]
__dir__ = __all__.copy  # what completion shows
