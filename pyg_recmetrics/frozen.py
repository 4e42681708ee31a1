"""A mapping that cannot be changed, so that values which hold one can be compared and hashed."""

from collections.abc import Iterator, Mapping
from typing import TypeVar

K = TypeVar("K")
V = TypeVar("V")


class FrozenDict(Mapping[K, V]):
    """An immutable dictionary. It can be hashed if its values can.

    Example:
        >>> FrozenDict({"k": 20}) == {"k": 20}, len({FrozenDict({"k": 20}), FrozenDict({"k": 20})})
        (True, 1)
    """

    def __init__(self, items: Mapping[K, V] | None = None) -> None:
        self._items: dict[K, V] = dict(items or {})

    def __getitem__(self, key: K) -> V:
        return self._items[key]

    def __iter__(self) -> Iterator[K]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def __or__(self, other: Mapping[K, V]) -> "FrozenDict[K, V]":
        return FrozenDict({**self._items, **other})

    def __hash__(self) -> int:
        return hash(frozenset(self._items.items()))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._items})"
