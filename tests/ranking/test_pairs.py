"""A scorer of pairs: the ranks of a score matrix, from the candidates alone."""

import numpy as np
import pytest
import torch

from pyg_recmetrics import PairScorer, RankingTask, evaluate, rank

NUM_USERS, NUM_ITEMS = 12, 40


def draw(seed):
    """Scores with ties, and edges: truth, seen and candidates of each user."""
    generator = torch.Generator().manual_seed(seed)
    scores = torch.randint(9, (NUM_USERS, NUM_ITEMS), generator=generator).float()
    masks = (torch.rand(3, NUM_USERS, NUM_ITEMS, generator=generator) < 0.2).unbind()
    truth, seen, own = (mask.nonzero().t() for mask in (masks[0] & ~masks[1], *masks[1:]))
    return scores, truth, seen, torch.cat([own, truth], dim=1)


class Recorder:
    """A scorer that records the pairs and the sizes of the batches that it is asked for."""

    def __init__(self, scores):
        self.scores, self.pairs, self.sizes = scores, [], []

    def __call__(self, user, item):
        self.pairs += zip(user.tolist(), item.tolist(), strict=True)
        self.sizes.append(user.numel())
        score = self.scores[user, item]
        user.fill_(-1)  # what it is given is its own
        return score


@pytest.mark.parametrize("kind", ["all", "shared", "own"])
@pytest.mark.parametrize(
    "options",
    [{}, {"k": 3}, {"full": True}, {"keep_items": 5}, {"full": True, "keep_items": 4}],
)
@pytest.mark.parametrize("batch_size", [1, 7, 2**16])
def test_exactly_the_candidates_are_asked_for_once(kind, options, batch_size):
    scores, truth, seen, own = draw(seed=1)
    candidates = {"all": None, "shared": torch.arange(0, NUM_ITEMS, 3), "own": own}[kind]
    truth = truth[:, truth[1] % 3 == 0] if kind == "shared" else truth
    users = torch.tensor([0, 1, 2, 5, 7, 11])
    task = RankingTask(
        truth,
        num_users=NUM_USERS,
        num_items=NUM_ITEMS,
        seen=seen,
        candidates=candidates,
        users=users,
    )
    recorder = Recorder(scores)
    scorer = PairScorer(recorder, batch_size=batch_size)
    ranked = rank(scorer, task, ties="mean", batch_size=4, **options)
    wanted = rank(scores, task, ties="mean", **options)
    assert torch.equal(ranked.rank, wanted.rank)
    assert torch.equal(ranked.edge_label_index, wanted.edge_label_index)
    assert torch.equal(ranked.num_tied, wanted.num_tied)
    if "keep_items" in options:
        assert torch.equal(ranked.pred_index_mat, wanted.pred_index_mat)
    own_of_user = {user: set(range(NUM_ITEMS)) for user in users.tolist()}
    if kind == "shared":
        own_of_user = {user: set(range(0, NUM_ITEMS, 3)) for user in users.tolist()}
    if kind == "own":
        own_of_user = {
            user: {item for other, item in own.t().tolist() if other == user}
            for user in users.tolist()
        }
    asked = [
        (user, item)
        for user, items in own_of_user.items()
        for item in items
        if [user, item] not in seen.t().tolist()
        and ("keep_items" in options or user in truth[0].tolist())
    ]
    assert sorted(recorder.pairs) == sorted(asked)
    assert max(recorder.sizes) <= batch_size


def test_a_function_may_return_the_same_buffer_every_time():
    scores, truth, *_ = draw(seed=4)
    task = RankingTask(truth, num_users=NUM_USERS, num_items=NUM_ITEMS)
    buffers = torch.empty(7), np.empty(7, dtype=np.float32)
    for buffer in buffers:

        def into_buffer(user, item, buffer=buffer):
            buffer[: len(user)] = scores[user, item]
            return buffer[: len(user)]

        ranked = rank(PairScorer(into_buffer, batch_size=7), task, full=True)
        assert torch.equal(ranked.rank, rank(scores, task, full=True).rank)


@pytest.mark.usefixtures("expect_ties")
def test_all_forms_of_evaluation_take_it():
    scores, truth, seen, _ = draw(seed=2)
    task = RankingTask(truth, num_users=NUM_USERS, num_items=NUM_ITEMS, seen=seen)
    names = ["recall@5", "ndcg@10", "roc_auc", "coverage@5"]
    scorer = PairScorer(lambda user, item: scores[user, item].numpy(), batch_size=torch.tensor(50))
    assert evaluate(scorer, task, names).to_dict() == evaluate(scores, task, names).to_dict()


class Head(torch.nn.Module):
    """An MLP on pairs, as rankers after retrieval have."""

    def __init__(self):
        super().__init__()
        self.embedding = torch.nn.Embedding(NUM_USERS + NUM_ITEMS, 4)
        self.mlp = torch.nn.Sequential(torch.nn.Dropout(), torch.nn.Linear(8, 1))
        self.modes = []

    def forward(self, user, item):
        self.modes.append((self.training, torch.is_grad_enabled()))
        pair = self.embedding(user), self.embedding(item + NUM_USERS)
        return self.mlp(torch.cat(pair, dim=1)).squeeze(1)


@pytest.mark.parametrize("of", [lambda head: head, lambda head: head.forward])
def test_a_module_is_evaluated_without_dropout_and_gradients(of):
    _, truth, *_ = draw(seed=3)
    task = RankingTask(truth, num_users=NUM_USERS, num_items=NUM_ITEMS)
    head = Head().train()
    first, second = (rank(PairScorer(of(head)), task, k=5) for _ in range(2))
    assert torch.equal(first.rank, second.rank)
    assert set(head.modes) == {(False, False)}
    assert head.training
    assert head.mlp.training


class TestErrors:
    task = RankingTask(torch.tensor([[0], [1]]), num_users=1, num_items=3)

    @pytest.mark.parametrize(
        ("function", "error", "message"),
        [
            (lambda user, item: torch.rand(2, 3), ValueError, r"\[num_pairs\] of shape \[3\]"),
            (lambda user, item: item, ValueError, "floating-point numbers .*int64"),
            (lambda user, item: None, TypeError, r"needs to be a tensor, .*\(got NoneType\)"),
            (lambda user: user.float(), TypeError, "positional argument"),
        ],
    )
    def test_wrong_scores_are_named(self, function, error, message):
        with pytest.raises(error, match=message) as raised:
            rank(PairScorer(function), self.task)
        told = "".join([str(raised.value), *getattr(raised.value, "__notes__", [])])
        assert "(while 1 users were ranked: 0)" in told

    def test_wrong_arguments_are_named(self):
        with pytest.raises(TypeError, match=r"'function' needs to be a function .*\(got int\)"):
            PairScorer(3)
        with pytest.raises(ValueError, match="'batch_size' needs to be a positive integer"):
            PairScorer(print, batch_size=0)
