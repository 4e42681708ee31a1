"""Values above thresholds, against plain Python."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from pyg_recmetrics.kernels.devices import Scratch
from pyg_recmetrics.kernels.fast import threshold_counting
from pyg_recmetrics.kernels.fast.threshold_counting import LARGEST, MASKED, Comparison, Histogram


@pytest.mark.parametrize("way", [Comparison, Histogram])
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
    way, num_rows, num_thresholds, num_tiles, reach, margin, max_close, at_once, seed
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
        patch.setattr(threshold_counting, "STRETCH", 8)
        patch.setattr(threshold_counting, "NUM_COMPARISONS_AT_ONCE", at_once)
        patch.setattr(threshold_counting, "NUM_KEYS_AT_ONCE", at_once)
        limits = torch.full((num_rows,), max_close)
        count = way(row, threshold, margins, limits, width, Scratch(torch.device("cpu")))
        parts = []
        for tile, part in enumerate(keys.split(width, dim=1)):
            close, column = count.add(part.contiguous())
            parts.append((close, column + tile * width))
        close, column = count.left(*map(torch.cat, zip(*parts, strict=True)))
        found = value[count.rows(close), column]
        # Each value may be known better than its integer part says.
        precise = margin * torch.rand(value.size(1), generator=generator, dtype=torch.double)
        ranked, index = count.decide(close, found, precise[column])
    is_given_up = count.is_given_up.tolist()
    assert max_close == 10 or not any(is_given_up)
    pairs = list(zip(ranked.tolist(), column[index].tolist(), strict=True))
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


@pytest.mark.parametrize("way", [Comparison, Histogram])
def test_nothing_more_is_found_in_rows_that_are_given_up(way):
    row, threshold = torch.tensor([0, 1]), torch.zeros(2, dtype=torch.double)
    margin, max_close = torch.ones(2, dtype=torch.double), torch.tensor([3, 3])
    keys = torch.zeros(2, 128, dtype=torch.int16)
    keys[1, 2:] = 500
    count = way(row, threshold, margin, max_close, 128, Scratch(torch.device("cpu")))
    found, _ = count.add(keys)
    assert count.rows(found).tolist() == [1, 1]
    keys[:] = 0
    _, column = count.add(keys)
    assert count.is_given_up.all()
    assert column.numel() == 0
