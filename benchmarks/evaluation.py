"""Times full-ranking evaluation side by side with other ways to get the same numbers.

    python benchmarks/evaluation.py FOLDER

`FOLDER` holds `graph.npz` (`train` and `test` edges) and `lightgcn.npz` (`user` and `item`
embeddings), as the Gowalla split of the LightGCN paper. Everything runs in one process, several
times in turn, and is reported as the ratio of medians to a bare single-precision matrix product
of all users and items. Before a time is printed, all ways have to agree on precision and recall.
Peers that are not installed are left out.
"""

import argparse
import importlib.util
import platform
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from torch_geometric.metrics import (
    LinkPredMetricCollection,
    LinkPredPrecision,
    LinkPredRecall,
)

from pyg_recmetrics import EvaluationResult, RankingTask, evaluate, metrics, rank

FAISS = "faiss IndexFlatIP, lists of 20, nothing masked, no metrics"
K = 20
CUT_OFFS = (5, 10, 20, 50, 100)


class Data:
    def __init__(self, folder: Path, device: str = "cpu") -> None:
        graph, model = np.load(folder / "graph.npz"), np.load(folder / "lightgcn.npz")
        self.train, self.test = (torch.from_numpy(graph[name]).long() for name in ("train", "test"))
        self.user, self.item = (torch.from_numpy(model[name]).float() for name in ("user", "item"))
        self.task = RankingTask(
            self.test,
            num_users=self.user.size(0),
            num_items=self.item.size(0),
            seen=self.train,
        )
        self.train, self.test = self.train.to(device), self.test.to(device)
        self.user, self.item = self.user.to(device), self.item.to(device)
        self.task = self.task.to(device)
        self.device = torch.device(device)


def matrix_product(data: Data) -> None:
    """All products of users and items, in tiles that stay in the cache of the processor."""
    for user in data.user.split(1024):
        for item in data.item.split(4096):
            torch.mm(user, item.t())


def default_metrics(data: Data) -> EvaluationResult:
    return evaluate((data.user, data.item), data.task)


def names_of_every_metric() -> list[str]:
    names = ["r_precision"]
    for name in metrics.names():
        known = metrics.definition(name)
        if known.has_cut_off and not known.needs_all_ranks and not known.needs:
            names += [f"{name}@{k}" for k in CUT_OFFS]
    return names


def every_metric(data: Data) -> EvaluationResult:
    return evaluate((data.user, data.item), data.task, names_of_every_metric())


def share_of_metrics(data: Data) -> float:
    """How much of the time of `every_metric` goes by after the ranking."""
    embeddings, names = (data.user, data.item), names_of_every_metric()
    start = time.perf_counter()
    ranked = rank(embeddings, data.task, k=max(CUT_OFFS))
    middle = time.perf_counter()
    EvaluationResult(ranked, names, task=data.task).to_dict()
    end = time.perf_counter()
    return (end - middle) / (end - start)


def sorting(data: Data) -> EvaluationResult:
    ranked = rank((data.user, data.item), data.task, k=max(CUT_OFFS), algorithm="dense")
    return EvaluationResult(ranked, ["precision@20", "recall@20"])


def areas(data: Data) -> EvaluationResult:
    names = ["precision@20", "recall@20", "roc_auc", "pr_auc"]
    return evaluate((data.user, data.item), data.task, names)


def loop_of_pygs_example(data: Data) -> dict[str, float]:
    """Precision and recall at 20 as PyG's `examples/lightgcn.py` computes them."""
    precision = recall = num_users = 0.0
    for start in range(0, data.user.size(0), 1024):
        scores = data.user[start : start + 1024] @ data.item.t()
        truth = torch.zeros(scores.shape, dtype=torch.bool, device=data.device)
        train, test = (
            edges[:, (edges[0] >= start) & (edges[0] < start + 1024)]
            for edges in (data.train, data.test)
        )
        scores[train[0] - start, train[1]] = -torch.inf
        truth[test[0] - start, test[1]] = True
        hits = truth.gather(1, scores.topk(K, dim=1).indices).sum(dim=1)
        num_relevant = truth.sum(dim=1)
        precision += float((hits / K).sum())
        recall += float((hits / num_relevant.clamp(min=1)).sum())
        num_users += int((num_relevant > 0).sum())
    return {"precision@20": precision / num_users, "recall@20": recall / num_users}


def pygs_metrics(data: Data) -> dict[str, float]:
    """Lists of 20 in chunks of users, and PyG's collection of metrics."""
    metrics_at_k = {"precision@20": LinkPredPrecision(K), "recall@20": LinkPredRecall(K)}
    collection = LinkPredMetricCollection(metrics_at_k).to(data.device)
    for start in range(0, data.user.size(0), 1024):
        scores = data.user[start : start + 1024] @ data.item.t()
        train, test = (
            edges[:, (edges[0] >= start) & (edges[0] < start + 1024)]
            for edges in (data.train, data.test)
        )
        scores[train[0] - start, train[1]] = -torch.inf
        test = torch.stack([test[0] - start, test[1]])
        collection.update(scores.topk(K, dim=1).indices, test)
    return {name: float(value) for name, value in collection.compute().items()}


def from_lists(data: Data, lists: np.ndarray) -> dict[str, float]:
    """Precision and recall at 20 of given lists, which is not part of what is timed."""
    keys = np.sort((data.test[0] * data.item.size(0) + data.test[1]).numpy())
    users = np.arange(len(lists))[:, None]
    asked = users * data.item.size(0) + lists
    place = np.searchsorted(keys, asked).clip(max=len(keys) - 1)
    hits = (keys[place] == asked).sum(1)
    degree = np.bincount(data.test[0].numpy(), minlength=len(lists))
    return {
        "precision@20": float((hits / K).mean()),
        "recall@20": float((hits / degree).mean()),
    }


def csr(edges: Tensor, shape: tuple[int, int]) -> object:
    import scipy.sparse

    ones = np.ones(edges.size(1), dtype=np.float32)
    return scipy.sparse.csr_matrix((ones, tuple(edges.numpy())), shape)


def implicit_top_k(data: Data) -> Callable[[], np.ndarray]:
    from implicit.cpu.topk import topk

    seen = csr(data.train, (data.user.size(0), data.item.size(0)))
    item, user = data.item.numpy(), data.user.numpy()

    def run() -> np.ndarray:
        lists: np.ndarray = topk(item, user, K, filter_query_items=seen)[0]
        return lists

    return run


def faiss_top_k(data: Data) -> Callable[[], np.ndarray]:
    """The lists alone: what is seen cannot be masked."""
    import faiss

    index = faiss.IndexFlatIP(data.item.size(1))
    index.add(data.item.numpy())
    user = data.user.numpy()

    def run() -> np.ndarray:
        lists: np.ndarray = index.search(user, K)[1]
        return lists

    return run


def recometrics_all(data: Data, with_areas: bool) -> Callable[[], dict[str, float]]:
    import recometrics

    shape = (data.user.size(0), data.item.size(0))
    seen, truth = csr(data.train, shape), csr(data.test, shape)

    def run() -> dict[str, float]:
        frame = recometrics.calc_reco_metrics(
            seen,
            truth,
            data.user.numpy(),
            data.item.numpy(),
            k=K,
            precision=True,
            recall=True,
            average_precision=True,
            ndcg=True,
            roc_auc=with_areas,
            pr_auc=with_areas,
            break_ties_with_noise=False,
        )
        return {
            "precision@20": float(frame["P@20"].mean()),
            "recall@20": float(frame["R@20"].mean()),
        }

    return run


def contenders(data: Data) -> dict[str, Callable[[], object]]:
    found: dict[str, Callable[[], object]] = {
        "bare matrix product": lambda: matrix_product(data),
        "pyg_recmetrics, default metrics at 20": lambda: default_metrics(data),
        "pyg_recmetrics, every metric at 5 to 100, R-precision": lambda: every_metric(data),
        "pyg_recmetrics, sorting (algorithm='dense')": lambda: sorting(data),
        "pyg_recmetrics, with ROC-AUC and PR-AUC": lambda: areas(data),
        "loop of PyG's example, 2 metrics at 20": lambda: loop_of_pygs_example(data),
        "lists of 20 and PyG's LinkPredMetricCollection": lambda: pygs_metrics(data),
    }
    if data.device.type != "cpu":
        return found
    if importlib.util.find_spec("faiss"):
        found[FAISS] = faiss_top_k(data)
    if importlib.util.find_spec("implicit"):
        found["implicit, lists of 20, no metrics"] = implicit_top_k(data)
    if importlib.util.find_spec("recometrics"):
        found["recometrics, 4 metrics at 20"] = recometrics_all(data, False)
        found["recometrics, with ROC-AUC and PR-AUC"] = recometrics_all(data, True)
    return found


def check(data: Data, name: str, result: object, expected: EvaluationResult) -> None:
    if result is None:
        return
    means = from_lists(data, result) if isinstance(result, np.ndarray) else result
    for metric in ("precision@20", "recall@20"):
        if abs(float(means[metric]) - expected[metric]) > 1e-6:
            raise RuntimeError(f"{name} has another {metric}: {means[metric]}")


def wait_for(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--device", default="cpu")
    args = parser.parse_args()
    data = Data(args.folder, args.device)
    expected = default_metrics(data)
    unmasked = RankingTask(data.test, num_users=len(data.user), num_items=len(data.item))
    expected_unmasked = evaluate((data.user, data.item), unmasked)
    times: dict[str, list[float]] = {}
    functions = contenders(data)
    for turn in range(args.runs + 1):  # the first one warms up
        for name, function in functions.items():
            slow = times.get(name, [0.0])[0] > 10
            if turn > 1 and slow:
                continue
            start = time.perf_counter()
            result = function()
            wait_for(data.device)
            seconds = time.perf_counter() - start
            check(data, name, result, expected_unmasked if name == FAISS else expected)
            if turn > 0 or slow:
                times.setdefault(name, []).append(seconds)
    bare = statistics.median(times["bare matrix product"])
    share = statistics.median(share_of_metrics(data) for _ in range(args.runs))
    place = (
        f"{torch.get_num_threads()} threads, {platform.machine()}"
        if data.device.type == "cpu"
        else torch.cuda.get_device_name(data.device)
    )
    print(f"torch {torch.__version__}, {place}")
    print(f"metrics take {100 * share:.1f}% of every metric at 5 to 100, ranking the rest")
    print(f"{'':62}{'median':>9}{'ratio':>8}{'runs':>6}")
    for name, seconds in times.items():
        median = statistics.median(seconds)
        print(f"{name:62}{median:8.2f}s{median / bare:8.2f}{len(seconds):6}")


if __name__ == "__main__":
    main()
