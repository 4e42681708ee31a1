"""Times full-ranking evaluation side by side with other ways to get the same numbers.

    python benchmarks/evaluation.py FOLDER

`FOLDER` holds `graph.npz` (`train` and `test` edges) and `lightgcn.npz` (`user` and `item`
embeddings), as the Gowalla split of the LightGCN paper. Everything runs in one process, several
times in turn, and is reported as the ratio of medians to a bare single-precision matrix product
of all users and items, in tiles. Before a time is printed, all ways have to agree on precision and
recall. Peers that are not installed are left out.
"""

import argparse
import importlib.util
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from embeddings import Embeddings, product_in_tiles, trained_embeddings
from timing import in_turn, machine, medians
from torch import Tensor
from torch_geometric.metrics import (
    LinkPredMetricCollection,
    LinkPredPrecision,
    LinkPredRecall,
)

from pyg_recmetrics import EvaluationResult, evaluate, metrics, rank

K = 20
CUT_OFFS = (5, 10, 20, 50, 100)


def default_metrics(data: Embeddings) -> EvaluationResult:
    return evaluate((data.user, data.item), data.task)


def names_of_every_metric() -> list[str]:
    names = ["r_precision"]
    for name in metrics.names():
        known = metrics.definition(name)
        if known.has_cut_off and not known.needs_all_ranks and not known.needs:
            names += [f"{name}@{k}" for k in CUT_OFFS]
    return names


def every_metric(data: Embeddings) -> EvaluationResult:
    return evaluate((data.user, data.item), data.task, names_of_every_metric())


def share_of_metrics(data: Embeddings) -> float:
    """How much of the time of `every_metric` goes by after the ranking."""
    embeddings, names = (data.user, data.item), names_of_every_metric()
    start = time.perf_counter()
    ranked = rank(embeddings, data.task, k=max(CUT_OFFS))
    middle = time.perf_counter()
    EvaluationResult(ranked, names, task=data.task).to_dict()
    end = time.perf_counter()
    return (end - middle) / (end - start)


def sorting(data: Embeddings) -> EvaluationResult:
    ranked = rank((data.user, data.item), data.task, k=max(CUT_OFFS), algorithm="dense")
    return EvaluationResult(ranked, ["precision@20", "recall@20"])


def areas(data: Embeddings) -> EvaluationResult:
    names = ["precision@20", "recall@20", "roc_auc", "pr_auc"]
    return evaluate((data.user, data.item), data.task, names)


def loop_of_pygs_example(data: Embeddings) -> dict[str, float]:
    """Precision and recall at 20 as PyG's `examples/lightgcn.py` computes them."""
    precision = recall = num_users = 0.0
    for start in range(0, data.user.size(0), 1024):
        scores = data.user[start : start + 1024] @ data.item.t()
        truth = torch.zeros(scores.shape, dtype=torch.bool, device=scores.device)
        train, test = (
            edges[:, (edges[0] >= start) & (edges[0] < start + 1024)]
            for edges in (data.task.seen, data.task.truth)
        )
        scores[train[0] - start, train[1]] = -torch.inf
        truth[test[0] - start, test[1]] = True
        hits = truth.gather(1, scores.topk(K, dim=1).indices).sum(dim=1)
        num_relevant = truth.sum(dim=1)
        precision += float((hits / K).sum())
        recall += float((hits / num_relevant.clamp(min=1)).sum())
        num_users += int((num_relevant > 0).sum())
    return {"precision@20": precision / num_users, "recall@20": recall / num_users}


def pygs_metrics(data: Embeddings) -> dict[str, float]:
    """Lists of 20 in chunks of users, and PyG's collection of metrics."""
    metrics_at_k = {"precision@20": LinkPredPrecision(K), "recall@20": LinkPredRecall(K)}
    collection = LinkPredMetricCollection(metrics_at_k).to(data.task.device)
    for start in range(0, data.user.size(0), 1024):
        scores = data.user[start : start + 1024] @ data.item.t()
        train, test = (
            edges[:, (edges[0] >= start) & (edges[0] < start + 1024)]
            for edges in (data.task.seen, data.task.truth)
        )
        scores[train[0] - start, train[1]] = -torch.inf
        test = torch.stack([test[0] - start, test[1]])
        collection.update(scores.topk(K, dim=1).indices, test)
    return {name: float(value) for name, value in collection.compute().items()}


def from_lists(data: Embeddings, lists: np.ndarray) -> dict[str, float]:
    """Precision and recall at 20 of given lists, which is not part of what is timed."""
    keys = np.sort((data.task.truth[0] * data.item.size(0) + data.task.truth[1]).numpy())
    users = np.arange(len(lists))[:, None]
    asked = users * data.item.size(0) + lists
    place = np.searchsorted(keys, asked).clip(max=len(keys) - 1)
    hits = (keys[place] == asked).sum(1)
    degree = np.bincount(data.task.truth[0].numpy(), minlength=len(lists))
    return {
        "precision@20": float((hits / K).mean()),
        "recall@20": float((hits / degree).mean()),
    }


def csr(edges: Tensor, shape: tuple[int, int]) -> object:
    import scipy.sparse

    ones = np.ones(edges.size(1), dtype=np.float32)
    return scipy.sparse.csr_matrix((ones, tuple(edges.numpy())), shape)


def implicit_top_k(data: Embeddings) -> Callable[[], np.ndarray]:
    from implicit.cpu.topk import topk

    seen = csr(data.task.seen, (data.user.size(0), data.item.size(0)))
    item, user = data.item.numpy(), data.user.numpy()

    def run() -> np.ndarray:
        lists: np.ndarray = topk(item, user, K, filter_query_items=seen)[0]
        return lists

    return run


def faiss_top_k(data: Embeddings) -> Callable[[], np.ndarray]:
    import faiss

    index = faiss.IndexFlatIP(data.item.size(1))
    index.add(data.item.numpy())
    user = data.user.numpy()

    def run() -> np.ndarray:
        lists: np.ndarray = index.search(user, K)[1]
        return lists

    return run


def scann_top_k(data: Embeddings) -> Callable[[], np.ndarray]:
    from scann import scann_ops_pybind

    builder = scann_ops_pybind.builder(data.item.numpy(), K, "dot_product")
    searcher = builder.score_brute_force().build()
    num_threads = torch.get_num_threads()
    searcher.set_num_threads(num_threads)
    search = searcher.search_batched_parallel if num_threads > 1 else searcher.search_batched
    user = data.user.numpy()

    def run() -> np.ndarray:
        lists: np.ndarray = search(user)[0]
        return lists

    return run


def unmasked_lists(data: Embeddings) -> dict[str, Callable[[], np.ndarray]]:
    """Installed peers that make exact lists of 20, where what is seen cannot be masked."""
    found = {}
    if importlib.util.find_spec("faiss"):
        found["faiss `IndexFlatIP`, lists of 20, nothing masked"] = faiss_top_k(data)
    if importlib.util.find_spec("scann"):
        found["ScaNN brute force, lists of 20, nothing masked"] = scann_top_k(data)
    return found


def recometrics_all(data: Embeddings, with_areas: bool) -> Callable[[], dict[str, float]]:
    import recometrics

    shape = (data.user.size(0), data.item.size(0))
    seen, truth = csr(data.task.seen, shape), csr(data.task.truth, shape)

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


def contenders(data: Embeddings) -> dict[str, Callable[[], Any]]:
    found: dict[str, Callable[[], Any]] = {
        "pyg_recmetrics, default metrics at 20": lambda: default_metrics(data),
        "pyg_recmetrics, every metric at 5 to 100, R-precision": lambda: every_metric(data),
        "pyg_recmetrics, sorting (algorithm='dense')": lambda: sorting(data),
        "pyg_recmetrics, with ROC-AUC and PR-AUC": lambda: areas(data),
        "loop of PyG's example, 2 metrics at 20": lambda: loop_of_pygs_example(data),
        "lists of 20 and PyG's LinkPredMetricCollection": lambda: pygs_metrics(data),
    }
    if data.task.device.type != "cpu":
        return found
    if importlib.util.find_spec("implicit"):
        found["implicit, lists of 20, no metrics"] = implicit_top_k(data)
    if importlib.util.find_spec("recometrics"):
        found["recometrics, 4 metrics at 20"] = recometrics_all(data, False)
        found["recometrics, with ROC-AUC and PR-AUC"] = recometrics_all(data, True)
    return found


def check(data: Embeddings, name: str, result: Any, expected: EvaluationResult) -> None:
    means = from_lists(data, result) if isinstance(result, np.ndarray) else result
    for metric in ("precision@20", "recall@20"):
        if abs(float(means[metric]) - expected[metric]) > 1e-6:
            raise RuntimeError(f"{name} has another {metric}: {means[metric]}")


def check_unmasked(data: Embeddings, name: str, lists: np.ndarray) -> None:
    check(data, name, lists, evaluate((data.user, data.item), data.unmasked_task))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--device", default="cpu")
    args = parser.parse_args()
    data = trained_embeddings(args.folder, args.device)
    masked, unmasked = contenders(data), {}
    if data.task.device.type == "cpu":
        unmasked = unmasked_lists(data)
    expected = default_metrics(data)
    for name, function in masked.items():
        check(data, name, function(), expected)
    for name, list_items in unmasked.items():
        check_unmasked(data, name, list_items())
    bare = "bare matrix product"
    product_in_tiles(data)
    functions = {bare: lambda: product_in_tiles(data), **masked, **unmasked}
    times = in_turn(functions, args.runs)
    share = statistics.median(share_of_metrics(data) for _ in range(args.runs))
    print(machine(data.task.device))
    print(f"metrics take {100 * share:.1f}% of every metric at 5 to 100, ranking the rest")
    print(f"{'':62}{'median':>9}{'ratio':>8}{'runs':>6}")
    median = medians(times)
    for name, seconds in median.items():
        print(f"{name:62}{seconds:8.2f}s{seconds / median[bare]:8.2f}{len(times[name]):6}")


if __name__ == "__main__":
    main()
