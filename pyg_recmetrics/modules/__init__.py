r"""Metric classes for loops over mini-batches, with `update` and `compute` as PyG's own have them.

There is one class for every metric of the registry that lists of recommended items are enough for.
A class and the function of the same metric share one definition. `metrics.ndcg` is `NDCG` here and
`metrics.r_precision` is `RPrecision`: abbreviations are in capitals, and other words start with a
capital. `dir(modules)` lists all classes.

A class takes the arguments of the function, and these:

- `empty_target_action` (str): What users without ground truth count as. `"skip"` leaves them out of
  the mean, `"neg"` counts them as zero, `"pos"` counts them as one, and `"error"` raises an error.
  (default: `"skip"`)
- `catalogue` (:class:`~pyg_recmetrics.Catalogue`): What is known about the items. Only metrics that
  lists are not enough for, such as `Coverage` and `Novelty`, take it.
- `weighted` (bool): Whether every mini-batch needs to hold weights, for metrics that look at them.
  (default: `False`)
- The arguments of all metrics of torchmetrics, where it is installed: `compute_on_cpu`,
  `dist_sync_on_step`, `process_group`, `dist_sync_fn`, `distributed_available_fn`,
  `sync_on_compute` and `compute_with_cache`.

PyG's `LinkPredMetricCollection` accepts all of these classes. Where torchmetrics is installed, they
are torchmetrics metrics: they work in its `MetricCollection`, with its synchronisation of
processes, its plots, and Lightning's `self.log`.

Metrics add up in double precision. What `compute()` returns is in the default dtype of torch, and
on the device that the metric was moved to. Both are the same as for other metrics, so that they can
be compared. :func:`~pyg_recmetrics.evaluate` has the value of every user.

Two classes look at scored pairs instead of lists, and take what torchmetrics' classes take:
:class:`PrecisionRecallCurve` and :class:`RecallAtFixedPrecision`.

A mini-batch holds lists and nothing else. Four kinds of metrics therefore have no class, and
:func:`~pyg_recmetrics.evaluate` computes them:

- Metrics that need the rank of every relevant item, such as `roc_auc`. A list leaves out all items
  that rank below its end.
- `fall_out`, which needs the number of candidates of each user. A list does not tell it.
- `calibration`, which compares each list with the history of its user. A row of a mini-batch does
  not say which user it belongs to.
- Micro-averages, whose denominator is that of all users. They do not add up over mini-batches.

Lists need to have at least `k` items: an item beyond the end of a list counts as not retrieved,
which makes most values too low. R-precision needs lists as long as the largest number of relevant
items of a user. A metric warns about shorter lists, unless they hold all items. It does so once,
also after `reset()`, so that a training of many epochs is not flooded with warnings.

Example:
    >>> import torch
    >>> from pyg_recmetrics.modules import NDCG, RPrecision
    >>> lists, truth = torch.tensor([[3, 1, 4], [2, 6, -1]]), torch.tensor([[0, 0, 1], [1, 9, 2]])
    >>> metric = RPrecision()
    >>> metric.update(pred_index_mat=lists, edge_label_index=truth)
    >>> metric.compute()
    tensor(0.7500)
    >>> NDCG(k=20, gain="exponential")
    NDCG(k=20, gain='exponential')
"""

from pyg_recmetrics import metrics
from pyg_recmetrics.metrics import Definition
from pyg_recmetrics.modules.ranking_metric import (
    MeanOverUsers as MeanOverUsers,
    OverAllUsers as OverAllUsers,
    PrecisionRecallCurve,
    RankingMetric as RankingMetric,
    RecallAtFixedPrecision,
    StreamingMetric as StreamingMetric,
    base_class,
    class_name,
    make_class,
)

#: The classes that look at scored pairs instead of lists.
_OF_PAIRS = (PrecisionRecallCurve, RecallAtFixedPrecision)


def _definitions_by_class_name() -> dict[str, Definition]:
    # Where two metrics have one class name, such as `ndcg` and `n_dcg`, the first keeps it.
    return {class_name(name): metrics.definition(name) for name in reversed(metrics.names())}


def __getattr__(name: str) -> type[RankingMetric]:
    # A class is made when it is first asked for, so that any registered metric has one.
    definitions = _definitions_by_class_name()
    if name not in definitions:
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    return make_class(definitions[name])


def __dir__() -> list[str]:
    definitions = _definitions_by_class_name()
    made = [name for name, defined in definitions.items() if base_class(defined) is not None]
    return sorted([*made, *(cls.__name__ for cls in _OF_PAIRS)])
