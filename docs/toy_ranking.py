"""One toy ranking, measured by all conventions side by side."""

import torch

from pyg_recmetrics.conventions import CONVENTIONS, Convention
from pyg_recmetrics.metrics import Metric, definition
from pyg_recmetrics.metrics.registry import fill_without_truth
from pyg_recmetrics.ranked_edges import RankedEdges
from pyg_recmetrics.tables import Table

#: The metrics that the table shows.
_COLUMNS = ("precision", "recall", "r_precision", "map", "ndcg", "mrr", "hit_rate")

#: Pairs of a user and a relevant item, which is also the rank of that item, counted from zero.
_TRUTH = ((0, 0), (0, 2), (0, 5), (0, 7), (0, 8), (1, 1), (2, 4), (2, 5))

_K = 3


def toy_table() -> Table:
    """Returns all conventions on one toy ranking of four users.

    The first user has five relevant items, at ranks 1, 3, 6, 8 and 9. The second has one, at rank
    2. The third has two, at ranks 5 and 6. The fourth has none. A dash marks a metric that the
    library does not offer.
    """
    ranked = RankedEdges.from_topk(torch.arange(10).repeat(4, 1), torch.tensor(_TRUTH).t())
    head = [f"{name}@{_K}" if definition(name).has_cut_off else name for name in _COLUMNS]
    rows = [
        [name, *(_cell(convention, column, ranked) for column in _COLUMNS)]
        for name, convention in CONVENTIONS.items()
    ]
    return Table(["convention", *head], rows)


def _cell(convention: Convention, name: str, ranked: RankedEdges) -> str:
    if convention.metrics is not None and name not in convention.metrics:
        return "-"
    metric = Metric(name, _K if definition(name).has_cut_off else None)
    value = convention.resolve(metric, deepest=_K)(ranked)
    counted = fill_without_truth(value, ranked.degree, convention.empty_target_action)
    return f"{float(counted.nanmean()):.4f}".removeprefix("0")
