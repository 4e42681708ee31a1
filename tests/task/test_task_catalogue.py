"""Catalogue: what is known about the items."""

import pytest
import torch

from pyg_recmetrics import Catalogue, RankedEdges, metrics


class TestCatalogue:
    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            ({"seen": torch.tensor([[0], [3]])}, r"'seen' .* item ids in \[0, 3\) \(got 3\)"),
            (
                {"seen": torch.tensor([[2**62], [2]])},
                r"'seen' .* less than 2\*\*63 \(got 4611686018427387905 users and 3 items\)",
            ),
            ({"item_embedding": torch.ones(2, 3)}, r"shape \[num_items=3, num_features\] .*\[2, 3"),
            ({"item_embedding": torch.ones(3, 2).long()}, "'item_embedding' .* floating-point"),
            ({"item_embedding": torch.full((3, 2), torch.nan)}, "finite numbers .got 6"),
            ({"item_category": torch.ones(4).long()}, r"'item_category' .*\[num_items=3\] or"),
            ({"item_category": torch.ones(3)}, "'item_category' needs to hold integers"),
            ({"item_category": torch.tensor([0, -1, 2])}, r"zero or more \(got -1\)"),
            ({"item_category": torch.full((3, 2), torch.inf)}, "finite numbers .got 6"),
        ],
    )
    def test_wrong_arguments_are_named(self, arguments, message):
        with pytest.raises(ValueError, match=message):
            Catalogue(3, **arguments)

    def test_it_has_to_fit_the_ranking(self):
        ranked = RankedEdges.from_topk(torch.tensor([[0, 5]]), torch.tensor([[0], [1]]))
        with pytest.raises(ValueError, match=r"all items of the ranking, up to 5 .*num_items=5"):
            ranked.with_catalogue(Catalogue(5))
        more_users = Catalogue(6, seen=torch.tensor([[1], [1]]), item_category=torch.arange(6))
        with pytest.raises(ValueError, match=r"'seen' needs to hold user ids in \[0, 1\) \(got 1"):
            metrics.calibration(ranked.with_catalogue(more_users), k=2)
        with pytest.raises(TypeError, match=r"'catalogue' needs to be a 'Catalogue' \(got int\)"):
            ranked.with_catalogue(6)
        elsewhere = Catalogue(6)
        object.__setattr__(elsewhere, "item_embedding", torch.ones(6, 2, device="meta"))
        with pytest.raises(ValueError, match="on the device of 'ranked', cpu"):
            ranked.with_catalogue(elsewhere)
