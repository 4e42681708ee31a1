"""The sizes of our splits of users against recometrics, which has defined these splits.

These tests are of several modules together: how each user is split, and who is evaluated.
"""

import pytest
import torch
from torch_geometric.data import HeteroData

from pyg_recmetrics.transforms import JoinedUsers, PerUserSplit, SeparatedUsers

recometrics = pytest.importorskip("recometrics")
scipy_sparse = pytest.importorskip("scipy.sparse")
USER_ITEM = ("user", "rates", "item")
NUM_USERS, NUM_ITEMS = 130, 60


@pytest.fixture(scope="module")
def data():
    """Users with 0, 1, 2, .. items, up to all of them."""
    generator = torch.Generator().manual_seed(0)
    edges = [
        torch.stack(
            [torch.full((degree,), user), torch.randperm(NUM_ITEMS, generator=generator)[:degree]]
        )
        for user in range(NUM_USERS)
        if (degree := user % (NUM_ITEMS + 1))
    ]
    data = HeteroData()
    data["user"].num_nodes, data["item"].num_nodes = NUM_USERS, NUM_ITEMS
    data[USER_ITEM].edge_index = torch.cat(edges, dim=1)
    return data


def matrix(edge_index):
    ones = torch.ones(edge_index.size(1), dtype=torch.double).numpy()
    return scipy_sparse.csr_matrix((ones, tuple(edge_index.numpy())), (NUM_USERS, NUM_ITEMS))


def counts(edge_index):
    return torch.bincount(edge_index[0], minlength=NUM_USERS).tolist()


def degrees(csr):
    return (csr.indptr[1:] - csr.indptr[:-1]).tolist()


@pytest.mark.parametrize("test", [0.05, 0.1, 0.25, 0.3, 0.35, 0.5, 0.7, 0.95])
def test_all_users(data, test):
    theirs = recometrics.split_reco_train_test(
        matrix(data[USER_ITEM].edge_index), split_type="all", items_test_fraction=test
    )
    train, _, ours = PerUserSplit(num_test=test)(data)
    assert counts(train[USER_ITEM].edge_index) == degrees(theirs[0])
    assert counts(ours[USER_ITEM].edge_label_index) == degrees(theirs[1])


# The fraction of users is so large that all who can be drawn are drawn, by either.
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"min_items_pool": 45},
        {"min_pos_test": 4},
        {"min_pos_test": 0},
        {"consider_cold_start": True},
        {"consider_cold_start": True, "min_pos_test": 0, "min_items_pool": 0},
    ],
)
@pytest.mark.parametrize("test", [0.1, 0.3, 0.5, 0.9])
def test_separated_and_joined_users(data, test, options):
    whole = matrix(data[USER_ITEM].edge_index)
    theirs = {"items_test_fraction": test, "users_test_fraction": 0.99999, **options}
    rest, remaining, truth, users = recometrics.split_reco_train_test(
        whole, split_type="separated", **theirs
    )
    separated = SeparatedUsers(fraction=0.99999, **options)
    train, _, ours = PerUserSplit(num_test=test, users=separated)(data)
    drawn = ours["user"].eval_mask
    assert drawn.nonzero().flatten().tolist() == users.tolist()
    of_drawn = torch.tensor(counts(ours[USER_ITEM].edge_index))[drawn]
    assert of_drawn.tolist() == degrees(remaining)
    assert torch.tensor(counts(ours[USER_ITEM].edge_label_index))[drawn].tolist() == degrees(truth)
    assert torch.tensor(counts(train[USER_ITEM].edge_index))[~drawn].tolist() == degrees(rest)

    remaining, truth, users = recometrics.split_reco_train_test(
        whole, split_type="joined", **theirs
    )
    joined = JoinedUsers(fraction=0.99999, **options)
    train, _, ours = PerUserSplit(num_test=test, users=joined)(data)
    num_drawn = len(users)
    assert counts(train[USER_ITEM].edge_index) == degrees(remaining)
    assert counts(ours[USER_ITEM].edge_label_index)[:num_drawn] == degrees(truth)
    # Whose rows these are: the users who were not drawn keep all of their items.
    order = ours["user"].n_id
    assert order[:num_drawn].tolist() == users.tolist()
    rest = train[USER_ITEM].edge_index[:, train[USER_ITEM].edge_index[0] >= num_drawn]
    dense = torch.zeros(NUM_USERS, NUM_ITEMS)
    dense[tuple(rest)] = 1
    assert dense[num_drawn:].tolist() == remaining.toarray()[num_drawn:].tolist()
