"""Objects and mappings that cannot be changed."""

import copy
import pickle
from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass

import pytest
from hypothesis import given, strategies as st

from pyg_recmetrics.utils import Frozen, FrozenDict, arguments_of, set_attributes

dictionaries = st.dictionaries(st.text(max_size=2), st.integers(0, 2), max_size=3)


@given(dictionaries, dictionaries)
def test_it_compares_as_a_dictionary(items, other_items):
    frozen = FrozenDict(items)
    assert (frozen == FrozenDict(other_items)) == (items == other_items)
    assert frozen == items
    assert items == frozen
    assert dict(frozen) == items
    assert len(frozen) == len(items)


@given(dictionaries, dictionaries)
def test_what_is_equal_has_the_same_hash(items, other_items):
    backwards = dict(reversed(items.items()))
    assert hash(FrozenDict(items)) == hash(FrozenDict(backwards))
    assert len({FrozenDict(items), FrozenDict(other_items)}) == 2 - (items == other_items)


def test_it_cannot_be_changed():
    items = {"k": 20}
    frozen = FrozenDict(items)
    assert isinstance(frozen, Mapping)
    assert not isinstance(frozen, MutableMapping)
    with pytest.raises(TypeError, match="does not support item assignment"):
        frozen["k"] = 10
    with pytest.raises(TypeError, match="support item deletion"):
        del frozen["k"]
    for name in ("update", "pop", "popitem", "clear", "setdefault", "__ior__"):
        assert not hasattr(frozen, name), name
    items["k"] = 10  # it holds a copy of what it was made of
    assert frozen == {"k": 20}


class Circle(Frozen):
    _INSTEAD = "draw another one"

    def __init__(self, radius, *, color="red"):
        self.radius, self.color = abs(radius), color
        self.area = 3 * radius**2
        self._freeze()


@dataclass(frozen=True)
class Square:
    side: float
    color: str = "red"


class TestFrozen:
    @pytest.mark.parametrize("name", ["radius", "area", "colour"])
    @pytest.mark.parametrize(
        "copied", [lambda x: x, copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))]
    )
    def test_no_attribute_can_be_set_or_deleted(self, copied, name):
        circle = copied(Circle(2))
        with pytest.raises(AttributeError, match=f"'Circle.{name}' cannot be set: draw an"):
            setattr(circle, name, 1)
        with pytest.raises(AttributeError, match=f"'Circle.{name}' cannot be deleted"):
            delattr(circle, name)
        assert (circle.radius, circle.area) == (2, 12)

    def test_a_copy_may_be_settled(self):
        circle = Circle(2)
        other = copy.copy(circle)
        set_attributes(other, color="blue")
        assert (circle.color, other.color) == ("red", "blue")
        with pytest.raises(AttributeError, match=r"'Circle\.color' cannot be set"):
            other.color = "green"

    def test_its_arguments_are_those_that_its_class_takes(self):
        assert arguments_of(Circle(-2)) == {"radius": 2, "color": "red"}
        assert arguments_of(Square(2, "blue")) == {"side": 2, "color": "blue"}
