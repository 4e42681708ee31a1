"""Lists of any length, against plain loops over lists of Python."""

import pytest
import torch
from hypothesis import given, strategies as st

from pyg_recmetrics.ranked_edges import Lists

#: Some lists of different items; `-1` is no item.
ANY_LISTS = st.lists(
    st.lists(
        st.integers(-1, 6), max_size=5, unique_by=lambda item: item if item >= 0 else object()
    ),
    max_size=5,
)


def make(lists):
    ptr = [sum(map(len, lists[:index])) for index in range(len(lists) + 1)]
    item = torch.tensor([item for items in lists for item in items], dtype=torch.long)
    return Lists(item, torch.tensor(ptr))


@given(lists=ANY_LISTS)
def test_the_matrix_is_padded(lists):
    width = max(map(len, lists), default=0)
    made = make(lists)
    assert made.width == width
    assert made.to_matrix().tolist() == [items + [-1] * (width - len(items)) for items in lists]


@given(lists=ANY_LISTS, k=st.integers(1, 7) | st.just(2**62))
def test_the_top_k_are_edges_and_counted(lists, k):
    top = [[item for item in items[:k] if item >= 0] for items in lists]
    expected = [(user, item) for user, items in enumerate(top) for item in items]
    made = make(lists)
    assert list(zip(*made.edges(k).tolist(), strict=True)) == expected
    assert made.length(k).tolist() == [len(items) for items in top]
    # The same lists as a matrix, which has padding.
    matrix = Lists.from_matrix(made.to_matrix())
    assert torch.equal(matrix.edges(k), made.edges(k))
    assert torch.equal(matrix.length(k), made.length(k))


@given(lists=ANY_LISTS, data=st.data())
def test_the_lists_of_others_lose_their_items(lists, data):
    mask = data.draw(st.lists(st.booleans(), min_size=len(lists), max_size=len(lists)))
    kept = make(lists).of(torch.tensor(mask, dtype=torch.bool))
    expected = [
        items if is_kept else [-1] * len(items) for items, is_kept in zip(lists, mask, strict=True)
    ]
    assert torch.equal(kept.to_matrix(), make(expected).to_matrix())


@pytest.mark.parametrize("shape", [(3, 2), (3, 0), (0, 4), (0, 0)])
def test_a_matrix_is_held_without_a_copy(shape):
    matrix = torch.arange(shape[0] * shape[1]).view(shape)
    again = Lists.from_matrix(matrix).to_matrix()
    assert again.tolist() == matrix.tolist()
    assert again.data_ptr() == matrix.data_ptr()
