"""The forms that the `recommend` of a model may have, and how it is asked in each of them."""

import functools
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from inspect import Parameter
from typing import Any, TypeAlias

from torch import Tensor
from torch_geometric.nn.models import LightGCN

#: The `recommend` of a model: a method of a module or of another object, or a function.
Recommend: TypeAlias = Callable[..., Tensor]

#: What `recommend` takes, in each of its forms. Where there are edges, there may be weights, too.
RECOMMEND_FORMS = (
    ("edge_index", "src_index", "dst_index", "k"),
    ("src_index", "dst_index", "k"),
    ("edge_index", "src_index", "k"),
    ("src_index", "k"),
    ("edge_index", "k"),
    ("k",),
)

#: What people call these arguments, that of PyG first.
_NAMES = {
    "edge_index": ("edge_index", "adj_t", "adj"),
    "edge_weight": ("edge_weight",),
    "src_index": ("src_index", "users", "user", "user_ids", "user_index"),
    "dst_index": ("dst_index", "items", "item_ids", "item_index"),
    "k": ("k", "top_k", "topk"),
}
_MEANINGS = {name: argument for argument, names in _NAMES.items() for name in names}


@dataclass(frozen=True)
class RecommendForm:
    """How a `recommend` is asked. All arguments have PyG's names here.

    Attributes:
        arguments (tuple of str): What it takes besides weights, one of :data:`RECOMMEND_FORMS`.
        by_position (tuple of str): What it is given by position, in this order.
        by_name (mapping): What it is given by name, with its own names.
        needs_weight (bool): Whether it takes weights without a default.
    """

    arguments: tuple[str, ...]
    by_position: tuple[str, ...]
    by_name: Mapping[str, str]
    needs_weight: bool

    @property
    def takes_weight(self) -> bool:
        """Whether it takes the weights of edges."""
        return "edge_weight" in (*self.by_position, *self.by_name)

    def ask(self, recommend: Recommend, **given: Any) -> Tensor:
        """Returns the answer of a `recommend`, which is given what it takes."""
        by_name = {name: given[argument] for argument, name in self.by_name.items()}
        if "edge_weight" in self.by_name and given["edge_weight"] is None and not self.needs_weight:
            del by_name[self.by_name["edge_weight"]]
        return recommend(*(given[argument] for argument in self.by_position), **by_name)

    def __str__(self) -> str:
        return f"recommend({', '.join(self.arguments)})"


def read_form(recommend: Recommend) -> RecommendForm:
    """Returns the form of a `recommend`, by the names of what it takes.

    Edges that come first may have any name. If it takes four things by position, as the first form
    does, all of them may.

    Raises:
        TypeError: If it has none of the forms.
    """
    parameters = _with_passed_on(parameters_of(recommend))
    named = {_MEANINGS[each.name]: each for each in parameters if each.name in _MEANINGS}
    unnamed = [
        each
        for index, each in enumerate(parameters)
        if each.name not in _MEANINGS and (_is_required(each) or (index == 0 and _is_first(each)))
    ]
    for arguments in RECOMMEND_FORMS:
        missing = [argument for argument in arguments if argument not in named]
        takes_more = named.keys() - {*arguments, "edge_weight"}
        if takes_more or len(missing) != len(unnamed):
            continue
        meanings = _MEANINGS | {
            each.name: argument for each, argument in zip(unnamed, missing, strict=True)
        }
        places = [meanings[each.name] for each in parameters if each.name in meanings]
        is_edges = missing == ["edge_index"] and parameters[0] is unnamed[0]
        is_in_order = arguments == RECOMMEND_FORMS[0] == (*_without_weight(places),)
        if not unnamed or (is_edges and "src_index" in named) or is_in_order:
            form = _form(arguments, parameters, meanings, unnamed)
            if form is not None:
                return form
    raise _unknown_form(recommend)


def parameters_of(recommend: Recommend) -> list[Parameter]:
    """Returns what a `recommend` takes, but for edges and weights that it was given already."""
    try:
        parameters = inspect.signature(recommend).parameters
    except (TypeError, ValueError):  # compiled functions may have no signature
        parameters = inspect.signature(functools.partial(LightGCN.recommend, None)).parameters
    given = recommend.keywords if isinstance(recommend, functools.partial) else {}
    return [
        each
        for each in parameters.values()
        if not (each.name in given and _MEANINGS.get(each.name) in ("edge_index", "edge_weight"))
    ]


def is_asked_by_name(function: Recommend) -> bool:
    """Returns whether a function takes users and `k` by names that are known."""
    parameters = _with_passed_on(parameters_of(function))
    return {"src_index", "k"} <= {_MEANINGS.get(each.name) for each in parameters}


def _with_passed_on(parameters: list[Parameter]) -> list[Parameter]:
    """Returns parameters and, if there is a `**kwargs`, those of PyG that it passes on."""
    own = [each for each in parameters if each.kind is not Parameter.VAR_KEYWORD]
    if len(own) == len(parameters):
        return own
    known = {_MEANINGS.get(each.name) for each in own}
    if own and own[0].name not in _MEANINGS and _is_first(own[0]):
        known.add("edge_index")
    return own + [
        Parameter(argument, Parameter.KEYWORD_ONLY, default=None)
        for argument in _NAMES
        if argument not in known
    ]


def _is_required(parameter: Parameter) -> bool:
    return parameter.default is parameter.empty and parameter.kind is not parameter.VAR_POSITIONAL


def _is_first(parameter: Parameter) -> bool:
    return parameter.kind is not parameter.KEYWORD_ONLY


def _without_weight(arguments: list[str]) -> list[str]:
    return [argument for argument in arguments if argument != "edge_weight"]


def _form(
    arguments: tuple[str, ...],
    parameters: list[Parameter],
    meanings: Mapping[str, str],
    unnamed: list[Parameter],
) -> RecommendForm | None:
    """Returns how it is asked; `None` if it takes something else in between."""
    last = max(
        (
            index
            for index, each in enumerate(parameters, start=1)
            if each in unnamed or (each.kind is each.POSITIONAL_ONLY and each.name in meanings)
        ),
        default=0,
    )
    if any(each.name not in meanings for each in parameters[:last]):
        return None
    known = [each for each in parameters[last:] if each.name in meanings]
    return RecommendForm(
        arguments,
        by_position=tuple(meanings[each.name] for each in parameters[:last]),
        by_name={meanings[each.name]: each.name for each in known},
        needs_weight=any(
            _is_required(each) for each in known if meanings[each.name] == "edge_weight"
        ),
    )


def describe_signature(recommend: Recommend) -> str:
    """Returns what a `recommend` takes, in words."""
    return f"recommend({', '.join(each.name for each in parameters_of(recommend))})"


def _unknown_form(recommend: Recommend) -> TypeError:
    forms = "".join(f"\n  - recommend({', '.join(arguments)})" for arguments in RECOMMEND_FORMS)
    model, remedy = getattr(recommend, "__self__", None), ""
    if hasattr(model, "user_factors") and hasattr(model, "item_factors"):
        remedy = "\nIts embeddings can be ranked: (model.user_factors, model.item_factors)"
    return TypeError(
        f"'recommender.recommend()' needs to have one of these forms, where users and items may "
        f"also be called 'users' and 'items' (got {describe_signature(recommend)}):{forms}{remedy}"
    )
