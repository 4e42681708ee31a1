"""Ranks from products of all embeddings, and from scores as wrong as their bound allows."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from pyg_recmetrics import RankingTask, rank
from pyg_recmetrics.kernels.devices import Scratch
from pyg_recmetrics.kernels.exact.ranks import NOT_RETRIEVED, Ranks
from pyg_recmetrics.kernels.fast import direct_ranking
from pyg_recmetrics.kernels.fast.direct_ranking import Cells, rank_directly, width_of_scores
from tests.support.cases.embeddings import KINDS, assert_same_ranks
from tests.support.references import naive


class Exact:
    """Exact scores, which notes the pairs that it is asked for."""

    def __init__(self, scores):
        self.scores, self.asked = scores, []

    def __call__(self, row, column):
        self.asked += zip(row.tolist(), column.tolist(), strict=True)
        return self.scores[row, column]


def ranks_of(exact, error, depth, is_relevant, is_masked, scores=None):
    """Ranks by scores that are off by up to `error`, in a matrix of the width that is needed."""
    scores = exact.scores if scores is None else scores
    matrix = torch.full((len(scores), width_of_scores(scores.size(1))), -torch.inf).double()
    matrix[:, : scores.size(1)] = scores.masked_fill(is_masked, -torch.inf)
    errors = torch.full((len(scores),), error, dtype=torch.double)
    relevant = Cells.of(*is_relevant.nonzero().unbind(dim=1), matrix.size(1))
    scratch = Scratch(torch.device("cpu"))
    found = rank_directly(matrix, errors, depth, int(depth.max()), relevant, exact, scratch)
    ranks, is_unsettled = Ranks.unknown(relevant.row), found.is_unsettled
    ranks.update(torch.arange(len(relevant.row)) if found.edge is None else found.edge, found.ranks)
    if is_unsettled is None:
        is_unsettled = torch.zeros_like(depth, dtype=torch.bool)
    return ranks, is_unsettled


def check(exact, depth, is_relevant, is_masked, ranks, is_unsettled):
    """Compares the ranks of all rows that are settled, as far as these are ranked."""
    places = zip(*(values.tolist() for values in ranks), strict=True)
    for (row, item), place in zip(is_relevant.nonzero().tolist(), places, strict=True):
        if is_unsettled[row]:
            continue
        ranking = naive.ranking(exact.scores[row].tolist(), is_masked[row].nonzero())
        own, others = exact.scores[row, item], exact.scores[row, ranking]
        num_above = int((others > own).sum())
        if num_above < depth[row]:
            assert place == (ranking.index(item) + 1, num_above, int((others == own).sum()) - 1)
        else:
            assert place[0] > depth[row]
            assert place[1] >= depth[row]


@settings(max_examples=300)
@given(data=st.data(), seed=st.integers(0, 2**30))
def test_ranks_are_those_of_plain_python(data, seed):
    generator = torch.Generator().manual_seed(seed)
    shape = data.draw(st.integers(1, 5)), data.draw(st.integers(1, 300))
    num_levels = data.draw(st.sampled_from([1, 4, 1000]))
    exact = Exact(torch.randint(-num_levels, num_levels, shape, generator=generator).double())
    error = data.draw(st.sampled_from([0.0, 0.3, 2.0]))
    noise = torch.rand(shape, generator=generator, dtype=torch.double).mul(6).sub(3).clamp(-1, 1)
    masked, relevant = (
        torch.rand(shape, generator=generator) < data.draw(st.sampled_from(shares))
        for shares in ([0, 0.1, 0.9], [0, 0.02, 0.3, 1])
    )
    is_relevant = relevant & ~masked
    max_depth = data.draw(st.sampled_from([3, 30, 400]))
    depth = torch.randint(1, max_depth, shape[:1], generator=generator).clamp(max=shape[1])
    num_spare = data.draw(st.sampled_from([2, 1000]))
    with pytest.MonkeyPatch.context() as patch:
        for name, values in (
            ("NUM_COMPARISONS", [1, 1000, 2**20]),
            ("MAX_COMPARISONS_OF_USER", [0, 0, 2**12]),
            ("_NUM_BLOCKS", [1, 4, 64]),
            ("_BLOCKS_PER_POSITION", [1, 2]),
        ):
            patch.setattr(direct_ranking, name, data.draw(st.sampled_from(values)))
        patch.setattr(direct_ranking, "_SPARE_FOUND", num_spare)
        patch.setattr(direct_ranking, "_CLOSE_PER_COLUMN", num_spare)
        scores = exact.scores + error * noise
        ranks, is_unsettled = ranks_of(exact, error, depth, is_relevant, masked, scores)
    assert num_spare < 1000 or not is_unsettled.any()
    check(exact, depth, is_relevant, masked, ranks, is_unsettled)


@pytest.fixture
def with_reach(monkeypatch):
    """However few relevant items there are, it is found out first what is within reach."""
    monkeypatch.setattr(direct_ranking, "MAX_COMPARISONS_OF_USER", 0)


@pytest.mark.usefixtures("with_reach")
def test_the_example_of_the_docstring(monkeypatch):
    monkeypatch.setattr(direct_ranking, "_NUM_BLOCKS", 4)
    exact = Exact(torch.tensor([[0.90, 0.50, 0.75, 0.30, 0.20, 0.74, 0.57, 0.10]]).double())
    numbers = ", ".join(f"{score:.2f}" for score in exact.scores[0, :-1].tolist())
    assert numbers in " ".join(direct_ranking.__doc__.split())
    relevant = torch.tensor([[False] * 5 + [True, True, False]])
    ranks, _ = ranks_of(exact, 0.01, torch.tensor([2]), relevant, torch.zeros_like(relevant))
    assert ranks.rank.tolist() == [3, NOT_RETRIEVED]
    assert set(exact.asked) == {(0, 2), (0, 5)}
    exact.scores[0, 5] = 0.7525
    ranks, _ = ranks_of(exact, 0.01, torch.tensor([2]), relevant, torch.zeros_like(relevant))
    assert ranks.rank.tolist() == [2, NOT_RETRIEVED]


@pytest.mark.usefixtures("with_reach")
def test_a_row_of_too_many_equal_scores_is_left_unsettled():
    exact = Exact(torch.arange(8000, 0, -1).double().repeat(2, 1))
    exact.scores[0, :4000] = 8000
    is_relevant = torch.zeros(2, 8000, dtype=torch.bool)
    is_relevant[0, 17] = is_relevant[1, 12] = True
    ranks, is_unsettled = ranks_of(
        exact, 0.0, torch.tensor([20, 20]), is_relevant, torch.zeros_like(is_relevant)
    )
    assert is_unsettled.tolist() == [True, False]
    assert ranks.rank[1] == 13


@pytest.mark.usefixtures("with_reach")
def test_a_row_of_too_many_close_pairs_is_left_unsettled():
    # Each of 200 relevant items ties with 300 others: too few to be crowded, but 60,000 pairs.
    exact = Exact(torch.arange(8000, 0, -1).double().repeat(3, 1))
    exact.scores[0, :300] = 8000
    is_relevant = torch.zeros(3, 8000, dtype=torch.bool)
    is_relevant[0, :200] = is_relevant[1, [12, 7000]] = True
    depth, nothing = torch.tensor([250, 20, 20]), torch.zeros_like(is_relevant)
    ranks, is_unsettled = ranks_of(exact, 0.0, depth, is_relevant, nothing)
    assert is_unsettled.tolist() == [True, False, False]
    assert ranks.rank[-2:].tolist() == [13, NOT_RETRIEVED]
    assert {row for row, _ in exact.asked} <= {1}


@pytest.mark.parametrize("max_comparisons", [0, 2**12])
def test_exact_scores_are_asked_for_where_others_are_close_and_nowhere_else(
    monkeypatch, max_comparisons
):
    monkeypatch.setattr(direct_ranking, "MAX_COMPARISONS_OF_USER", max_comparisons)
    exact = Exact(torch.tensor([[5.0, 4.0, 3.0, 3.0, 1.0], [9.0, 8.0, 7.0, 6.0, 5.0]]).double())
    is_relevant = torch.tensor([[False, True, False, True, False], [True, False, True, True, True]])
    depth, nothing = torch.tensor([5, 5]), torch.zeros_like(is_relevant)
    ranks, _ = ranks_of(exact, 0.1, depth, is_relevant, nothing)
    assert ranks.rank.tolist() == [2, 4, 1, 3, 4, 5]
    assert ranks.num_tied.tolist() == [0, 1, 0, 0, 0, 0]
    assert set(exact.asked) == {(0, 2), (0, 3)}


def task_of(num_users, num_items, candidates, generator):
    seen, truth = torch.rand(2, num_users, num_items, generator=generator) < torch.tensor(
        [0.1, 0.03]
    ).view(2, 1, 1)
    truth &= ~seen
    if candidates is not None:
        truth &= torch.isin(torch.arange(num_items), candidates)
    return RankingTask(
        truth.nonzero().t(),
        num_users=num_users,
        num_items=num_items,
        seen=seen.nonzero().t(),
        candidates=candidates,
    )


@pytest.mark.parametrize("users", KINDS)
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
@pytest.mark.parametrize("max_comparisons", [0, 2**12])
@pytest.mark.parametrize("candidates", [None, torch.arange(0, 200, 3)])
@pytest.mark.parametrize("has_bias", [False, True])
def test_embeddings_of_every_kind(monkeypatch, users, dtype, max_comparisons, candidates, has_bias):
    monkeypatch.setattr(direct_ranking, "MAX_COMPARISONS_OF_USER", max_comparisons)
    generator = torch.Generator().manual_seed(0)
    user = KINDS[users]((30, 8), generator).to(dtype)
    user = user.nan_to_num(posinf=torch.finfo(dtype).max / 1e4)  # where the type has no such number
    item = torch.randn(200, 8, generator=generator).to(dtype)
    item[100] = item[101]
    parts = (user, item, torch.randn(200, generator=generator)) if has_bias else (user, item)
    if has_bias and float(user.abs().max()) > 1e30:
        pytest.skip("scores with biases need to be in the range of single precision")
    task = task_of(30, 200, candidates, generator)
    found, wanted = (
        rank(parts, task, k=9, batch_size=size, algorithm=algorithm)
        for algorithm, size in (("direct", 7), ("dense", None))
    )
    assert_same_ranks(found, wanted)


@pytest.mark.parametrize("num_items", [7, 8, 9, 64, 129, 500])
@pytest.mark.parametrize("k", [1, 6, 40, 450])
def test_any_number_of_items_and_positions(monkeypatch, num_items, k):
    monkeypatch.setattr(direct_ranking, "MAX_COMPARISONS_OF_USER", 0)
    generator = torch.Generator().manual_seed(num_items + k)
    user, item = (torch.randint(-3, 4, (n, 4), generator=generator) for n in (50, num_items))
    task = task_of(50, num_items, None, generator)
    found, wanted = (
        rank((user.float(), item.float()), task, k=k, algorithm=algorithm)
        for algorithm in ("direct", "dense")
    )
    assert_same_ranks(found, wanted)
