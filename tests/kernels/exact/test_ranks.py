"""Ranks with their ties, against plain Python."""

from itertools import groupby

import torch
from hypothesis import given, settings, strategies as st

from pyg_recmetrics.kernels.devices import Scratch
from pyg_recmetrics.kernels.exact.ranks import (
    NOT_RETRIEVED,
    Ranks,
    are_edges,
    find_runs,
    first_kept,
    ranks_in_lists,
    ranks_within_rows,
    without_repeats,
)


def ranks_of(rank, num_above, num_tied):
    return Ranks(torch.tensor(rank), torch.tensor(num_above), torch.tensor(num_tied))


def test_what_lies_below_the_depth_is_forgotten():
    # The last one ties across the depth.
    ranks = ranks_of([3, 4, 9, 4], [1, 3, 8, 2], [5, 1, 0, 3])
    ranks.forget_beyond(torch.tensor([3, 3, 9, 3]))
    assert ranks.rank.tolist() == [3, NOT_RETRIEVED, 9, NOT_RETRIEVED]
    assert ranks.num_above.tolist() == [1, NOT_RETRIEVED, 8, 2]
    assert ranks.num_tied.tolist() == [5, 0, 0, 3]


def test_some_can_be_overwritten():
    ranks = Ranks.unknown(torch.arange(3))
    ranks.update(torch.tensor([1]), ranks_of([2], [1], [4]))
    assert ranks.rank.tolist() == [NOT_RETRIEVED, 2, NOT_RETRIEVED]
    assert ranks.num_above.tolist() == [NOT_RETRIEVED, 1, NOT_RETRIEVED]
    assert ranks.num_tied.tolist() == [0, 4, 0]


#: Scores, of which the two zeros are equal.
SCORES = [-torch.inf, -1.5, -0.0, 0.0, 0.25, 7.0]


@settings(max_examples=100)
@given(
    entries=st.lists(st.tuples(st.integers(0, 3), st.sampled_from(SCORES)), min_size=1),
    dtype=st.sampled_from([torch.half, torch.float, torch.double]),
)
def test_entries_are_ranked_among_those_of_their_row(entries, dtype):
    row, score = torch.tensor([row for row, _ in entries]), torch.tensor([s for _, s in entries])
    ranks = ranks_within_rows(row, score.to(dtype))
    for number, (own_row, own) in enumerate(entries):
        others = [(s, n) for n, (r, s) in enumerate(entries) if r == own_row and n != number]
        num_above = sum(other > own for other, _ in others)
        num_before = sum(other == own and n < number for other, n in others)
        expected = (1 + num_above + num_before, num_above, sum(s == own for s, _ in others))
        assert tuple(int(known[number]) for known in ranks) == expected


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


def test_the_padding_of_a_row_is_not_the_last_item_of_the_row_before():
    lists = torch.tensor([[1, 2], [-1, -1]])
    assert ranks_in_lists(lists, *torch.tensor([[0], [9]]), num_items=10).item() == NOT_RETRIEVED


def test_lists_may_be_the_transpose_of_a_matrix():
    """Torch warns of searching for those, and warnings are errors here."""
    lists, row, item = torch.tensor([[3, 1], [2, 0]]), torch.tensor([0, 1]), torch.tensor([1, 2])
    transposed = lists.t().contiguous().t()
    assert ranks_in_lists(transposed, row, item, NUM_ITEMS).tolist() == [2, 1]


@given(st.lists(st.tuples(st.integers(0, 2), st.sampled_from([0.0, 0.5])), max_size=9))
def test_runs_are_those_of_itertools(pairs):
    starts, sizes = [], []
    for _, group in groupby(pairs):
        size = len(list(group))
        starts += [len(starts)] * size
        sizes += [size] * size
    user = torch.tensor([user for user, _ in pairs], dtype=torch.long)
    score = torch.tensor([score for _, score in pairs], dtype=torch.double)
    first, size = find_runs(user, score)
    assert first.tolist() == starts
    assert size.tolist() == sizes
