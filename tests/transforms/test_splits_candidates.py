"""Truth competes with sampled items, and with nothing else."""

import pytest
import torch
from hypothesis import given, strategies as st
from torch_geometric.data import Data, HeteroData
from torch_geometric.transforms import Compose

from pyg_recmetrics import evaluate
from pyg_recmetrics.transforms import LeaveLastOut, PerUserSplit, SampledCandidates
from tests.support.cases.graphs import (
    FORMS,
    USER_ITEM,
    WITHOUT_LEFT_OUT,
    count_by_user,
    interactions,
    message_passing,
    random_graphs,
    truth,
)

pytestmark = WITHOUT_LEFT_OUT


class TestSampledCandidates:
    @given(
        form=st.sampled_from(FORMS),
        graph=random_graphs(max_items=9),
        num=st.integers(1, 9),
        popularity=st.sampled_from([0, 1, -0.5]),
    )
    def test_truth_and_a_sample_of_what_is_not_known(self, form, graph, num, popularity):
        transform = SampledCandidates(num, popularity=popularity, seed=2)
        for part in PerUserSplit(num_test=0.5)(graph.data(form)):
            sampled = transform(part)
            store = sampled if isinstance(sampled, Data) else sampled[USER_ITEM]
            shift = graph.num_users if isinstance(sampled, Data) else 0
            found = [(u, i - shift) for u, i in store.candidate_edge_index.t().tolist()]
            negatives = [pair for pair in found if pair not in set(truth(part))]
            assert set(truth(part)) <= set(found)
            assert len(set(negatives)) == len(negatives)
            assert not set(negatives) & message_passing(part)
            popular = {item for _, item in message_passing(part)}
            for user in {user for user, _ in truth(part)}:
                left = graph.num_items if popularity == 0 else len(popular)
                mine = {i for u, i in message_passing(part) | set(truth(part)) if u == user}
                left -= len(mine if popularity == 0 else mine & popular)
                assert count_by_user(negatives)[user] == min(num, left)
            assert {u for u, _ in found} == {u for u, _ in truth(part)}

    def test_the_order_of_edges_and_the_device_do_not_matter(self, device):
        *_, test = PerUserSplit()(interactions())
        expected = SampledCandidates(5, popularity=0.5)(test)[USER_ITEM].candidate_edge_index
        store = test[USER_ITEM]
        store.edge_index = store.edge_index.flip([1])
        store.edge_label_index = store.edge_label_index.flip([1])
        state = torch.random.get_rng_state()
        moved = SampledCandidates(5, popularity=0.5)(test.to(device))[USER_ITEM]
        assert torch.equal(torch.random.get_rng_state(), state)
        assert moved.candidate_edge_index.device.type == device.type
        found = moved.candidate_edge_index.cpu().t().tolist()
        assert set(map(tuple, found)) == set(map(tuple, expected.t().tolist()))

    @pytest.mark.parametrize("popularity", [0.0, 1.0])
    def test_items_are_as_likely_as_they_should_be(self, popularity):
        # Users 4000 and on make items 0, 1, 2, 3 popular at 4 : 3 : 2 : 1; the others have item 4.
        data = HeteroData()
        data["user"].num_nodes, data["item"].num_nodes = 4010, 6
        popular = torch.tensor([0] * 4 + [1] * 3 + [2] * 2 + [3])
        data[USER_ITEM].edge_index = torch.stack([torch.arange(4000, 4010), popular])
        data[USER_ITEM].edge_label_index = torch.stack([torch.arange(4000), torch.full((4000,), 4)])
        sampled = SampledCandidates(1, popularity=popularity)(data)[USER_ITEM]
        negatives = sampled.candidate_edge_index[1, sampled.candidate_edge_index[1] != 4]
        share = torch.bincount(negatives, minlength=6) / 4000
        expected = [0.2, 0.2, 0.2, 0.2, 0.0, 0.2] if popularity == 0 else [0.4, 0.3, 0.2, 0.1, 0, 0]
        # A share is off by more than five deviations of at most 0.008 once in a million times.
        assert share.tolist() == pytest.approx(expected, abs=0.04)

    def test_all_parts_of_a_split_can_be_composed(self):
        parts = Compose([LeaveLastOut(), SampledCandidates(9)])(interactions())
        for part in parts[1:]:
            assert evaluate(torch.rand(60, 40), part, "recall@10")["recall@10"] == 1
