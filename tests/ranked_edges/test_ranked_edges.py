"""RankedEdges: its three makers, and its reductions."""

import pytest
import torch
from cases import cases
from hypothesis import given

from pyg_recmetrics import RankedEdges, metrics, rank

pytestmark = pytest.mark.usefixtures("expect_lost_truth")


@given(case=cases())
def test_edges_are_sorted_by_user_and_rank_and_pointed_at(case):
    ranked = rank(case.score_matrix, case.task(), k=2)
    order = list(zip(ranked.edge_index[0].tolist(), ranked.rank.tolist(), strict=True))
    assert order == sorted(order)
    assert ranked.degree.tolist() == [len(truth) for truth in case.truths]
    for user in range(case.num_users):
        span = slice(int(ranked.ptr[user]), int(ranked.ptr[user + 1]))
        assert set(ranked.edge_index[1, span].tolist()) == set(case.truths[user])
        assert ranked.position[span].tolist() == list(range(1, len(case.truths[user]) + 1))


def test_sums_and_hits_are_per_user():
    ranked = RankedEdges.from_topk(
        torch.tensor([[1, 2, 3], [4, 5, 6], [7, 8, 9]]),
        torch.tensor([[0, 0, 2], [3, 1, 8]]),
    )
    assert ranked.sum(torch.tensor([1.0, 10.0, 100.0])).tolist() == [11, 0, 100]
    assert ranked.hits(2).tolist() == [1, 0, 1]
    assert ranked.hits(torch.tensor([3, 3, 1])).tolist() == [2, 0, 0]


def test_moving_and_printing(device):
    ranked = RankedEdges.from_topk(torch.tensor([[1, 2]]), torch.tensor([[0], [2]])).to(device)
    assert {ranked.rank.device.type, ranked.items.device.type} == {device.type}
    assert repr(ranked) == "RankedEdges(num_users=1, num_edges=1, depth=complete)"


def test_torch_scatter_gives_the_same_numbers(monkeypatch, device):
    pytest.importorskip("torch_scatter")
    generator = torch.Generator().manual_seed(0)
    scores = torch.rand(300, 500, generator=generator)
    truth = torch.randint(300, (2, 4000), generator=generator)
    weight = torch.rand(4000, generator=generator)
    ranked = RankedEdges.from_scores(scores, truth, weight).to(device)
    for name in metrics.names():
        if metrics.definition(name).needs:
            continue  # there are scores, and no lists
        cut_off = {"k": 20} if metrics.definition(name).has_cut_off else {}
        with_scatter = getattr(metrics, name)(ranked, **cut_off)
        with monkeypatch.context() as patch:
            patch.setattr("torch_geometric.typing.WITH_TORCH_SCATTER", False)
            without = getattr(metrics, name)(ranked, **cut_off)
        assert torch.allclose(with_scatter, without, rtol=1e-12, atol=0, equal_nan=True), name
