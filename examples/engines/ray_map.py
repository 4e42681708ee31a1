"""Evaluates parts as tasks of Ray.

    python examples/engines/ray_map.py

Results come home as what the tasks return. `ray.get` fetches them, and `merge` makes them one.
"""

import ray
from problem import METRICS, compare, make
from torch import Tensor

from pyg_recmetrics import EvaluationResult, RankingTask, evaluate, merge

NUM_PARTS = 4


def work(model: tuple[Tensor, Tensor], task: RankingTask, index: int) -> EvaluationResult:
    return evaluate(model, task.part(index, NUM_PARTS), METRICS)


def main() -> None:
    ray.init(num_cpus=2, object_store_memory=100 * 2**20, include_dashboard=False)
    task, model = make()
    shared = ray.put(model), ray.put(task)  # one copy for each machine
    parts = [ray.remote(work).remote(*shared, index) for index in range(NUM_PARTS)]
    compare("ray", merge(ray.get(parts)), evaluate(model, task, METRICS))
    ray.shutdown()


if __name__ == "__main__":
    main()
