"""evaluate() and Evaluator: from a model and a split to its numbers, in one call."""

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch_geometric.data import Data, HeteroData
from torch_geometric.typing import Adj, EdgeType

from pyg_recmetrics import conventions, processes
from pyg_recmetrics.conventions import Convention, Population
from pyg_recmetrics.frozen import Frozen, settle
from pyg_recmetrics.inputs import EdgesLike, TensorLike
from pyg_recmetrics.lightning import make_callback
from pyg_recmetrics.metrics import Metric, parse, parse_all
from pyg_recmetrics.metrics.empty_target_action import EmptyTargetAction
from pyg_recmetrics.options import DEFAULT_METRICS, EvaluationOptions
from pyg_recmetrics.ranked_edges.ties import Ties
from pyg_recmetrics.ranking import RecommenderLike, rank
from pyg_recmetrics.ranking.message_passing import read_message_passing
from pyg_recmetrics.results import EvaluationResult, History
from pyg_recmetrics.results.tracker_names import Separator
from pyg_recmetrics.task import Catalogue, RankingTask, as_task

if TYPE_CHECKING:
    from lightning.pytorch import Callback


def evaluate(
    recommender: RecommenderLike,
    data: RankingTask | Data | HeteroData,
    metrics: str | Metric | Sequence[str | Metric] = DEFAULT_METRICS,
    *,
    convention: str | Convention = "standard",
    empty_target_action: EmptyTargetAction | None = None,
    population: Population | None = None,
    edge_index: EdgesLike | None = None,
    edge_weight: TensorLike | None = None,
    edge_type: EdgeType | None = None,
    num_users: int | None = None,
    threshold: float | None = None,
    catalogue: Catalogue | None = None,
    item_embedding: TensorLike | None = None,
    item_category: TensorLike | None = None,
    propensity: TensorLike | None = None,
    batch_size: int | None = None,
    keep_items: bool | int = False,
    ties: Ties | None = None,
    seed: int = 0,
    progress: bool = False,
) -> EvaluationResult:
    r"""Evaluates a recommender: ranks every ground-truth edge once, and measures.

    Evaluation uses the `edge_label_index` of the data as ground truth, without sampled negatives.
    A model propagates over the `edge_index` of the data. The items of these edges are left out of
    their user's ranking. A metric is undefined for users without ground truth.

    A warning is given if the order of equal scores can move a mean by more than its confidence
    interval, or if all items have the same score for everybody. The result says how far
    (:meth:`EvaluationResult.tie_range`).

    Args:
        recommender: What to evaluate: a model with `recommend`, such as PyG's
            :class:`~torch_geometric.nn.models.LightGCN`; a pair `(user_embedding, item_embedding)`
            or a triple with item biases; scores `[num_users, num_items]`; a function from users to
            their scores; one score per item `[num_items]`; or lists of recommended items
            `[num_users, K]`. See :func:`rank` for the details.
        data (RankingTask, Data or HeteroData): What to evaluate on: one part of a split, which
            :meth:`RankingTask.from_data` reads, or a task.
        metrics (str or sequence of str, optional): The metrics, as `name@k`. See
            :func:`metrics.names` for all names. (default: `("r_precision", "precision@20",
            "recall@20", "ndcg@20")`)
        convention (str or Convention, optional): The library whose definitions of these metrics
            are used, see :mod:`~pyg_recmetrics.conventions`. (default: `"standard"`, those of PyG)
        empty_target_action (str, optional): What users without ground truth count as in a mean:
            `"skip"` leaves them out, `"neg"` counts them as zero, `"pos"` as one, and `"error"`
            raises an error. (default: `None`, as the convention says; the standard convention
            says `"skip"`)
        population (Population, optional): Which users are evaluated, such as
            `Population(min_pos_test=5)` for those with five relevant items or more.
            (default: `None`, as the convention says; the standard convention evaluates all users)
        edge_index (torch.Tensor or SparseTensor, optional): The edges that a model propagates
            over, of shape `[2, num_edges]`, in its own numbering. The values of a matrix of SciPy
            are weights, unless all of them are one. (default: `None`, the message-passing edges of
            the data)
        edge_weight (torch.Tensor, optional): The weights of these edges, of shape `[num_edges]`.
            (default: `None`)
        edge_type (tuple, optional): The type of the edges from users to items in a `HeteroData`.
            (default: `None`, the only one with ground truth; of opposite ones, that from `"user"`
            nodes)
        num_users (int, optional): The number of users in a homogeneous `Data`, where users come
            first. (default: `None`, the `num_users` of the data)
        threshold (float, optional): The smallest `edge_label` of an edge that is ground truth, as
            in "at least 4 stars". Graded metrics keep the ratings as weights; see
            :class:`RankingTask`. (default: `None`, all edges of positive label are ground truth)
        catalogue (Catalogue, optional): What is known about the items, for metrics that look at
            them. Where it has no seen edges, those of the task count. (default: `None`)
        item_embedding (torch.Tensor, optional): A short way to a catalogue: floating-point features
            of every item, of shape `[num_items, num_features]`, for metrics that compare items.
            (default: `None`)
        item_category (torch.Tensor, optional): The category of every item, of shape `[num_items]`,
            or a matrix `[num_items, num_categories]` of the categories it has; see
            :class:`Catalogue`. (default: `None`)
        propensity (torch.Tensor, optional): How likely an interaction with each item was to be
            observed, of shape `[num_items]`, for metrics that correct for it, such as
            `recall(propensity=given)@20`; see :class:`Catalogue`. (default: `None`)
        batch_size (int, optional): The number of users to rank at once. It does not change any
            result. (default: `None`, as many as fit into 256 MB of scratch memory)
        keep_items (bool or int, optional): Whether to keep the lists of recommended items, as deep
            as users are ranked, or how many items of each list to keep. Metrics of lists, such as
            `coverage@20`, keep at least as many as they need. Lists take memory for all users of
            the task. (default: `False`)
        ties (str, optional): How equal scores are ranked: `"index"` ranks the lower item id first;
            `"best"` and `"worst"` rank relevant items first and last; `"mean"` gives them the mean
            of these two ranks; and `"random"` gives them random places. See
            :meth:`RankedEdges.with_ties`. (default: `None`, as the convention says; the standard
            convention says `"index"`)
        seed (int, optional): The seed of `ties="random"`. (default: `0`)
        progress (bool, optional): Whether to show a progress bar. (default: `False`)

    Returns:
        The mean of every metric, and its value for every user.

    Raises:
        TypeError: If an argument has a wrong type.
        ValueError: If an argument does not fit the others. The error names the argument, what was
            wanted, and what came.
        RuntimeError: If another process of an initialised process group raised an error.

    Example:
        >>> import torch
        >>> from torch_geometric.data import Data
        >>> from torch_geometric.nn import LightGCN
        >>> from pyg_recmetrics import evaluate
        >>> data = Data(num_nodes=5)  # two users, three items
        >>> data.edge_index = torch.tensor([[0, 2, 1, 3], [2, 0, 3, 1]])
        >>> data.edge_label_index = torch.tensor([[0, 1], [3, 4]])
        >>> model = LightGCN(num_nodes=5, embedding_dim=8, num_layers=2)
        >>> result = evaluate(model, data, ["recall@2"], num_users=2)
        >>> result["recall@2"], result.per_user["recall@2"]
        (1.0, tensor([1., 1.], dtype=torch.float64))
    """
    options = EvaluationOptions(
        metrics=metrics,
        convention=convention,
        empty_target_action=empty_target_action,
        population=population,
        edge_index=edge_index,
        edge_weight=edge_weight,
        edge_type=edge_type,
        num_users=num_users,
        threshold=threshold,
        catalogue=catalogue,
        item_embedding=item_embedding,
        item_category=item_category,
        propensity=propensity,
        batch_size=batch_size,
        keep_items=keep_items,
        ties=ties,
        seed=seed,
        progress=progress,
    )
    return _prepare(data, options).run(recommender)


class Evaluator(Frozen):
    r"""Evaluates recommenders on one task: prepared once, called every epoch.

    :attr:`history` keeps the means of every call, and the whole result of the best. The training
    loop stays yours::

        for epoch in range(1000):
            train(model)
            evaluator(model)
            if evaluator.history.is_best:
                torch.save(model.state_dict(), "best.pt")
            if evaluator.should_stop:
                break

    Args:
        data (RankingTask, Data or HeteroData): What to evaluate on, see :func:`evaluate`.
        metrics (str or sequence of str, optional): The metrics, as `name@k`, see
            :func:`evaluate`.
        monitor (str, optional): The metric that decides which call is the best.
            (default: `None`, the first metric)
        patience (int, optional): How many calls in a row without improvement to wait for before
            :attr:`should_stop` is `True`. (default: `None`, it never is)
        **options: All other options of :func:`evaluate`, with the same names and defaults.

    Attributes:
        history (History): The means of every call, in their order.

    Raises:
        TypeError: If an argument has a wrong type.
        ValueError: If there is no such metric, or the data does not hold what is needed.

    Example:
        >>> import torch
        >>> from pyg_recmetrics import Evaluator, RankingTask
        >>> task = RankingTask(torch.tensor([[0, 1], [2, 0]]), num_users=2, num_items=3)
        >>> evaluator = Evaluator(task, metrics=["recall@1", "mrr@3"])
        >>> evaluator(torch.tensor([[0.1, 0.9, 0.5], [0.7, 0.2, 0.3]])).to_dict()
        {'recall@1': 0.5, 'mrr@3': 0.75}
    """

    # An option that is set afterwards would be ignored.
    _INSTEAD = "make another one with other options"

    def __init__(
        self,
        data: RankingTask | Data | HeteroData,
        metrics: str | Metric | Sequence[str | Metric] = DEFAULT_METRICS,
        *,
        convention: str | Convention = "standard",
        empty_target_action: EmptyTargetAction | None = None,
        population: Population | None = None,
        edge_index: EdgesLike | None = None,
        edge_weight: TensorLike | None = None,
        edge_type: EdgeType | None = None,
        num_users: int | None = None,
        threshold: float | None = None,
        catalogue: Catalogue | None = None,
        item_embedding: TensorLike | None = None,
        item_category: TensorLike | None = None,
        propensity: TensorLike | None = None,
        batch_size: int | None = None,
        keep_items: bool | int = False,
        ties: Ties | None = None,
        seed: int = 0,
        progress: bool = False,
        monitor: str | Metric | None = None,
        patience: int | None = None,
    ) -> None:
        options = EvaluationOptions(
            metrics=metrics,
            convention=convention,
            empty_target_action=empty_target_action,
            population=population,
            edge_index=edge_index,
            edge_weight=edge_weight,
            edge_type=edge_type,
            num_users=num_users,
            threshold=threshold,
            catalogue=catalogue,
            item_embedding=item_embedding,
            item_category=item_category,
            propensity=propensity,
            batch_size=batch_size,
            keep_items=keep_items,
            ties=ties,
            seed=seed,
            progress=progress,
        )
        self._prepared = _prepare(data, options)
        self.history = History(self._monitored(monitor), patience)
        self._freeze()

    def __call__(self, recommender: RecommenderLike) -> EvaluationResult:
        """Evaluates a recommender, in any form that :func:`rank` takes."""
        result = self._prepared.run(recommender)
        self.history.append(result)
        return result

    @property
    def task(self) -> RankingTask:
        """Who is ranked, over what, and what is relevant."""
        return self._prepared.task

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """The metrics that are evaluated."""
        return self._prepared.metrics

    @property
    def best(self) -> EvaluationResult | None:
        """The best result so far, by the monitored metric; `None` before the first call."""
        return self.history.best

    @property
    def should_stop(self) -> bool:
        """Whether the last `patience` calls were no improvement."""
        return self.history.should_stop

    def to(self, device: torch.device | str) -> "Evaluator":
        """Returns an evaluator on another device, which adds to the same history."""
        moved = copy.copy(self)
        settle(moved, _prepared=self._prepared.to(device))
        return moved

    def as_callback(
        self,
        recommender: "Callable[[Any], RecommenderLike] | None" = None,
        *,
        every_n_epochs: int = 1,
        sep: Separator = "@",
    ) -> "Callback":
        """Returns a Lightning callback that evaluates after training epochs.

        It logs all metrics under their names, for other callbacks and loggers, and stops the
        training when :attr:`should_stop` is `True`. It evaluates on the device of the module.

        Args:
            recommender (callable, optional): Takes the `LightningModule` and returns what to
                evaluate, as in `lambda module: module.model`. (default: `None`, the module itself)
            every_n_epochs (int, optional): The number of epochs from one evaluation to the next.
                (default: `1`)
            sep (str, optional): What stands between the parts of a name, see
                :meth:`EvaluationResult.to_dict`. With `"_"`, it is `ndcg_20` in every logger.
                (default: `"@"`)

        Raises:
            ImportError: If Lightning is not installed.
            TypeError: If `recommender` is not a function.
            ValueError: If `every_n_epochs` is not a positive integer, or two metrics would have
                one name.
        """
        return make_callback(self, recommender, every_n_epochs, sep)

    def _monitored(self, monitor: str | Metric | None) -> Metric:
        metric = self.metrics[0] if monitor is None else parse(monitor)
        if metric not in self.metrics:
            raise ValueError(f"'monitor' needs to be one of {list(self.metrics)} (got {metric})")
        return metric

    def __repr__(self) -> str:
        metrics = ", ".join(str(metric) for metric in self.metrics)
        return f"{type(self).__name__}({self.task}, metrics=[{metrics}])"


@dataclass(frozen=True, eq=False)
class _PreparedEvaluation:
    """Everything about an evaluation that does not depend on the recommender.

    Attributes:
        options (EvaluationOptions): The options.
        task (RankingTask): The task, without the users whom the population leaves out.
        num_left_out (int): How many users these are.
        catalogue (Catalogue): What is known about the items.
        edge_index (torch.Tensor, SparseTensor or None): The edges that a model propagates over.
        edge_weight (torch.Tensor or None): Their weights.
        convention (Convention): The convention, with the population that was asked for.
        metrics (tuple of Metric): The metrics that were asked for.
        resolved (tuple of Metric): The metrics that the convention computes under these names.
    """

    options: EvaluationOptions
    task: RankingTask
    num_left_out: int
    catalogue: Catalogue
    edge_index: Adj | None
    edge_weight: Tensor | None
    convention: Convention
    metrics: tuple[Metric, ...]
    resolved: tuple[Metric, ...]

    def run(self, recommender: RecommenderLike) -> EvaluationResult:
        """Ranks with a recommender, and measures."""
        options = self.options
        depths = [metric.depth for metric in self.resolved]
        is_full = None in depths
        ranked = rank(
            recommender,
            self.task,
            k=None if is_full else max(depth for depth in depths if depth),
            full=is_full,
            edge_index=self.edge_index,
            edge_weight=self.edge_weight,
            batch_size=options.batch_size,
            keep_items=self._items_to_keep(),
            progress=options.progress,
        )
        ties = options.ties or self.convention.ties
        processes.check_same(self.task.users, ties, options.seed, options.empty_target_action)
        if options.ties is not None or ranked.num_tied is not None:
            ranked = ranked.with_ties(ties, seed=options.seed)
        # Scores that are all equal are known by their ties, whatever these are then ranked by.
        ranked, num_left_out = self.convention.population.select(ranked)
        return EvaluationResult(
            ranked.with_catalogue(self.catalogue),
            self.metrics,
            task=self.task,
            empty_target_action=options.empty_target_action,
            convention=self.convention,
            num_left_out=self.num_left_out + num_left_out,
        )

    def to(self, device: torch.device | str) -> "_PreparedEvaluation":
        """Returns the same on another device."""
        edge_index, edge_weight = self.edge_index, self.edge_weight
        return replace(
            self,
            task=self.task.to(device),
            catalogue=self.catalogue.to(device),
            edge_index=None if edge_index is None else edge_index.to(device),
            edge_weight=None if edge_weight is None else edge_weight.to(device),
        )

    def _items_to_keep(self) -> bool | int:
        """Returns whether to keep lists, or how many items of each: at least what metrics need."""
        wanted = self.options.keep_items
        if wanted is True:
            return True
        needed = (metric.k or 0 for metric in self.resolved if "items" in metric.needs)
        return max(int(wanted), *needed, 0) or False


def _prepare(
    data: RankingTask | Data | HeteroData, options: EvaluationOptions
) -> _PreparedEvaluation:
    """Does all that does not depend on the recommender."""
    task = as_task(
        data,
        edge_type=options.edge_type,
        num_users=options.num_users,
        threshold=options.threshold,
    )
    metrics = parse_all(options.metrics)
    convention = conventions.get(options.convention)
    if options.population is not None:
        convention = replace(convention, population=options.population)
    catalogue = options.catalogue_of(task)
    edge_index, edge_weight = read_message_passing(
        options.edge_index, options.edge_weight, task.num_users + task.num_items
    )
    resolved = tuple(convention.resolve_all(metrics).values())
    for metric in resolved:
        metric.check_catalogue(catalogue)
    is_eligible = convention.population.is_eligible(task)[task.users]
    return _PreparedEvaluation(
        options=options,
        task=task if bool(is_eligible.all()) else task.select_users(task.users[is_eligible]),
        num_left_out=int((~is_eligible).sum()),
        catalogue=catalogue,
        edge_index=edge_index,
        edge_weight=edge_weight,
        convention=convention,
        metrics=metrics,
        resolved=resolved,
    )
