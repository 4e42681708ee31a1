"""Synthetic interactions, and the text format of the LightGCN papers."""

import pytest
import torch

from pyg_recmetrics import datasets

USER_ITEM = ("user", "rates", "item")


class TestSynthetic:
    def test_the_same_seed_makes_the_same_data_and_touches_no_global_state(self):
        state = torch.get_rng_state()
        one = datasets.synthetic_interactions(seed=3)[USER_ITEM]
        torch.rand(1)
        two = datasets.synthetic_interactions(seed=3)[USER_ITEM]
        assert torch.equal(one.edge_index, two.edge_index)
        assert torch.equal(one.time, two.time)
        other = datasets.synthetic_interactions(seed=4)[USER_ITEM]
        assert not torch.equal(one.edge_index, other.edge_index[:, : one.edge_index.size(1)])
        torch.set_rng_state(state)
        datasets.synthetic_interactions()
        assert torch.equal(torch.get_rng_state(), state)

    def test_it_looks_like_real_data(self):
        data = datasets.synthetic_interactions(num_users=2000, num_items=1000, mean_degree=20)
        user, item = data[USER_ITEM].edge_index
        assert torch.unique(data[USER_ITEM].edge_index, dim=1).size(1) == user.numel()
        degree = torch.bincount(user, minlength=2000)
        assert degree.min() >= 3
        assert 17 < degree.double().mean() < 23
        assert degree.max() > 5 * degree.median()
        popularity = torch.bincount(item, minlength=1000).sort(descending=True).values
        assert popularity[:100].sum() > 0.25 * user.numel()  # a head
        assert popularity[500:].sum() > 0.10 * user.numel()  # and a tail
        assert data[USER_ITEM].time.shape == user.shape
        assert 0 <= data[USER_ITEM].time.min() < data[USER_ITEM].time.max() < 365 * 24 * 3600
        assert data.validate()


class TestLightGCNFormat:
    @pytest.fixture
    def write(self, tmp_path):
        def write(train, test="0 1\n"):
            (tmp_path / "train.txt").write_text(train)
            (tmp_path / "test.txt").write_text(test)
            return tmp_path

        return write

    def test_lines_without_items_and_empty_lines_and_trailing_blanks(self, write):
        data = datasets.read_lightgcn(write("0 2 3 \n1\n\n3 0\n", "1 4\n5\n"))
        assert data[USER_ITEM].edge_index.tolist() == [[0, 0, 3], [2, 3, 0]]
        assert data["item", "rated_by", "user"].edge_index.tolist() == [[2, 3, 0], [0, 0, 3]]
        assert data[USER_ITEM].edge_label_index.tolist() == [[1], [4]]
        assert (data["user"].num_nodes, data["item"].num_nodes) == (6, 5)

    @pytest.mark.parametrize("line", ["0 1.5", "0 -1", "0 x", "0,1"])
    def test_a_malformed_line_is_named(self, write, line):
        with pytest.raises(ValueError, match=rf"train.txt, line 2 .*\(got '{line}'\)"):
            datasets.read_lightgcn(write(f"0 1\n{line}\n"))

    def test_nothing_at_all_is_named(self, write):
        with pytest.raises(ValueError, match="'folder' needs to hold interactions"):
            datasets.read_lightgcn(write("0\n", "0\n"))
