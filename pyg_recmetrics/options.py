"""The options of an evaluation, checked before anything is ranked."""

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass

from torch_geometric.typing import EdgeType

from pyg_recmetrics.checks import check_boolean, check_positive_integer
from pyg_recmetrics.conventions import Convention, Population
from pyg_recmetrics.inputs import EdgesLike, TensorLike
from pyg_recmetrics.metrics import Metric
from pyg_recmetrics.metrics.empty_target_action import EmptyTargetAction, check_empty_target_action
from pyg_recmetrics.ranked_edges.ties import Ties, check_ties
from pyg_recmetrics.task import Catalogue, RankingTask

#: The metrics that are evaluated by default.
DEFAULT_METRICS = ("r_precision", "precision@20", "recall@20", "ndcg@20")


@dataclass(frozen=True, eq=False)
class EvaluationOptions:
    """The options of an evaluation, which :func:`evaluate` explains."""

    metrics: str | Metric | Sequence[str | Metric]
    _: KW_ONLY
    convention: str | Convention
    empty_target_action: EmptyTargetAction | None
    population: Population | None
    edge_index: EdgesLike | None
    edge_weight: TensorLike | None
    edge_type: EdgeType | None
    num_users: int | None
    threshold: float | None
    catalogue: Catalogue | None
    item_embedding: TensorLike | None
    item_category: TensorLike | None
    propensity: TensorLike | None
    batch_size: int | None
    keep_items: bool | int
    ties: Ties | None
    seed: int
    progress: bool

    def __post_init__(self) -> None:
        # Here and not where they are used, so that a wrong option does not wait for an epoch.
        if self.empty_target_action is not None:
            check_empty_target_action(self.empty_target_action)
        if self.batch_size is not None:
            check_positive_integer(self.batch_size, "batch_size")
        if not isinstance(self.keep_items, bool):
            check_positive_integer(self.keep_items, "keep_items")
        check_ties("index" if self.ties is None else self.ties, self.seed)
        check_boolean(self.progress, "progress")

    def catalogue_of(self, task: RankingTask) -> Catalogue:
        """Returns what is known about the items of a task: what it knows, and what was given.

        Raises:
            TypeError: If `catalogue` is not a `Catalogue`.
            ValueError: If it does not fit the task, or something is given in two ways.
        """
        facts = {
            "item_embedding": self.item_embedding,
            "item_category": self.item_category,
            "propensity": self.propensity,
        }
        if self.catalogue is None:
            known = Catalogue(task.num_items, seen=task.catalogue.seen, **facts)
        else:
            self._check_given_once(facts)
            known = self.catalogue.of_task(task.num_items, task.catalogue.seen)
        known.check_device(task.device, "truth")
        return known

    def _check_given_once(self, facts: dict[str, TensorLike | None]) -> None:
        if not isinstance(self.catalogue, Catalogue):
            raise TypeError(
                f"'catalogue' needs to be a 'Catalogue' (got {type(self.catalogue).__name__})"
            )
        for name, value in facts.items():
            if value is not None:
                raise ValueError(
                    f"'{name}' needs to be None if 'catalogue' is given, which may hold it "
                    f"(got both)"
                )
