"""What `spark_map.py` evaluates: factors that ALS, of Spark, has learned."""

import pyarrow as pa
import torch
from pyspark.ml.recommendation import ALS
from pyspark.sql import DataFrame, SparkSession
from torch import Tensor

from pyg_recmetrics import RankingTask

USERS = """
    SELECT id, features, truth, seen FROM factors
    LEFT JOIN (SELECT id, collect_list(item) AS truth FROM truth GROUP BY id) USING (id)
    JOIN (SELECT id, collect_list(item) AS seen FROM seen GROUP BY id) USING (id)
"""


def learn(spark: SparkSession, task: RankingTask) -> tuple[DataFrame, Tensor]:
    """Returns a row for each user, with factors and lists of items, and the table of items."""
    for name, (user, item) in {"truth": task.truth, "seen": task.seen}.items():
        rows = pa.table({"id": user.numpy(), "item": item.numpy()})
        spark.createDataFrame(rows).createTempView(name)
    als = ALS(userCol="id", implicitPrefs=True, rank=16, maxIter=3, seed=0).setNumBlocks(2)
    learned = als.fit(spark.sql("SELECT *, 1 AS rating FROM seen"))
    learned.userFactors.createTempView("factors")
    known = learned.itemFactors.toArrow()
    items = torch.zeros(task.num_items, 16)  # ALS knows nothing of items without interactions
    items[known["id"].to_numpy()] = torch.tensor(known["features"].to_pylist())
    return spark.sql(USERS).cache(), items
