"""Ranks and lists from the largest scores, compared with counts over all of them."""

import math

import pytest
import torch

from pyg_recmetrics.kernels.fast.stored_scores import (
    Layout,
    largest,
    lists_among,
    ranks_among,
    settle_,
)


@pytest.mark.parametrize("error", [None, 0.0, 1e-3])
@pytest.mark.parametrize("is_looked_at_again", [False, True])
@pytest.mark.parametrize("seed", range(12))
def test_what_is_settled_is_right_whatever_the_errors(seed, is_looked_at_again, error):
    generator = torch.Generator().manual_seed(seed)
    num_rows, num_items, depth = 7, 30, int(torch.randint(1, 30, (), generator=generator))
    exact = torch.randint(-99, 99, (num_rows, num_items), generator=generator) / 8.0
    if seed % 2:
        exact += torch.rand(exact.shape, generator=generator) / 4
    kind = torch.rand(exact.shape, generator=generator)
    relevant, masked = ((kind < 0.2).nonzero().t(), (kind > 0.7).nonzero().t())
    hidden = torch.tensor([29]) if seed % 3 == 0 else None
    if hidden is not None:
        relevant = relevant[:, relevant[1] < 29]
    layout = Layout((*relevant,), exact.shape)
    noise = 2 * torch.rand(exact.shape, generator=generator, dtype=torch.double) - 1
    scores = exact.double() + (error or 0.0) * noise
    errors = None if error is None else torch.full((num_rows,), error, dtype=torch.double)

    candidates = exact.clone()
    candidates[tuple(masked)] = -torch.inf
    if hidden is not None:
        candidates[:, hidden] = -torch.inf
    stored = scores.masked_fill(candidates.isneginf(), -torch.inf)
    found = largest(stored, layout, min(depth + 1, num_items), True)
    own = candidates[tuple(relevant)].unsqueeze(1)
    above = (candidates[relevant[0]] > own).sum(dim=1)
    tied = (candidates[relevant[0]] == own).sum(dim=1) - 1
    depths = torch.full_like(above, depth)
    ranks, is_open = ranks_among(found, layout, depths, errors)
    if is_looked_at_again:
        hides = (
            exact.double() if hidden is None else exact.double().index_fill(1, hidden, -math.inf)
        )
        better = lambda rows: (hides[rows], torch.zeros(len(rows), dtype=torch.double))  # noqa: E731
        settle_(ranks, is_open, layout, (*masked,), better)
    is_within = above < depth
    settled = is_within & ~is_open
    assert torch.equal(ranks.rank[settled], above[settled] + 1)
    assert not bool(tied[settled].any())
    assert bool((ranks.num_above >= depth)[~is_within & ~is_open].all())
    # Without errors, only ties are open.
    is_sure = error is None or is_looked_at_again
    assert not is_sure or torch.equal(is_open, is_within & (tied > 0))

    lists, is_unsettled = lists_among(found.value, found.item, depth, errors)
    wanted = candidates.sort(dim=1, descending=True, stable=True)
    items = wanted.indices.masked_fill(wanted.values.isneginf(), -1)[:, :depth]
    assert torch.equal(lists[~is_unsettled], items[~is_unsettled])
    assert seed % 2 == 0 or error == 1e-3 or not bool(is_unsettled.any())
