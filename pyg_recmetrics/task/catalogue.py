"""Catalogue: what is known about the items, for the metrics that look at them."""

from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from pyg_recmetrics.checks import (
    check_device,
    check_edges,
    check_finite,
    check_integers,
    check_labels,
    check_matrix,
    check_pairs,
    check_positive_integer,
    check_scores,
)
from pyg_recmetrics.inputs import EdgesLike, TensorLike, as_tensor
from pyg_recmetrics.task.edges import coalesce_edges
from pyg_recmetrics.utils import Frozen, arguments_of

#: For each thing that a metric may need to know, how to give it.
_HOW_TO_GIVE = {
    "num_items": "the number of items: attach a 'Catalogue' by 'ranked.with_catalogue'",
    "seen": "what users have seen: give 'seen' edges to the 'RankingTask' (or to the 'Catalogue')",
    "item_category": "the category of every item: pass catalogue=Catalogue(..., item_category=...)",
    "item_embedding": "the embedding of every item: pass catalogue=Catalogue(..., "
    "item_embedding=...)",
}


class Catalogue(Frozen):
    r"""What is known about the items: how often they were seen, and what they are like.

    Every :class:`~pyg_recmetrics.RankingTask` has a catalogue with its seen edges, and
    :func:`~pyg_recmetrics.evaluate` takes one with embeddings and categories. For lists that come
    from elsewhere, :meth:`RankedEdges.with_catalogue` attaches one.

    Args:
        num_items (int): The number of items.
        seen (torch.Tensor, optional): The interactions of users with items before the evaluation,
            edges of shape `[2, num_seen]`. Repeated edges are one edge. (default: `None`)
        item_embedding (torch.Tensor, optional): Floating-point features of every item, of shape
            `[num_items, num_features]`. (default: `None`)
        item_category (torch.Tensor, optional): The category of every item as an integer, of shape
            `[num_items]`. If items have several categories or none, a matrix of shape
            `[num_items, num_categories]` that is true or positive where an item has a category.
            (default: `None`)

    Raises:
        TypeError: If an argument does not hold numbers.
        ValueError: If an argument has a wrong shape or dtype, or holds wrong ids, or numbers that
            are not finite.

    Example:
        >>> import torch
        >>> from pyg_recmetrics import Catalogue
        >>> seen = torch.tensor([[0, 0, 1], [1, 2, 1]])
        >>> Catalogue(num_items=4, seen=seen).popularity
        tensor([0, 2, 1, 0])
    """

    #: `None` if there are no seen edges: popularity is then undefined.
    seen: Tensor | None
    item_embedding: Tensor | None = None
    item_category: Tensor | None = None

    def __init__(
        self,
        num_items: int,
        *,
        seen: EdgesLike | None = None,
        item_embedding: TensorLike | None = None,
        item_category: TensorLike | None = None,
    ) -> None:
        self.num_items = num_items = check_positive_integer(num_items, "num_items")
        self.seen = None if seen is None else _check_seen(seen, num_items)
        features = _read(item_embedding, "item_embedding", num_items, ", num_features")
        self.item_embedding = (
            features if features is None else check_scores(features, "item_embedding")
        )
        category = _read(item_category, "item_category", num_items, "", ", num_categories")
        self.item_category = None if category is None else _check_category(category)
        self._freeze()

    @cached_property
    def interactions(self) -> Tensor:
        """The seen edges, sorted by user and each of them once, of shape `[2, num_seen]`.

        Raises:
            ValueError: If seen edges are not known.
        """
        return coalesce_edges(self.get("seen"), self.num_items)

    @cached_property
    def popularity(self) -> Tensor:
        """The number of users who have seen each item, of shape `[num_items]`."""
        return torch.bincount(self.interactions[1], minlength=self.num_items)

    @cached_property
    def num_active_users(self) -> int:
        """The number of users who have seen any item."""
        return int(self.interactions[0].unique_consecutive().numel())

    def get(self, name: str) -> Tensor:
        """Returns `seen`, `item_embedding` or `item_category`.

        Raises:
            ValueError: If it is not known; the error says how to give it.
        """
        check_has(self, name, "catalogue")
        value: Tensor = getattr(self, name)
        return value

    def _check_device(self, device: torch.device, owner: str) -> None:
        """Raises if a tensor is on another device than its `owner`."""
        for name, value in self._tensors().items():
            check_device(value, name, device, owner)

    def to(self, device: torch.device | str) -> "Catalogue":
        """Returns a copy on another device, or itself if it is there already.

        Example:
            >>> import torch
            >>> from pyg_recmetrics import Catalogue
            >>> items = Catalogue(num_items=3, item_category=torch.tensor([0, 1, 1]))
            >>> items.to("cpu").item_category
            tensor([0, 1, 1])
        """
        device = torch.device(device)
        if all(value.device == device for value in self._tensors().values()):
            return self
        moved = {name: value.to(device) for name, value in self._tensors().items()}
        return type(self)(**self.to_dict() | moved)

    def to_dict(self) -> dict[str, Any]:
        """Returns the arguments that the catalogue was made of."""
        return {name: value for name, value in arguments_of(self).items() if value is not None}

    @classmethod
    def from_dict(cls, fields: dict[str, Any]) -> "Catalogue":
        """Returns what :meth:`to_dict` was called on."""
        return cls(**fields)

    def __repr__(self) -> str:
        shapes = [f"{name}={list(value.shape)}" for name, value in self._tensors().items()]
        return f"{type(self).__name__}({', '.join([f'num_items={self.num_items}', *shapes])})"

    def _tensors(self) -> dict[str, Tensor]:
        return {name: x for name, x in self.to_dict().items() if isinstance(x, Tensor)}


def check_has(catalogue: Catalogue | None, name: str, metric: str) -> None:
    """Raises if a catalogue lacks what a metric needs, and says how to give it."""
    source = "seen" if name == "popularity" else name
    if getattr(catalogue, source, None) is None:
        raise ValueError(f"'{metric}' needs {_HOW_TO_GIVE[source]} (got none)")


def _check_seen(seen: object, num_items: int) -> Tensor | None:
    edges = check_edges(seen, "seen")
    check_matrix(seen, "seen", None, num_items)
    if edges.size(1) == 0:
        return None
    check_pairs(edges, "seen", int(edges[0].max()) + 1, num_items)
    return edges


def _read(value: object, name: str, num_items: int, *columns: str) -> Tensor | None:
    """Returns finite numbers with a row for every item, and with some columns or others."""
    if value is None:
        return None
    check_labels(value, name, None)
    tensor = as_tensor(value, name)
    if tensor.dim() not in [1 + bool(each) for each in columns] or tensor.size(0) != num_items:
        shapes = " or ".join(f"[num_items={num_items}{each}]" for each in columns)
        raise ValueError(f"'{name}' needs to have shape {shapes} (got {list(tensor.shape)})")
    check_finite(tensor, name)
    return tensor


def _check_category(tensor: Tensor) -> Tensor:
    of_one = tensor.dim() == 1
    tensor = check_integers(tensor, "item_category") if of_one else tensor
    if bool((tensor < 0).any()):
        raise ValueError(f"'item_category' needs to be zero or more (got {tensor.min()})")
    # Categories are renumbered from zero on, so that large ids do not take memory.
    return tensor.unique(return_inverse=True)[1] if of_one else tensor
