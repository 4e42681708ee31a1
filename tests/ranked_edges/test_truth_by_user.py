"""What the truth of each user says by itself, and that rankings of one task share it."""

import pytest
import torch

from pyg_recmetrics.kernels.exact.ranks import NOT_RETRIEVED
from pyg_recmetrics.ranked_edges import truth_by_user
from pyg_recmetrics.ranked_edges.truth_by_user import TruthByUser


def test_users_with_and_without_truth(device):
    truth = TruthByUser.of(torch.tensor([0, 0, 2, 2, 2]).to(device), num_users=4)
    assert truth.ptr.tolist() == [0, 2, 2, 5, 5]
    assert truth.degree.tolist() == [2, 0, 3, 0]
    assert truth.has_none.tolist() == [False, True, False, True]
    assert truth.position.tolist() == [1, 2, 1, 2, 3]
    assert (truth.num_users, truth.num_with_truth) == (4, 2)


def test_what_is_found_out_is_found_out_once_for_each_key():
    truth, asked = TruthByUser.of(torch.tensor([0]), num_users=1), []

    def make(number):
        asked.append(number)
        return torch.tensor(number)

    for number in (1, 2, 1, 2):
        assert truth.once(("name", number), lambda number=number: make(number)) == number
    assert asked == [1, 2]


@pytest.mark.parametrize("fits", [True, False])
@pytest.mark.parametrize("dtype", [torch.long, torch.double])
@pytest.mark.parametrize("largest", [1, 5, 2**31])
def test_edges_are_sorted_by_user_and_rank_and_stay_in_order(
    fits, dtype, largest, device, monkeypatch
):
    if not fits:
        monkeypatch.setattr(truth_by_user, "_MAX_BITS", 40)
    generator = torch.Generator().manual_seed(largest)
    user = torch.randint(20, (300,), generator=generator).sort().values
    rank = torch.randint(1, largest + 1, (300,), generator=generator)
    rank[torch.rand(300, generator=generator) < 0.2] = NOT_RETRIEVED
    given = list(zip(user.tolist(), rank.tolist(), range(300), strict=True))
    order = TruthByUser.of(user.to(device), num_users=21).order(rank.to(device, dtype))
    assert order.tolist() == [edge for *_, edge in sorted(given)]
