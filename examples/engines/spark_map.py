"""Evaluates factors where Spark has them: each partition evaluates its own users, by `mapInArrow`.

    python examples/engines/spark_map.py

Results come home as rows of bytes, one for each batch of users, and `merge` makes them one.
"""

import pickle
from typing import Any

import als
import pyarrow as pa
import pyarrow.compute as pc
import torch
from problem import LOCAL_SPARK, METRICS, compare, make
from pyspark.sql import SparkSession

from pyg_recmetrics import EvaluationResult, RankingTask, evaluate, merge


def edges(lists: Any) -> tuple[Any, Any]:
    return pc.list_parent_indices(lists), pc.list_flatten(lists)


def evaluate_users(users: Any, item: torch.Tensor) -> EvaluationResult:
    """Evaluates the users of some rows, whose edges are in these rows and in no others."""
    truth, seen, ids = edges(users["truth"]), edges(users["seen"]), users["id"].to_pylist()
    task = RankingTask(truth, seen=seen, num_users=len(ids), num_items=len(item), user_ids=ids)
    return evaluate((torch.tensor(users["features"].to_pylist()), item), task, METRICS)


def main() -> None:
    spark = SparkSession.builder.config(map=LOCAL_SPARK).getOrCreate()
    users, item = als.learn(spark, make()[0])
    shared = spark.sparkContext.broadcast(item)

    def work(batches: Any) -> Any:
        for batch in batches:
            yield pa.record_batch({"result": [pickle.dumps(evaluate_users(batch, shared.value))]})

    rows = users.mapInArrow(work, "result binary").collect()
    merged = merge([pickle.loads(row.result) for row in rows])
    (every,) = users.toArrow().combine_chunks().to_batches()
    compare("mapInArrow", merged, evaluate_users(every, item))
    spark.stop()


if __name__ == "__main__":
    main()
