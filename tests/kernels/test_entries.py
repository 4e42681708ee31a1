"""Entries of a sparse matrix, against plain Python."""

import torch
from hypothesis import given, strategies as st

from pyg_recmetrics.kernels.entries import Entries, max_id


@st.composite
def columns_of_rows(draw):
    """The columns of every row of a matrix, in any order."""
    columns = st.lists(st.integers(0, 6), max_size=5)
    return draw(st.lists(columns, min_size=1, max_size=5))


def made(columns):
    """The entries, in memory that does not lie side by side."""
    pairs = [(row, column) for row, own in enumerate(columns) for column in own]
    row, column = torch.tensor(pairs, dtype=torch.long).view(-1, 2).t()
    return Entries(row, column, len(columns))


def rows_of(entries):
    found = [[] for _ in range(entries.ptr.numel() - 1)]
    for row, column in zip(entries.row.tolist(), entries.column.tolist(), strict=True):
        found[row].append(column)
    return found


@given(columns=columns_of_rows())
def test_entries_are_numbered_row_by_row(columns):
    entries = made(columns)
    assert entries.slot.tolist() == [slot for own in columns for slot in range(len(own))]
    assert entries.ptr.diff().tolist() == [len(own) for own in columns]


@given(columns=columns_of_rows())
def test_values_stand_side_by_side(columns):
    width = max(1, *(len(own) for own in columns), 1)
    entries = made(columns)
    wanted = [own + [-1] * (width - len(own)) for own in columns]
    assert entries.side_by_side(entries.column, -1).tolist() == wanted


@given(columns=columns_of_rows(), data=st.data())
def test_rows_are_taken_in_any_order(columns, data):
    rows = data.draw(st.lists(st.sampled_from(range(len(columns))), unique=True))
    taken = made(columns).of(torch.tensor(rows, dtype=torch.long))
    assert rows_of(taken) == [columns[row] for row in rows]


@given(columns=columns_of_rows(), data=st.data())
def test_only_entries_of_a_part_are_overwritten(columns, data):
    first = data.draw(st.integers(0, len(columns) - 1))
    last = data.draw(st.integers(first + 1, len(columns)))
    start, width = data.draw(st.integers(0, 7)), data.draw(st.integers(1, 7))
    values = torch.zeros(last - first, width)
    made(columns).fill_(values, slice(first, last), start, 1.0)
    assert values.tolist() == [
        [float(start + column in own) for column in range(width)] for own in columns[first:last]
    ]


def test_the_largest_id_of_several_tensors():
    assert max_id(torch.tensor([[3, -1], [7, 0]]), torch.tensor([5])) == 7
    assert max_id(torch.tensor([-1]), torch.empty(0, dtype=torch.long)) == 0
    assert max_id() == 0
