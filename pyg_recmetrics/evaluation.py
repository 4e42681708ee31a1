"""evaluate(): from a model and a split to its numbers, in one call."""

import copy
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch_geometric.data import Data, HeteroData
from torch_geometric.typing import EdgeType

from pyg_recmetrics import conventions
from pyg_recmetrics.callback import make_callback
from pyg_recmetrics.catalogue import Catalogue
from pyg_recmetrics.conventions import Convention, EmptyTargetAction
from pyg_recmetrics.history import History
from pyg_recmetrics.metrics import Metric, parse, parse_all
from pyg_recmetrics.ranking import has_constant_scores, rank
from pyg_recmetrics.recommenders import RecommenderLike
from pyg_recmetrics.result import EvaluationResult, resolve_all
from pyg_recmetrics.task import RankingTask

if TYPE_CHECKING:
    from lightning.pytorch import Callback

#: What is evaluated if nothing else is asked for.
DEFAULT_METRICS = ("r_precision", "precision@20", "recall@20", "ndcg@20")


class Evaluator:
    r"""Evaluates recommenders on one task: prepared once, called every epoch.

    What was evaluated is kept in a :class:`~pyg_recmetrics.history.History`: the means of every
    call, and the whole result of the best. The training loop stays yours::

        for epoch in range(1000):
            train(model)
            evaluator(model)
            if evaluator.history.is_best:
                torch.save(model.state_dict(), "best.pt")
            if evaluator.should_stop:
                break

    Args:
        task_or_data (RankingTask, Data or HeteroData): What is evaluated. Data is read by
            :meth:`RankingTask.from_data`.
        metrics (sequence of str): The metrics, as `name@k`; see :func:`metrics.names`.
            (default: R-precision, and precision, recall and NDCG at 20)
        convention (str or Convention, optional): Whose definitions of these metrics, see
            :mod:`~pyg_recmetrics.conventions`. (default: `"standard"`)
        empty_target_action (str, optional): What users without ground truth count as in a mean:
            `"skip"` leaves them out, `"neg"` counts them as zero, `"pos"` as one, `"error"`
            raises an error. (default: `None`, as the convention has it; `"skip"` in `"standard"`)
        edge_index (torch.Tensor or SparseTensor, optional): The edges a model propagates over, in
            its own numbering. (default: `None`, the message-passing edges of the data)
        edge_weight (torch.Tensor, optional): Their weights. (default: `None`)
        edge_type (tuple, optional): The type of the edges from users to items in a `HeteroData`.
            (default: `None`, the only one with ground truth)
        num_users (int, optional): The number of users in a homogeneous `Data`.
            (default: `None`)
        item_embedding (torch.Tensor, optional): Floating-point features of every item, of shape
            `[num_items, num_features]`, for metrics that compare items. (default: `None`)
        item_category (torch.Tensor, optional): The category of every item, of shape `[num_items]`,
            or which categories it has, of shape `[num_items, num_categories]`; see
            :class:`Catalogue`. (default: `None`)
        batch_size (int, optional): The number of users ranked at once. (default: `None`, as many
            as fit into 256 MB of scratch memory)
        keep_items (bool, optional): Whether to keep the lists of recommended items. Metrics of
            lists, such as `coverage@20`, keep them down to their own k without being asked; they
            then take memory for `[num_users, k]` items. (default: `False`)
        progress (bool, optional): Whether to show a progress bar. (default: `False`)
        monitor (str, optional): Which metric says which call is the best.
            (default: `None`, the first of them)
        patience (int, optional): After how many calls in a row that are not the best so far
            :attr:`should_stop` is `True`. (default: `None`, it never is)

    Attributes:
        history (History): The means of every call, in their order.

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
        convention: str | Convention = "standard",
        empty_target_action: EmptyTargetAction | None = None,
        edge_index: Any = None,
        edge_weight: Tensor | None = None,
        edge_type: EdgeType | None = None,
        num_users: int | None = None,
        item_embedding: Tensor | None = None,
        item_category: Tensor | None = None,
        batch_size: int | None = None,
        keep_items: bool = False,
        progress: bool = False,
        monitor: str | Metric | None = None,
        patience: int | None = None,
    ) -> None:
        task = _as_task(task_or_data, edge_type, num_users)
        self.metrics = parse_all(metrics)
        self.convention = conventions.get(convention)
        self.empty_target_action = empty_target_action
        eligible = self.convention.population.is_eligible(task)[task.users]
        self.task = task if bool(eligible.all()) else task.select_users(task.users[eligible])
        self.num_left_out = int((~eligible).sum())
        self.catalogue = _as_catalogue(task, item_embedding, item_category)
        resolved = resolve_all(self.metrics, self.convention).values()
        for metric in resolved:
            metric.check_known(self.catalogue)
        self._depths = [metric.depth for metric in resolved]
        #: Down to where metrics need lists, zero if none does.
        self.list_depth = max((m.k for m in resolved if m.k and "items" in m.needs), default=0)
        self.edge_index = edge_index
        self.edge_weight = edge_weight
        self.batch_size = batch_size
        self.keep_items = keep_items
        self.progress = progress
        self.history = History(self._monitored(monitor), patience)

    def __call__(self, recommender: RecommenderLike) -> EvaluationResult:
        """Ranks with a recommender, in any form that :func:`rank` takes, and measures."""
        task, num_left_out = self.task, self.num_left_out
        edges = {"edge_index": self.edge_index, "edge_weight": self.edge_weight}
        if not self.convention.population.constant_scores:
            is_constant = has_constant_scores(
                recommender, task, **edges, batch_size=self.batch_size
            )[task.users]
            num_left_out += int(is_constant.sum())
            task = task.select_users(task.users[~is_constant])
        ranked = rank(
            recommender,
            task,
            k=max((depth for depth in self._depths if depth), default=1),
            full=None in self._depths,
            **edges,
            batch_size=self.batch_size,
            keep_items=self.keep_items or self.list_depth or False,
            progress=self.progress,
        ).with_catalogue(self.catalogue)
        result = EvaluationResult(
            ranked,
            self.metrics,
            task=task,
            empty_target_action=self.empty_target_action,
            convention=self.convention,
            num_left_out=num_left_out,
        )
        self.history.append(result)
        return result

    @property
    def best(self) -> EvaluationResult | None:
        """The best result so far, by the metric that is monitored; `None` before the first."""
        return self.history.best

    @property
    def should_stop(self) -> bool:
        """Whether the last `patience` calls were no improvement."""
        return self.history.should_stop

    def to(self, device: torch.device | str) -> "Evaluator":
        """Returns an evaluator on another device, which adds to the same history."""
        moved = copy.copy(self)
        moved.task = self.task.to(device)
        moved.catalogue = self.catalogue.to(device)
        for name in ("edge_index", "edge_weight"):
            if (value := getattr(self, name)) is not None:
                setattr(moved, name, value.to(device))
        return moved

    def as_callback(
        self,
        recommender: "Callable[[Any], RecommenderLike] | None" = None,
        *,
        every_n_epochs: int = 1,
    ) -> "Callback":
        """Returns a Lightning callback that evaluates after training epochs.

        It logs all metrics under their names, for other callbacks and loggers, and stops the
        training when :attr:`should_stop` says so. The evaluator goes to the device of the module.

        Args:
            recommender (callable, optional): Takes the `LightningModule` and returns what is
                evaluated, as in `lambda module: module.model`. (default: `None`, the module itself)
            every_n_epochs (int, optional): After how many epochs. (default: `1`)

        Raises:
            ImportError: If Lightning is not installed.
            ValueError: If `every_n_epochs` is not a positive integer.
        """
        return make_callback(self, recommender, every_n_epochs)

    def _monitored(self, monitor: str | Metric | None) -> Metric:
        metric = self.metrics[0] if monitor is None else parse(monitor)
        if metric not in self.metrics:
            raise ValueError(f"'monitor' needs to be one of {list(self.metrics)} (got {metric})")
        return metric

    def __repr__(self) -> str:
        metrics = ", ".join(str(metric) for metric in self.metrics)
        return f"{type(self).__name__}({self.task}, metrics=[{metrics}])"


def evaluate(
    recommender: RecommenderLike,
    task_or_data: RankingTask | Data | HeteroData,
    metrics: str | Sequence[str | Metric] = DEFAULT_METRICS,
    *,
    convention: str | Convention = "standard",
    empty_target_action: EmptyTargetAction | None = None,
    edge_index: Any = None,
    edge_weight: Tensor | None = None,
    edge_type: EdgeType | None = None,
    num_users: int | None = None,
    item_embedding: Tensor | None = None,
    item_category: Tensor | None = None,
    batch_size: int | None = None,
    keep_items: bool = False,
    progress: bool = False,
) -> EvaluationResult:
    r"""Evaluates a recommender: ranks every ground-truth edge once, and measures.

    Args:
        recommender: A model with `recommend`, a pair of embeddings, scores, a function, or lists;
            see :func:`rank` for all forms.
        task_or_data (RankingTask, Data or HeteroData): What is evaluated.
        metrics (sequence of str): The metrics, as `name@k`.
        convention (str or Convention, optional): Whose definitions of these metrics; see
            :class:`Evaluator`, like all that follow.
        empty_target_action (str, optional): What users without ground truth count as.
        edge_index (torch.Tensor or SparseTensor, optional): The edges a model propagates over.
        edge_weight (torch.Tensor, optional): Their weights.
        edge_type (tuple, optional): The type of the edges from users to items.
        num_users (int, optional): The number of users in a homogeneous `Data`.
        item_embedding (torch.Tensor, optional): Features of every item.
        item_category (torch.Tensor, optional): The category of every item.
        batch_size (int, optional): The number of users ranked at once.
        keep_items (bool, optional): Whether to keep the lists of recommended items.
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
        convention=convention,
        empty_target_action=empty_target_action,
        edge_index=edge_index,
        edge_weight=edge_weight,
        edge_type=edge_type,
        num_users=num_users,
        item_embedding=item_embedding,
        item_category=item_category,
        batch_size=batch_size,
        keep_items=keep_items,
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


def _as_catalogue(
    task: RankingTask, item_embedding: Tensor | None, item_category: Tensor | None
) -> Catalogue:
    """What the task knows of its items, and what is given."""
    catalogue = Catalogue(
        task.num_items,
        seen=task.catalogue.seen,
        item_embedding=item_embedding,
        item_category=item_category,
    )
    catalogue.check_device(task.device, "truth")
    return catalogue
