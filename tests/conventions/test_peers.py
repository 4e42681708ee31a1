"""Every convention, and the metrics of lists, against the real library on the same rankings.

A peer is given scores or lists that have no equal scores, in the form it wants, and computes its
own means; ours have to be the same to 1e-6. Where a peer is wrong (see the notes of the
conventions), it is not asked. Two that cannot be installed are written out from their formulas.
Then peers are given equal scores, and ours have to follow their order, or its expectation, or to
say how far any order can be from ours.
"""

import contextlib
import heapq
import importlib.metadata
import inspect
import math
from dataclasses import dataclass, replace

import numpy as np
import pytest
import torch
from torch_geometric.nn import LightGCN

from pyg_recmetrics import (
    Catalogue,
    EvaluationResult,
    RankedEdges,
    RankingTask,
    conventions,
    evaluate,
    modules,
    rank,
)
from pyg_recmetrics.metrics import definition
from pyg_recmetrics.ranked_edges import to_ranx, write_trec

pd = pytest.importorskip("pandas")
pytestmark = pytest.mark.filterwarnings("ignore")  # of the peers
K = (1, 3, 20)


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

    def hits(self, k):
        """Which positions of the lists are relevant, for users with truth: `[num_users, k]`."""
        return np.array(
            [[item in self.truth[u] for item in self.rankings[u][:k]] for u in self.users]
        )


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


def train_lightgcn(data, epochs=10):
    """Trains a LightGCN for a moment; what matters is that its scores are real."""
    task = RankingTask.from_data(data)
    generator = torch.Generator().manual_seed(0)
    model = LightGCN(task.num_users + task.num_items, embedding_dim=32, num_layers=2)
    torch.nn.init.normal_(model.embedding.weight, std=0.1, generator=generator)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(epochs):
        user, item = task.seen
        drawn_item = torch.randint(task.num_items, item.shape, generator=generator)
        pairs = torch.stack([user.repeat(2), torch.cat([item, drawn_item]) + task.num_users])
        liked, drawn = model(task.edge_index, pairs).chunk(2)
        optimizer.zero_grad()
        model.recommendation_loss(liked, drawn).backward()
        optimizer.step()
    embedding = model.get_embedding(task.edge_index).detach()
    return task, embedding.split([task.num_users, task.num_items])


@pytest.fixture(scope="session")
def lastfm_model(lastfm):
    return train_lightgcn(lastfm)


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


def test_torch_geometric(case):
    from torch_geometric import metrics

    lists = torch.tensor([(ranking + [9999] * 20)[:20] for ranking in case.rankings])
    theirs = {}
    for k in K:
        for name, metric in {
            "precision": metrics.LinkPredPrecision(k),
            "recall": metrics.LinkPredRecall(k),
            "f1": metrics.LinkPredF1(k),
            "map": metrics.LinkPredMAP(k),
            "ndcg": metrics.LinkPredNDCG(k),
            "mrr": metrics.LinkPredMRR(k),
            "hit_rate": metrics.LinkPredHitRatio(k),
        }.items():
            metric.update(lists, case.task.truth)
            theirs[f"{name}@{k}"] = float(metric.compute())
    check(case, "standard", theirs)


def test_the_weighted_recall_of_torch_geometric(case):
    from torch_geometric import metrics

    lists = torch.tensor([(ranking + [9999] * 20)[:20] for ranking in case.rankings])
    truth = case.task.truth
    weight = torch.rand(truth.size(1), generator=torch.Generator().manual_seed(0)) * 5 - 0.5
    ranked = RankedEdges.from_topk(lists, truth, weight)
    for k in K:
        metric = metrics.LinkPredRecall(k, weighted=True)
        metric.update(lists, truth, weight)
        ours = EvaluationResult(ranked, f"recall(weighted=True)@{k}", convention="standard")
        assert list(ours.values()) == pytest.approx([float(metric.compute())], abs=1e-6)
        of_class = modules.Recall(k, weighted=True)
        of_class.update(lists, truth, weight)
        assert float(of_class.compute()) == pytest.approx(float(metric.compute()), abs=1e-6)


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


def some_users(case, num_users=150):
    """Every n-th user, for a library that goes through them one by one in Python."""
    step = -(-len(case.truth) // num_users)
    return Case(case.scores[::step], case.truth[::step], case.seen[::step])


def means_of_torchmetrics(case):
    retrieval = pytest.importorskip("torchmetrics.retrieval")
    score, target, index = pairs_for_torchmetrics(case)
    theirs = {}
    for k in K:
        for name, metric in {
            "precision": retrieval.RetrievalPrecision(top_k=k),
            "recall": retrieval.RetrievalRecall(top_k=k),
            "map": retrieval.RetrievalMAP(top_k=k),
            "ndcg": retrieval.RetrievalNormalizedDCG(top_k=k),
            "mrr": retrieval.RetrievalMRR(top_k=k),
            "hit_rate": retrieval.RetrievalHitRate(top_k=k),
        }.items():
            theirs[f"{name}@{k}"] = float(metric(score, target, indexes=index))
    theirs["r_precision"] = float(retrieval.RetrievalRPrecision()(score, target, indexes=index))
    theirs["roc_auc"] = float(retrieval.RetrievalAUROC()(score, target, indexes=index))
    return theirs


def test_torchmetrics(case):
    case = some_users(case)
    check(case, "torchmetrics", means_of_torchmetrics(case))


def test_the_fall_out_of_torchmetrics(case):
    retrieval = pytest.importorskip("torchmetrics.retrieval")
    case = some_users(case)
    score, target, index = pairs_for_torchmetrics(case)
    has_truth = torch.isin(index, torch.tensor(case.users))
    pairs = score[has_truth], target[has_truth]
    names = [f"fall_out@{k}" for k in K]
    ours = measure(case, names, convention="torchmetrics", empty_target_action="skip")
    for k, name in zip(K, names, strict=True):
        metric = retrieval.RetrievalFallOut(top_k=k, empty_target_action="skip")
        theirs = float(metric(*pairs, indexes=index[has_truth]))
        assert ours[name] == pytest.approx(theirs, abs=1e-6)
    assert metric.higher_is_better is definition("fall_out").higher_is_better is False


def test_the_fall_out_of_torchmetrics_differs_as_its_note_says():
    retrieval = pytest.importorskip("torchmetrics.retrieval")
    assert "Its fall-out is k / n for users without" in conventions.get("torchmetrics").note
    scores = np.array([[4.0, 3.0, 2.0, 1.0]] * 3)
    case = Case(scores, [{0}, set(), {2, 3}], [set(), set(), {0, 1}])
    score, target, index = pairs_for_torchmetrics(case)
    metric = retrieval.RetrievalFallOut(top_k=2, aggregation=lambda values, dim: values)
    assert metric(score, target, indexes=index).tolist() == pytest.approx([1 / 3, 2 / 4, 1])
    ours = measure(case, "fall_out@2", convention="torchmetrics").values_of("fall_out@2")[0]
    assert ours.tolist() == pytest.approx([1 / 3, 0, math.nan], nan_ok=True)


def test_trec_eval(case):
    pytrec_eval = pytest.importorskip("pytrec_eval")
    qrels = {str(u): {str(i): 1 for i in case.truth[u]} for u in case.users}
    run = {
        str(u): {str(i): float(-index) for index, i in enumerate(case.rankings[u])}
        for u in case.users
    }
    names = {
        f"{ours}@{k}": f"{theirs}_{k}"
        for k in K
        for ours, theirs in (
            ("precision", "P"),
            ("recall", "recall"),
            ("map", "map_cut"),
            ("ndcg", "ndcg_cut"),
            ("hit_rate", "success"),
        )
    } | {"mrr@20": "recip_rank", "r_precision": "Rprec", "map": "map", "ndcg": "ndcg"}
    cut_offs = ",".join(str(k) for k in K)
    wanted = {f"{name}.{cut_offs}" for name in ("P", "recall", "map_cut", "ndcg_cut", "success")}
    evaluator = pytrec_eval.RelevanceEvaluator(
        qrels, wanted | {"recip_rank", "Rprec", "map", "ndcg"}
    )
    found = evaluator.evaluate(run).values()
    check(
        case,
        "trec_eval",
        {ours: float(np.mean([row[name] for row in found])) for ours, name in names.items()},
    )


def means_of_ranx(case):
    ranx = pytest.importorskip("ranx")
    qrels = ranx.Qrels(
        {
            str(u): {str(i): 1 for i in items} if items else {"none": 0}
            for u, items in enumerate(case.truth)
        }
    )
    run = ranx.Run(
        {
            str(u): {str(i): float(case.scores[u, i]) for i in ranking}
            for u, ranking in enumerate(case.rankings)
        }
    )
    theirs = {"r_precision": "r-precision", "rbp": "rbp.80", "rbp(p=0.95)@3": "rbp.95"}
    for k in K:
        for name in ("precision", "recall", "f1", "map", "ndcg", "mrr", "hit_rate"):
            theirs[f"{name}@{k}"] = f"{name}@{k}"
    means = ranx.evaluate(qrels, run, list(theirs.values()))
    return {ours: float(means[name]) for ours, name in theirs.items()}


def test_ranx(case):
    check(case, "ranx", means_of_ranx(case))


def test_the_rank_biased_precision_of_ranx_differs_as_its_note_says():
    ranx = pytest.importorskip("ranx")
    assert "It multiplies each hit by its weight" in conventions.get("ranx").note
    qrels, run = ranx.Qrels({"u": {"a": 3, "b": 1}}), ranx.Run({"u": {"a": 2.0, "b": 1.0}})
    assert ranx.evaluate(qrels, run, "rbp.50") == pytest.approx(3 / 2 + 1 / 4)
    ranked = RankedEdges.from_topk(
        torch.tensor([[0, 1]]), torch.tensor([[0, 0], [0, 1]]), torch.tensor([3, 1])
    )
    ours = EvaluationResult(ranked, "rbp(p=0.5)", convention="ranx")
    assert list(ours.values()) == [1 / 2 + 1 / 4]


def test_rectools(case):
    metrics = pytest.importorskip("rectools.metrics")
    lists, truth = case.frame(max(K)), case.truth_frame()
    theirs = {}
    for k in K:
        for name, metric in {
            "precision": metrics.Precision(k),
            "recall": metrics.Recall(k),
            "f1": metrics.F1Beta(k),
            "map": metrics.MAP(k),
            "ndcg": metrics.NDCG(k),
            "mrr": metrics.MRR(k),
            "hit_rate": metrics.HitRate(k),
            "truncated_precision": metrics.Precision(k, r_precision=True),
            "map(normalizer=k)": metrics.MAP(k, divide_by_k=True),
            "ndcg(ideal=relevant)": metrics.NDCG(k, divide_by_achievable=True),
        }.items():
            theirs[f"{name}@{k}"] = float(metric.calc(lists, truth))
    check(case, "rectools", theirs)


def test_microsoft_recommenders(case):
    evaluation = pytest.importorskip("recommenders.evaluation.python_evaluation")
    columns = {"col_user": "userID", "col_item": "itemID", "col_prediction": "score"}
    truth = case.truth_frame("userID", "itemID")
    lists = case.frame(max(K), "userID", "itemID").drop(columns="rank")
    theirs = {}
    for k in K:
        for name, function in {
            "precision": evaluation.precision_at_k,
            "recall": evaluation.recall_at_k,
            "map": evaluation.map,
            "map(normalizer=min)": evaluation.map_at_k,
            "ndcg": evaluation.ndcg_at_k,
        }.items():
            theirs[f"{name}@{k}"] = float(function(truth, lists, k=k, **columns))
    deep = case.frame(None, "userID", "itemID").drop(columns="rank")
    theirs["r_precision(users=hit)"] = float(
        evaluation.r_precision_at_k(truth, deep, k=len(case.scores[0]), **columns)
    )
    check(case, "recommenders", theirs)


def test_replay(case):
    metrics = pytest.importorskip("replay.metrics")
    kinds = {
        "precision": metrics.Precision,
        "recall": metrics.Recall,
        "map": metrics.MAP,
        "ndcg": metrics.NDCG,
        "mrr": metrics.MRR,
        "hit_rate": metrics.HitRate,
    }
    lists = case.frame(max(K), "query_id", "item_id").rename(columns={"score": "rating"})
    truth = case.truth_frame("query_id", "item_id")
    theirs = {}
    for name, kind in kinds.items():
        for spelled, mean in kind(list(K))(lists, truth).items():
            theirs[f"{name}@{spelled.partition('@')[2]}"] = float(mean)
    check(case, "replay", theirs)


def test_lenskit(case):
    ranking = pytest.importorskip("lenskit.metrics.ranking")
    from lenskit.data import ItemList

    theirs = {}
    for k in K:
        for name, metric in {
            "precision": ranking.Precision(k),
            "recall": ranking.Recall(k),
            "map": ranking.AveragePrecision(k),
            "ndcg": ranking.NDCG(k),
            "mrr": ranking.RecipRank(k),
            "hit_rate": ranking.Hit(k),
            "rbp": ranking.RBP(k),
            "rbp(p=0.5)": ranking.RBP(k, patience=0.5),
        }.items():
            values = [
                metric.measure_list(
                    ItemList(item_ids=case.rankings[u], ordered=True),
                    ItemList(item_ids=sorted(case.truth[u])),
                )
                for u in case.users[:500]
            ]
            theirs[f"{name}@{k}"] = float(np.mean(values))
    few = Case(case.scores, list(case.truth), case.seen)
    for user in set(range(len(case.truth))) - set(case.users[:500]):
        few.truth[user] = set()
    check(few, "lenskit", theirs)


def test_recbole(case, monkeypatch):
    metrics = pytest.importorskip("recbole.evaluator.metrics")
    monkeypatch.setattr(np, "float", float, raising=False)  # it was written for an older numpy
    hits = case.hits(max(K))
    num_relevant = np.array([len(case.truth[u]) for u in case.users])
    theirs = {}
    for name, kind in {
        "precision": metrics.Precision,
        "recall": metrics.Recall,
        "map": metrics.MAP,
        "ndcg": metrics.NDCG,
        "mrr": metrics.MRR,
        "hit_rate": metrics.Hit,
    }.items():
        metric = kind({"topk": list(K), "metric_decimal_place": 12})
        per_user = (
            metric.metric_info(hits, num_relevant)
            if name
            in (
                "recall",
                "map",
                "ndcg",
            )
            else metric.metric_info(hits)
        )
        for k in K:
            theirs[f"{name}@{k}"] = float(per_user[:, k - 1].mean())
    check(case, "recbole", theirs)


def csr(sets, num_items):
    sparse = pytest.importorskip("scipy.sparse")
    rows = [u for u, items in enumerate(sets) for _ in items]
    columns = [i for items in sets for i in sorted(items)]
    return sparse.csr_matrix(
        (np.ones(len(rows), dtype=np.float32), (rows, columns)), (len(sets), num_items)
    )


def means_of_implicit(case):
    evaluation = pytest.importorskip("implicit.evaluation")
    from implicit.cpu.als import AlternatingLeastSquares

    num_items = case.scores.shape[1]
    model = AlternatingLeastSquares(factors=case.scores.shape[1])
    model.user_factors = case.scores.astype(np.float32)
    model.item_factors = np.eye(num_items, dtype=np.float32)
    seen, truth = csr(case.seen, num_items), csr(case.truth, num_items)
    theirs = {}
    for k in K:
        found = evaluation.ranking_metrics_at_k(
            model, seen, truth, K=k, show_progress=False, num_threads=1
        )
        for name in ("precision", "map", "ndcg"):
            theirs[f"{name}@{k}"] = found[name]
    return theirs


def test_implicit(case):
    check(case, "implicit", means_of_implicit(case))


def recometrics_frame(case, k, **options):
    recometrics = pytest.importorskip("recometrics")
    num_items = case.scores.shape[1]
    return recometrics.calc_reco_metrics(
        csr(case.seen, num_items),
        csr(case.truth, num_items),
        case.scores.astype(np.float64),
        np.eye(num_items),
        k=k,
        precision=True,
        trunc_precision=True,
        recall=True,
        average_precision=True,
        trunc_average_precision=True,
        ndcg=True,
        hit=True,
        rr=True,
        roc_auc=True,
        pr_auc=True,
        rename_k=False,
        nthreads=1,
        **{"break_ties_with_noise": False} | options,
    )


RECOMETRICS = {
    "precision": "P@K",
    "truncated_precision": "TP@K",
    "recall": "R@K",
    "map": "AP@K",
    "map(normalizer=min)": "TAP@K",
    "ndcg": "NDCG@K",
    "hit_rate": "Hit@K",
    "mrr": "RR@K",
}


def means_of_recometrics(case, cut_offs=K, **options):
    theirs = {}
    for k in cut_offs:
        frame = recometrics_frame(case, k, **options)
        for ours, name in RECOMETRICS.items():
            theirs[f"{ours}@{k}"] = float(np.nanmean(frame[name]))
    theirs["roc_auc"] = float(np.nanmean(frame["ROC_AUC"]))
    theirs["pr_auc"] = float(np.nanmean(frame["PR_AUC"]))
    return theirs


def test_recometrics(case):
    theirs = means_of_recometrics(case)
    ranked = evaluate(
        torch.from_numpy(case.scores), case.task, list(theirs), convention="recometrics"
    )
    assert dict(ranked) == pytest.approx(theirs, abs=1e-6)


@pytest.mark.parametrize("k", [2, 3, 5, 6])
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


def test_recometrics_differs_as_its_note_says():
    recometrics = pytest.importorskip("recometrics")
    note = conventions.get("recometrics").note
    scores = np.array([[6.0, 5.0, 4.0, 3.0, 2.0, 1.0]] * 2)
    case = Case(scores, [{0}, {0, 2}], [{4, 5}, {4, 5}])

    assert "it ignores min_pos_test" in note
    assert not recometrics_frame(case, 2, min_pos_test=2)["P@K"].isna().any()

    assert "ROC-AUC and PR-AUC undefined for users with fewer than k candidates" in note
    frame = recometrics_frame(case, 5)
    assert frame["ROC_AUC"].isna().all()
    assert frame["PR_AUC"].isna().all()
    ours = evaluate(
        torch.from_numpy(scores), case.task, ["roc_auc", "recall@5"], convention="recometrics"
    )
    assert ours["roc_auc"] == pytest.approx((1 + 3 / 4) / 2)

    assert "without noise and ROC-AUC, everything is undefined" in note
    for metric, is_undefined in (("roc_auc", False), ("pr_auc", True)):
        (theirs,) = recometrics.calc_reco_metrics(
            csr([set()], 6),
            csr([{0}], 6),
            scores[:1],
            np.eye(6),
            k=1,
            precision=True,
            break_ties_with_noise=False,
            nthreads=1,
            **{metric: True},
        )["P@1"]
        assert math.isnan(theirs) == is_undefined

    assert "in single precision, and above 10,000" in note
    for factor, dtype, num_ranks in (
        (1, np.float64, 5),
        (1, np.float32, 1),
        (5000, np.float64, 5),
        (20000, np.float64, 1),
    ):
        equal = np.tile(factor * np.array([1, 1, 1, 1, 1, 0]), (100, 1))
        ranks = recometrics.calc_reco_metrics(
            csr([set()] * 100, 6).astype(dtype),
            csr([{0}] * 100, 6).astype(dtype),
            equal.astype(dtype),
            np.eye(6, dtype=dtype),
            k=5,
            rr=True,
            rename_k=False,
            nthreads=1,
        )["RR@K"]
        assert len(set(ranks)) == num_ranks

    assert "items of negative weight as relevant" in note
    weights = csr([{0, 1}], 6)
    weights.data[:] = [2.0, -1.0]
    (theirs,) = recometrics.calc_reco_metrics(
        csr([set()], 6),
        weights,
        scores[:1],
        np.eye(6),
        k=3,
        recall=True,
        rename_k=False,
        nthreads=1,
    ).to_dict("records")
    assert theirs["P@K"] == pytest.approx(2 / 3)
    assert theirs["NDCG@K"] == pytest.approx((2 - 1 / math.log2(3)) / 2)

    assert "single precision if both factors are in single precision" in note
    close = np.array([[1.0, 1.0 + 1e-9, 0.5, 0.2]])
    for dtype, first in ((np.float32, 1), (np.float64, 1 / 2)):
        (theirs,) = recometrics.calc_reco_metrics(
            csr([set()], 4),
            csr([{0}], 4),
            close.astype(dtype),
            np.eye(4, dtype=dtype),
            k=3,
            rr=True,
            rename_k=False,
            break_ties_with_noise=False,
            nthreads=1,
        )["RR@K"]
        assert theirs == first


def test_scikit_learn(case):
    sklearn = pytest.importorskip("sklearn.metrics")
    theirs = {name: [] for name in ("map", "pr_auc", "roc_auc", "ndcg", "ndcg@3", "ndcg@20")}
    for user in case.users:
        ranking = case.rankings[user]
        relevant = np.array([item in case.truth[user] for item in ranking])
        score = case.scores[user, ranking]
        theirs["map"].append(sklearn.average_precision_score(relevant, score))
        theirs["pr_auc"].append(theirs["map"][-1])
        theirs["roc_auc"].append(sklearn.roc_auc_score(relevant, score))
        if len(ranking) > 1:
            for k in (None, 3, 20):
                name = "ndcg" if k is None else f"ndcg@{k}"
                theirs[name].append(sklearn.ndcg_score([relevant], [score], k=k))
    check(case, "standard", {name: float(np.mean(values)) for name, values in theirs.items()})


def test_rectorch(case):
    """From its formulas: a capped recall, and a binary NDCG."""
    theirs = {}
    for k in K:
        hits = case.hits(max(K))[:, :k]
        num_relevant = np.array([len(case.truth[u]) for u in case.users])
        discounts = 1 / np.log2(np.arange(2, k + 2))
        ideal = np.array([discounts[: min(n, k)].sum() for n in num_relevant])
        first = np.where(hits.any(1), 1 / (hits.argmax(1) + 1), 0)
        theirs[f"recall@{k}"] = float((hits.sum(1) / np.minimum(k, num_relevant)).mean())
        theirs[f"ndcg@{k}"] = float(((hits * discounts).sum(1) / ideal).mean())
        theirs[f"hit_rate@{k}"] = float(hits.any(1).mean())
        theirs[f"mrr@{k}"] = float(first.mean())
    check(case, "rectorch", theirs)


@pytest.mark.parametrize("cut_offs", [(3,), (3, 10), (1, 3, 20)])
def test_ngcf(case, cut_offs):
    """From its formulas: the ideal NDCG sorts what was retrieved down to the largest cut-off."""
    hits = case.hits(max(cut_offs)).astype(float)
    num_relevant = np.array([len(case.truth[u]) for u in case.users])
    theirs = {}
    for k in cut_offs:
        found = hits[:, :k]
        discount = np.log2(np.arange(2, k + 2))
        dcg = (found / discount).sum(1)
        best = (-np.sort(-hits, axis=1)[:, :k] / discount).sum(1)
        ndcg = np.divide(dcg, best, out=np.zeros_like(dcg), where=best > 0)
        theirs[f"precision@{k}"] = float((found.sum(1) / k).mean())
        theirs[f"recall@{k}"] = float((found.sum(1) / num_relevant).mean())
        theirs[f"hit_rate@{k}"] = float((found.sum(1) > 0).mean())
        theirs[f"ndcg@{k}"] = float(ndcg.mean())
    theirs["roc_auc"] = float(np.mean([area_under_curve(case, user) for user in case.users]))
    check(case, "ngcf", theirs)


def area_under_curve(case, user):
    """The share of pairs of a relevant and another item that are in the right order."""
    relevant = np.array([item in case.truth[user] for item in case.rankings[user]])
    num_others_above = np.cumsum(~relevant)[relevant]
    return 1 - num_others_above.mean() / (~relevant).sum()


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


@contextlib.contextmanager
def double_precision():
    """Lets torchmetrics divide in double precision."""
    torch.set_default_dtype(torch.float64)
    try:
        yield
    finally:
        torch.set_default_dtype(torch.float32)


def roc_auc_of_scikit_learn(case):
    sklearn = pytest.importorskip("sklearn.metrics")
    return {
        user: sklearn.roc_auc_score(
            [item in case.truth[user] for item in case.rankings[user]],
            case.scores[user, case.rankings[user]],
        )
        for user in case.users
    }


def roc_auc_of_torchmetrics(case):
    retrieval = pytest.importorskip("torchmetrics.functional.retrieval")
    score, target, index = pairs_for_torchmetrics(case)
    num_pairs = index.bincount(minlength=len(case.truth)).tolist()
    of_users = list(zip(score.double().split(num_pairs), target.split(num_pairs), strict=True))
    with double_precision():
        return {user: float(retrieval.retrieval_auroc(*of_users[user])) for user in case.users}


@pytest.mark.parametrize("peer", [roc_auc_of_scikit_learn, roc_auc_of_torchmetrics])
def test_the_roc_auc_of_equal_scores(tied, peer):
    theirs = np.full(len(tied.truth), np.nan)
    for user, value in peer(tied).items():
        theirs[user] = value
    for metric, options in (
        ("roc_auc", {"ties": "mean"}),
        ("roc_auc(ties=half)", {}),
        ("roc_auc(ties=half)", {"ties": "worst"}),
        ("roc_auc(ties=half)", {"convention": "recometrics"}),
        ("roc_auc", {"convention": "torchmetrics"}),
        ("roc_auc", {"convention": "ngcf"}),
    ):
        ours = measure(tied, metric, **options).per_user[metric]
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-9)
    by_id = measure(tied, "roc_auc").per_user["roc_auc"].numpy()
    assert np.nanmax(abs(by_id - theirs)) > 0.01


def means_of_recbole_from_scores(case):
    """Its collector finds the lists and mean ranks of scores, after an item for padding."""
    collector = pytest.importorskip("recbole.evaluator.collector")
    metrics = pytest.importorskip("recbole.evaluator.metrics")
    kinds = {
        "precision": metrics.Precision,
        "recall": metrics.Recall,
        "map": metrics.MAP,
        "ndcg": metrics.NDCG,
        "mrr": metrics.MRR,
        "hit": metrics.Hit,
        "gauc": metrics.GAUC,
    }
    config = {
        "metrics": list(kinds),
        "topk": list(K),
        "metric_decimal_place": 12,
        "eval_args": {"mode": "full"},
        "device": "cpu",
    }
    scores = torch.from_numpy(case.scores[case.users])
    relevant = torch.tensor([(row, i) for row, u in enumerate(case.users) for i in case.truth[u]])
    for row, user in enumerate(case.users):
        scores[row, list(case.seen[user])] = -torch.inf
    scores = torch.cat([torch.full((len(scores), 1), -torch.inf), scores], dim=1)
    collected = collector.Collector(config)
    collected.eval_batch_collect(scores, None, relevant[:, 0], relevant[:, 1] + 1)
    data, found = collected.get_data_struct(), {}
    # Its mean ranks are exact, but it would add them up in single precision.
    data.set("rec.meanrank", data.get("rec.meanrank").double())
    for kind in kinds.values():
        found |= kind(config).calculate_metric(data)
    return {name.replace("hit@", "hit_rate@"): float(value) for name, value in found.items()}


def test_the_gauc_of_recbole(tied, monkeypatch):
    monkeypatch.setattr(np, "float", float, raising=False)
    theirs = means_of_recbole_from_scores(tied)["gauc"]
    for ties in ("index", "mean", "worst"):
        ours = measure(tied, "roc_auc", convention="recbole", ties=ties)
        assert ours["roc_auc"] == pytest.approx(theirs, rel=1e-9)
    assert "What it calls GAUC is roc_auc" in conventions.get("recbole").note


def means_of_recbole(case):
    theirs = means_of_recbole_from_scores(case)
    del theirs["gauc"]
    return theirs


@pytest.mark.parametrize(
    ("convention", "means"),
    [
        ("torchmetrics", means_of_torchmetrics),
        ("recbole", means_of_recbole),
        ("recometrics", means_of_recometrics),
        ("ranx", means_of_ranx),
        ("implicit", means_of_implicit),
    ],
)
def test_any_order_of_equal_scores_is_within_the_range_that_is_told(
    tied, convention, means, monkeypatch
):
    monkeypatch.setattr(np, "float", float, raising=False)
    if means is means_of_torchmetrics:
        tied = some_users(tied)
    theirs = means(tied)
    by_id = measure(tied, list(theirs), convention=convention, ties="index")
    for name, value in theirs.items():
        low, high = by_id.tie_range(name)
        assert low - 1e-6 <= value <= high + 1e-6, name
    # As the notes say, their order is not ours.
    assert dict(by_id) != pytest.approx(theirs, abs=1e-6)


def rows_by_item(case, user, item):
    """The best items of users with truth, in the order of their ids."""
    rows = [
        (u, i, float(case.scores[u, i])) for u in case.users for i in sorted(case.rankings[u][:200])
    ]
    return pd.DataFrame(rows, columns=[user, item, "score"])


def test_the_order_of_rows_decides_in_microsoft_recommenders(tied):
    evaluation = pytest.importorskip("recommenders.evaluation.python_evaluation")
    columns = {"col_user": "userID", "col_item": "itemID", "col_prediction": "score"}
    truth = tied.truth_frame("userID", "itemID")
    lists = rows_by_item(tied, "userID", "itemID")
    theirs = {}
    for k in K:
        theirs[f"precision@{k}"] = evaluation.precision_at_k(truth, lists, k=k, **columns)
        theirs[f"recall@{k}"] = evaluation.recall_at_k(truth, lists, k=k, **columns)
        theirs[f"map@{k}"] = evaluation.map(truth, lists, k=k, **columns)
        theirs[f"ndcg@{k}"] = evaluation.ndcg_at_k(truth, lists, k=k, **columns)
    check(tied, "recommenders", theirs)


def test_ngcf_ranks_the_lower_item_id_first(tied):
    for user in tied.users:
        score = dict(enumerate(tied.scores[user].tolist()))
        candidates = {item: score[item] for item in sorted(set(score) - tied.seen[user])}
        found = heapq.nlargest(max(K), candidates, key=candidates.get)
        assert found == tied.rankings[user][: max(K)]


def turned_around(case):
    """The same with items numbered from the last to the first."""
    last = case.scores.shape[1] - 1
    truth, seen = (
        [{last - i for i in items} for items in sets] for sets in (case.truth, case.seen)
    )
    return Case(case.scores[:, ::-1].copy(), truth, seen)


def test_replay_ranks_the_higher_item_id_first(tied):
    metrics = pytest.importorskip("replay.metrics")
    kinds = {"recall": metrics.Recall, "map": metrics.MAP, "ndcg": metrics.NDCG, "mrr": metrics.MRR}
    around = turned_around(tied)
    lists = rows_by_item(around, "query_id", "item_id").rename(columns={"score": "rating"})
    truth = around.truth_frame("query_id", "item_id")
    theirs = {
        f"{name}@{k}": float(kind(k)(lists, truth)[f"{kind.__name__}@{k}"])
        for name, kind in kinds.items()
        for k in K
    }
    check(tied, "replay", theirs)


def test_trec_eval_ranks_the_higher_document_id_first(tied):
    pytrec_eval = pytest.importorskip("pytrec_eval")

    def name(item):
        return str(2 * 10**6 - item)  # as a string, lower for higher items

    qrels = {str(u): {name(i): 1 for i in tied.truth[u]} for u in tied.users}
    run = {
        str(u): {name(i): float(tied.scores[u, i]) for i in tied.rankings[u]} for u in tied.users
    }
    names = {"recall@20": "recall_20", "ndcg@20": "ndcg_cut_20", "map": "map", "mrr": "recip_rank"}
    evaluator = pytrec_eval.RelevanceEvaluator(
        qrels, {"recall.20", "ndcg_cut.20", "map", "recip_rank"}
    )
    found = evaluator.evaluate(run).values()
    check(
        tied,
        "trec_eval",
        {ours: float(np.mean([row[theirs] for row in found])) for ours, theirs in names.items()},
    )


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


def test_the_ndcg_of_torchmetrics_and_scikit_learn_is_that_of_random_orders():
    sklearn = pytest.importorskip("sklearn.metrics")
    retrieval = pytest.importorskip("torchmetrics.retrieval")
    case = few_scores()
    pairs = pairs_for_torchmetrics(case)
    exact = []
    for k in K:
        metric = retrieval.RetrievalNormalizedDCG(top_k=k, empty_target_action="skip")
        exact.append(float(metric(*pairs[:2], indexes=pairs[2])))
        values = [
            sklearn.ndcg_score(
                [[item in case.truth[user] for item in case.rankings[user]]],
                [case.scores[user, case.rankings[user]]],
                k=k,
            )
            for user in case.users
        ]
        assert np.mean(values) == pytest.approx(exact[-1], abs=1e-6)
    metrics = [f"ndcg@{k}" for k in K]
    assert_same_expectation(means_of_random_orders(case, metrics), np.array([exact]))
    by_id = measure(case, metrics)
    assert all(by_id[metric] > value + 0.02 for metric, value in zip(metrics, exact, strict=True))


def test_the_noise_of_recometrics():
    """Over many draws, since neither draws what the other does."""
    case = few_scores()
    # It numbers its random generators by seed and user.
    seeds = range(1, 1 + 200 * len(case.truth), len(case.truth))
    theirs = [
        means_of_recometrics(case, (3, 20), break_ties_with_noise=True, seed=seed) for seed in seeds
    ]
    metrics = list(theirs[0])
    samples = np.array([list(means.values()) for means in theirs])
    ours = means_of_random_orders(case, metrics, convention="recometrics")
    assert_same_expectation(samples, ours)
    expected = np.mean(list(roc_auc_of_scikit_learn(case).values()))
    column = [metrics.index("roc_auc")]
    assert_same_expectation(samples[:, column], np.array([[expected]]))
    by_id = measure(case, metrics, convention="recometrics", ties="index")
    assert by_id["ndcg@3"] > samples[:, metrics.index("ndcg@3")].mean() + 0.02
    drawn = measure(case, metrics, convention="recometrics", seed=7)
    assert list(dict(drawn).values()) == ours[7].tolist()


@pytest.mark.parametrize("noise", [True, False])
def test_recometrics_leaves_users_out_whose_candidates_score_the_same(noise):
    recometrics = pytest.importorskip("recometrics")
    # The first users have seen all items that score differently; the last item is relevant.
    score = np.array([5.0, 4.0, 3.0, 2.0, 1.0, 1.0, 1.0, 1.0])
    truth = [{7}, {4, 6}, {0}, {1, 2}, {3}, {2}, {5}]
    seen = [{0, 1, 2, 3}, {0, 1, 2, 3}, set(), {0}, {0, 1, 2}, {0, 1, 7}, {0, 1, 2, 3, 4}]
    task = Case(np.tile(score, (7, 1)), truth, seen).task

    def frame_of(score):
        return recometrics.calc_reco_metrics(
            csr(seen, 8),
            csr(truth, 8),
            None,
            None,
            k=2,
            item_biases=score,
            all_metrics=True,
            rename_k=False,
            break_ties_with_noise=noise,
            nthreads=1,
        )

    frame = frame_of(score)
    names = {f"{ours}@2": theirs for ours, theirs in RECOMETRICS.items()}
    names |= {"roc_auc": "ROC_AUC", "pr_auc": "PR_AUC"}
    ours = evaluate(torch.from_numpy(score), task, list(names), convention="recometrics")
    assert ours.user_counts.num_left_out == 3
    for name, theirs in names.items():
        assert ours.per_user[name].tolist() == pytest.approx(
            frame[theirs].tolist(), abs=1e-6, nan_ok=True
        ), name
    assert frame_of(np.ones(8)).isna().all(axis=None)
    with pytest.warns(UserWarning, match="^'constant_scores' of the population"):
        nobody = evaluate(torch.ones(8), task, "recall@2", convention="recometrics")
    assert nobody.per_user["recall@2"].isnan().all()


@pytest.fixture(scope="session", params=["random", "lastfm"])
def recommended(request):
    """Lists of full length for all users, what they have seen, and a category of every item."""
    if request.param == "lastfm":
        return Recommended(lastfm_case(request.getfixturevalue("lastfm_model")))
    return Recommended(random())


class Recommended:
    def __init__(self, case, num_users=400):
        self.case, self.num_users = case, num_users
        self.num_items = case.scores.shape[1]
        self.lists = np.array([ranking[: max(K)] for ranking in case.rankings[:num_users]])
        self.category = np.random.default_rng(1).integers(0, 5, self.num_items)
        pairs = [(u, i) for u, items in enumerate(case.seen[:num_users]) for i in sorted(items)]
        self.seen = np.array(pairs)
        self.popularity = np.bincount(self.seen[:, 1], minlength=self.num_items)
        truth = [(u, i) for u, items in enumerate(case.truth[:num_users]) for i in items]
        catalogue = Catalogue(
            self.num_items,
            seen=torch.from_numpy(self.seen.T),
            item_category=torch.from_numpy(self.category),
        )
        self.ranked = RankedEdges.from_topk(torch.from_numpy(self.lists), torch.tensor(truth).T)
        self.ranked = self.ranked.with_catalogue(catalogue)
        self.has_truth = self.ranked.degree.numpy() > 0

    def frame(self, user, item):
        rows = [
            (u, i, rank, float(-rank))
            for u, items in enumerate(self.lists.tolist())
            for rank, i in enumerate(items, start=1)
        ]
        return pd.DataFrame(rows, columns=[user, item, "rank", "score"])

    def seen_frame(self, user, item):
        return pd.DataFrame(self.seen, columns=[user, item])

    def check(self, theirs):
        """Compares their means with ours; and their values per user, where they have them."""
        ours = EvaluationResult(self.ranked, list(theirs))
        for name, value in theirs.items():
            if np.ndim(value):
                per_user = ours.per_user[name].numpy()
                assert per_user[self.has_truth] == pytest.approx(value[self.has_truth], abs=1e-6)
            else:
                assert ours[name] == pytest.approx(value, rel=1e-6, abs=1e-6), name


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


def test_lists_of_microsoft_recommenders(recommended):
    evaluation = pytest.importorskip("recommenders.evaluation.python_evaluation")
    columns = {"col_user": "userID", "col_item": "itemID"}
    lists = recommended.frame("userID", "itemID")
    # It takes the items that somebody has seen for all items.
    everything = pd.DataFrame({"userID": -1, "itemID": np.arange(recommended.num_items)})
    theirs = {}
    for k in K:
        top = lists[lists["rank"] <= k]
        theirs[f"coverage@{k}"] = evaluation.catalog_coverage(everything, top, **columns)
    recommended.check(theirs)


def test_lists_of_replay(recommended):
    metrics = pytest.importorskip("replay.metrics")
    lists = recommended.frame("query_id", "item_id").rename(columns={"score": "rating"})
    seen = recommended.seen_frame("query_id", "item_id")
    bits = math.log2(seen["query_id"].nunique())  # it divides by the most there is
    found = metrics.Surprisal(list(K))(lists, seen)
    recommended.check({f"novelty@{k}": float(found[f"Surprisal@{k}"]) * bits for k in K})


def test_lists_of_lenskit(recommended):
    ranking = pytest.importorskip("lenskit.metrics.ranking")
    from lenskit.data import ItemList

    theirs = {}
    for k in K:
        metric = ranking.ListGini(k, items=recommended.num_items)
        lists = [ItemList(item_ids=items, ordered=True) for items in recommended.lists]
        values = [metric.compute_list_data(items, None) for items in lists]
        theirs[f"gini@{k}"] = float(metric.global_aggregate(values))
    recommended.check(theirs)


def test_every_convention_is_checked():
    checked = {
        "standard", "torchmetrics", "trec_eval", "ranx", "rectools", "recommenders", "replay",
        "lenskit", "recbole", "implicit", "recometrics", "rectorch", "ngcf",
        "pykeen", "ogb", "tgb", "relbench", "mind", "ncf",  # in `test_peers_of_queries.py`
    }  # fmt: skip
    assert set(conventions.CONVENTIONS) == checked


def test_trec_eval_reads_our_files(lastfm_model, tmp_path):
    pytrec_eval = pytest.importorskip("pytrec_eval")
    task, embeddings = lastfm_model
    result = evaluate(
        embeddings,
        task,
        ["ndcg@20", "recall@20", "map@20"],
        keep_items=True,
        convention="trec_eval",
    )
    result.to_trec(tmp_path / "run", tmp_path / "qrels")
    with (tmp_path / "run").open() as run, (tmp_path / "qrels").open() as qrels:
        evaluator = pytrec_eval.RelevanceEvaluator(
            pytrec_eval.parse_qrel(qrels), {"ndcg_cut.20", "recall.20", "map_cut.20"}
        )
        found = evaluator.evaluate(pytrec_eval.parse_run(run)).values()
    for ours, theirs in (
        ("ndcg@20", "ndcg_cut_20"),
        ("recall@20", "recall_20"),
        ("map@20", "map_cut_20"),
    ):
        assert result[ours] == pytest.approx(np.mean([row[theirs] for row in found]), abs=1e-6)


def test_ranx_takes_our_lists(lastfm_model):
    ranx = pytest.importorskip("ranx")
    task, embeddings = lastfm_model
    result = evaluate(embeddings, task, ["ndcg@20", "mrr@20"], keep_items=True)
    theirs = ranx.evaluate(*result.to_ranx(), ["ndcg@20", "mrr@20"])
    assert dict(result) == pytest.approx(theirs, abs=1e-6)


@pytest.fixture
def lists_with_holes():
    """Lists with repeats and gaps, truth with weights, and users without a list or truth."""
    generator = torch.Generator().manual_seed(0)
    lists = torch.randint(-1, 12, (60, 10), generator=generator)
    lists[:5] = -1
    truth = (torch.rand(60, 12, generator=generator) < 0.25).nonzero().t()
    truth = truth[:, truth[0] != 7]
    weight = torch.randint(1, 4, (truth.size(1),), generator=generator)
    return RankedEdges.from_topk(lists, truth, weight)


def test_trec_eval_reads_lists_with_holes(lists_with_holes, tmp_path):
    pytrec_eval = pytest.importorskip("pytrec_eval")
    names = {
        "ndcg@5": "ndcg_cut_5",
        "recall@5": "recall_5",
        "map@10": "map_cut_10",
        "mrr@10": "recip_rank",
        "precision@5": "P_5",
    }
    write_trec(lists_with_holes, tmp_path / "run", tmp_path / "qrels")
    with (tmp_path / "run").open() as run, (tmp_path / "qrels").open() as qrels:
        evaluator = pytrec_eval.RelevanceEvaluator(
            pytrec_eval.parse_qrel(qrels),
            {"ndcg_cut.5", "recall.5", "map_cut.10", "recip_rank", "P.5"},
        )
        found = evaluator.evaluate(pytrec_eval.parse_run(run))
    result = EvaluationResult(lists_with_holes, list(names), convention="trec_eval")
    assert len(found) == result.user_counts.num_evaluated
    for ours, theirs in names.items():
        for user, row in found.items():
            value = float(result.per_user[ours][int(user)])
            assert value == pytest.approx(row[theirs], abs=1e-6), (ours, user)


def test_ranx_takes_lists_with_holes(lists_with_holes):
    ranx = pytest.importorskip("ranx")
    names = ["recall@5", "map@10", "mrr@10", "precision@5", "ndcg@5"]
    theirs = ranx.evaluate(*to_ranx(lists_with_holes), names)
    result = EvaluationResult(
        lists_with_holes, names, convention="ranx", empty_target_action="skip"
    )
    assert dict(result) == pytest.approx(theirs, abs=1e-6)


def test_what_the_readme_says_of_other_libraries():
    from torch_geometric import metrics as pyg

    assert {"LinkPredRecall", "LinkPredNDCG"} <= set(dir(pyg))
    assert not {"LinkPredRPrecision", "LinkPredAUROC"} & set(dir(pyg))
    retrieval = pytest.importorskip("torchmetrics.retrieval")
    assert {"RetrievalRPrecision", "RetrievalAUROC"} <= set(dir(retrieval))
    # Padding is taken for an item, and a repeated edge for two.
    padded, repeated = pyg.LinkPredRecall(k=2), pyg.LinkPredRecall(k=2)
    padded.update(torch.tensor([[2, 0], [-1, -1]]), torch.tensor([[0, 1], [9, 3]]))
    repeated.update(torch.tensor([[3, 1]]), torch.tensor([[0, 0, 0], [3, 3, 7]]))
    assert float(padded.compute()) != 0.0
    assert float(repeated.compute()) != 0.5
    recometrics = pytest.importorskip("recometrics")
    needed = importlib.metadata.requires("recometrics") or []
    assert not [name for name in needed if name.startswith("torch")]
    options = inspect.signature(recometrics.calc_reco_metrics).parameters
    assert {"roc_auc", "pr_auc"} <= set(options)
    assert not {"r_precision", "device"} & set(options)
    recbole = pytest.importorskip("recbole.evaluator.metrics")
    assert "GAUC" in dir(recbole)
    assert not {"RPrecision", "R_Precision"} & set(dir(recbole))
