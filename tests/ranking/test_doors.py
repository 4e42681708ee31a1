"""What holds at every door: a rank is a place, the catalogue is known, and nothing is guessed."""

import functools

import numpy as np
import pandas as pd
import pytest
import torch
from torch_geometric.nn import LightGCN

from pyg_recmetrics import PairScorer, RankingTask, evaluate, rank
from tests.support.tools.said import warnings_of

ODD = "ignore:.*(gives too few items|are no candidates|no item below|holds every item once)"


@pytest.mark.filterwarnings(ODD)
@pytest.mark.parametrize("metric", ["roc_auc", "adjusted_mean_rank_index"])
def test_metrics_of_whole_rankings_refuse_places_without_a_candidate(metric):
    task = RankingTask([[0], [0]], num_users=1, num_items=2, user_ids=["u"], item_ids=["A", "B"])
    for lists in ({"u": ["x", "A"]}, torch.tensor([[-1, 0, 1]])):
        with pytest.raises(ValueError, match="places that hold no candidate"):
            evaluate(lists, task, metric)
    assert evaluate({"u": ["B", "A"]}, task, metric)[metric] <= 0
    for lists in ({"u": ["B"]}, torch.tensor([[1]])):
        with pytest.raises(ValueError, match="so evaluate scores or embeddings"):
            evaluate(lists, task, metric)


def told(recommender, task, **options):
    return " ".join(warnings_of(rank, recommender, task, **options))


@pytest.mark.parametrize(
    "recommender",
    [
        ({"a": [1.0], "b": [2.0]}, {7: [1.0], 8: [2.0], 9: [3.0]}),
        {"a": [7, 9], "b": [8, 7]},
        pd.DataFrame({"user_id": ["a", "b", "b"], "item_id": [7, 8, 9], "rank": [1, 1, 2]}),
    ],
)
def test_what_the_task_does_not_have_is_named(recommender):
    ids = {"user_ids": ["a", "b"], "item_ids": [7, 8]}
    message = told(recommender, RankingTask([[0, 1], [0, 1]], num_users=2, num_items=2, **ids), k=1)
    assert "Items of 'recommender' are no candidates" in message
    assert ": 1 (9)" in message
    assert "RankingTask.from_frames(..., items=" in message


class TestLack:
    truth, seen = torch.tensor([[0, 1, 2], [3, 4, 5]]), torch.tensor([[0, 0, 1], [0, 1, 0]])
    task = RankingTask(truth, num_users=3, num_items=9, seen=seen)

    @pytest.mark.parametrize(
        ("lists", "words"),
        [
            ([[0, 1, 3], [0, 4, 5], [5, 6, 7]], ["for 2 of 3 users (0, 1)"]),
            ([[2, -1, 3], [2, 4, 5], [5, 6, 7]], ["1 of 3 users (0)"]),
            ([[3], [4], [5]], ["3 of 3 users (0, 1, 2)"]),
            ([[3, 2, 4], [-1] * 3, [5, 6, 7]], ["1 of 3 users (1)"]),
        ],
    )
    def test_it_is_said_why(self, lists, words):
        for batch_size in (None, 1):
            message = told(torch.tensor(lists), self.task, k=3, batch_size=batch_size)
            assert all(part in message for part in words), message

    def test_enough_is_enough(self):
        assert not told(torch.tensor([[2, 3, -1]] * 3), self.task, k=2)
        few = RankingTask(self.truth, num_users=3, num_items=9, candidates=torch.tensor([3, 4, 5]))
        assert not told(torch.tensor([[3, 4, 5, -1]] * 3), few, k=4)


class TestTwoMeanings:
    task = RankingTask([[0, 1], [4, 3]], num_users=2, num_items=5)
    scores = torch.rand(300, 40, generator=torch.Generator().manual_seed(0))
    large = RankingTask([[0, 1], [4, 3]], num_users=300, num_items=40)
    few_users = RankingTask([[0, 1], [4, 3]], num_users=25, num_items=40)

    @pytest.mark.parametrize(
        ("recommender", "task", "words"),
        [
            (np.array([[4, 3, 2, 1, 0]] * 2), "task", ["recommender.float()", "[:, :20]"]),
            (scores.topk(40).values, "large", ["topk(20).indices", "lambda users: scores[users]"]),
            (scores.argsort().float(), "large", ["recommender.long()", "lambda users: scores["]),
            (scores.argsort().argsort().double() + 1, "large", ["recommender.long()"]),
            (scores[:25].argsort()[:, :30].clamp(min=25), "few_users", ["subtract 'num_users'"]),
        ],
    )
    def test_both_are_told(self, recommender, task, words):
        message = told(recommender, getattr(self, task), k=2)
        assert all(part in message for part in words), message

    @pytest.mark.parametrize(
        ("lists", "line"),
        [
            (
                [[2, 6], [3, 4]],
                r"subtract 1, or 'num_users' \(2\), .*; scores need",
            ),
            ([[0, 5], [3, 1]], r"\(got 0 to 5\); subtract"),
        ],
    )
    def test_other_numberings_are_refused_with_the_line(self, lists, line):
        with pytest.raises(ValueError, match=line):
            rank(torch.tensor(lists), self.task)

    @pytest.mark.parametrize(
        "recommender",
        [
            scores,
            scores.sort(dim=0).values,
            scores[:1].sort(descending=True).values.expand(300, -1),  # the same for everybody
            (scores > 0.5).float(),
            torch.zeros(300, 40),
            scores.argsort()[:, :20],
        ],
    )
    def test_nothing_is_said_of_others(self, recommender):
        assert not told(recommender, self.large, k=2)


MODEL = torch.nn.Sequential(torch.nn.Dropout(), torch.nn.Linear(4, 30, bias=False))
USERS = torch.rand(2, 4)


def scores_by_global(users):
    return MODEL(USERS[users])


def scores_by_helper(users):
    return scores_by_global(users)


def modes_of_functions():
    model = MODEL

    class Scorer:
        def __init__(self):
            self.model = model

        def __call__(self, users):
            return self.model(USERS[users])

    class Recommender(Scorer):
        def recommend(self, users, k):
            return self(users).argsort(dim=1, descending=True)[:, :k]

    class Keeper:
        def __init__(self, kept):
            self.kept = kept

        def scores(self, users):
            return self.kept(users)

        def recommend(self, users, k):
            return self.kept.recommend(users, k)

    scorer, recommender, borrower = Scorer(), Recommender(), torch.nn.Identity()
    borrower.recommend = recommender.recommend
    yield Keeper(recommender)
    yield Keeper(scorer).scores
    yield recommender
    yield recommender.recommend
    yield borrower
    yield lambda users: model(USERS[users])
    yield scores_by_global
    yield scores_by_helper
    yield functools.partial(lambda net, users: net(USERS[users]), model)
    yield functools.partial(lambda users, net: net(USERS[users]), net=model)
    yield scorer
    yield scorer.__call__
    yield lambda users: scorer(users)
    yield torch.no_grad()(lambda users: model(USERS[users]))
    yield PairScorer(lambda user, item: model(USERS[user]).gather(1, item[:, None]).squeeze(1))


@pytest.mark.parametrize("number", range(15))
def test_a_function_of_a_model_in_training_mode_ranks_without_dropout(number):
    function = [*modes_of_functions()][number]
    every = torch.cartesian_prod(torch.arange(2), torch.arange(30)).t()
    task = RankingTask(every, num_users=2, num_items=30)
    MODEL.train()
    found = rank(function, task, full=True).edge_label_index
    assert MODEL.training
    assert MODEL[0].training
    wanted = rank(MODEL.eval()(USERS).detach(), task, full=True).edge_label_index
    assert torch.equal(found, wanted)  # all items of a user, best first


OWNERS, ITEMS = torch.rand(20, 4), torch.rand(30, 4)
NODES, TABLE = torch.cat([OWNERS, ITEMS]), OWNERS @ ITEMS.t()


def recommend(edge_index, src_index, dst_index, k):
    return dst_index[(NODES[src_index] @ NODES[dst_index].t()).topk(k).indices]


@pytest.mark.filterwarnings("ignore:.*too few items")
@pytest.mark.parametrize(
    "recommender",
    [
        *((OWNERS, ITEMS), (OWNERS, NODES), TABLE, OWNERS @ NODES.t(), TABLE[0]),
        *(TABLE.topk(5).indices, PairScorer(lambda user, item: TABLE[user, item])),
        *(lambda users: TABLE[users], lambda users: TABLE[users][:, torch.arange(50)]),
        *(recommend, LightGCN(50, embedding_dim=4, num_layers=1)),
    ],
)
def test_a_number_of_nodes_is_no_number_of_items(recommender):
    pairs = torch.arange(0, 600, 2)
    edges = torch.stack([pairs // 30, pairs % 30 + pairs // 30 % 2])
    truth, seen = edges[:, 150:], edges[:, :150]
    messages = seen + torch.tensor([[0], [20]])
    messages = torch.cat([messages, messages.flip(0)], dim=1)
    counts = {"num_users": 20, "num_items": 50}
    for options in ({}, counts):
        with pytest.warns(UserWarning, match="num_items=30"):  # noqa: PT031
            data = truth if options else RankingTask(truth, seen=seen, **counts)
            try:
                evaluate(recommender, data, "recall@2", edge_index=messages, **options)
            except ValueError as error:
                assert "'num_items'" in str(error)  # noqa: PT017
