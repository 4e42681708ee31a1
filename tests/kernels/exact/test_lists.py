"""Ranks of items in lists, and lists without repeats, against plain loops."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from pyg_recmetrics.kernels.devices import Scratch
from pyg_recmetrics.kernels.exact.lists import (
    NOT_RETRIEVED,
    are_edges,
    first_kept,
    ranks_in_lists,
    ranks_in_ragged_lists,
    without_repeats,
)

NUM_ITEMS = 6


@st.composite
def lists_of_items(draw):
    """Lists of equal length with repeats and gaps."""
    width = draw(st.integers(0, 6))
    items = st.lists(st.integers(-1, NUM_ITEMS - 1), min_size=width, max_size=width)
    return draw(st.lists(items, min_size=1, max_size=4)), width


@given(lists_and_width=lists_of_items(), data=st.data())
def test_the_first_position_of_an_item_is_its_rank(lists_and_width, data):
    lists, width = lists_and_width
    pairs = st.tuples(st.integers(0, len(lists) - 1), st.integers(0, NUM_ITEMS - 1))
    edges = sorted(data.draw(st.sets(pairs)))
    row, item = torch.tensor(edges, dtype=torch.long).view(-1, 2).t()
    matrix = torch.tensor(lists, dtype=torch.long).view(len(lists), width)
    ranks = ranks_in_lists(matrix, row, item, NUM_ITEMS).tolist()
    assert ranks == [
        lists[row].index(item) + 1 if item in lists[row] else NOT_RETRIEVED for row, item in edges
    ]


@given(
    lists=st.lists(st.lists(st.integers(-1, NUM_ITEMS - 1), max_size=5), min_size=1, max_size=4),
    data=st.data(),
)
def test_lists_may_differ_in_length(lists, data):
    pairs = st.tuples(st.integers(0, len(lists) - 1), st.integers(0, NUM_ITEMS - 1))
    edges = sorted(data.draw(st.sets(pairs)))
    row, item = torch.tensor(edges, dtype=torch.long).view(-1, 2).t()
    listed = torch.tensor([item for items in lists for item in items], dtype=torch.long)
    ptr = torch.tensor([sum(map(len, lists[:index])) for index in range(len(lists) + 1)])
    ranks = ranks_in_ragged_lists(listed, ptr, row, item, NUM_ITEMS).tolist()
    assert ranks == [
        lists[row].index(item) + 1 if item in lists[row] else NOT_RETRIEVED for row, item in edges
    ]


@given(num_items=st.sampled_from([1, 63, 64, 65, 200]), data=st.data())
def test_entries_that_are_edges_are_found(num_items, data):
    num_rows, width = data.draw(st.integers(1, 4)), data.draw(st.integers(0, 5))
    edges = sorted(
        data.draw(st.sets(st.tuples(st.integers(0, num_rows - 1), st.integers(0, num_items - 1))))
    )
    # What is listed is near to the edges, so that a bit that is one off is noticed.
    near = {item + shift for _, item in edges for shift in (-64, -1, 0, 1, 64)} | {0, num_items - 1}
    listed = st.sampled_from(sorted({-1} | (near & set(range(num_items)))))
    lists = data.draw(
        st.lists(
            st.lists(listed, min_size=width, max_size=width), min_size=num_rows, max_size=num_rows
        )
    )
    row, item = torch.tensor(edges, dtype=torch.long).view(-1, 2).t()
    matrix = torch.tensor(lists, dtype=torch.long).view(num_rows, width)
    scratch = Scratch(torch.device("cpu"))
    for _ in range(2):  # the second time, the buffers hold what the first time left
        found = are_edges(matrix, row, item, num_items, scratch).tolist()
        assert found == [
            [(index, item) in edges for item in items] for index, items in enumerate(lists)
        ]


@given(lists_and_width=lists_of_items(), k=st.integers(1, 8), data=st.data())
def test_the_first_that_are_kept_move_up(lists_and_width, k, data):
    lists, width = lists_and_width
    is_kept = [[data.draw(st.booleans()) for _ in items] for items in lists]
    matrix = torch.tensor(lists, dtype=torch.long).view(len(lists), width)
    kept_matrix = torch.tensor(is_kept, dtype=torch.bool).view(len(lists), width)
    expected = []
    for items, kept in zip(lists, is_kept, strict=True):
        rest = [item for item, is_left in zip(items, kept, strict=True) if is_left][:k]
        expected.append(rest + [-1] * (k - len(rest)))
    assert first_kept(matrix, kept_matrix, k).tolist() == expected
    assert matrix.tolist() == lists  # which is only read


@given(lists_and_width=lists_of_items())
def test_only_the_first_of_equal_items_is_kept(lists_and_width):
    lists, width = lists_and_width
    matrix = torch.tensor(lists, dtype=torch.long).view(len(lists), width)
    expected = [
        [-1 if item in items[:index] else item for index, item in enumerate(items)]
        for items in lists
    ]
    assert without_repeats(matrix).tolist() == expected
    assert matrix.tolist() == lists  # which is only read


def test_large_ids_do_not_run_into_the_next_row():
    lists = torch.tensor([[9, 0], [0, 9]])
    row, item = torch.tensor([[0, 0, 1, 1], [0, 9, 0, 9]])
    assert ranks_in_lists(lists, row, item, num_items=10).tolist() == [2, 1, 1, 2]
    # The padding of the second row is not the last item of the first.
    lists = torch.tensor([[1, 2], [-1, -1]])
    assert ranks_in_lists(lists, *torch.tensor([[0], [9]]), num_items=10).item() == NOT_RETRIEVED


def test_lists_may_be_the_transpose_of_a_matrix():
    """Torch warns of searching for those, and warnings are errors here."""
    lists, row, item = torch.tensor([[3, 1], [2, 0]]), torch.tensor([0, 1]), torch.tensor([1, 2])
    transposed = lists.t().contiguous().t()
    assert ranks_in_lists(transposed, row, item, NUM_ITEMS).tolist() == [2, 1]
