"""Several processes that evaluate together, each its part of the users.

All processes of a group of :mod:`torch.distributed` call :func:`evaluate` with the same task and
the same recommender, and all of them get the result of all users. :func:`pyg_recmetrics.evaluate`
and :func:`pyg_recmetrics.rank` know nothing of a group: each process calls them for itself.
"""

from collections.abc import Sequence
from typing import Any

import torch.distributed as dist

from pyg_recmetrics.evaluation import DEFAULT_METRICS, Evaluator
from pyg_recmetrics.metrics import Metric
from pyg_recmetrics.ranking import RecommenderLike
from pyg_recmetrics.results import EvaluationResult, merge
from pyg_recmetrics.task import RankingTask

__all__ = ["evaluate"]
__dir__ = __all__.copy  # what completion shows


def evaluate(
    recommender: RecommenderLike,
    task: RankingTask,
    metrics: str | Metric | Sequence[str | Metric] = DEFAULT_METRICS,
    **options: Any,
) -> EvaluationResult:
    """Evaluates a recommender in all processes of a group. Each ranks its part of the users.

    The numbers are those of one process, to the last bit, if all processes have the same
    recommender. This is not checked: broadcast embeddings that each process computes by itself. A
    process that fails leaves the others waiting until the timeout of the group, unless `torchrun`
    ends them.

    Args:
        recommender: What to evaluate, see :func:`pyg_recmetrics.evaluate`.
        task (RankingTask): What to evaluate on, the same in every process.
        metrics (str or sequence of str, optional): The metrics, as `name@k`.
            (default: `("r_precision", "precision@20", "recall@20", "ndcg@20")`)
        **options: The other options of :func:`pyg_recmetrics.evaluate`, but for `margin`.

    Returns:
        The result of all users, in every process.

    Raises:
        TypeError: If `task` is not a task.
        ValueError: If there is no group, there are fewer users than processes, or an option does
            not fit.

    Example:
        >>> import torch, torch.distributed as dist
        >>> from pyg_recmetrics import RankingTask, distributed
        >>> dist.init_process_group("gloo", rank=0, world_size=1, store=dist.HashStore())
        >>> task = RankingTask(torch.tensor([[0, 1], [2, 0]]), num_users=2, num_items=3)
        >>> distributed.evaluate(torch.tensor([0.1, 0.2, 0.3]), task, "recall@1")["recall@1"]
        0.5
        >>> dist.destroy_process_group()
    """
    if not isinstance(task, RankingTask):
        raise TypeError(
            f"'task' needs to be a 'RankingTask' (got {type(task).__name__}); write "
            f"RankingTask.from_data(test)"
        )
    if options.get("margin") is not None:
        raise ValueError("'margin' needs to be None in several processes, which rank all users")
    if not (dist.is_available() and dist.is_initialized()):
        raise ValueError(
            "'distributed.evaluate' needs a process group; write "
            "torch.distributed.init_process_group() first, or call pyg_recmetrics.evaluate"
        )
    part = task.part(dist.get_rank(), dist.get_world_size())
    parts: list[Any] = [None] * dist.get_world_size()
    dist.all_gather_object(parts, Evaluator(part, metrics, **options)(recommender))
    return merge(parts)
