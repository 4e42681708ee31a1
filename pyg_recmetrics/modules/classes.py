"""How the classes are made: one for every metric of the registry that lists are enough for."""

import inspect
from functools import cache
from math import isinf
from typing import Any, cast, get_type_hints

from pyg_recmetrics.metrics import Definition
from pyg_recmetrics.metrics.empty_target_action import EmptyTargetAction
from pyg_recmetrics.modules.ranking_metric import (
    MeanOverUsers,
    OverAllUsers,
    RankingMetric,
)
from pyg_recmetrics.task import Catalogue

#: Where all classes are imported from.
_PACKAGE = __name__.rpartition(".")[0]

#: The words of a metric's name that a class name spells in capitals.
_ABBREVIATIONS = ("auc", "dcg", "err", "map", "mrr", "ndcg", "pr", "rbp", "roc")


#: What is said of each class besides what its metric is.
_ABOUT = """\
This class computes :func:`~pyg_recmetrics.metrics.{0}` over mini-batches. It takes the arguments of
the function, and the options that :mod:`pyg_recmetrics.modules` explains."""


def _options(
    *,
    catalogue: Catalogue,
    weighted: bool = False,
    empty_target_action: EmptyTargetAction = "skip",
    **kwargs: Any,
) -> None:
    """What a class takes besides what the function of the same metric takes."""


def class_name(name: str) -> str:
    """Returns the name of the class for a metric of the registry.

    Example:
        >>> from pyg_recmetrics.modules import class_name
        >>> [class_name(name) for name in ("r_precision", "ndcg", "f1")]
        ['RPrecision', 'NDCG', 'F1']
    """
    words = name.split("_")
    return "".join(word.upper() if word in _ABBREVIATIONS else word.capitalize() for word in words)


def base_class(definition: Definition) -> type[RankingMetric] | None:
    """Returns the base class for a metric, which says what the metric keeps between updates.

    Returns:
        :class:`MeanOverUsers`, :class:`OverAllUsers`, or `None` if lists are not enough for the
        metric.
    """
    if definition.needs_all_ranks or definition.needs_candidates or "seen" in definition.needs:
        return None
    return MeanOverUsers if definition.state is None else OverAllUsers


@cache
def make_class(definition: Definition) -> type[RankingMetric]:
    """Makes the class of a metric.

    Raises:
        AttributeError: If lists are not enough for the metric.
    """
    base = base_class(definition)
    name = class_name(definition.name)
    if base is None:
        raise AttributeError(
            f"there is no '{name}': '{definition.name}' needs the rank of every relevant item, the "
            f"number of candidates, or the history of every user, which lists do not hold; use "
            f"'evaluate(model, data, [\"{definition.name}\"])'"
        )
    ends = (None if isinf(end) else end for end in definition.range)
    attributes = {
        "__module__": _PACKAGE,
        "__doc__": f"{definition.about}\n\n{_ABOUT.format(definition.name)}",
        "__signature__": _signature(definition),
        "definition": definition,
        "higher_is_better": definition.higher_is_better,
        # Where torchmetrics ends the axis of its plots.
        "plot_lower_bound": next(ends),
        "plot_upper_bound": next(ends),
    }
    return cast(type[RankingMetric], type(name, (base,), attributes))


def _signature(definition: Definition) -> inspect.Signature:
    """The signature of the function without `ranked`, and the options of the class."""
    function = inspect.unwrap(definition.function)
    _, *of_function = inspect.signature(function).parameters.values()
    hints = get_type_hints(function)
    parameters = [parameter.replace(annotation=hints[parameter.name]) for parameter in of_function]
    is_taken = {
        "catalogue": bool(set(definition.needs) - {"items"}),
        "weighted": definition.depends_on_weight,
        "empty_target_action": definition.needs_truth,
    }
    options = inspect.signature(_options).parameters
    taken = [option for name, option in options.items() if is_taken.get(name, True)]
    return inspect.Signature([*parameters, *taken])
