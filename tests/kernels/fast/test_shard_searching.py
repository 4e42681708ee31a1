"""What a search in one shard says of all items, from scores that are as wrong as they may be."""

import math
from itertools import pairwise

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from pyg_recmetrics.kernels.exact.ranks import Scored
from pyg_recmetrics.kernels.fast.shard_searching import ShardSearch, depth_of_shard, reaches
from pyg_recmetrics.kernels.scratch import Scratch
from tests.kernels.fast.test_searching import WrongScores, small_blocks

NUM_USERS = 3


def in_shards(exact, cuts):
    """The scores of each shard, and its first item."""
    return [(exact[:, start:end], start) for start, end in pairwise(cuts)]


@settings(max_examples=150)
@given(
    num_items=st.integers(3, 90),
    num_shards=st.integers(1, 4),
    error=st.sampled_from([0.0, 0.3, 2.0]),
    makes_lists=st.booleans(),
    seed=st.integers(0, 2**30),
    data=st.data(),
)
def test_shards_rank_together_as_all_items_do(
    num_items, num_shards, error, makes_lists, seed, data
):
    generator = torch.Generator().manual_seed(seed)
    exact = torch.randint(-9, 9, (NUM_USERS, num_items), generator=generator).double()
    cuts = torch.randint(0, num_items + 1, (num_shards - 1,), generator=generator).sort().values
    shards = in_shards(exact, [0, *cuts.tolist(), num_items])
    depth = torch.randint(1, 8, (NUM_USERS,), generator=generator).clamp(max=num_items)
    row = torch.arange(NUM_USERS).repeat_interleave(2)
    item = torch.stack([torch.randperm(num_items, generator=generator)[:2] for _ in range(3)])
    item = item.sort(dim=1).values.flatten()
    searches = []
    with small_blocks(data):
        for scores, first in shards:
            if scores.size(1) == 0:
                continue
            columns = torch.randperm(scores.size(1), generator=generator)
            errors = (error, error / 8)
            wrong = WrongScores(scores, columns, errors, 4, -math.inf, generator)
            nothing = row[:0], row[:0]
            scratch = Scratch(row.device)
            args = wrong, depth, num_shards, nothing, makes_lists, scratch
            searches.append((ShardSearch(*args), first, scores.size(1)))
        of_each = torch.stack([search.reaches() for search, _, _ in searches])
        if len(searches) < num_shards:  # an empty shard knows nothing
            of_each = torch.cat([of_each, torch.full_like(of_each[:1], -torch.inf)])
        reach = torch.maximum(of_each[:, 0].amax(dim=0), of_each[:, 1].amin(dim=0))
        ordered = exact.sort(dim=1, descending=True).values
        assert (reach <= ordered.gather(1, depth.unsqueeze(1) - 1).squeeze(1)).all()
        own = exact[row, item]
        is_open = own >= reach[row]
        relevant = Scored(row, item, own).of(is_open.nonzero().squeeze(1))
        totals, found = torch.zeros(3, len(relevant.row)), []
        for search, first, _ in searches:
            ranks, items = search.find(relevant._replace(item=relevant.item - first), reach)
            if bool(search.is_unsettled.any()):
                return  # the next way ranks such users
            totals += torch.stack([ranks.rank - 1, ranks.num_above, ranks.num_tied])
            found += [
                (a, b + first) for a, b in zip(items.row.tolist(), items.item.tolist(), strict=True)
            ]
    for edge, (user, wanted) in enumerate(
        zip(relevant.row.tolist(), relevant.item.tolist(), strict=True)
    ):
        scores = exact[user].tolist()
        above = sum(score > scores[wanted] for score in scores)
        place = sum(score == scores[wanted] for score in scores[:wanted])
        if above >= depth[user]:
            assert totals[1, edge] >= depth[user]
            assert totals[0, edge] >= depth[user]
        else:
            tied = scores.count(scores[wanted]) - 1
            assert totals[:, edge].tolist() == [above + place, above, tied]
    if makes_lists:
        for user, scores in enumerate(exact.tolist()):
            order = sorted(range(num_items), key=lambda item: (-scores[item], item))
            assert {(user, item) for item in order[: depth[user]]} <= set(found)


def test_reaches_are_the_scores_at_a_depth():
    row = torch.tensor([0, 0, 0, 1, 1, 1])
    score = torch.tensor([5.0, 7.0, 6.0, 1.0, 3.0, 3.0])
    scored = Scored(row, torch.arange(6), score)
    found = reaches(scored, torch.tensor([3, 4]), num_shards=2)
    assert found.tolist() == [[5.0, -math.inf], [6.0, 3.0]]


@pytest.mark.parametrize(("depth", "num_shards", "wanted"), [(20, 8, 3), (1, 8, 1), (16, 8, 2)])
def test_the_part_of_a_shard_is_rounded_up(depth, num_shards, wanted):
    assert depth_of_shard(torch.tensor([depth]), num_shards).tolist() == [wanted]
