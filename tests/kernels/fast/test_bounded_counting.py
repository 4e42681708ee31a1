"""Ranks that are counted from scores in single precision, and a bound on their error."""

import pytest
import torch
from hypothesis import given, strategies as st

from pyg_recmetrics import RankingTask, rank
from pyg_recmetrics.kernels.devices import Scratch
from pyg_recmetrics.kernels.entries import Entries
from pyg_recmetrics.kernels.exact.scores import ItemFactors, scaled_by_row
from pyg_recmetrics.kernels.fast import bounded_counting
from pyg_recmetrics.kernels.fast.bounded_counting import (
    LARGEST,
    MASKED,
    MAX_FLAGS,
    ThresholdCount,
    bounded_ranks,
    pack_counts,
    unpack_counts,
)
from pyg_recmetrics.kernels.fast.rounded_items import RoundedItems


def test_a_user_with_more_items_than_a_count_holds():
    item = torch.randn(300_000, 4, generator=torch.Generator().manual_seed(0))
    worst = (item[:1] @ item.t())[0].argsort()[:3].sort().values
    task = RankingTask(
        torch.stack([torch.zeros_like(worst), worst]), num_users=1, num_items=300_000
    )
    ranked = rank((item[:1], item), task, full=True, algorithm="count")
    assert ranked.rank.tolist() == [299_998, 299_999, 300_000]


def test_a_relevant_item_may_score_far_above_all_that_are_counted():
    generator = torch.Generator().manual_seed(0)
    item, user = torch.randn(40, 3, generator=generator), torch.randn(1, 3, generator=generator)
    factors = ItemFactors(item, None, torch.device("cpu"), largest=2.0**40)
    items = RoundedItems(factors, None, torch.float32)
    user = scaled_by_row(user)
    row = torch.zeros(2, dtype=torch.long)
    own = factors.exact_scores(user, row, torch.tensor([7, 8]))
    # One of those is in another shard, and scores above all others by twelve orders of magnitude.
    score, others = torch.stack([own[0], 2.0**40 * own.abs().max()]), torch.tensor([7, 99])
    scratch, nothing = Scratch(torch.device("cpu")), (row[:0], row[:0])
    ranks, is_unsettled = bounded_ranks(
        user, items, torch.tensor([2]), (row, others), score, nothing, scratch
    )
    every = factors.exact_scores(user, torch.zeros(40, dtype=torch.long), torch.arange(40))
    assert not is_unsettled.any()
    assert ranks.num_above.tolist() == [int((every > own[0]).sum()), 0]


@given(
    shape=st.tuples(st.integers(0, 4), st.integers(1, 5), st.integers(1, 50)),
    share=st.sampled_from([0.0, 0.3, 1.0]),
    seed=st.integers(0, 2**30),
)
def test_counts_are_sums(shape, share, seed):
    *shape, num_words = shape
    flags = torch.rand(*shape, 4 * num_words, generator=torch.Generator().manual_seed(seed)) < share
    assert torch.equal(unpack_counts(pack_counts(flags.short())), flags.sum(dim=-1))


def test_no_count_is_too_large():
    assert unpack_counts(pack_counts(torch.ones(1, MAX_FLAGS, dtype=torch.int16))) == MAX_FLAGS


@given(
    num_rows=st.integers(1, 5),
    num_thresholds=st.integers(1, 30),
    num_tiles=st.integers(1, 3),
    reach=st.sampled_from([3.0, 300.0, 30000.0]),
    margin=st.sampled_from([0.01, 0.7, 1.49]),
    max_close=st.sampled_from([10, 10**6]),
    at_once=st.sampled_from([1, 100, 2**20]),
    seed=st.integers(0, 2**30),
)
def test_values_are_counted_or_left_open(
    num_rows, num_thresholds, num_tiles, reach, margin, max_close, at_once, seed
):
    generator = torch.Generator().manual_seed(seed)
    row = torch.randint(num_rows, (num_thresholds,), generator=generator).sort().values
    threshold = reach * (2 * torch.rand(row.shape, generator=generator, dtype=torch.double) - 1)
    width = 2 * 8
    value = 1.2 * reach * (2 * torch.rand(num_rows, num_tiles * width, generator=generator) - 1)
    value[torch.rand(value.shape, generator=generator) < 0.2] = float(threshold[0])
    value.clamp_(-LARGEST, LARGEST)
    keys = value.short()
    is_masked = torch.rand(value.shape, generator=generator) < 0.2
    keys[is_masked] = MASKED
    margins = torch.full((num_rows,), margin, dtype=torch.double)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bounded_counting, "STRETCH", 8)
        patch.setattr(bounded_counting, "NUM_COMPARISONS_AT_ONCE", at_once)
        limits = torch.full((num_rows,), max_close)
        count = ThresholdCount(Entries(row, row, num_rows), threshold, margins, limits)
        parts = []
        for tile, part in enumerate(keys.split(width, dim=1)):
            close, column = count.add(part.contiguous())
            parts.append((close, column + tile * width))
        close, column = count.left(*map(torch.cat, zip(*parts, strict=True)))
        found = value[count.row[close], column]
        # Each value may be known better than its integer part says.
        precise = margin * torch.rand(value.size(1), generator=generator, dtype=torch.double)
        index = count.decide(close, found, precise[column])
    is_given_up = count.is_given_up.tolist()
    assert max_close == 10 or not any(is_given_up)
    pairs = list(zip(close[index].tolist(), column[index].tolist(), strict=True))
    left_open = {pair for pair in pairs if not is_given_up[row[pair[0]]]}
    for number, (r, own) in enumerate(zip(row.tolist(), threshold.tolist(), strict=True)):
        if is_given_up[r]:
            continue
        num_above = 0
        for c, x in enumerate(value[r].tolist()):
            if is_masked[r, c]:
                assert (number, c) not in left_open
            elif (number, c) in left_open:
                assert abs(x - own) <= precise[c]
            else:
                assert abs(x - own) >= precise[c]
                num_above += x > own
        assert count.num_above[number] == num_above


def test_nothing_more_is_found_in_rows_that_are_given_up():
    row, threshold = torch.tensor([0, 1]), torch.zeros(2, dtype=torch.double)
    margin, max_close = torch.ones(2, dtype=torch.double), torch.tensor([3, 3])
    keys = torch.zeros(2, 128, dtype=torch.int16)
    keys[1, 2:] = 500
    count = ThresholdCount(Entries(row, row, 2), threshold, margin, max_close)
    found, _ = count.add(keys)
    assert count.row[found].tolist() == [1, 1]
    keys[:] = 0
    _, column = count.add(keys)
    assert count.is_given_up.all()
    assert column.numel() == 0
