"""Evaluates in the processes of Ray's `TorchTrainer`, for which Ray makes a process group.

    python examples/engines/ray_train.py

The result comes home as `fit().return_value`: that of the first process. `fit().metrics` remains
`None`, even after `ray.train.report(metrics)`, unless a checkpoint is reported with them.
"""

import tempfile
from typing import Any

import ray
from problem import METRICS, compare, make
from ray.train import RunConfig, ScalingConfig
from ray.train.torch import TorchConfig, TorchTrainer

from pyg_recmetrics import EvaluationResult, distributed, evaluate


def work(shared: dict[str, Any]) -> EvaluationResult:
    # Each ranks its part of the users.
    return distributed.evaluate(shared["model"], shared["task"], METRICS)


def main() -> None:
    ray.init(num_cpus=2, object_store_memory=100 * 2**20, include_dashboard=False)
    task, model = make()
    with tempfile.TemporaryDirectory() as folder:
        fitted = TorchTrainer(
            work,
            train_loop_config={"task": task, "model": model},
            torch_config=TorchConfig(backend="gloo"),
            scaling_config=ScalingConfig(num_workers=2),
            run_config=RunConfig(storage_path=folder),
        ).fit()
    compare("TorchTrainer", fitted.return_value, evaluate(model, task, METRICS))
    ray.shutdown()


if __name__ == "__main__":
    main()
