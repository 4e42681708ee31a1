"""Ranks with their ties, against plain Python."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from pyg_recmetrics.kernels.exact.lists import NOT_RETRIEVED
from pyg_recmetrics.kernels.exact.ranks import Ranks, ranks_in_top_scores


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
