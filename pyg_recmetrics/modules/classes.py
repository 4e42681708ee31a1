"""How the classes are made: one for every metric of the registry that lists are enough for."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, cast, get_type_hints

import torch
from torch import Tensor

from pyg_recmetrics.metrics import AggregateDefinition, Definition
from pyg_recmetrics.metrics.empty_target_action import EmptyTargetAction
from pyg_recmetrics.modules.ranking_metric import (
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


@dataclass(frozen=True)
class _ClassArgument:
    """An argument that a class takes and the function of the same metric does not."""

    parameter: inspect.Parameter
    #: Its lines in the `Args:` section of a docstring.
    explanation: str
    #: Whether the class of a metric takes it.
    applies_to: Callable[[Definition], bool]


#: What PyG's class of a metric takes in place of a catalogue.
_PYGS = {"coverage": "num_dst_nodes", "diversity": "category", "popularity": "popularity"}


def _keyword(name: str, annotation: Any, default: Any) -> inspect.Parameter:
    kind = inspect.Parameter.KEYWORD_ONLY
    return inspect.Parameter(name, kind, default=default, annotation=annotation)


_CLASS_ARGUMENTS = (
    _ClassArgument(
        _keyword("catalogue", Catalogue, inspect.Parameter.empty),
        """\
    catalogue (Catalogue): What is known about the items.""",
        lambda definition: bool(set(definition.needs) - {"items"}) and definition.name not in _PYGS,
    ),
    _ClassArgument(
        _keyword("catalogue", Catalogue | None, None),
        """\
    catalogue (Catalogue, optional): What is known about the items, which some arguments need.
        (default: `None`)""",
        lambda definition: (
            definition.name in _PYGS
            or (bool(definition.may_need) and not set(definition.needs) - {"items"})
        ),
    ),
    _ClassArgument(
        _keyword("num_dst_nodes", int | None, None),
        """\
    num_dst_nodes (int, optional): The number of items, in place of `catalogue`.
        (default: `None`)""",
        lambda definition: _PYGS.get(definition.name) == "num_dst_nodes",
    ),
    _ClassArgument(
        _keyword("category", Tensor | None, None),
        """\
    category (torch.Tensor, optional): The category of every item as an integer, of shape
        `[num_items]`, in place of `catalogue`. (default: `None`)""",
        lambda definition: _PYGS.get(definition.name) == "category",
    ),
    _ClassArgument(
        _keyword("popularity", Tensor | None, None),
        """\
    popularity (torch.Tensor, optional): How often every item was seen as an integer, of shape
        `[num_items]`, in place of `catalogue`. (default: `None`)""",
        lambda definition: _PYGS.get(definition.name) == "popularity",
    ),
    _ClassArgument(
        _keyword("weighted", bool, False),
        """\
    weighted (bool, optional): Whether every mini-batch needs to hold weights. Those that are given
        count in any case. (default: `False`)""",
        lambda definition: definition.depends_on_weight,
    ),
    _ClassArgument(
        _keyword("empty_target_action", EmptyTargetAction, "skip"),
        """\
    empty_target_action (str, optional): What users without ground truth count as. `"skip"` leaves
        them out of the mean, `"neg"` counts them as zero, `"pos"` counts them as one, and
        `"error"` raises an error. (default: `"skip"`)""",
        lambda definition: definition.needs_truth,
    ),
    _ClassArgument(
        _keyword("keep_per_user", bool, False),
        """\
    keep_per_user (bool, optional): Whether to keep the value of every user for
        `compute_per_user()`. (default: `False`)""",
        lambda definition: not isinstance(definition, AggregateDefinition),
    ),
    _ClassArgument(
        inspect.Parameter("kwargs", inspect.Parameter.VAR_KEYWORD, annotation=Any),
        """\
    **kwargs: The arguments of all metrics of torchmetrics, see :mod:`pyg_recmetrics.modules`.""",
        lambda definition: True,
    ),
)


_RAISES = """\
Raises:
    TypeError: If an argument is missing, or is none of the above.
    ValueError: If the value of an argument is none of the above, or not enough for the metric."""

#: The lines of an example that only a class with a catalogue has.
_IMPORTED_CATALOGUE = """
    >>> from pyg_recmetrics import Catalogue"""
_MADE_CATALOGUE = """
    >>> seen, category = torch.tensor([[0, 1], [3, 1]]), torch.arange(5)
    >>> catalogue = Catalogue(5, seen=seen, item_category=category, item_embedding=torch.eye(5))"""


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
    low, high = definition.bounds
    attributes = {
        "__module__": _PACKAGE,
        "__doc__": _docstring(definition),
        "__signature__": _signature(definition),
        "definition": definition,
        "higher_is_better": definition.higher_is_better,
        # Where torchmetrics ends the axis of its plots.
        "plot_lower_bound": None if low == -torch.inf else low,
        "plot_upper_bound": None if high == torch.inf else high,
    }
    return cast(type[RankingMetric], type(name, (base,), attributes))


def _class_arguments(definition: Definition) -> list[_ClassArgument]:
    return [argument for argument in _CLASS_ARGUMENTS if argument.applies_to(definition)]


def _signature(definition: Definition) -> inspect.Signature:
    """The signature of the function without `ranked`, and the arguments of the class."""
    function = inspect.unwrap(definition.function)
    _, *of_function = inspect.signature(function).parameters.values()
    hints = get_type_hints(function)
    parameters = [parameter.replace(annotation=hints[parameter.name]) for parameter in of_function]
    of_class = [argument.parameter for argument in _class_arguments(definition)]
    return inspect.Signature([*parameters, *of_class])


def _docstring(definition: Definition) -> str:
    """The docstring of the function, with what is different for the class."""
    docstring = definition.docstring
    arguments = [
        *(lines for name, lines in docstring.arguments.items() if name != "ranked"),
        *(argument.explanation for argument in _class_arguments(definition)),
    ]
    sections = [
        docstring.about,
        f"This class computes :func:`~pyg_recmetrics.metrics.{definition.name}` over mini-batches.",
        "\n".join(["Args:", *arguments]),
        _RAISES,
        docstring.source,
        _example(definition),
    ]
    return "\n\n".join(section for section in sections if section)


def _example(definition: Definition) -> str:
    """How to use the class, whatever it computes."""
    name, imported, made = class_name(definition.name), "", ""
    arguments = ["k=2"] if definition.has_cut_off else []
    if "catalogue" in (argument.parameter.name for argument in _class_arguments(definition)):
        imported, made = _IMPORTED_CATALOGUE, _MADE_CATALOGUE
        arguments.append("catalogue=catalogue")
    return f"""\
Example:
    >>> import torch{imported}
    >>> from {_PACKAGE} import {name}{made}
    >>> metric = {name}({", ".join(arguments)})
    >>> metric.update(torch.tensor([[3, 1], [4, 0]]), torch.tensor([[0, 1, 1], [1, 2, 4]]))
    >>> metric.compute()  # doctest: +ELLIPSIS
    tensor(...)"""
