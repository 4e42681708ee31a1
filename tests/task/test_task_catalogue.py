"""Catalogue: what is known about the items."""

import pytest
import torch

from pyg_recmetrics import Catalogue, RankedEdges, metrics


def test_it_has_to_fit_the_ranking():
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
