"""Every convention, and the metrics of lists, against the real library on the same rankings.

A peer is given scores or lists that have no equal scores, in the form it wants, and computes its
own means; ours have to be the same to 1e-6. Where a peer is wrong (see the notes of the
conventions), it is not asked. Then peers are given equal scores, and ours have to follow their
order, or its expectation, or to say how far any order can be from ours.
"""

import functools
import math
import re
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
import pytest
import torch

from pyg_recmetrics import (
    Catalogue,
    EvaluationResult,
    RankedEdges,
    RankingTask,
    conventions,
    evaluate,
    rank,
)
from pyg_recmetrics.metrics import definition

pytestmark = pytest.mark.filterwarnings("ignore")  # of the peers
K = (1, 3, 20)


@pytest.fixture(autouse=True)
def older_numpy(monkeypatch):
    """RecBole was written for it."""
    monkeypatch.setattr(np, "float", float, raising=False)


@dataclass
class Case:
    """Scores, all positive; and what is true and seen, as sets of every user.

    The rankings are those of the scores. Equal scores rank the lower item id first.
    """

    scores: np.ndarray
    truth: list[set[int]]
    seen: list[set[int]]

    def __post_init__(self):
        masked = self.scores.copy()
        for user, items in enumerate(self.seen):
            masked[user, list(items)] = -np.inf
        order = np.argsort(-masked, axis=1, kind="stable")
        self.rankings = [
            row[: len(row) - len(self.seen[user])].tolist() for user, row in enumerate(order)
        ]
        self.users = [user for user, items in enumerate(self.truth) if items]

    @property
    def task(self):
        def edges(sets):
            return torch.tensor([(u, i) for u, items in enumerate(sets) for i in items]).T

        num_users, num_items = self.scores.shape
        seen = edges(self.seen) if any(self.seen) else None
        return RankingTask(edges(self.truth), num_users=num_users, num_items=num_items, seen=seen)

    def frame(self, k=None, user="user_id", item="item_id"):
        """The lists of users with truth as a data frame."""
        rows = [
            (u, i, rank, float(self.scores[u, i]))
            for u in self.users
            for rank, i in enumerate(self.rankings[u][:k], start=1)
        ]
        return pd.DataFrame(rows, columns=[user, item, "rank", "score"])

    def truth_frame(self, user="user_id", item="item_id"):
        rows = [(u, i, 1.0) for u in self.users for i in sorted(self.truth[u])]
        return pd.DataFrame(rows, columns=[user, item, "rating"])

    def relevance(self, user):
        """Whether each candidate of a user is relevant, best first, and its score."""
        ranking = self.rankings[user]
        return np.array([i in self.truth[user] for i in ranking]), self.scores[user, ranking]

    def of(self, users):
        """The same for some users."""
        truth, seen = ([sets[user] for user in users] for sets in (self.truth, self.seen))
        return Case(self.scores[users], truth, seen)

    def some(self, num_users):
        """Every n-th user, for a library that goes through them one by one in Python."""
        step = -(-len(self.truth) // (num_users or len(self.truth)))
        return self.of(range(0, len(self.truth), step))


def toy():
    # Hits at ranks 1, 3, 6, 8, 9 of five; 2 of one; 5, 6 of two; no truth.
    scores = np.tile(np.arange(30, 0, -1, dtype=np.float32), (4, 1))
    return Case(scores, [{0, 2, 5, 7, 8}, {1}, {4, 5}, set()], [set()] * 4)


def random():
    generator = np.random.default_rng(0)
    scores = np.stack([generator.permutation(40) + 1 for _ in range(3000)]).astype(np.float32)
    truth = [set(generator.choice(40, generator.integers(0, 8)).tolist()) for _ in range(3000)]
    seen = [set(generator.choice(40, generator.integers(0, 10)).tolist()) for _ in range(3000)]
    return Case(scores, [t - s for t, s in zip(truth, seen, strict=True)], seen)


@pytest.fixture(scope="session")
def lastfm_model(lastfm):
    """A task, and embeddings from a singular value decomposition of what was seen."""
    task = RankingTask.from_data(lastfm)
    seen = torch.zeros(task.num_users, task.num_items)
    seen[tuple(task.seen)] = 1
    torch.manual_seed(0)
    user, size, item = torch.svd_lowrank(seen, q=32)
    # Items that nobody has seen would score the same.
    return task, (user * size, item + 0.01 * torch.randn(item.shape))


def lastfm_case(lastfm_model, num_users=400):
    task, (user, item) = lastfm_model

    def sets(edges):
        found = [set() for _ in range(num_users)]
        for u, i in edges[:, edges[0] < num_users].T.tolist():
            found[u].add(i)
        return found

    scores = (user[:num_users].double() @ item.double().T).numpy()
    return Case(scores - scores.min() + 1, sets(task.truth), sets(task.seen))


@pytest.fixture(scope="session", params=["toy", "random", "lastfm"])
def case(request):
    if request.param == "lastfm":
        return lastfm_case(request.getfixturevalue("lastfm_model"))
    return {"toy": toy, "random": random}[request.param]()


def check(case, convention, theirs):
    """Compares their means with ours; all at once, as some of ours depend on each other."""
    ranked = rank(torch.from_numpy(case.scores), case.task, full=True)
    ours = EvaluationResult(ranked, list(theirs), task=case.task, convention=convention)
    assert dict(ours) == pytest.approx(theirs, abs=1e-6)
    assert len(theirs) >= 3


@dataclass
class Peer:
    """A library: where its metrics are, what it calls ours, and how it computes one of them.

    Attributes:
        module (str): Where its metrics are.
        mean_of (callable): Is given the module and a case, and returns `mean(name, k)`.
        at_k (str): Pairs of our name of a metric at k, and its name.
        alone (str): Those of metrics without a cut-off.
        num_users (int): How many users it is asked about; `None` for all.
    """

    module: str
    mean_of: Callable
    at_k: str
    alone: str = ""
    num_users: int | None = None

    def means(self, case):
        """Its means by our names."""
        mean = self.mean_of(pytest.importorskip(self.module), case)
        found = {f"{ours}@{k}": mean(name, k) for k in K for ours, name in pairs(self.at_k)}
        found |= {ours: mean(name, None) for ours, name in pairs(self.alone)}
        return {ours: float(value) for ours, value in found.items()}


def pairs(text):
    return [each.split(":") for each in text.split()]


def of_torch_geometric(peer, case):
    lists = torch.tensor([(ranking + [9999] * 20)[:20] for ranking in case.rankings])

    def mean(name, k):
        metric = getattr(peer, f"LinkPred{name}")(k)
        metric.update(lists, case.task.truth)
        return metric.compute()

    return mean


def of_torchmetrics(peer, case):
    score, target, index = pairs_for_torchmetrics(case)

    def mean(name, k):
        options = {} if k is None else {"top_k": k}
        return getattr(peer, f"Retrieval{name}")(**options)(score, target, indexes=index)

    return mean


def of_trec_eval(_, case):
    qrels = {str(u): {str(i): 1 for i in case.truth[u]} for u in case.users}
    run = {
        str(u): {str(i): float(-rank) for rank, i in enumerate(case.rankings[u])}
        for u in case.users
    }

    peer = PEERS["trec_eval"]
    names = [f"{name}_{k}" for k in K for _, name in pairs(peer.at_k)]
    found = trec_eval(qrels, run, names + [name for _, name in pairs(peer.alone)]).values()
    return lambda name, k: np.mean([row[name if k is None else f"{name}_{k}"] for row in found])


def trec_eval(qrels, run, names):
    """The values of trec_eval by query."""
    peer = pytest.importorskip("pytrec_eval")
    asked = {re.sub(r"_(\d+)$", r".\1", name) for name in names}
    return peer.RelevanceEvaluator(qrels, asked).evaluate(run)


def of_ranx(peer, case):
    qrels = peer.Qrels(
        {
            str(u): {str(i): 1 for i in items} if items else {"none": 0}
            for u, items in enumerate(case.truth)
        }
    )
    run = peer.Run(
        {
            str(u): {str(i): float(case.scores[u, i]) for i in ranking}
            for u, ranking in enumerate(case.rankings)
        }
    )
    return lambda name, k: peer.evaluate(qrels, run, name if k is None else f"{name}@{k}")


def of_rectools(peer, case):
    lists, truth = case.frame(max(K)), case.truth_frame()

    def mean(name, k):
        name, _, option = name.partition("+")
        return getattr(peer, name)(k, **({option: True} if option else {})).calc(lists, truth)

    return mean


def of_recommenders(peer, case):
    columns = {"col_user": "userID", "col_item": "itemID", "col_prediction": "score"}
    truth = case.truth_frame("userID", "itemID")
    lists = case.frame(max(K), "userID", "itemID").drop(columns="rank")
    deep = case.frame(None, "userID", "itemID").drop(columns="rank")

    def mean(name, k):
        given, k = (deep, len(case.scores[0])) if k is None else (lists, k)
        return getattr(peer, name)(truth, given, k=k, **columns)

    return mean


def of_replay(peer, case):
    lists = case.frame(max(K), "query_id", "item_id").rename(columns={"score": "rating"})
    truth = case.truth_frame("query_id", "item_id")
    return lambda name, k: getattr(peer, name)(k)(lists, truth)[f"{name}@{k}"]


def of_lenskit(peer, case):
    from lenskit.data import ItemList

    lists = [
        (
            ItemList(item_ids=case.rankings[u], ordered=True),
            ItemList(item_ids=sorted(case.truth[u])),
        )
        for u in case.users
    ]

    def mean(name, k):
        name, _, patience = name.partition("+")
        metric = getattr(peer, name)(k, **({"patience": float(patience)} if patience else {}))
        return np.mean([metric.measure_list(*both) for both in lists])

    return mean


def of_recbole(peer, case):
    """Its collector finds the lists and mean ranks of scores, after an item for padding."""
    from recbole.evaluator import collector

    scores = torch.from_numpy(case.scores[case.users])
    relevant = torch.tensor([(row, i) for row, u in enumerate(case.users) for i in case.truth[u]])
    for row, user in enumerate(case.users):
        scores[row, list(case.seen[user])] = -torch.inf
    scores = torch.cat([torch.full((len(scores), 1), -torch.inf), scores], dim=1)
    config = {"topk": list(K), "metric_decimal_place": 12, "eval_args": {"mode": "full"}}
    config |= {"device": "cpu", "metrics": ["recall", "gauc"]}
    collected = collector.Collector(config)
    collected.eval_batch_collect(scores, None, relevant[:, 0], relevant[:, 1] + 1)
    data = collected.get_data_struct()
    # Its mean ranks are exact, but it would add them up in single precision.
    data.set("rec.meanrank", data.get("rec.meanrank").double())

    def mean(name, k):
        found = getattr(peer, name)(config).calculate_metric(data)
        return found[name.lower() if k is None else f"{name.lower()}@{k}"]

    return mean


def of_implicit(peer, case):
    from implicit.cpu.als import AlternatingLeastSquares

    num_items = case.scores.shape[1]
    model = AlternatingLeastSquares(factors=num_items)
    model.user_factors = case.scores.astype(np.float32)
    model.item_factors = np.eye(num_items, dtype=np.float32)
    edges = csr(case.seen, num_items), csr(case.truth, num_items)
    options = {"show_progress": False, "num_threads": 1}
    return lambda name, k: peer.ranking_metrics_at_k(model, *edges, K=k, **options)[name]


def of_recometrics(_, case):
    frame = functools.cache(functools.partial(recometrics_frame, case))
    return lambda name, k: np.nanmean(frame(k or max(K))[name])


def of_scikit_learn(peer, case):
    def mean(name, k):
        options = {} if name != "ndcg_score" else {"k": k}
        values = []
        for user in case.users:
            relevant, score = case.relevance(user)
            if name == "ndcg_score":
                relevant, score = [relevant], [score]
            values.append(getattr(peer, name)(relevant, score, **options))
        return np.mean(values)

    return mean


#: Every library that is given lists or scores of all users; and its scores without equal ones.
PEERS = {
    "standard": Peer(
        "torch_geometric.metrics",
        of_torch_geometric,
        "precision:Precision recall:Recall f1:F1 map:MAP ndcg:NDCG mrr:MRR hit_rate:HitRatio",
    ),
    "torchmetrics": Peer(
        "torchmetrics.retrieval",
        of_torchmetrics,
        "precision:Precision recall:Recall map:MAP ndcg:NormalizedDCG mrr:MRR hit_rate:HitRate",
        alone="r_precision:RPrecision roc_auc:AUROC",
        num_users=150,
    ),
    "trec_eval": Peer(
        "pytrec_eval",
        of_trec_eval,
        "precision:P recall:recall map:map_cut ndcg:ndcg_cut hit_rate:success",
        alone="mrr@20:recip_rank r_precision:Rprec map:map ndcg:ndcg",
    ),
    "ranx": Peer(
        "ranx",
        of_ranx,
        "precision:precision recall:recall f1:f1 map:map ndcg:ndcg mrr:mrr hit_rate:hit_rate",
        alone="r_precision:r-precision rbp:rbp.80 rbp(p=0.95)@3:rbp.95",
    ),
    "rectools": Peer(
        "rectools.metrics",
        of_rectools,
        "precision:Precision recall:Recall f1:F1Beta map:MAP ndcg:NDCG mrr:MRR hit_rate:HitRate "
        "truncated_precision:Precision+r_precision map(normalizer=k):MAP+divide_by_k "
        "ndcg(ideal=relevant):NDCG+divide_by_achievable",
    ),
    "recommenders": Peer(
        "recommenders.evaluation.python_evaluation",
        of_recommenders,
        "precision:precision_at_k recall:recall_at_k map:map map(normalizer=min):map_at_k "
        "ndcg:ndcg_at_k",
        alone="r_precision(users=hit):r_precision_at_k",
    ),
    "replay": Peer(
        "replay.metrics",
        of_replay,
        "precision:Precision recall:Recall map:MAP ndcg:NDCG mrr:MRR hit_rate:HitRate",
    ),
    "lenskit": Peer(
        "lenskit.metrics.ranking",
        of_lenskit,
        "precision:Precision recall:Recall map:AveragePrecision ndcg:NDCG mrr:RecipRank "
        "hit_rate:Hit rbp:RBP rbp(p=0.5):RBP+0.5",
        num_users=500,
    ),
    "recbole": Peer(
        "recbole.evaluator.metrics",
        of_recbole,
        "precision:Precision recall:Recall map:MAP ndcg:NDCG mrr:MRR hit_rate:Hit",
        alone="roc_auc:GAUC",
    ),
    "implicit": Peer("implicit.evaluation", of_implicit, "precision:precision map:map ndcg:ndcg"),
    "recometrics": Peer(
        "recometrics",
        of_recometrics,
        "precision:P@K truncated_precision:TP@K recall:R@K map:AP@K map(normalizer=min):TAP@K "
        "ndcg:NDCG@K hit_rate:Hit@K mrr:RR@K",
        alone="roc_auc:ROC_AUC pr_auc:PR_AUC",
    ),
    "scikit-learn": Peer(
        "sklearn.metrics",
        of_scikit_learn,
        "ndcg:ndcg_score",
        alone="map:average_precision_score pr_auc:average_precision_score roc_auc:roc_auc_score "
        "ndcg:ndcg_score",
        num_users=150,
    ),
}


@pytest.mark.parametrize("name", PEERS)
def test_means(case, name):
    case = case.some(PEERS[name].num_users)
    convention = name if name in conventions.CONVENTIONS else "standard"
    check(case, convention, PEERS[name].means(case))


@pytest.mark.parametrize(
    ("ours", "theirs"), [("recall(weighted=True)", "Recall"), ("ndcg", "NDCG")]
)
def test_the_weights_of_torch_geometric(case, ours, theirs):
    from torch_geometric import metrics

    lists = torch.tensor([(ranking + [9999] * 20)[:20] for ranking in case.rankings])
    truth = case.task.truth
    weight = torch.rand(truth.size(1), generator=torch.Generator().manual_seed(0)) * 5 - 0.5
    if theirs == "NDCG":
        weight = weight.abs()  # it takes the weights of what is not relevant for a gain
    ranked = RankedEdges.from_topk(lists, truth, weight)
    for k in K:
        metric = getattr(metrics, f"LinkPred{theirs}")(k, weighted=True)
        metric.update(lists, truth, weight)
        result = EvaluationResult(ranked, f"{ours}@{k}", convention="standard")
        assert list(result.values()) == pytest.approx([float(metric.compute())], abs=1e-6)


def pairs_for_torchmetrics(case):
    """Scores, targets and indexes of all candidates."""
    is_relevant = np.zeros(case.scores.shape, dtype=bool)
    for user, items in enumerate(case.truth):
        is_relevant[user, list(items)] = True
    index = np.repeat(np.arange(len(case.rankings)), [len(items) for items in case.rankings])
    pairs = index, np.concatenate(case.rankings).astype(int)
    score = torch.from_numpy(case.scores[pairs]).float()
    # Its AUROC takes others for logits, and makes ties of them.
    return (
        score / (score.max() + 1),
        torch.from_numpy(is_relevant[pairs]),
        torch.from_numpy(index),
    )


def test_the_fall_out_of_torchmetrics(case):
    retrieval = pytest.importorskip("torchmetrics.retrieval")
    case = case.of(case.users[:150])
    score, target, index = pairs_for_torchmetrics(case)
    names = [f"fall_out@{k}" for k in K]
    ours = measure(case, names, convention="torchmetrics", empty_target_action="skip")
    for k, name in zip(K, names, strict=True):
        metric = retrieval.RetrievalFallOut(top_k=k, empty_target_action="skip")
        theirs = float(metric(score, target, indexes=index))
        assert ours[name] == pytest.approx(theirs, abs=1e-6)
    assert metric.higher_is_better is definition("fall_out").higher_is_better is False


def csr(sets, num_items):
    sparse = pytest.importorskip("scipy.sparse")
    rows = [u for u, items in enumerate(sets) for _ in items]
    columns = [i for items in sets for i in sorted(items)]
    return sparse.csr_matrix(
        (np.ones(len(rows), dtype=np.float32), (rows, columns)), (len(sets), num_items)
    )


def recometrics_frame(case, k, **options):
    """Its values of all metrics for every user."""
    peer, num_items = pytest.importorskip("recometrics"), case.scores.shape[1]
    factors = case.scores.astype(np.float64), np.eye(num_items)
    return peer.calc_reco_metrics(
        *(csr(sets, num_items).astype(np.float64) for sets in (case.seen, case.truth)),
        *factors,
        k=k,
        rename_k=False,
        nthreads=1,
        all_metrics=True,
        **{"break_ties_with_noise": False} | options,
    )


RECOMETRICS = dict(pairs(PEERS["recometrics"].at_k))


@pytest.mark.parametrize("k", [2, 5])
@pytest.mark.parametrize("rules", [{}, {"min_items_pool": 4}, {"consider_cold_start": False}])
def test_recometrics_leaves_the_same_users_undefined(k, rules):
    # Few items, so that users have seen almost all of them, or all; and some score all alike.
    generator = np.random.default_rng(k)
    scores = np.stack([generator.permutation(6) + 1.0 for _ in range(400)])
    scores[::9] = 1.0
    truth = [set(generator.choice(6, generator.integers(0, 5)).tolist()) for _ in range(400)]
    seen = [set(generator.choice(6, generator.integers(0, 6)).tolist()) for _ in range(400)]
    case = Case(scores, [t - s for t, s in zip(truth, seen, strict=True)], seen)
    frame = recometrics_frame(case, k, **rules)
    recometrics_convention = conventions.get("recometrics")
    population = replace(recometrics_convention.population, **rules)
    convention = replace(recometrics_convention, population=population)
    names = [f"{name}@{k}" for name in RECOMETRICS]
    ours = evaluate(torch.from_numpy(scores), case.task, names, convention=convention)
    for name, theirs in zip(names, RECOMETRICS.values(), strict=True):
        assert ours.per_user[name].tolist() == pytest.approx(
            frame[theirs].tolist(), abs=1e-6, nan_ok=True
        ), name


def few_scores():
    """Many equal scores; relevant items tend to have low ids, which the order by id flatters."""
    generator = np.random.default_rng(1)
    scores = generator.integers(1, 6, (300, 40)).astype(np.float64)
    truth = [
        set(generator.integers(0, 40, (generator.integers(1, 8), 3)).min(axis=1).tolist())
        for _ in range(300)
    ]
    seen = [set(generator.choice(40, generator.integers(0, 10)).tolist()) for _ in range(300)]
    return Case(scores, [t - s for t, s in zip(truth, seen, strict=True)], seen)


def most_popular(lastfm):
    """Every item of LastFM scores the number of users who have seen it."""
    task = RankingTask.from_data(lastfm)
    popularity = torch.bincount(task.seen[1], minlength=task.num_items)
    return lastfm_case((task, (torch.ones(task.num_users, 1), popularity.unsqueeze(1))))


@pytest.fixture(scope="session", params=["few", "popular"])
def tied(request):
    """Scores of which many are equal."""
    if request.param == "popular":
        return most_popular(request.getfixturevalue("lastfm"))
    return few_scores()


def measure(case, metrics, **options):
    return evaluate(torch.from_numpy(case.scores), case.task, metrics, **options)


def test_the_roc_auc_of_equal_scores(tied):
    sklearn = pytest.importorskip("sklearn.metrics")
    theirs = np.full(len(tied.truth), np.nan)
    theirs[tied.users] = [sklearn.roc_auc_score(*tied.relevance(user)) for user in tied.users]
    for metric, options in (
        ("roc_auc", {"ties": "mean"}),
        ("roc_auc(ties=half)", {"ties": "worst"}),
        ("roc_auc(ties=half)", {"convention": "recometrics"}),
        ("roc_auc", {"convention": "torchmetrics"}),
        ("roc_auc", {"convention": "ngcf"}),
    ):
        ours = measure(tied, metric, **options).per_user[metric]
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-9)
    by_id = measure(tied, "roc_auc").per_user["roc_auc"].numpy()
    assert np.nanmax(abs(by_id - theirs)) > 0.01


def test_the_gauc_of_recbole(tied):
    theirs = PEERS["recbole"].means(tied)["roc_auc"]
    for ties in ("index", "mean", "worst"):
        ours = measure(tied, "roc_auc", convention="recbole", ties=ties)
        assert ours["roc_auc"] == pytest.approx(theirs, rel=1e-9)


@pytest.mark.parametrize("name", ["torchmetrics", "recbole", "recometrics", "ranx", "implicit"])
def test_any_order_of_equal_scores_is_within_the_range_that_is_told(tied, name):
    tied = tied.some(PEERS[name].num_users)
    theirs = PEERS[name].means(tied)
    by_id = measure(tied, list(theirs), convention=name, ties="index")
    for metric, value in theirs.items():
        low, high = by_id.tie_range(metric)
        assert low - 1e-6 <= value <= high + 1e-6, metric
    # As the notes say, their order is not ours.
    assert dict(by_id) != pytest.approx(theirs, abs=1e-6)


class ByItem(Case):
    """Lists of the best items in the order of their ids."""

    def frame(self, k=None, user="user_id", item="item_id"):
        return super().frame(200, user, item).sort_values([user, item], ignore_index=True)


def test_the_order_of_rows_decides_in_microsoft_recommenders(tied):
    by_item = ByItem(tied.scores, tied.truth, tied.seen)
    check(tied, "recommenders", PEERS["recommenders"].means(by_item))


def test_replay_ranks_the_higher_item_id_first(tied):
    last = tied.scores.shape[1] - 1
    truth, seen = (
        [{last - i for i in items} for items in sets] for sets in (tied.truth, tied.seen)
    )
    turned_around = ByItem(tied.scores[:, ::-1].copy(), truth, seen)
    check(tied, "replay", PEERS["replay"].means(turned_around))


def test_trec_eval_ranks_the_higher_document_id_first(tied):
    def name(item):
        return str(2 * 10**6 - item)  # as a string, lower for higher items

    qrels = {str(u): {name(i): 1 for i in tied.truth[u]} for u in tied.users}
    run = {
        str(u): {name(i): float(tied.scores[u, i]) for i in tied.rankings[u]} for u in tied.users
    }
    names = dict(pairs("recall@20:recall_20 ndcg@20:ndcg_cut_20 map:map mrr:recip_rank"))
    found = trec_eval(qrels, run, names.values()).values()
    theirs = {ours: float(np.mean([row[name] for row in found])) for ours, name in names.items()}
    check(tied, "trec_eval", theirs)


def means_of_random_orders(case, metrics, **options):
    """The means of 200 random orders of equal scores, of shape `[num_orders, num_metrics]`."""
    ranked = rank(torch.from_numpy(case.scores), case.task, full=True)
    orders = (ranked.with_ties("random", seed=seed) for seed in range(200))
    return np.array(
        [list(dict(EvaluationResult(order, metrics, **options)).values()) for order in orders]
    )


def assert_same_expectation(samples, others):
    """Compares the means of samples, or of samples with exact expectations."""
    counted = [values for values in (samples, others) if len(values) > 1]
    variance = sum(values.var(axis=0, ddof=1) / len(values) for values in counted)
    error = np.sqrt(variance)
    difference = abs(samples.mean(axis=0) - others.mean(axis=0))
    assert (difference <= 4.5 * error).all(), difference / error
    assert (error < 2e-3).all()


@pytest.mark.parametrize("name", ["torchmetrics", "scikit-learn"])
def test_the_ndcg_of_equal_scores_is_that_of_random_orders(name):
    case, metrics = few_scores(), [f"ndcg@{k}" for k in K]
    theirs = PEERS[name].means(case)
    convention = name if name in conventions.CONVENTIONS else "standard"
    ours = means_of_random_orders(case, metrics, convention=convention)
    assert_same_expectation(ours, np.array([[theirs[metric] for metric in metrics]]))


def test_the_noise_of_recometrics():
    """Over many draws, since neither draws what the other does."""
    case = few_scores()
    # It numbers its random generators by seed and user.
    seeds = range(1, 1 + 200 * len(case.truth), len(case.truth))
    names = {f"{ours}@{k}": (name, k) for k in (3, 20) for ours, name in RECOMETRICS.items()}
    names |= {"roc_auc": ("ROC_AUC", 20), "pr_auc": ("PR_AUC", 20)}
    metrics, samples = list(names), []
    for seed in seeds:
        noise = {"break_ties_with_noise": True, "seed": seed}
        frames = {k: recometrics_frame(case, k, **noise) for k in (3, 20)}
        samples.append([np.nanmean(frames[k][name]) for name, k in names.values()])
    samples = np.array(samples)
    ours = means_of_random_orders(case, metrics, convention="recometrics")
    assert_same_expectation(samples, ours)


@pytest.fixture(scope="session", params=["random", "lastfm"])
def recommended(request):
    """Lists of full length for all users, what they have seen, and a category of every item."""
    if request.param == "lastfm":
        return Recommended(lastfm_case(request.getfixturevalue("lastfm_model")))
    return Recommended(random())


class Recommended:
    def __init__(self, case):
        self.case = case.of(case.users[:400])
        self.num_items = case.scores.shape[1]
        self.lists = np.array([ranking[: max(K)] for ranking in self.case.rankings])
        self.category = np.random.default_rng(1).integers(0, 5, self.num_items)
        seen = [(u, i) for u, items in enumerate(self.case.seen) for i in sorted(items)]
        self.seen = np.array(seen)
        self.popularity = np.bincount(self.seen[:, 1], minlength=self.num_items)
        catalogue = Catalogue(
            self.num_items,
            seen=torch.from_numpy(self.seen.T),
            item_category=torch.from_numpy(self.category),
        )
        ranked = RankedEdges.from_topk(torch.from_numpy(self.lists), self.case.task.truth)
        self.ranked = ranked.with_catalogue(catalogue)

    def frame(self, user, item):
        return self.case.frame(max(K), user, item)

    def seen_frame(self, user, item):
        return pd.DataFrame(self.seen, columns=[user, item])

    def check(self, theirs):
        """Compares their means with ours, or their values per user, where they have them."""
        ours = EvaluationResult(self.ranked, list(theirs))
        for name, value in theirs.items():
            found = ours.per_user[name].numpy() if np.ndim(value) else ours[name]
            assert found == pytest.approx(value, rel=1e-6, abs=1e-6), name


def test_lists_of_torch_geometric(recommended):
    from torch_geometric import metrics

    lists, truth = torch.from_numpy(recommended.lists), recommended.ranked.edge_label_index
    popularity = torch.from_numpy(recommended.popularity)
    theirs = {}
    for k in K:
        theirs_by_name = {
            "coverage": metrics.LinkPredCoverage(k, recommended.num_items),
            "personalization": metrics.LinkPredPersonalization(k, max_src_nodes=None),
            "popularity": metrics.LinkPredAveragePopularity(k, popularity),
        }
        if k > 1:  # where it divides by zero
            category = torch.from_numpy(recommended.category)
            theirs_by_name["diversity"] = metrics.LinkPredDiversity(k, category)
        for name, metric in theirs_by_name.items():
            metric.update(lists, truth)
            theirs[f"{name}@{k}"] = float(metric.compute())
            assert definition(name).higher_is_better == metric.higher_is_better
    recommended.check(theirs)
    assert math.isnan(EvaluationResult(recommended.ranked, "diversity@1")["diversity@1"])


def test_lists_of_rectools(recommended):
    metrics = pytest.importorskip("rectools.metrics")
    from rectools.metrics.distances import PairwiseHammingDistanceCalculator

    lists = recommended.frame("user_id", "item_id")
    seen = recommended.seen_frame("user_id", "item_id")
    truth = recommended.case.truth_frame()
    catalog = np.arange(recommended.num_items)
    category = pd.DataFrame({"category": recommended.category}, index=catalog)
    theirs = {}
    for k in K:
        theirs[f"coverage@{k}"] = metrics.CatalogCoverage(k, normalize=True).calc(lists, catalog)
        for name, values in {
            "popularity": metrics.AvgRecPopularity(k).calc_per_user(lists, seen),
            "novelty": metrics.MeanInvUserFreq(k).calc_per_user(lists, seen),
            "serendipity": metrics.Serendipity(k).calc_per_user(lists, truth, seen, catalog),
        }.items():
            theirs[f"{name}@{k}"] = values.sort_index().to_numpy()
    distance = PairwiseHammingDistanceCalculator(category)
    few = lists[lists["rank"] <= 3]  # it goes through all pairs in Python
    diversity = metrics.IntraListDiversity(3, distance).calc_per_user(few)
    theirs["diversity@3"] = diversity.sort_index().to_numpy()
    recommended.check(theirs)


def test_lists_of_recbole(recommended):
    metrics = pytest.importorskip("recbole.evaluator.metrics")
    counts = dict(enumerate(recommended.popularity.tolist()))
    # Its tail is what was seen at most so often; here, less often than all of the head.
    ordered = np.sort(recommended.popularity)[::-1]
    least = ordered[np.argmax(ordered.cumsum() >= 0.8 * ordered.sum())]
    config = {"topk": list(K), "metric_decimal_place": 12, "tail_ratio": least - 0.5}
    popularity, tail = metrics.AveragePopularity(config), metrics.TailPercentage(config)
    assert least > 1  # or else it takes it for a fraction
    popular = popularity.metric_info(popularity.get_pop(recommended.lists, counts))
    in_tail = tail.metric_info(tail.get_tail(recommended.lists, counts))
    theirs = {}
    for k in K:
        lists = recommended.lists[:, :k]
        covered = metrics.ItemCoverage(config).get_coverage(lists, recommended.num_items)
        theirs[f"coverage@{k}"] = float(covered)
        theirs[f"gini@{k}"] = float(
            metrics.GiniIndex(config).get_gini(lists, recommended.num_items)
        )
        # It takes natural logarithms, and divides by the number of recommended items.
        nats = metrics.ShannonEntropy(config).get_entropy(lists) * len(np.unique(lists))
        theirs[f"entropy@{k}"] = float(nats / math.log(2))
        theirs[f"popularity@{k}"] = popular[:, k - 1]
        theirs[f"tail_share@{k}"] = in_tail[:, k - 1]
    recommended.check(theirs)


def test_every_convention_is_checked():
    elsewhere = {"pykeen", "ogb", "tgb", "relbench", "mind"}
    elsewhere |= {"ngcf", "ncf", "rectorch"}  # by their formulas, through all doors
    assert set(conventions.CONVENTIONS) == PEERS.keys() - {"scikit-learn"} | elsewhere
