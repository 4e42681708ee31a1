"""RankedEdges: how edges are grouped and summed up, and its form as a dictionary."""

import dataclasses

import pytest
import torch
from hypothesis import given

from pyg_recmetrics import Catalogue, RankedEdges, RankingTask, metrics, rank
from tests.support.cases.strategies import cases

pytestmark = pytest.mark.usefixtures("expect_lost_truth")


@given(case=cases())
def test_edges_are_sorted_by_user_and_rank_and_pointed_at(case):
    ranked = rank(case.score_matrix, case.task(), k=2)
    order = list(zip(ranked.edge_label_index[0].tolist(), ranked.rank.tolist(), strict=True))
    assert order == sorted(order)
    assert ranked.degree.tolist() == [len(truth) for truth in case.truths]
    for user in range(case.num_users):
        span = slice(int(ranked.ptr[user]), int(ranked.ptr[user + 1]))
        assert set(ranked.edge_label_index[1, span].tolist()) == set(case.truths[user])
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
    assert {ranked.rank.device.type, ranked.pred_index_mat.device.type} == {device.type}
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


class TestToDict:
    def make_ranked(self):
        """A ranking in which no field has its default."""
        task = RankingTask(
            torch.tensor([[0, 0, 1], [1, 2, 2]]),
            num_users=3,
            num_items=4,
            seen=torch.tensor([[0, 2], [0, 1]]),
            weight=torch.tensor([1.0, 2.0, 3.0]),
            users=torch.tensor([0, 1]),
        )
        scores = torch.tensor([-torch.inf, 0.4, 0.2, 0.4])
        ranked = rank(scores, task, k=2, keep_items=True, ties="random", seed=3)
        catalogue = Catalogue(4, seen=task.seen, item_category=torch.arange(4))
        return dataclasses.replace(
            ranked.with_catalogue(catalogue),
            user_ids=("ann", "bob", "cy"),
            item_ids=("w", "x", "y", "z"),
            person=torch.tensor([0, 1, 1]),
            user_of_row=torch.tensor([0, 1, 2]),
            is_candidate=torch.tensor([True, True, True]),
        )

    def test_it_holds_every_field(self):
        ranked = self.make_ranked()
        fields = ranked.to_dict()
        kept = dataclasses.fields(RankedEdges)
        assert list(fields) == [field.name for field in kept]
        for field in kept:
            # A field that has its default could be lost without being missed.
            assert fields[field.name] is not None, field.name
            assert fields[field.name] is not field.default, field.name

    def test_a_ranking_that_is_made_of_it_is_the_same(self):
        ranked = self.make_ranked()
        again = RankedEdges.from_dict(ranked.to_dict())
        for field in dataclasses.fields(RankedEdges):
            value, value_again = getattr(ranked, field.name), getattr(again, field.name)
            if isinstance(value, torch.Tensor):
                assert torch.equal(value_again, value), field.name
                assert value_again.dtype == value.dtype, field.name
            elif field.name == "lists":
                assert torch.equal(value_again.item, value.item)
                assert torch.equal(value_again.ptr, value.ptr)
            elif isinstance(value, Catalogue):
                assert repr(value_again) == repr(value)
                assert torch.equal(value_again.popularity, value.popularity)
            else:
                assert value_again == value, field.name
        again, ranked = metrics.popularity(again, k=2), metrics.popularity(ranked, k=2)
        assert torch.allclose(again, ranked, equal_nan=True)

    def test_what_is_not_known_stays_unknown(self):
        ranked = RankedEdges.from_topk(torch.tensor([[1, 2]]), torch.tensor([[0], [2]]))
        again = RankedEdges.from_dict(ranked.to_dict())
        for field in dataclasses.fields(RankedEdges):
            is_known = getattr(ranked, field.name) is not None
            assert (getattr(again, field.name) is not None) == is_known, field.name
