"""All ranks are counted by kernels of a GPU, in an interpreter on the CPU where there is none."""

import pytest
import torch

from tests.support.cases.embeddings import KINDS, assert_same_ranks

pytest.importorskip("triton", reason="needs Triton, which comes with torch for NVIDIA's GPUs")

from pyg_recmetrics import RankingTask, rank
from pyg_recmetrics.kernels.gpu import fused_counting
from pyg_recmetrics.kernels.gpu.fused_counting import FusedCount
from pyg_recmetrics.kernels.gpu.fused_products import NUM_BLOCKS, NUM_LIMITS, FusedBlocks, Margin
from pyg_recmetrics.kernels.scratch import Scratch
from pyg_recmetrics.ranking import algorithms, kinds

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")


@pytest.fixture
def given_up(monkeypatch):
    """Which users were given up in each call of the kernel, which is the only one to count."""
    found = []
    ranks = FusedCount.ranks

    def noted(*args):
        result = ranks(*args)
        found.append(result[1])
        return result

    monkeypatch.setattr(FusedCount, "ranks", noted)
    for module in (algorithms, kinds):
        monkeypatch.setattr(module, "can_fuse", lambda device, dim: True)
        monkeypatch.setattr(module, "has_exact_single_precision", lambda device: False)
    return found


def counted_and_dense(user, item, task):
    """All ranks, by counts and by exact scores."""
    pair = user.to(DEVICE), item.to(DEVICE)
    return [rank(pair, task.to(DEVICE), full=True, algorithm=name) for name in ("count", "dense")]


@pytest.mark.parametrize("users", sorted(KINDS))
@pytest.mark.parametrize("shift", [0, *(pytest.param(x, marks=pytest.mark.slow) for x in (1, 5))])
def test_counts_over_many_parts(monkeypatch, given_up, users, shift):
    kinds = sorted(KINDS)
    items = kinds[(kinds.index(users) + shift) % len(kinds)]
    monkeypatch.setattr(fused_counting, "MAX_COLUMNS", 160)
    monkeypatch.setattr(fused_counting, "NUM_COUNTED", 250)
    monkeypatch.setattr(fused_counting, "NUM_OPEN", 40)
    monkeypatch.setattr(fused_counting, "_max_close", lambda depth, num_items: depth + 10**6)
    generator = torch.Generator().manual_seed(len(users) * len(items))
    user, item = KINDS[users]((9, 7), generator), KINDS[items]((203, 7), generator)
    # Users have from zero to eight relevant items.
    truth = torch.rand(9, 203, generator=generator).argsort(dim=1) < torch.arange(9).unsqueeze(1)
    is_seen = torch.rand(9, 203, generator=generator) < 0.2
    task = RankingTask(
        truth.nonzero().t(), num_users=9, num_items=203, seen=(is_seen & ~truth).nonzero().t()
    )
    assert_same_ranks(*counted_and_dense(user, item, task))
    assert given_up
    assert not torch.cat(given_up).any()


def test_many_items_of_a_user_and_many_users(given_up):
    generator = torch.Generator().manual_seed(0)
    user, item = (torch.randn(size, 33, generator=generator) for size in (150, 1500))
    truth = torch.rand(150, 1500, generator=generator) < 0.001
    truth[70] = torch.rand(1500, generator=generator) < 0.3
    task = RankingTask(truth.nonzero().t(), num_users=150, num_items=1500)
    assert_same_ranks(*counted_and_dense(user, item, task))
    assert not torch.cat(given_up).any()


def test_a_user_to_whose_items_too_many_are_close_is_left_to_others(given_up):
    generator = torch.Generator().manual_seed(0)
    user, item = torch.randn(3, 4, generator=generator), torch.randn(4000, 4, generator=generator)
    item[:1000] = item[0]
    # Of the first thousand items, all have the same score.
    truth = torch.tensor([[0, 1, 1, 2], [3000, 5, 3001, 3002]])
    task = RankingTask(truth, num_users=3, num_items=4000)
    counted, dense = counted_and_dense(user, item, task)
    assert_same_ranks(counted, dense)
    assert torch.cat(given_up).sum() == 1
    assert counted.num_tied.max() == 999


@pytest.mark.parametrize("num_columns", [1, 300, 1500])
@pytest.mark.parametrize("slope", [0.0, 0.5])
@pytest.mark.parametrize("num_users", [70, pytest.param(150, marks=pytest.mark.slow)])
def test_what_is_clear_is_counted_and_what_is_not_is_marked(num_columns, slope, num_users):
    generator = torch.Generator().manual_seed(num_columns)
    user = torch.randint(-9, 10, (num_users, 16), generator=generator)
    item = torch.randint(-3, 4, (num_columns, 16), generator=generator)
    values = (user @ item.t()).float()  # whole numbers are not rounded
    num_blocks = 16 * -(-num_columns // 256)
    limit = torch.randint(-300, 300, (num_users, NUM_LIMITS), generator=generator).float()
    limit[::3, 2:] = torch.inf
    norm = torch.rand(num_columns, generator=generator).sort(descending=True).values
    slope, least = torch.full((num_users,), slope), torch.rand(num_users, generator=generator)
    hidden = torch.randint(num_users * num_blocks, (40,), generator=generator).unique()
    blocks = FusedBlocks(
        *(table.half().to(DEVICE) for table in (user, item)),
        num_columns,
        num_blocks,
        Scratch(DEVICE),
    )
    blocks.hidden_row, blocks.hidden_column = (
        place.to(DEVICE) for place in (hidden // num_blocks, hidden % num_blocks)
    )
    margin = Margin(slope.to(DEVICE), least.to(DEVICE))
    num_above, is_open = blocks.count_above(limit.to(DEVICE), margin, norm.to(DEVICE))
    num_above, is_open = num_above.cpu(), is_open.cpu().bool()
    block = torch.arange(num_columns) % num_blocks
    is_above = values.unsqueeze(2) > limit.unsqueeze(1)
    is_above &= ~is_open[:, block].unsqueeze(2)
    assert torch.equal(num_above.long(), is_above.sum(dim=1))
    # A program takes the largest of the norms of 64 neighbours.
    first = torch.arange(num_columns) // num_blocks * num_blocks + block // NUM_BLOCKS * NUM_BLOCKS
    distance = (values.unsqueeze(2) - limit.unsqueeze(1)).abs().amin(dim=2)
    found = []
    for rounding, norms in ((-1e-4, norm), (1e-4, norm[first])):
        is_near = distance <= slope.unsqueeze(1) * norms + least.unsqueeze(1) + rounding
        num_near = torch.zeros(num_users, num_blocks).index_add_(1, block, is_near.float())
        num_near.view(-1)[hidden] = 1
        found.append(num_near > 0)
    assert (found[0] <= is_open).all()
    assert (is_open <= found[1]).all()
