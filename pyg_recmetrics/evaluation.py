"""evaluate(): from a model and a split to its numbers, in one call."""

from collections.abc import Sequence
from typing import Any

from torch import Tensor
from torch_geometric.data import Data, HeteroData
from torch_geometric.typing import EdgeType

from pyg_recmetrics.metrics import Metric, parse_all
from pyg_recmetrics.ranking import rank
from pyg_recmetrics.recommenders import RecommenderLike
from pyg_recmetrics.result import EmptyTargetAction, EvaluationResult
from pyg_recmetrics.task import RankingTask

#: What is evaluated if nothing else is asked for.
DEFAULT_METRICS = ("r_precision", "precision@20", "recall@20", "ndcg@20")


class Evaluator:
    r"""Evaluates recommenders on one task: prepared once, called every epoch.

    Args:
        task_or_data (RankingTask, Data or HeteroData): What is evaluated. Data is read by
            :meth:`RankingTask.from_data`.
        metrics (sequence of str): The metrics, as `name@k`; see :func:`metrics.names`.
            (default: R-precision, and precision, recall and NDCG at 20)
        empty_target_action (str, optional): What users without ground truth count as in a mean:
            `"skip"` leaves them out, `"neg"` counts them as zero, `"pos"` as one, `"error"`
            raises an error. (default: `"skip"`)
        edge_index (torch.Tensor or SparseTensor, optional): The edges a model propagates over, in
            its own numbering. (default: `None`, the message-passing edges of the data)
        edge_weight (torch.Tensor, optional): Their weights. (default: `None`)
        edge_type (tuple, optional): The type of the edges from users to items in a `HeteroData`.
            (default: `None`, the only one with ground truth)
        num_users (int, optional): The number of users in a homogeneous `Data`.
            (default: `None`)
        batch_size (int, optional): The number of users ranked at once. (default: `None`, as many
            as fit into 256 MB of scratch memory)
        progress (bool, optional): Whether to show a progress bar. (default: `False`)

    Raises:
        TypeError: If an argument is of the wrong type.
        ValueError: If there is no such metric, or the data does not hold what is needed.

    Example:
        >>> import torch
        >>> from pyg_recmetrics import Evaluator, RankingTask
        >>> task = RankingTask(torch.tensor([[0, 1], [2, 0]]), num_users=2, num_items=3)
        >>> evaluator = Evaluator(task, metrics=["recall@1", "mrr@3"])
        >>> evaluator(torch.tensor([[0.1, 0.9, 0.5], [0.7, 0.2, 0.3]])).to_dict()
        {'recall@1': 0.5, 'mrr@3': 0.75}
    """

    def __init__(
        self,
        task_or_data: RankingTask | Data | HeteroData,
        metrics: str | Sequence[str | Metric] = DEFAULT_METRICS,
        *,
        empty_target_action: EmptyTargetAction = "skip",
        edge_index: Any = None,
        edge_weight: Tensor | None = None,
        edge_type: EdgeType | None = None,
        num_users: int | None = None,
        batch_size: int | None = None,
        progress: bool = False,
    ) -> None:
        self.task = _as_task(task_or_data, edge_type, num_users)
        self.metrics = parse_all(metrics)
        self.empty_target_action = empty_target_action
        self.edge_index = edge_index
        self.edge_weight = edge_weight
        self.batch_size = batch_size
        self.progress = progress

    def __call__(self, recommender: RecommenderLike) -> EvaluationResult:
        """Ranks with a recommender, in any form that :func:`rank` takes, and measures."""
        ranked = rank(
            recommender,
            self.task,
            k=max((metric.k for metric in self.metrics if metric.k), default=1),
            edge_index=self.edge_index,
            edge_weight=self.edge_weight,
            batch_size=self.batch_size,
            progress=self.progress,
        )
        return EvaluationResult(ranked, self.metrics, self.task.users, self.empty_target_action)

    def __repr__(self) -> str:
        metrics = ", ".join(str(metric) for metric in self.metrics)
        return f"{type(self).__name__}({self.task}, metrics=[{metrics}])"


def evaluate(
    recommender: RecommenderLike,
    task_or_data: RankingTask | Data | HeteroData,
    metrics: str | Sequence[str | Metric] = DEFAULT_METRICS,
    *,
    empty_target_action: EmptyTargetAction = "skip",
    edge_index: Any = None,
    edge_weight: Tensor | None = None,
    edge_type: EdgeType | None = None,
    num_users: int | None = None,
    batch_size: int | None = None,
    progress: bool = False,
) -> EvaluationResult:
    r"""Evaluates a recommender: ranks every ground-truth edge once, and measures.

    Args:
        recommender: A model with `recommend`, a pair of embeddings, scores, a function, or lists;
            see :func:`rank` for all forms.
        task_or_data (RankingTask, Data or HeteroData): What is evaluated.
        metrics (sequence of str): The metrics, as `name@k`.
        empty_target_action (str, optional): See :class:`Evaluator`, like all that follow.
        edge_index (torch.Tensor or SparseTensor, optional): The edges a model propagates over.
        edge_weight (torch.Tensor, optional): Their weights.
        edge_type (tuple, optional): The type of the edges from users to items.
        num_users (int, optional): The number of users in a homogeneous `Data`.
        batch_size (int, optional): The number of users ranked at once.
        progress (bool, optional): Whether to show a progress bar.

    Returns:
        The mean of every metric, and its value for every user.

    Raises:
        TypeError: If an argument is of the wrong type.
        ValueError: If an argument does not fit the others; the message names it.

    Example:
        >>> import torch
        >>> from torch_geometric.data import Data
        >>> from torch_geometric.nn import LightGCN
        >>> from pyg_recmetrics import evaluate
        >>> data = Data(num_nodes=5)  # two users, three items
        >>> data.edge_index = torch.tensor([[0, 2, 1, 3], [2, 0, 3, 1]])
        >>> data.edge_label_index = torch.tensor([[0, 1], [3, 4]])
        >>> model = LightGCN(num_nodes=5, embedding_dim=8, num_layers=2)
        >>> evaluate(model, data, ["recall@2"], num_users=2)["recall@2"]
        1.0
    """
    evaluator = Evaluator(
        task_or_data,
        metrics,
        empty_target_action=empty_target_action,
        edge_index=edge_index,
        edge_weight=edge_weight,
        edge_type=edge_type,
        num_users=num_users,
        batch_size=batch_size,
        progress=progress,
    )
    return evaluator(recommender)


def _as_task(
    task_or_data: RankingTask | Data | HeteroData,
    edge_type: EdgeType | None,
    num_users: int | None,
) -> RankingTask:
    if not isinstance(task_or_data, RankingTask):
        return RankingTask.from_data(task_or_data, edge_type, num_users=num_users)
    for value, name in ((edge_type, "edge_type"), (num_users, "num_users")):
        if value is not None:
            raise ValueError(f"'{name}' applies to data, not to a 'RankingTask' (got {value!r})")
    return task_or_data
