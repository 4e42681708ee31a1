"""evaluate() and Evaluator: from a model and a split to its numbers, in one call."""

from __future__ import annotations

import copy
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Literal, TypeAlias, get_args

import torch
from torch import Tensor
from torch_geometric.data import Data, HeteroData

from pyg_recmetrics import conventions
from pyg_recmetrics.checks import EdgesLike, check_choice, check_positive_integer, written
from pyg_recmetrics.conventions import Convention
from pyg_recmetrics.margins import Margin, UserSample, sample
from pyg_recmetrics.metrics import Metric, parse, parse_all
from pyg_recmetrics.metrics.registry import EmptyTargetAction, check_empty_target_action
from pyg_recmetrics.ranked_edges import RankedEdges, Ties, select_users
from pyg_recmetrics.ranking import RecommenderLike
from pyg_recmetrics.ranking.adapt import complete_counts
from pyg_recmetrics.ranking.models import evaluation_mode
from pyg_recmetrics.ranking.ranking import HowToRank, OpenRanking, check_options
from pyg_recmetrics.results import EvaluationResult, History
from pyg_recmetrics.results.counts import Sampling, check_means_of_persons
from pyg_recmetrics.task import Catalogue, RankingTask, as_task
from pyg_recmetrics.task.task import check_catalogue
from pyg_recmetrics.utils import Frozen, set_attributes

#: The metrics that are evaluated by default.
DEFAULT_METRICS = ("r_precision", "precision@20", "recall@20", "ndcg@20")

#: What a row of a result is.
Per: TypeAlias = Literal["user", "edge", "person"]


@written("evaluate(model, data, ['recall@20', 'ndcg@20'])")
def evaluate(
    recommender: RecommenderLike,
    data: RankingTask | Data | HeteroData | EdgesLike,
    metrics: str | Metric | Sequence[str | Metric] = DEFAULT_METRICS,
    *,
    convention: str | Convention = "standard",
    empty_target_action: EmptyTargetAction | None = None,
    per: Per | None = None,
    num_users: int | None = None,
    num_items: int | None = None,
    edge_index: EdgesLike | None = None,
    exclude_seen: bool | None = None,
    catalogue: Catalogue | None = None,
    ties: Ties | None = None,
    seed: int = 0,
    keep_items: bool | int = False,
    batch_size: int | None = None,
    margin: float | Mapping[str, float] | Margin | None = None,
    progress: bool = False,
) -> EvaluationResult:
    r"""Evaluates a recommender: ranks every ground-truth edge once, and measures.

    Evaluation uses the `edge_label_index` of the data as ground truth, without sampled negatives.
    A model propagates over the `edge_index` of the data. The items of these edges are left out of
    their user's ranking. A metric that looks at the ground truth is undefined for users who have
    none. A metric of the lists alone, such as the novelty, is not.

    A warning is given if the order of equal scores can move a mean by more than the width of its
    confidence interval, or if the candidates of each user all have the same score, see
    :meth:`EvaluationResult.tie_range`.

    Args:
        recommender: What to evaluate: a model with `recommend`, such as PyG's
            :class:`~torch_geometric.nn.models.LightGCN`; a model of :mod:`torch_geometric.nn.kge`;
            a pair `(user_embedding, item_embedding)`, or a triple with item biases; scores
            `[num_users, num_items]`; a function from users to their scores; one score per item
            `[num_items]`; or lists of recommended items `[num_users, K]`, or by their original ids.
            See :func:`rank` for the details.
        data (RankingTask, Data, HeteroData or torch.Tensor): What to evaluate on: one part of a
            split, which :meth:`RankingTask.from_data` reads; a task; or ground-truth edges from
            users to items, of shape `[2, num_edges]` or as a matrix. Edges need `num_users` and
            `num_items`, unless the recommender knows them. Their items are numbered from `0` on, or
            from `num_users` on as in `edge_index`, which then says what users have seen.
        metrics (str or sequence of str, optional): The metrics, as `name@k`. See
            :func:`metrics.names` for all names. (default: `("r_precision", "precision@20",
            "recall@20", "ndcg@20")`)
        convention (str or Convention, optional): The library whose definitions of these metrics
            are used, see :mod:`~pyg_recmetrics.conventions`. It also says who is evaluated:
            `conventions.get("standard").with_population(Population(min_pos_test=5))` evaluates
            those with five relevant items or more. (default: `"standard"`, those of PyG)
        empty_target_action (str, optional): What users without ground truth count as in a mean:
            `"skip"` leaves them out, `"neg"` counts them as zero, `"pos"` as one, and `"error"`
            raises an error. (default: `None`, as the convention says; the standard convention
            says `"skip"`)
        per (str, optional): What means are over. With `"user"`, a row of the result is a user. With
            `"edge"`, every ground-truth edge is ranked without the other truth of its user, as in
            the filtered setting of knowledge graphs, see :meth:`RankedEdges.each_edge`. Row `r` is
            then edge `r` of the `truth` of the task, even if some edges are left out, and `hits@k`
            means `hit_rate@k`. With `"person"`, rows are averaged within each `person` of the task,
            and then over persons. Intervals are clustered by person wherever persons are known.
            (default: `None`, which is `"edge"` for a task of :meth:`RankingTask.from_triples`, and
            `"user"` for all others)
        num_users (int, optional): The number of users, if `data` is a homogeneous `Data`, where
            users come first, or holds edges. (default: `None`, the `num_users` of the data)
        num_items (int, optional): The number of items, if `data` holds edges. (default: `None`,
            that of scores or item embeddings, or for a LightGCN, its nodes that are no users)
        edge_index (torch.Tensor or SparseTensor, optional): The edges that a model propagates
            over, of shape `[2, num_edges]`, in its own numbering. The values of a matrix of SciPy
            are weights, unless all of them are one. (default: `None`, the message-passing edges of
            the data, with its `edge_weight` if it has one)
        exclude_seen (bool, optional): Whether the items that users have seen are left out of their
            rankings, see :class:`RankingTask`. (default: `None`, as a task says, and otherwise
            `True`)
        catalogue (Catalogue, optional): What is known about the items, for metrics that look at
            them, such as `Catalogue(num_items, item_category=category)`. If it has no seen edges,
            it takes those of the task. (default: `None`)
        ties (str, optional): How equal scores are ranked: `"index"` ranks the lower item id first;
            `"best"` and `"worst"` rank relevant items first and last; `"mean"` gives them the mean
            of these two ranks; and `"random"` gives them random places. See
            :meth:`RankedEdges.with_ties`. (default: `None`, as the convention says; the standard
            convention says `"index"`)
        seed (int, optional): The seed of `ties="random"`. (default: `0`)
        keep_items (bool or int, optional): `True` keeps the recommended items of each user, as
            deep as the metrics look at the ranking; an integer keeps that many. A metric of lists,
            such as `coverage@20`, keeps as many as it needs in any case. Lists take memory for all
            users of the task. (default: `False`)
        batch_size (int, optional): The number of users to rank at once. It does not change any
            result. (default: `None`, as many as fit into 256 MB of scratch memory)
        margin (float, dict or Margin, optional): The margin of error for the mean of each metric,
            or of some, as in `{"ndcg@20": 0.002}`. Users are ranked in random order until each mean
            is known to its margin. If this takes more than half of them, all are ranked.
            :meth:`EvaluationResult.bounds` returns the interval that is reached. Each metric needs
            to be a mean over users. One with a margin needs values within known limits, which
            `mean_rank` has not. A :class:`Margin` also has a level of confidence, a largest number
            of users and the seed of their order. (default: `None`, all users are ranked)
        progress (bool, optional): Whether to show a progress bar. (default: `False`)

    Returns:
        The mean of every metric, and its value for every user who was ranked.

    Raises:
        TypeError: If an argument has a wrong type.
        ValueError: If an argument does not fit the others. The error names the argument, what was
            wanted, and what came.

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
    num_users, num_items = complete_counts(recommender, data, num_users, num_items)
    evaluator = Evaluator(
        data,
        metrics,
        convention=convention,
        empty_target_action=empty_target_action,
        per=per,
        num_users=num_users,
        num_items=num_items,
        edge_index=edge_index,
        exclude_seen=exclude_seen,
        catalogue=catalogue,
        ties=ties,
        seed=seed,
        keep_items=keep_items,
        batch_size=batch_size,
        margin=margin,
        progress=progress,
    )
    return evaluator._evaluate(recommender)


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
        data (RankingTask, Data, HeteroData or torch.Tensor): What to evaluate on, see
            :func:`evaluate`. Edges need `num_users` and `num_items`.
        metrics (str or sequence of str, optional): The metrics, as `name@k`, see
            :func:`evaluate`.
        monitor (str, optional): The metric that decides which call is the best.
            (default: `None`, the first metric)
        patience (int, optional): How many calls in a row without improvement to wait for before
            :attr:`should_stop` is `True`. (default: `None`, it never is)

    All other arguments are those of :func:`evaluate`.

    Attributes:
        metrics (tuple of Metric): The metrics that are evaluated.
        task (RankingTask): Who is ranked, over what, and what is relevant.

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

    _INSTEAD = "make another one with other options"

    @written("Evaluator(data, ['recall@20', 'ndcg@20'])")
    def __init__(
        self,
        data: RankingTask | Data | HeteroData | EdgesLike,
        metrics: str | Metric | Sequence[str | Metric] = DEFAULT_METRICS,
        *,
        convention: str | Convention = "standard",
        empty_target_action: EmptyTargetAction | None = None,
        per: Per | None = None,
        num_users: int | None = None,
        num_items: int | None = None,
        edge_index: EdgesLike | None = None,
        exclude_seen: bool | None = None,
        catalogue: Catalogue | None = None,
        ties: Ties | None = None,
        seed: int = 0,
        keep_items: bool | int = False,
        batch_size: int | None = None,
        margin: float | Mapping[str, float] | Margin | None = None,
        progress: bool = False,
        monitor: str | Metric | None = None,
        patience: int | None = None,
    ) -> None:
        # Checked before anything is ranked, so that a wrong option does not wait for an epoch.
        if empty_target_action is not None:
            check_empty_target_action(empty_target_action)
        check_options("index" if ties is None else ties, seed, keep_items, batch_size, progress)
        if patience is not None:
            check_positive_integer(patience, "patience")
        self.metrics = parse_all(metrics)
        task = as_task(data, num_users, num_items, edge_index, exclude_seen)
        if per is None:
            per = "user" if task.num_relations is None else "edge"
        if per != "edge":
            _check_hits(metrics)
        self._convention = conventions.get(convention)
        self._catalogue = task.catalogue if catalogue is None else _read_catalogue(task, catalogue)
        self._resolved = tuple(self._convention.resolve_all(self.metrics).values())
        for metric in self._resolved:
            metric.check_catalogue(self._catalogue)
        if per != "user":
            _check_per(per, self._resolved, keep_items, task.person)
        self.task, self._per, self._num_left_out = task, per, 0
        self._is_eligible: Tensor | None = None
        if self._convention.population._leaves_out:
            self._leave_out()
        self._empty_target_action = empty_target_action
        self._ties, self._ranked_ties, self._seed = ties, ties or self._convention.ties, seed
        k, num_kept = self._depth(), self._items_to_keep(keep_items)
        by_degree = any(metric.k is None for metric in self._resolved)
        self._how = HowToRank(k, k is None, num_kept, batch_size, progress, needs_degree=by_degree)
        self._user_sample = None if margin is None else self._make_user_sample(margin)
        self._monitor = self.metrics[0] if monitor is None else parse(monitor, "monitor")
        if self._monitor not in self.metrics:
            raise ValueError(f"'monitor' needs to be one of {[*self.metrics]} (got {monitor})")
        self._patience = patience
        self._freeze()

    def _leave_out(self) -> None:
        """Leaves out the users that the convention does not evaluate."""
        is_eligible = self._convention.population.is_eligible(self.task)
        users = self.task.users[is_eligible[self.task.users]]
        self._num_left_out = self.task.users.numel() - users.numel()
        if self._per == "edge":
            # Rows are those of `task.truth`, also where their user is left out.
            self._is_eligible = is_eligible
        elif self._num_left_out > 0:
            self.task = self.task._of_users(users)

    def __call__(self, recommender: RecommenderLike) -> EvaluationResult:
        """Returns the result of a recommender, in any form that :func:`rank` takes.

        With a margin, every call draws users in the same order, as many as it needs. Errors are
        those of :func:`evaluate`.

        Args:
            recommender: What to evaluate.
        """
        result = self._evaluate(recommender)
        self.history.append(result)
        return result

    def _evaluate(self, recommender: RecommenderLike) -> EvaluationResult:
        """Evaluates a recommender, and leaves the history as it is."""
        with evaluation_mode(recommender):
            ranking, sampling = OpenRanking(recommender, self.task, self._how), None
            if self._per == "edge":
                _check_lists_of_edges(ranking)
            if self._user_sample is None:
                ranking.rank(self.task.users)
                ranked = self._with_ties(ranking.to_ranked_edges(self._catalogue))
            else:
                ranked, sampling = sample(self._user_sample, ranking, self._with_ties)
            ranking.warn()
            return self._measure(ranked, sampling)

    @cached_property
    def history(self) -> History:
        """The means of every call, in their order."""
        return History(self._monitor, self._patience)

    @property
    def best(self) -> EvaluationResult | None:
        """The best result so far, by the monitored metric; `None` before the first call."""
        return self.history.best

    @property
    def should_stop(self) -> bool:
        """Whether the last `patience` calls were no improvement."""
        return self.history.should_stop

    def to(self, device: torch.device | str) -> Evaluator:
        """Returns an evaluator on another device, which adds to the same history.

        Example:
            >>> import torch
            >>> from pyg_recmetrics import Evaluator, RankingTask
            >>> task = RankingTask(torch.tensor([[0, 1], [2, 0]]), num_users=2, num_items=3)
            >>> Evaluator(task, "mrr").to("cpu").task.device
            device(type='cpu')
        """
        task, catalogue, user_sample = self.task.to(device), self._catalogue.to(device), None
        if self._user_sample is not None:
            user_sample = replace(self._user_sample, task=task, catalogue=catalogue)
        moved, history = copy.copy(self), self.history
        set_attributes(
            moved, task=task, _catalogue=catalogue, _user_sample=user_sample, history=history
        )
        return moved

    def _make_user_sample(self, margin: float | Mapping[str, float] | Margin) -> UserSample:
        """Returns the users in random order, as means are to be known to a margin."""
        if self._per == "edge":
            raise ValueError(
                "a margin needs per='user': edges of a user are not drawn one by one (got 'edge')"
            )
        return UserSample(
            self.task,
            self.metrics,
            margin if isinstance(margin, Margin) else Margin(margin),
            self._convention,
            self._catalogue,
            self._empty_target_action or self._convention.empty_target_action,
        )

    def _with_ties(self, ranked: RankedEdges) -> RankedEdges:
        if self._ranked_ties == "index":
            return ranked
        # Lists know no ties: only those that were asked for are an error. Not in `rank`, as the
        # ranking by item id tells who has constant scores.
        if self._ties is not None or ranked.num_tied is not None:
            return ranked.with_ties(self._ranked_ties, seed=self._seed)
        return ranked

    def _depth(self) -> int | None:
        """Returns how deep the metrics look; `None` if one of them looks at all ranks."""
        depths = [metric.depth for metric in self._resolved]
        if None in depths:
            return None
        # So many other relevant items may come before an edge.
        num_others = max(self.task.max_degree - 1, 0) if self._per == "edge" else 0
        return num_others + max(depth for depth in depths if depth)

    def _measure(self, ranked: RankedEdges, sampling: Sampling | None) -> EvaluationResult:
        selected = ranked
        if self._is_eligible is not None:
            selected = select_users(ranked, self._is_eligible.to(ranked.rank.device))
        selected, num_left_out = self._convention.population.select(selected)
        if self._per == "edge":
            rows = ranked.each_edge(max_degree=self.task.max_degree)
            selected = select_users(rows, selected._is_evaluated[self.task.truth[0]])
        return EvaluationResult(
            selected,
            self.metrics,
            task=self.task,
            empty_target_action=self._empty_target_action,
            convention=self._convention,
            num_left_out=self._num_left_out + num_left_out,
            average_over="person" if self._per == "person" else "user",
            sampling=sampling,
        )

    def _items_to_keep(self, keep_items: bool | int) -> bool | int:
        """Returns whether to keep lists, or how many items of each: at least what metrics need."""
        needed = [metric.k or 0 for metric in self._resolved if "items" in metric.needs]
        return keep_items is True or max([int(keep_items), *needed])

    def __repr__(self) -> str:
        metrics = ", ".join(str(metric) for metric in self.metrics)
        return f"{type(self).__name__}({self.task}, metrics=[{metrics}])"


def _check_hits(metrics: str | Metric | Sequence[str | Metric]) -> None:
    """Raises if a metric is called `hits`, which is another formula where users have many edges."""
    for metric in [metrics] if isinstance(metrics, str | Metric) else metrics:
        if isinstance(metric, str) and re.match(r"(?i)\s*hits\s*(@|_at_|\()", metric):
            raise ValueError(
                f"'metrics' needs to name 'hit_rate' (whether a user has a hit) or 'recall' where "
                f"rows are users: 'hits' is a fraction of edges, or a number (got {metric!r})"
            )


def _check_per(
    per: Per, metrics: Sequence[Metric], keep_items: bool | int, person: Tensor | None
) -> None:
    """Raises if there are no such rows, or some metrics cannot be measured on them."""
    check_choice(per, "per", get_args(Per))
    if per == "person":
        check_means_of_persons(person, metrics)
        return
    if keep_items is not False:
        raise ValueError(
            f"'keep_items' needs per='user': an edge has no list of its own (got {keep_items!r})"
        )
    for metric in metrics:
        if "items" in metric.needs:
            raise ValueError(
                f"'metrics' needs to hold metrics of ranks with per='edge': an edge has no list "
                f"of its own (got '{metric}')"
            )


def _check_lists_of_edges(ranking: OpenRanking) -> None:
    """Raises if lists are too short to rank every edge without the other truth of its user."""
    given, task = ranking.recommender.max_depth, ranking.task
    needed = min(ranking.depth, int(task.num_candidates.max()))
    if given is not None and given < needed:
        raise ValueError(
            f"'recommender' needs to hold lists of at least {needed} items with per='edge', as "
            f"other relevant items may come first (got {given})"
        )


def _read_catalogue(task: RankingTask, catalogue: Catalogue) -> Catalogue:
    """Returns what is said about the items of a task, with what users of the task have seen."""
    check_catalogue(catalogue)
    if catalogue.num_items != task.num_items:
        raise ValueError(
            f"'catalogue' needs to hold the items of the task, {task.num_items} "
            f"(got num_items={catalogue.num_items})"
        )
    if catalogue.seen is None:
        catalogue = Catalogue(**catalogue.to_dict() | {"seen": task.catalogue.seen})
    catalogue._check_device(task.device, "truth")
    return catalogue
