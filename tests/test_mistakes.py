"""Calls that newcomers write by mistake: each error says what to write instead."""

import pandas as pd
import pytest
import torch
from scipy.sparse import csr_matrix
from torch_geometric.data import Data
from torch_geometric.nn import LightGCN

import pyg_recmetrics
from pyg_recmetrics import (
    Evaluator,
    PairScorer,
    RankingTask,
    compare,
    evaluate,
    metrics,
    modules,
    rank,
    transforms,
)

SEEN, TRUTH = torch.tensor([[0, 1, 2], [0, 1, 2]]), torch.tensor([[0, 1, 2], [1, 2, 3]])
SHIFT = torch.tensor([[0], [3]])
TASK = RankingTask(TRUTH, num_users=3, num_items=4, seen=SEEN)
NAMED = RankingTask(TRUTH, num_users=3, num_items=4, user_ids=list("abc"), item_ids=list("wxyz"))
DATA = Data(num_nodes=7, edge_index=SEEN + SHIFT, edge_label_index=TRUTH + SHIFT)
SCORES = torch.rand(3, 4, generator=torch.Generator().manual_seed(0))
FRAME = pd.DataFrame({"user_id": ["a", "b"], "item_id": ["w", "x"]})
LISTS = pd.Series([[1, 2], [2, 3], [0]])


def model():
    return LightGCN(num_nodes=7, embedding_dim=4, num_layers=1)


#: Each mistake, and a part of what is to be written instead.
MISTAKES = {
    **{
        f"evaluate({name}=)": (lambda name=name: evaluate(SCORES, TASK, **{name: 3}), instead)
        for name, instead in {
            **dict.fromkeys(("k", "topk"), "'recall@20'"),
            "seen": "RankingTask(..., seen=edges)",
            "threshold": "from_data(data, threshold=4)",
            "device": "data.to(device)",
            "metric": "'metrics'",
            "train": "seen=train",
            "verbose": "progress=True",
            "num_user": "'num_users'",
            "model": "the recommender first",
            "whatever": "evaluate(model, data, [",
        }.items()
    },
    "Evaluator(k=)": (lambda: Evaluator(TASK, k=3), "'recall@20'"),
    "rank(topk=)": (lambda: rank(SCORES, TASK, topk=3), "'recall@20'"),
    "compare(metric=)": (lambda: compare({}, metric="mrr"), "'metrics'"),
    "Recall()": (lambda: modules.Recall(), "Recall() takes k"),
    "Coverage(2)": (lambda: modules.Coverage(2), "Coverage() takes k, catalogue"),
    "NDCG(topk=)": (lambda: modules.NDCG(topk=3), "takes no 'topk', only k"),
    "sparse scores": (lambda: evaluate(csr_matrix(SCORES.numpy()), TASK), "need '-inf' if"),
    "result.recall_at_2": (lambda: evaluate(SCORES, TASK, "recall@2").recall_at_2, "result['rec"),
    "a method of a model": (lambda: evaluate(model().eval, DATA, num_users=3), "a model itself"),
    "Evaluator(scores, task)": (lambda: Evaluator(SCORES, TASK), "Evaluator(data, metrics)"),
    "a dense matrix of truth": (
        lambda: evaluate(SCORES, SCORES > 0.5, num_users=3),
        "matrix.nonzero().t()",
    ),
    "Evaluator(model, data)": (lambda: Evaluator(model(), DATA), "Evaluator(data, metrics)"),
    "metrics before data": (
        lambda: evaluate(SCORES, ["mrr"], TASK),
        "(recommender, data, metrics)",
    ),
    "one metric before data": (lambda: evaluate(SCORES, "mrr", TASK), "(recommender, data, "),
    "data before a model": (lambda: evaluate(TASK, SCORES), "evaluate(recommender, data)"),
    "RankingTask(train, test)": (lambda: RankingTask(SEEN, TRUTH), "RankingTask(test, seen=train"),
    "from_data(train, test)": (lambda: RankingTask.from_data(DATA, DATA), "from_data(test)"),
    "nested lists": (lambda: evaluate(SCORES.tolist()[:2], TASK), "torch.tensor(...)"),
    "from_frames(train, test)": (
        lambda: RankingTask.from_frames(FRAME, FRAME),
        "from_frames(test=frame, train=",
    ),
    "from_frames(user_col=)": (
        lambda: RankingTask.from_frames(test=FRAME, user_col="user_id"),
        "'user'",
    ),
    "a function of pairs": (lambda: evaluate(lambda u, i: SCORES[u, i], TASK), "PairScorer("),
    "PairScorer of one argument": (lambda: PairScorer(lambda e: e), "PairScorer(lambda user, item"),
    "PairScorer of items and users": (
        lambda: PairScorer(lambda item, user: item - user),
        "PairScorer(lambda user, item",
    ),
    "a function of topk": (lambda: evaluate(lambda u: SCORES[u].topk(2), TASK), "topk(20).indices"),
    "a function of lists": (
        lambda: evaluate(lambda u: SCORES[u].topk(2).indices, TASK),
        "topk(20).indices",
    ),
    "a series of lists": (lambda: evaluate(LISTS, TASK), ".to_dict()"),
    "a column of lists": (
        lambda: evaluate(pd.DataFrame({"user_id": ["a"], "item_id": [["w"]]}), NAMED),
        ".explode(",
    ),
    "topk": (lambda: evaluate(SCORES.topk(2), TASK), "scores.topk(20).indices"),
    "truth by user": (lambda: evaluate(SCORES, {0: [1]}), "for user, row in data.items()"),
    "rows of edges the other way round": (
        lambda: evaluate(SCORES, TRUTH.flip(0), num_users=3),
        "edges.flip(0)",
    ),
    "accuracy": (lambda: evaluate(SCORES, TASK, "accuracy"), "not of ratings or classes"),
    "metrics of scores": (
        lambda: metrics.ndcg(SCORES, TRUTH, k=2),
        "metrics.recall(rank(recommender, task), k=20)",
    ),
    "PerUserSplit(test_size=)": (lambda: transforms.PerUserSplit(test_size=0.2), "num_test=0.2"),
    "LeaveLastOut(1)": (lambda: transforms.LeaveLastOut(1), "LeaveLastOut(num_test="),
    "a result as a number": (lambda: float(evaluate(SCORES, TASK, "mrr")), "result['recall@20']"),
    "RPrecision(20)": (lambda: modules.RPrecision(20), "RPrecision()"),
    "recall_at_k": (lambda: pyg_recmetrics.recall_at_k, "evaluate(model, data, 'recall@20')"),
    "result.recall": (lambda: evaluate(SCORES, TASK, "recall@2").recall, "result['recall@2']"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_says_what_to_write(name):
    call, instead = MISTAKES[name]
    with pytest.raises((TypeError, ValueError, AttributeError)) as raised:
        call()
    assert instead in str(raised.value)


def test_an_error_inside_a_call_stays_what_it_is():
    def failing(users):
        raise TypeError("an error of the model")

    with pytest.raises(TypeError, match="an error of the model"):
        evaluate(failing, TASK)
