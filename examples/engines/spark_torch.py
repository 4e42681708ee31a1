"""Evaluates in the processes of Spark's `TorchDistributor`.

    python examples/engines/spark_torch.py

The result comes home as what `run` returns: that of the first process.
"""

import torch.distributed as dist
from problem import LOCAL_SPARK, METRICS, compare, make
from pyspark.ml.torch.distributor import TorchDistributor
from pyspark.sql import SparkSession
from torch import Tensor

from pyg_recmetrics import EvaluationResult, RankingTask, distributed, evaluate


def work(
    model: tuple[Tensor, Tensor], task: RankingTask, metrics: tuple[str, ...]
) -> EvaluationResult:
    dist.init_process_group("gloo")  # Spark starts processes as torchrun does
    result = distributed.evaluate(model, task, metrics)
    dist.destroy_process_group()
    return result


def main() -> None:
    spark = SparkSession.builder.config(map=LOCAL_SPARK).getOrCreate()
    task, model = make()
    distributor = TorchDistributor(num_processes=2, local_mode=True, use_gpu=False)
    result = distributor.run(work, model, task, METRICS)
    compare("TorchDistributor", result, evaluate(model, task, METRICS))
    spark.stop()


if __name__ == "__main__":
    main()
