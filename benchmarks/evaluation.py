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

from pyg_recmetrics import EvaluationResult, RankingTask, evaluate, metrics, rank

K = 20
CUT_OFFS = (5, 10, 20, 50, 100)


class Data:
    def __init__(self, folder: Path) -> None:
        graph, model = np.load(folder / "graph.npz"), np.load(folder / "lightgcn.npz")
        self.train, self.test = (torch.from_numpy(graph[name]).long() for name in ("train", "test"))
        self.user, self.item = (torch.from_numpy(model[name]).float() for name in ("user", "item"))
        self.task = RankingTask(
            self.test,
            num_users=self.user.size(0),
            num_items=self.item.size(0),
            seen=self.train,
        )


def matrix_product(data: Data) -> None:
    """All products of users and items, in tiles that stay in the cache of the processor."""
    for user in data.user.split(1024):
        for item in data.item.split(4096):
            torch.mm(user, item.t())


def default_metrics(data: Data) -> EvaluationResult:
    return evaluate((data.user, data.item), data.task)


def every_metric(data: Data) -> EvaluationResult:
    names = ["r_precision"]
    for name in metrics.names():
        known = metrics.definition(name)
        if known.has_cut_off and not known.needs_all_ranks and not known.needs:
            names += [f"{name}@{k}" for k in CUT_OFFS]
    return evaluate((data.user, data.item), data.task, names)


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
        truth = torch.zeros(scores.shape, dtype=torch.bool)
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
    }
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--runs", type=int, default=5)
    args = parser.parse_args()
    data = Data(args.folder)
    expected = default_metrics(data)
    times: dict[str, list[float]] = {}
    functions = contenders(data)
    for turn in range(args.runs + 1):  # the first one warms up
        for name, function in functions.items():
            slow = times.get(name, [0.0])[0] > 10
            if turn > 1 and slow:
                continue
            start = time.perf_counter()
            result = function()
            seconds = time.perf_counter() - start
            check(data, name, result, expected)
            if turn > 0 or slow:
                times.setdefault(name, []).append(seconds)
    bare = statistics.median(times["bare matrix product"])
    print(f"torch {torch.__version__}, {torch.get_num_threads()} threads, {platform.machine()}")
    print(f"{'':56}{'median':>9}{'ratio':>8}{'runs':>6}")
    for name, seconds in times.items():
        median = statistics.median(seconds)
        print(f"{name:56}{median:8.2f}s{median / bare:8.2f}{len(seconds):6}")


if __name__ == "__main__":
    main()
