"""Which entries of lists have an edge, and where edges stand in lists, against plain Python."""

import torch
from hypothesis import given, strategies as st

from pyg_recmetrics.kernels.devices import Scratch
from pyg_recmetrics.kernels.exact.ranks import (
    NOT_RETRIEVED,
    are_edges,
    ranks_in_lists,
)

NUM_ITEMS = 6


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


def test_the_padding_of_a_row_is_not_the_last_item_of_the_row_before():
    lists = torch.tensor([[1, 2], [-1, -1]])
    assert ranks_in_lists(lists, *torch.tensor([[0], [9]]), num_items=10).item() == NOT_RETRIEVED


def test_lists_may_be_the_transpose_of_a_matrix():
    """Torch warns of searching for those, and warnings are errors here."""
    lists, row, item = torch.tensor([[3, 1], [2, 0]]), torch.tensor([0, 1]), torch.tensor([1, 2])
    transposed = lists.t().contiguous().t()
    assert ranks_in_lists(transposed, row, item, NUM_ITEMS).tolist() == [2, 1]
