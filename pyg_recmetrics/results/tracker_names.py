"""The names of metrics where `@` and brackets are not allowed, as in some trackers."""

import re
from collections import defaultdict
from collections.abc import Iterable
from typing import Literal, TypeAlias, get_args

from pyg_recmetrics.checks import check_choice
from pyg_recmetrics.metrics import Metric

#: What may stand between the parts of a name. MLflow's files allow no `/`: it makes folders.
Separator: TypeAlias = Literal["@", "_", "-", "."]


def spell(metrics: Iterable[str | Metric], sep: Separator = "@") -> list[str]:
    """Returns the names of metrics; with another separator than `@`, names that trackers take.

    Raises:
        ValueError: If there is no such separator, or two metrics would have one name.

    Example:
        >>> spell(["recall@20", "ndcg(gain=exponential)@20", "r_precision"], sep="_")
        ['recall_20', 'ndcg_gain_exponential_20', 'r_precision']
    """
    check_choice(sep, "sep", get_args(Separator))
    names = [str(metric) for metric in metrics]
    if sep == "@":
        return names
    spelled = [sep.join(re.findall(r"[A-Za-z0-9_]+", name)) for name in names]
    sources = defaultdict(list)
    for name, source in zip(spelled, names, strict=True):
        sources[name].append(source)
    if taken := {name: of for name, of in sources.items() if len(of) > 1}:
        name, of = next(iter(taken.items()))
        raise ValueError(
            f"'sep' needs to give each metric a name of its own (got {sep!r}, which makes "
            f"{name!r} of {of})"
        )
    return spelled
