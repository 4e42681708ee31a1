"""Mappings that cannot be changed."""

from hypothesis import given, strategies as st

from pyg_recmetrics.utils import FrozenDict

dictionaries = st.dictionaries(st.text(max_size=2), st.integers(0, 2), max_size=3)


@given(dictionaries, dictionaries)
def test_what_is_equal_has_the_same_hash(items, other_items):
    backwards = dict(reversed(items.items()))
    assert hash(FrozenDict(items)) == hash(FrozenDict(backwards))
    assert len({FrozenDict(items), FrozenDict(other_items)}) == 2 - (items == other_items)
