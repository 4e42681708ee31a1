"""Evaluates parts as tasks of Dask.

    python examples/engines/dask_map.py

Results come home as what the tasks return. `gather` fetches them, and `merge` makes them one.
"""

from dask.distributed import Client, LocalCluster
from problem import METRICS, compare, make
from torch import Tensor

from pyg_recmetrics import EvaluationResult, RankingTask, evaluate, merge

NUM_PARTS = 4


def work(index: int, model: tuple[Tensor, Tensor], task: RankingTask) -> EvaluationResult:
    return evaluate(model, task.part(index, NUM_PARTS), METRICS)


def main() -> None:
    task, model = make()
    local = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None}
    with LocalCluster(host="127.0.0.1", **local) as cluster, Client(cluster) as client:
        shared = client.scatter({"model": model, "task": task}, broadcast=True)  # once to each
        parts = client.map(work, range(NUM_PARTS), **shared)
        compare("dask", merge(client.gather(parts)), evaluate(model, task, METRICS))


if __name__ == "__main__":
    main()
