"""A model that recommends by itself: all that can be found out about its `recommend`."""

import functools
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeAlias

import torch
from torch import Tensor
from torch.nn.parallel import DataParallel, DistributedDataParallel
from torch.optim.swa_utils import AveragedModel
from torch_geometric.nn.models import LightGCN
from torch_geometric.typing import Adj

from pyg_recmetrics.ranking.evaluation_mode import bound_object

#: The `recommend` of a model: a method of a module or of another object, or a function.
Recommend: TypeAlias = Callable[..., Tensor]

#: What `recommend` is given by name. Edges come first, whatever they are called.
_NAMED = ("edge_weight", "src_index", "dst_index", "k")

_BY_NAME_ONLY = (inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.VAR_KEYWORD)


class HasRecommend(Protocol):
    """An object that recommends as PyG's :class:`~torch_geometric.nn.models.LightGCN` does."""

    @property
    def recommend(self) -> Recommend:
        """Returns the best items of users, in the numbering of a homogeneous graph."""


@dataclass(frozen=True, eq=False)
class FoundModel:
    """A model with all that is known about its `recommend`, which is looked at only once.

    Attributes:
        recommend (callable): The `recommend`.
        bound_object (object): The object whose method it is, or else the function itself.
        lightgcn (LightGCN or None): The LightGCN whose method it is, unless a class or an instance
            replaced the method.
        edges (str or None): How it takes message-passing edges: `"first"`, whatever the name of
            that argument, or by the name `"edge_index"`; `None` if it takes none.
        takes_weight (bool): Whether it takes weights of edges.
        needs_weight (bool): Whether it takes them without a default.
    """

    recommend: Recommend
    bound_object: object
    lightgcn: LightGCN | None
    edges: Literal["first", "edge_index"] | None
    takes_weight: bool
    needs_weight: bool

    @property
    def name(self) -> str:
        """The name of the class, or of the function."""
        model = self.bound_object
        return getattr(model, "__name__", type(model).__name__)

    def with_edges(self, edge_index: Adj | None, edge_weight: Tensor | None) -> Recommend:
        """Returns a `recommend` that has been given its message-passing edges, if it takes any.

        Raises:
            TypeError: If it cannot be asked by the names `src_index`, `dst_index` and `k`.
            ValueError: If edges have weights, and it does not take them.
        """
        given: dict[str, Any] = {}
        if self.edges and edge_weight is not None and not self.takes_weight:
            raise ValueError(
                f"'recommender.recommend()' needs to take 'edge_weight', as the edges have weights "
                f"(got {_describe(self.recommend)})"
            )
        if self.edges and (edge_weight is not None or self.needs_weight):
            given["edge_weight"] = edge_weight
        if self.edges == "edge_index":
            given["edge_index"] = edge_index
        first = [edge_index] if self.edges == "first" else []
        signature = inspect.Signature([*_parameters(self.recommend).values()])
        try:
            signature.bind(*first, **given, src_index=0, dst_index=0, k=1)
        except TypeError as error:
            raise TypeError(
                f"'recommender.recommend()' needs to take edges first, and 'src_index', "
                f"'dst_index' and 'k' by name (got {_describe(self.recommend)}: {error})"
            ) from None
        return functools.partial(self.recommend, *first, **given)


def find_model(value: object) -> FoundModel | None:
    """Returns all that is known about a model, or `None` if `value` is no model.

    A model is an object with a method `recommend`, whatever its class; a wrapper that PyTorch puts
    around one; or a function of this name that takes `src_index`.
    """
    recommend = _find_recommend(value)
    if recommend is None:
        return None
    model, parameters = bound_object(recommend), _parameters(recommend)
    is_original = getattr(recommend, "__func__", None) is LightGCN.recommend
    weight = parameters.get("edge_weight")
    return FoundModel(
        recommend=recommend,
        bound_object=model,
        lightgcn=model if is_original else None,
        edges=_find_edges(recommend),
        takes_weight=_takes(recommend, "edge_weight"),
        needs_weight=weight is not None and weight.default is weight.empty,
    )


def _find_recommend(value: object) -> Recommend | None:
    if isinstance(value, Tensor | tuple | list | type):
        return None
    recommend: Recommend | None = getattr(_unwrapped(value), "recommend", None)
    if callable(recommend):
        return recommend
    if callable(value) and _name(value) == "recommend" and _takes(value, "src_index"):
        return value
    return None


def _find_edges(recommend: Recommend) -> Literal["first", "edge_index"] | None:
    first = next(iter(_parameters(recommend).values()), None)
    if first is not None and first.kind not in _BY_NAME_ONLY and first.name not in _NAMED:
        return "first"
    return "edge_index" if _takes(recommend, "edge_index") else None


def _unwrapped(value: object) -> object:
    """Returns the module that others are wrapped around, or the outermost that has `recommend`."""
    while isinstance(value, torch.nn.Module) and not hasattr(value, "recommend"):
        is_wrapper = isinstance(value, DataParallel | DistributedDataParallel | AveragedModel)
        # `torch.compile` keeps the original under this name.
        inner = value.module if is_wrapper else getattr(value, "_orig_mod", None)
        if inner is None:
            break
        value = inner
    return value


def _takes(recommend: Recommend, name: str) -> bool:
    """Returns whether a function takes an argument by name."""
    if isinstance(recommend, functools.partial) and name in recommend.keywords:
        return False  # it has been given already
    parameters = _parameters(recommend)
    return name in parameters or any(
        parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values()
    )


def _parameters(function: Recommend) -> Mapping[str, inspect.Parameter]:
    try:
        return inspect.signature(function).parameters
    except (TypeError, ValueError):  # compiled functions may have none
        return inspect.signature(functools.partial(LightGCN.recommend, None)).parameters


def _name(function: object) -> str:
    while isinstance(function, functools.partial):
        function = function.func
    return getattr(function, "__name__", "")


def _describe(recommend: Recommend) -> str:
    return f"recommend({', '.join(_parameters(recommend))})"
