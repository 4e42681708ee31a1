"""Objects and mappings that cannot be changed."""

from collections.abc import Mapping, MutableMapping

import pytest
from hypothesis import given, strategies as st

from pyg_recmetrics.utils import FrozenDict

dictionaries = st.dictionaries(st.text(max_size=2), st.integers(0, 2), max_size=3)


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
