"""What the engines of this folder evaluate, and how their numbers are compared with one process."""

import torch
from pandas.testing import assert_frame_equal
from torch import Tensor

from pyg_recmetrics import EvaluationResult, RankingTask, datasets, transforms

METRICS = ("ndcg@20", "r_precision", "coverage@20")

#: What keeps Spark on this machine, and makes several batches of these few users.
LOCAL_SPARK = {
    "spark.master": "local[2]",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "500",
    "spark.sql.shuffle.partitions": "2",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}


def make() -> tuple[RankingTask, tuple[Tensor, Tensor]]:
    """Returns a task and embeddings: an item is liked by those who like what the user likes."""
    torch.manual_seed(0)
    data = datasets.synthetic_interactions(num_users=2000, num_items=500)
    _, _, test = transforms.PerUserSplit(num_val=0.0, num_test=0.2)(data)
    task = RankingTask.from_data(test)
    seen = torch.zeros(task.num_users, task.num_items)
    seen[task.seen[0], task.seen[1]] = 1
    # Random signs keep inner products of long columns. Sums of integers have the same bits in every
    # process, whatever its number of threads.
    item = seen.t() @ (torch.randint(2, (task.num_users, 64)) * 2.0 - 1)
    return task, (seen @ item, item)


def compare(engine: str, result: EvaluationResult, one: EvaluationResult) -> None:
    """Prints that a result equals the one of one process to the last bit, or raises an error."""
    assert dict(result) == dict(one), (engine, dict(result), dict(one))
    assert str(result) == str(one), (engine, str(result), str(one))
    values, expected = (
        each.to_pandas(per_user=True).set_index("user").sort_index() for each in (result, one)
    )
    assert_frame_equal(values, expected, check_exact=True)
    print(f"{engine}: ndcg@20 {result['ndcg@20']:.4f}, equal to one process")
