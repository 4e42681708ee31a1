"""How the classes are made: one for every metric of the registry that lists are enough for."""

import inspect
from functools import cache
from math import isinf
from typing import Any, cast, get_type_hints

from torch import Tensor

from pyg_recmetrics.metrics import AggregateDefinition, Definition
from pyg_recmetrics.metrics.empty_target_action import EmptyTargetAction
from pyg_recmetrics.metrics.registry import Docstring
from pyg_recmetrics.modules.ranking_metric import (
    PYGS,
    MeanOverUsers,
    OverAllUsers,
    OverListedItems,
    RankingMetric,
)
from pyg_recmetrics.task import Catalogue

#: Where all classes are imported from.
_PACKAGE = __name__.rpartition(".")[0]

#: The words of a metric's name that a class name spells in capitals.
_ABBREVIATIONS = ("auc", "dcg", "err", "map", "mrr", "ndcg", "pr", "rbp", "roc")


def _options(
    *,
    catalogue: Catalogue | None = None,
    num_dst_nodes: int | None = None,
    category: Tensor | None = None,
    popularity: Tensor | None = None,
    weighted: bool = False,
    empty_target_action: EmptyTargetAction = "skip",
    keep_per_user: bool = False,
    **kwargs: Any,
) -> None:
    """What a class takes besides what the function of the same metric takes.

    Args:
        catalogue (Catalogue, optional): What is known about the items, which some metrics need, and
            some of their arguments. (default: `None`)
        num_dst_nodes (int, optional): The number of items, in place of `catalogue`.
            (default: `None`)
        category (torch.Tensor, optional): The category of every item as an integer, of shape
            `[num_items]`, in place of `catalogue`. (default: `None`)
        popularity (torch.Tensor, optional): How often every item was seen as an integer, of shape
            `[num_items]`, in place of `catalogue`. (default: `None`)
        weighted (bool, optional): Whether every mini-batch needs to hold weights. Those that are
            given count in any case. (default: `False`)
        empty_target_action (str, optional): What users without ground truth count as. `"skip"`
            leaves them out of the mean, `"neg"` counts them as zero, `"pos"` counts them as one,
            and `"error"` raises an error. (default: `"skip"`)
        keep_per_user (bool, optional): Whether to keep the value of every user for
            `compute_per_user()`. (default: `False`)
        **kwargs: The arguments of all metrics of torchmetrics, see :mod:`pyg_recmetrics.modules`.
    """


_RAISES = """\
Raises:
    TypeError: If an argument is missing, or is none of the above.
    ValueError: If the value of an argument is none of the above, or not enough for the metric."""


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
        :class:`MeanOverUsers`, :class:`OverAllUsers`, :class:`OverListedItems`, or `None` if lists
        are not enough for the metric.
    """
    if definition.needs_all_ranks or definition.needs_candidates or "seen" in definition.needs:
        return None
    if not isinstance(definition, AggregateDefinition):
        return MeanOverUsers
    return OverListedItems if definition.needs_lists_only else OverAllUsers


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
        "__doc__": _docstring(definition),
        "__signature__": _signature(definition),
        "definition": definition,
        "higher_is_better": definition.higher_is_better,
        # Where torchmetrics ends the axis of its plots.
        "plot_lower_bound": next(ends),
        "plot_upper_bound": next(ends),
    }
    return cast(type[RankingMetric], type(name, (base,), attributes))


def _options_of(definition: Definition) -> dict[str, inspect.Parameter]:
    """The arguments that the class of a metric takes, and its function does not."""
    fact = PYGS.get(definition.name)
    needs_catalogue = bool(set(definition.needs) - {"items"})
    is_taken = {
        "catalogue": needs_catalogue or bool(definition.may_need),
        **{name: name == fact for name in PYGS.values()},
        "weighted": definition.depends_on_weight,
        "empty_target_action": definition.needs_truth,
        "keep_per_user": not isinstance(definition, AggregateDefinition),
    }
    parameters = inspect.signature(_options).parameters
    options = {name: each for name, each in parameters.items() if is_taken.get(name, True)}
    if needs_catalogue and fact is None:
        required = {"default": inspect.Parameter.empty, "annotation": Catalogue}
        options["catalogue"] = options["catalogue"].replace(**required)
    return options


def _signature(definition: Definition) -> inspect.Signature:
    """The signature of the function without `ranked`, and the options of the class."""
    function = inspect.unwrap(definition.function)
    _, *of_function = inspect.signature(function).parameters.values()
    hints = get_type_hints(function)
    parameters = [parameter.replace(annotation=hints[parameter.name]) for parameter in of_function]
    return inspect.Signature([*parameters, *_options_of(definition).values()])


def _docstring(definition: Definition) -> str:
    """The docstring of the function, with what is different for the class."""
    docstring, options = definition.docstring, Docstring.of(_options).arguments
    explained = [lines for name, lines in docstring.arguments.items() if name != "ranked"]
    explained += [options[name] for name in _options_of(definition) if name in options]
    sections = [
        docstring.about,
        f"This class computes :func:`~pyg_recmetrics.metrics.{definition.name}` over mini-batches.",
        "\n".join(["Args:", *explained]),
        _RAISES,
        docstring.source,
    ]
    return "\n\n".join(section for section in sections if section)
