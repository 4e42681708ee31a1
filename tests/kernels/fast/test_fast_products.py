"""Products in few bits, which keep to their bounds and to the order of numbers."""

import pytest
import torch

from pyg_recmetrics.kernels.entries import Entries
from pyg_recmetrics.kernels.exact.factors import ItemFactors
from pyg_recmetrics.kernels.exact.scores import scaled_by_row
from pyg_recmetrics.kernels.exact.sorting import put_in_order_
from pyg_recmetrics.kernels.fast.blocks import nothing_of
from pyg_recmetrics.kernels.fast.fast_products import FastProducts
from pyg_recmetrics.kernels.fast.rounded_items import RoundedItems
from pyg_recmetrics.kernels.scratch import Scratch
from tests.support.cases.embeddings import KINDS
from tests.support.references import exact_scores

CPU = torch.device("cpu")
DTYPES = [torch.bfloat16, torch.float32]

PAIRS_OF_KINDS = [
    *((kind, KINDS[kind], KINDS[kind]) for kind in sorted(KINDS)),
    *((kind, *makers) for kind, makers in exact_scores.KINDS.items()),
]


def draw(users, items, dim, candidates=None, dtype=torch.bfloat16, num_items=50):
    """The products of five users, and their exact scores of all items."""
    generator = torch.Generator().manual_seed(dim)
    user = scaled_by_row(users((5, dim), generator))
    factors = ItemFactors(items((num_items, dim), generator), None, CPU)
    exact = exact_scores.score_matrix(user, factors.double(slice(None)))
    return FastProducts(user, RoundedItems(factors, candidates, dtype)), exact.double()


def all_values(scores, start=0, end=64):
    """The values of all columns, in order."""
    blocks = scores.blocks(torch.arange(scores.user.size(0)), start, end, Scratch(CPU))
    blocks.put_in_order_()
    return blocks.matrix


@pytest.mark.parametrize(("kind", "users", "items"), PAIRS_OF_KINDS)
@pytest.mark.parametrize(
    ("dtype", "dim"), [(torch.bfloat16, 1), (torch.bfloat16, 9), (torch.float32, 9)]
)
class TestBounds:
    def test_no_value_is_further_from_the_exact_score(self, kind, users, items, dtype, dim):
        scores, exact = draw(users, items, dim, dtype=dtype)
        values = all_values(scores)[:, :50]
        exact, error = exact[:, scores.item], scores.error.unsqueeze(1)
        assert (values >= scores.to_value(exact - error)).all()
        assert (values <= scores.to_value(exact + error)).all()
        assert (scores.to_score(values) - error <= exact).all()

    def test_scores_of_some_items_are_closer(self, kind, users, items, dtype, dim):
        scores, exact = draw(users, items, dim, dtype=dtype)
        rows, every = torch.tensor([3, 0]), torch.cartesian_prod(torch.arange(2), torch.arange(50))
        found = scores.of_items(rows, Entries(*every.t(), num_rows=2)).view(2, 50)
        error = (found.double() - exact[rows]).abs()
        assert (error <= scores.error_of_items[rows].unsqueeze(1)).all()
        assert (scores.error_of_items <= scores.error).all()

    def test_exact_scores_are_exact(self, kind, users, items, dtype, dim):
        scores, exact = draw(users, items, dim, dtype=dtype)
        row, item = torch.cartesian_prod(torch.arange(5), torch.arange(50)).t()
        assert torch.equal(scores.exactly(row, item).double(), exact[row, item])

    def test_items_with_a_score_are_within_reach(self, kind, users, items, dtype, dim):
        scores, exact = draw(users, items, dim, dtype=dtype)
        exact = exact[:, scores.item]
        for score in exact.t():
            for user, num_within in enumerate(scores.num_within_reach(score).tolist()):
                assert not (exact[user, num_within:] >= score[user]).any()
        everything = scores.num_within_reach(torch.full((5,), -torch.inf, dtype=torch.double))
        assert everything.tolist() == [50] * 5


def test_items_of_small_norms_are_out_of_reach():
    item = torch.arange(1.0, 101).unsqueeze(1) * torch.tensor([[0.6, 0.8]])
    user = scaled_by_row(torch.tensor([[0.6, 0.8], [0.8, -0.6]]))
    scores = FastProducts(user, RoundedItems(ItemFactors(item, None, CPU), None, torch.float32))
    tenth = scores.exactly(torch.tensor([0, 0]), torch.tensor([90, 90])).double()
    assert scores.num_within_reach(tenth).tolist() == [10, 10]
    assert scores.num_within_reach(-tenth).tolist() == [100, 100]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("start", "end"), [(0, 7), (5, 50), (48, 64), (49, 90)])
def test_any_columns_have_the_values_that_they_have_among_all(dtype, start, end):
    whole_numbers = KINDS["whole numbers, so that many scores are equal"]  # without rounding
    scores, _ = draw(whole_numbers, whole_numbers, 8, dtype=dtype)
    whole = all_values(scores, end=90).clone()
    assert torch.equal(all_values(scores, start=start, end=end), whole[:, start:end])
    assert whole[:, 50:].eq(nothing_of(whole.dtype)).all()  # behind the last item


def test_positive_values_are_in_order_before_all_are():
    scores, _ = draw(KINDS["random"], KINDS["random"], 8)
    quick = scores.blocks(torch.arange(5), 0, 64, Scratch(CPU)).matrix.clone()
    ordered = all_values(scores)
    is_positive = ordered >= scores.lowest_in_order
    assert 0 < is_positive.sum() < is_positive.numel()
    assert torch.equal(quick[is_positive], ordered[is_positive])
    assert (quick[~is_positive] < scores.lowest_in_order).all()


def test_bits_are_put_in_the_order_of_numbers_and_back():
    bits = torch.arange(-(2**15), 2**15).to(torch.int16)
    number = bits.view(torch.bfloat16)
    bits, number = bits[~number.isnan()], number[~number.isnan()].float()
    ordered = put_in_order_(bits.clone())
    assert torch.equal(put_in_order_(ordered.clone()), bits)
    by_bits = number[ordered.argsort()]
    assert (by_bits.diff().nan_to_num() >= 0).all()
    zeros = by_bits[by_bits == 0]
    assert zeros.signbit().tolist() == [True, False]
    assert (by_bits[1:] == by_bits[:-1]).sum() == 1
    assert ordered.min() > torch.iinfo(torch.int16).min  # which stands for what is masked


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_value_stands_for_all_scores_that_are_rounded_to_it(dtype):
    scores, _ = draw(KINDS["random"], KINDS["random"], 8, dtype=dtype)
    generator = torch.Generator().manual_seed(1)
    score = torch.randn(5000, generator=generator, dtype=torch.double)
    score *= torch.randint(-80, 80, score.shape, generator=generator).double().exp2()
    score = torch.cat([score, torch.tensor([0.0, -0.0, 1.0, -1.0])]).sort().values
    value = scores.to_value(score)
    assert (value[1:] >= value[:-1]).all()
    assert (scores.to_score(value) <= score + 2.0**-24 * score.abs()).all()
    assert (scores.to_score(value) >= score - 2.0**-6 * score.abs()).all()


def test_only_candidates_have_columns():
    candidates = torch.tensor([3, 7, 8, 49])
    scores, exact = draw(KINDS["random"], KINDS["random"], 8, candidates, torch.float32)
    assert scores.item.sort().values.equal(candidates)
    values = all_values(scores, end=4)
    error = (values.double() - exact[:, scores.item]).abs()
    assert (error <= scores.error.unsqueeze(1)).all()


def test_the_sieve_is_a_part_of_the_columns():
    scores, _ = draw(KINDS["random"], KINDS["random"], 8)
    assert 0 < scores.num_in_sieve <= 50 // 8
