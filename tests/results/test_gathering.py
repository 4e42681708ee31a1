"""What shares are put together to. `tests/task/test_shares.py` does so in several processes."""

import pytest
import torch

from pyg_recmetrics import RankingTask, evaluate

#: Users in an order that is not that of their ids, and the place of each by id.
IDS = ["dan", "ann", "eve", "bob", "cat"]
ORDER = [IDS.index(id_) for id_ in sorted(IDS)]


@pytest.fixture(scope="module")
def data():
    generator = torch.Generator().manual_seed(0)
    draw = torch.rand(5, 8, generator=generator)
    truth, seen = draw > 0.7, draw < 0.2
    truth[2] = False
    return truth, seen, torch.randint(0, 3, (5, 8), generator=generator).float()


def evaluated(data, order, *, is_share, **options):
    truth, seen, scores = (part[order] for part in data)
    task = RankingTask(
        truth.nonzero().t(),
        seen=seen.nonzero().t(),
        num_users=5,
        num_items=8,
        user_ids=[IDS[user] for user in order],
        is_share=is_share,
    )
    return evaluate(scores, task, ["recall@3", "ndcg@3"], **options)


def assert_same(one, other, path=""):
    if isinstance(one, dict):
        assert one.keys() == other.keys(), path
        for name, value in one.items():
            assert_same(value, other[name], f"{path}/{name}")
    elif isinstance(one, torch.Tensor):
        torch.testing.assert_close(one, other, rtol=0, atol=0, msg=path)
    else:
        assert one == other, path


@pytest.mark.usefixtures("expect_ties")
@pytest.mark.parametrize(
    "options", [{}, {"keep_items": 4}, {"per": "edge"}, {"ties": "worst"}], ids=str
)
def test_users_come_in_the_order_of_their_ids(data, options):
    wanted = evaluated(data, ORDER, is_share=False, **options)
    share = evaluated(data, list(range(5)), is_share=True, **options)
    assert_same(share.gather()._to_fields(), wanted._to_fields())
    assert dict(share) == dict(wanted)


def test_queries_take_the_place_of_ids():
    query = torch.tensor([[4, 0], [1, 7], [1, 2]])
    truth = torch.tensor([[0, 1, 2], [0, 1, 2]])
    task = RankingTask(truth, num_users=3, num_items=4, query=query, is_share=True)
    whole = evaluate(torch.tensor([0.4, 0.3, 0.2, 0.1]), task, "mrr").gather().task
    assert whole.query.tolist() == [[1, 2], [1, 7], [4, 0]]
    assert whole.truth.tolist() == [[0, 1, 2], [2, 1, 0]]


def test_a_whole_result_is_its_own(data):
    result = evaluated(data, ORDER, is_share=False)
    assert result.gather() is result
