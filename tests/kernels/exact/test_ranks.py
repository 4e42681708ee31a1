"""Ranks with their ties, against plain Python."""

from unittest.mock import patch

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from pyg_recmetrics.kernels.exact import ranks as ranks_module
from pyg_recmetrics.kernels.exact.lists import NOT_RETRIEVED
from pyg_recmetrics.kernels.exact.ranks import (
    Ranks,
    ranks_among_rows,
    ranks_in_top_scores,
    ranks_within_rows,
)


def ranks_of(rank, num_above, num_tied):
    return Ranks(torch.tensor(rank), torch.tensor(num_above), torch.tensor(num_tied))


@given(
    scores=st.lists(st.integers(0, 3), min_size=1, max_size=9),
    k=st.integers(1, 9),
    data=st.data(),
)
def test_ties_are_found_in_a_list(scores, k, data):
    k = min(k, len(scores))
    item = data.draw(st.integers(0, len(scores) - 1))
    order = sorted(range(len(scores)), key=lambda other: (-scores[other], other))
    rank = order.index(item) + 1 if item in order[:k] else NOT_RETRIEVED
    best = [scores[other] for other in order[:k]]
    own = scores[item]
    ranks, is_at_end = ranks_in_top_scores(
        torch.tensor([rank]), torch.tensor([0]), torch.tensor([own]), torch.tensor([best])
    )
    num_above = sum(score > own for score in scores)
    assert ranks.rank.item() == rank
    assert ranks.num_above.item() == (num_above if num_above < k else NOT_RETRIEVED)
    assert is_at_end.item() == (best[-1] == own)
    if own not in best:
        assert ranks.num_tied.item() == 0
    elif not is_at_end or k == len(scores):
        assert ranks.num_tied.item() == scores.count(own) - 1


def test_what_lies_below_the_depth_is_forgotten():
    ranks = ranks_of([3, 4, 9], [1, 3, 8], [5, 1, 0])
    ranks.forget_beyond(torch.tensor([3, 3, 9]))
    assert ranks.rank.tolist() == [3, NOT_RETRIEVED, 9]
    assert ranks.num_above.tolist() == [1, NOT_RETRIEVED, 8]
    assert ranks.num_tied.tolist() == [5, 0, 0]


def test_an_item_that_ties_across_the_depth_is_not_forgotten():
    ranks = ranks_of([4], [2], [3])
    ranks.forget_beyond(torch.tensor([3]))
    assert (ranks.rank.item(), ranks.num_above.item()) == (NOT_RETRIEVED, 2)
    assert ranks.num_tied.item() == 3


def test_some_can_be_overwritten():
    ranks = Ranks.unknown(torch.arange(3))
    ranks.update(torch.tensor([1]), ranks_of([2], [1], [4]))
    assert ranks.rank.tolist() == [NOT_RETRIEVED, 2, NOT_RETRIEVED]
    assert ranks.num_above.tolist() == [NOT_RETRIEVED, 1, NOT_RETRIEVED]
    assert ranks.num_tied.tolist() == [0, 4, 0]


#: Scores, of which the two zeros are equal.
SCORES = [-torch.inf, -1.5, -0.0, 0.0, 0.25, 7.0]


@settings(max_examples=300)
@given(
    entries=st.lists(
        st.tuples(st.integers(0, 3), st.sampled_from(SCORES), st.booleans()), min_size=1
    ),
    dtype=st.sampled_from([torch.half, torch.float, torch.double]),
    num_at_once=st.integers(1, 9),
)
def test_some_entries_are_ranked_without_sorting_the_others(entries, dtype, num_at_once):
    chosen = [number for number, (_, _, is_chosen) in enumerate(entries) if is_chosen] or [0]
    row, score = torch.tensor([e[0] for e in entries]), torch.tensor([e[1] for e in entries])
    with patch.object(ranks_module, "NUM_ENTRIES", num_at_once):
        found = ranks_among_rows(row, score.to(dtype), torch.tensor(chosen), num_rows=5)
    all_ranks = ranks_within_rows(row, score.to(dtype))
    for place, number in enumerate(chosen):
        own_row, own, _ = entries[number]
        others = [(s, n) for n, (r, s, _) in enumerate(entries) if r == own_row and n != number]
        num_above = sum(other > own for other, _ in others)
        num_before = sum(other == own and n < number for other, n in others)
        expected = (1 + num_above + num_before, num_above, sum(s == own for s, _ in others))
        assert tuple(int(known[place]) for known in found) == expected
        assert tuple(int(known[number]) for known in all_ranks) == expected


def test_many_entries_of_a_row_are_ranked(device):
    generator = torch.Generator().manual_seed(0)
    row = torch.randint(0, 3, (5000,), generator=generator)
    score = torch.randint(0, 400, (5000,), generator=generator).float()
    entry = (torch.rand(5000, generator=generator) < 0.3).nonzero().squeeze(1)
    expected = ranks_within_rows(row, score)
    with patch.object(ranks_module, "NUM_ENTRIES", 700):
        found = ranks_among_rows(row.to(device), score.to(device), entry.to(device), num_rows=3)
    for known, others in zip(found, expected, strict=True):
        assert torch.equal(known.cpu(), others[entry])
