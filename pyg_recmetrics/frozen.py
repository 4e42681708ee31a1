"""Objects that cannot be changed once they are made, and what they keep of what they found out.

There are two ways to make one. A value whose fields are its whole definition is a
`@dataclass(frozen=True)`, whose `__post_init__` may :func:`settle` them. An object that computes
its attributes from other arguments is a :class:`Frozen`.
"""

import inspect
from collections.abc import Callable, Hashable, Iterator, Mapping
from typing import Any, TypeVar

K = TypeVar("K")
V = TypeVar("V")

#: The names of the arguments of each class that was asked for.
_arguments: dict[type, tuple[str, ...]] = {}


class Frozen:
    """An object whose attributes are set by its `__init__`, which calls `_freeze` last.

    Example:
        >>> class Circle(Frozen):
        ...     def __init__(self, radius):
        ...         self.area = 3.14 * radius**2
        ...         self._freeze()
        >>> Circle(1).area = 2
        Traceback (most recent call last):
        AttributeError: 'Circle.area' cannot be set: make another one
    """

    #: What to do instead of setting an attribute.
    _INSTEAD = "make another one"

    _is_frozen = False

    def _freeze(self) -> None:
        self._is_frozen = True

    def __setattr__(self, name: str, value: object) -> None:
        if self._is_frozen:
            raise AttributeError(f"'{type(self).__name__}.{name}' cannot be set: {self._INSTEAD}")
        super().__setattr__(name, value)

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"'{type(self).__name__}.{name}' cannot be deleted")


def settle(value: object, **fields: Any) -> None:
    """Replaces attributes of an immutable object that is new and not yet used elsewhere.

    This may be a frozen dataclass in its `__post_init__`, or the copy of an object.
    """
    for name, settled in fields.items():
        object.__setattr__(value, name, settled)


def of_attributes(kind: type[V], **attributes: Any) -> V:
    """Returns a new object with attributes that are checked and prepared, without its `__init__`.

    Example:
        >>> class Circle(Frozen):
        ...     def __init__(self, radius):
        ...         raise ValueError
        >>> of_attributes(Circle, area=2).area
        2
    """
    value = kind.__new__(kind)
    settle(value, **attributes, _is_frozen=True)
    return value


class Memory:
    """What was found out before, by all that it depends on.

    Args:
        most (int, optional): How many findings it keeps. Beyond that, it begins anew.
            (default: `None`, all of them)

    Example:
        >>> memory = Memory()
        >>> memory.once("degree", lambda: 3), memory.once("degree", lambda: 4)
        (3, 3)
    """

    def __init__(self, most: int | None = None) -> None:
        self._most, self._found = most, dict[Hashable, Any]()

    def once(self, key: Hashable, make: Callable[[], V]) -> V:
        """Returns what was found out before, or finds it out."""
        found: V | None = self._found.get(key)
        if found is None:
            if self._most is not None and len(self._found) >= self._most:
                self._found.clear()
            found = self._found[key] = make()
        return found


def arguments_of(value: object) -> dict[str, Any]:
    """Returns the attributes of an object that its class takes as arguments, by name.

    Example:
        >>> class Circle:
        ...     def __init__(self, radius):
        ...         self.radius, self.area = abs(radius), 3.14 * radius**2
        >>> arguments_of(Circle(-1))
        {'radius': 1}
    """
    return {name: getattr(value, name) for name in names_of_arguments(type(value))}


def made_of(kind: type[V], fields: Mapping[str, Any]) -> V:
    """Returns an object of a class that is given all of its arguments by name.

    Raises:
        KeyError: If one of them is missing.

    Example:
        >>> made_of(complex, {"real": 1, "imag": 2})
        (1+2j)
    """
    return kind(**{name: fields[name] for name in names_of_arguments(kind)})


def names_of_arguments(kind: type) -> tuple[str, ...]:
    """Returns the names of the arguments that a class takes."""
    if kind not in _arguments:
        _arguments[kind] = tuple(inspect.signature(kind).parameters)
    return _arguments[kind]


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
