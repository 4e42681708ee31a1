"""A model that recommends by itself: all that can be found out about its `recommend`."""

import functools
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor
from torch.nn.parallel import DataParallel, DistributedDataParallel
from torch.optim.swa_utils import AveragedModel
from torch_geometric.nn.models import LightGCN
from torch_geometric.typing import Adj

from pyg_recmetrics.ranking.evaluation_mode import bound_object
from pyg_recmetrics.ranking.recommend_forms import (
    Recommend,
    RecommendForm,
    describe_signature,
    is_asked_by_name,
    read_form,
)


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
        form (RecommendForm): How it is asked.
    """

    recommend: Recommend
    bound_object: object
    lightgcn: LightGCN | None
    form: RecommendForm

    @property
    def name(self) -> str:
        """The name of the class, or of the function."""
        model = self.bound_object
        return getattr(model, "__name__", type(model).__name__)

    @property
    def takes_edges(self) -> bool:
        """Whether it takes message-passing edges."""
        return "edge_index" in self.form.arguments

    def with_edges(self, edge_index: Adj | None, edge_weight: Tensor | None) -> Recommend:
        """Returns a `recommend` with its edges, to be asked by the other names of PyG.

        Raises:
            ValueError: If edges have weights, and it does not take them.
        """
        if self.takes_edges and edge_weight is not None and not self.form.takes_weight:
            raise ValueError(
                f"'recommender.recommend()' needs to take 'edge_weight', as the edges have weights "
                f"(got {describe_signature(self.recommend)})"
            )
        edges = {"edge_index": edge_index, "edge_weight": edge_weight}
        return functools.partial(self.form.ask, self.recommend, **edges)


def find_model(value: object) -> FoundModel | None:
    """Returns all that is known about a model, or `None` if `value` is no model.

    A model is an object with a method `recommend`, whatever its class; a wrapper that PyTorch puts
    around one; or a function of this name that takes users and `k`.

    Raises:
        TypeError: If `recommend` has none of the forms in which it can be asked.
    """
    recommend = _find_recommend(value)
    if recommend is None:
        return None
    model = bound_object(recommend)
    is_original = getattr(recommend, "__func__", None) is LightGCN.recommend
    return FoundModel(
        recommend=recommend,
        bound_object=model,
        lightgcn=model if is_original else None,
        form=read_form(recommend),
    )


def unwrapped(value: object) -> object:
    """Returns the module that others are wrapped around, or the outermost that has `recommend`."""
    while isinstance(value, torch.nn.Module) and not hasattr(value, "recommend"):
        is_wrapper = isinstance(value, DataParallel | DistributedDataParallel | AveragedModel)
        # `torch.compile` keeps the original under this name.
        inner = value.module if is_wrapper else getattr(value, "_orig_mod", None)
        if inner is None:
            break
        value = inner
    return value


def _find_recommend(value: object) -> Recommend | None:
    if isinstance(value, Tensor | tuple | list | type):
        return None
    recommend: Recommend | None = getattr(unwrapped(value), "recommend", None)
    if callable(recommend):
        return recommend
    if callable(value) and _name(value) == "recommend" and is_asked_by_name(value):
        return value
    return None


def _name(function: object) -> str:
    while isinstance(function, functools.partial):
        function = function.func
    return getattr(function, "__name__", "")
