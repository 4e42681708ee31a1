"""Kernels of a GPU, in an interpreter on the CPU where there is none."""

import pytest
import torch

from tests.support.cases.embeddings import KINDS
from tests.support.references.exact_scores import score_matrix
from tests.support.tools import fuzz

pytest.importorskip("triton", reason="needs Triton, which comes with torch for NVIDIA's GPUs")

from pyg_recmetrics.kernels.entries import Entries
from pyg_recmetrics.kernels.exact.factors import ItemFactors
from pyg_recmetrics.kernels.exact.scores import scaled_by_row
from pyg_recmetrics.kernels.fast.rounded_items import RoundedItems
from pyg_recmetrics.kernels.gpu.fused_products import FusedProducts
from pyg_recmetrics.kernels.scratch import Scratch
from pyg_recmetrics.ranking import algorithms, kinds

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
LARGER = (3, 300, 9), (130, 20, 33), (2, 17, 64), (1, 400, 100)
#: Kinds differ in their errors, and sizes in the programs that they take.
CASES = [
    *((kind, size) for kind in sorted(KINDS) for size in ((5, 100, 1), (3, 200, 9))),
    *(("random", size) for size in LARGER),
    *(
        pytest.param(kind, size, marks=pytest.mark.slow)
        for kind in sorted(KINDS.keys() - {"random"})
        for size in LARGER
    ),
]


def draw(kind, num_users, num_items, dim):
    """Products of a kind of embeddings, and the exact scores of all pairs, by columns."""
    generator = torch.Generator().manual_seed(dim)
    user = KINDS[kind]((num_users, dim), generator).to(DEVICE)
    factors = ItemFactors(KINDS[kind]((num_items, dim), generator).to(DEVICE), None, DEVICE)
    user = scaled_by_row(user)
    exact = score_matrix(user.cpu(), factors.double(slice(None)).cpu()).to(DEVICE)
    scores = FusedProducts(user, RoundedItems(factors, None, torch.float16))
    return scores, exact.double()[:, scores.item]


def in_blocks(values, num_blocks, nothing=-torch.inf):
    """The values of all columns `[num_rows, block_size, num_blocks]`."""
    padded = values.new_full((values.size(0), 16 * num_blocks), nothing)
    padded[:, : values.size(1)] = values
    return padded.view(values.size(0), 16, num_blocks)


@pytest.mark.parametrize(("kind", "size"), CASES)
def test_the_largest_of_each_block_keeps_to_the_bound(kind, size):
    scores, exact = draw(kind, *size)
    num_blocks = 16 * -(-size[1] // 256)
    rows = torch.arange(size[0], device=DEVICE).flip(0)
    blocks = scores.blocks(rows, 0, 16 * num_blocks, Scratch(DEVICE))
    exact, error = exact[rows], scores.error[rows].unsqueeze(1)
    for sign, is_kept in ((-1, torch.ge), (1, torch.le)):
        bound = scores.to_value(exact + sign * error)
        largest = in_blocks(bound, num_blocks).amax(dim=1)
        assert is_kept(blocks.maxima(), largest).all()
    num_rows = min(3, size[0])
    values = all_values(blocks, num_rows, num_blocks)
    exact, error = exact[:num_rows], error[:num_rows]
    assert (values >= in_blocks(scores.to_value(exact - error), num_blocks)).all()
    assert (values <= in_blocks(scores.to_value(exact + error), num_blocks)).all()


def all_values(blocks, num_rows, num_blocks):
    """All values of the first rows, of shape `[num_rows, block_size, num_blocks]`."""
    every = torch.cartesian_prod(torch.arange(num_rows), torch.arange(num_blocks)).to(DEVICE)
    return blocks.values(*every.t()).view(num_rows, num_blocks, 16).transpose(1, 2)


def test_a_value_stands_for_the_scores_that_are_rounded_to_it():
    scores, exact = draw("random", 4, 1000, 8)
    close = scores.to_score(scores.to_value(exact))
    torch.testing.assert_close(close, exact, rtol=2.0**-24, atol=0)


def test_some_columns_have_the_values_that_they_have_among_all():
    scores, _ = draw("random", 4, 1000, 8)
    rows = torch.arange(4, device=DEVICE)
    every = all_values(scores.blocks(rows, 0, 1024, Scratch(DEVICE)), 4, 64)
    wanted = every.reshape(4, 1024)[:, 256:768].view(4, 16, 32)
    part = scores.blocks(rows, 256, 768, Scratch(DEVICE))
    torch.testing.assert_close(all_values(part, 4, 32), wanted, rtol=0, atol=0)
    torch.testing.assert_close(part.maxima(), wanted.amax(dim=1), rtol=1e-5, atol=1e-2)


@pytest.mark.parametrize(("num_users", "num_items"), [(2, 1300), (130, 2100)])
def test_many_blocks_take_many_programs(num_users, num_items):
    generator = torch.Generator().manual_seed(0)
    user, item = (
        torch.randint(-9, 10, (size, 16), generator=generator).float().to(DEVICE)
        for size in (num_users, num_items)
    )
    items = RoundedItems(ItemFactors(item, None, DEVICE), None, torch.float16)
    scores = FusedProducts(scaled_by_row(user), items)
    num_blocks = 16 * -(-num_items // 256)
    rows = torch.arange(num_users, device=DEVICE)
    blocks = scores.blocks(rows, 0, 16 * num_blocks, Scratch(DEVICE))
    # Whole numbers are not rounded.
    exact = scores.to_value(scores.user @ items.factors.double(scores.item).t())
    assert torch.equal(blocks.maxima(), in_blocks(exact, num_blocks).amax(dim=1))


def test_what_is_hidden_is_neither_the_largest_nor_a_value():
    scores, _ = draw("random", 6, 500, 8)
    rows = torch.arange(6, device=DEVICE)
    is_hidden = torch.rand(8, 600, generator=torch.Generator().manual_seed(0)) < 0.05
    entries = Entries(*is_hidden.nonzero().to(DEVICE).t(), num_rows=8)
    blocks = scores.blocks(rows, 0, 512, Scratch(DEVICE))
    plain = all_values(blocks, 6, 32).reshape(6, 512)
    blocks.hide(entries, slice(1, 7), 40)  # the part starts at row 1 and column 40
    wanted = plain.masked_fill(is_hidden[1:7, 40:552].to(DEVICE), -torch.inf).view(6, 16, 32)
    row, block = torch.tensor([[0, 0, 3, 5], [2, 30, 0, 31]]).to(DEVICE)
    assert torch.equal(blocks.values(row, block), wanted[row, :, block])
    assert blocks.values(row[:0], block[:0]).shape == (0, 16)
    torch.testing.assert_close(blocks.maxima(), wanted.amax(dim=1), rtol=1e-5, atol=1e-2)
    everything = Entries(*torch.ones(6, 500).nonzero().to(DEVICE).t(), num_rows=6)
    blocks.hide(everything, slice(0, 6), 0)
    assert blocks.maxima().isneginf().all()


@pytest.mark.parametrize(
    "first",
    [
        *range(9000, 9060, 20),
        *(pytest.param(first, marks=pytest.mark.slow) for first in range(9060, 9120, 20)),
    ],
)
def test_rankings_are_as_the_oracle_says(monkeypatch, first):
    made = []
    for module in (algorithms, kinds):
        monkeypatch.setattr(module, "can_fuse", lambda device, dim: True)
    blocks = FusedProducts.blocks
    monkeypatch.setattr(FusedProducts, "blocks", lambda *args: made.append(1) or blocks(*args))
    for seed in range(first, first + 20):
        fuzz.run(seed, DEVICE.type)
    assert made
