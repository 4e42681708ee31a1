"""Ranks among items of which some are counted, and others are compared, against plain Python."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from pyg_recmetrics.kernels.exact.factors import ItemFactors
from pyg_recmetrics.kernels.exact.scores import scaled_by_row
from pyg_recmetrics.kernels.fast.bounded_counting import BoundedCount
from pyg_recmetrics.kernels.fast.rounded_items import RoundedItems

CPU = torch.device("cpu")


@given(num_items=st.integers(1, 12), num_ranked=st.integers(0, 5), seed=st.integers(0, 2**30))
def test_what_is_close_is_compared_by_its_exact_score(num_items, num_ranked, seed):
    generator = torch.Generator().manual_seed(seed)
    user, item = (
        torch.randint(-2, 3, (size, 2), generator=generator).float() for size in (3, num_items)
    )
    row = torch.randint(3, (num_ranked,), generator=generator)
    own = torch.randint(num_items, (num_ranked,), generator=generator)
    scores = (user @ item.t())[row]  # whole numbers are not rounded
    own_score = scores.gather(1, own.unsqueeze(1))
    # What ties is close, as is the item itself, and so is some more.
    is_close = (scores == own_score) | (torch.rand(scores.shape, generator=generator) < 0.3)
    ranked, other = is_close.nonzero(as_tuple=True)
    count = BoundedCount(RoundedItems(ItemFactors(item, None, CPU), None, torch.float32))
    user = scaled_by_row(user)
    score = count.items.factors.exact_scores(user, row, own)
    counted = ((scores > own_score) & ~is_close).sum(dim=1)
    ranks = count._ranks_among((ranked, row[ranked], other), user, own, score, counted)
    rows = list(zip(scores.tolist(), own.tolist(), strict=True))
    assert ranks.num_above.tolist() == [sum(x > row[i] for x in row) for row, i in rows]
    assert ranks.num_tied.tolist() == [row.count(row[i]) - 1 for row, i in rows]
    assert ranks.rank.tolist() == [
        sorted(range(num_items), key=lambda other: (-row[other], other)).index(i) + 1
        for row, i in rows
    ]
