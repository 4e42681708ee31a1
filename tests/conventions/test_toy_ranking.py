"""The toy ranking that all conventions measure side by side."""

import pytest
import torch

from pyg_recmetrics import RankedEdges, conventions, metrics


class TestTable:
    def test_the_numbers_of_all_libraries_on_the_toy(self):
        rows = {line.split()[0]: line.split()[1:] for line in str(conventions.table()).splitlines()}
        assert set(conventions.CONVENTIONS) < set(rows)
        assert {row[4] for row in rows.values() if len(row) > 4} >= {
            ".3333",
            ".4449",
            ".5169",
            ".5400",
        }
        assert rows["rectools"][2] == ".5556*"
        assert rows["trec_eval"] == [
            ".3333", ".4667", ".1333", ".2778", ".4449", ".5667", ".6667"
        ]  # fmt: skip

    def test_another_cut_off(self):
        assert "ndcg@10" in str(conventions.table(k=10))
        with pytest.raises(ValueError, match="'k' needs to be a positive integer"):
            conventions.table(k=0)

    def test_numbers_that_no_convention_has_can_be_produced_too(self):
        lists = torch.arange(10).repeat(4, 1)
        truth = [(0, 0), (0, 2), (0, 5), (0, 7), (0, 8), (1, 1), (2, 4), (2, 5)]
        ranked = RankedEdges.from_topk(lists, torch.tensor(truth).t())
        for spelled, value in {
            "map(normalizer=k)@3": 0.2407,
            "map(normalizer=hits)@3": 0.4444,
            "r_precision(users=hit)": 0.4,
            "ndcg(ideal=retrieved,ideal_k=10)@3": 0.4449,
            "mrr": 0.5667,
        }.items():
            found = metrics.parse(spelled)(ranked).nanmean()
            assert float(found) == pytest.approx(value, abs=5e-5), spelled
