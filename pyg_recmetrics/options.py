"""The options of an evaluation, in one definition for `evaluate` and `Evaluator`."""

import inspect
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

from torch_geometric.typing import EdgeType

from pyg_recmetrics.checks import check_boolean, check_positive_integer
from pyg_recmetrics.conventions import Convention, Population
from pyg_recmetrics.inputs import EdgesLike, TensorLike
from pyg_recmetrics.metrics import Metric
from pyg_recmetrics.metrics.empty_target_action import EmptyTargetAction, check_empty_target_action
from pyg_recmetrics.ranked_edges.ties import Ties, check_ties

P = ParamSpec("P")
First = TypeVar("First")
Second = TypeVar("Second")
Options = TypeVar("Options")
Returned = TypeVar("Returned")

#: The metrics that are evaluated by default.
DEFAULT_METRICS = ("r_precision", "precision@20", "recall@20", "ndcg@20")


@dataclass(frozen=True, eq=False)
class EvaluationOptions:
    """The options of an evaluation, which :func:`evaluate` explains."""

    metrics: str | Metric | Sequence[str | Metric] = DEFAULT_METRICS
    _: KW_ONLY
    convention: str | Convention = "standard"
    empty_target_action: EmptyTargetAction | None = None
    population: Population | None = None
    edge_index: EdgesLike | None = None
    edge_weight: TensorLike | None = None
    edge_type: EdgeType | None = None
    num_users: int | None = None
    threshold: float | None = None
    item_embedding: TensorLike | None = None
    item_category: TensorLike | None = None
    propensity: TensorLike | None = None
    batch_size: int | None = None
    keep_items: bool | int = False
    ties: Ties | None = None
    seed: int = 0
    progress: bool = False

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


@dataclass(frozen=True, eq=False)
class EvaluatorOptions(EvaluationOptions):
    """The options of an :class:`Evaluator`: those of an evaluation, and when to stop."""

    _: KW_ONLY
    monitor: str | Metric | None = None
    patience: int | None = None


def takes(
    options: Callable[P, Options],
) -> Callable[
    [Callable[[First, Second, Options], Returned]],
    Callable[Concatenate[First, Second, P], Returned],
]:
    """Lets a function take options one by one, and makes its third argument of them.

    So two functions have the same options, with the same defaults, from one definition.
    """

    def decorate(
        function: Callable[[First, Second, Options], Returned],
    ) -> Callable[Concatenate[First, Second, P], Returned]:
        *own, _ = inspect.signature(function).parameters.values()
        taken = inspect.signature(options).parameters.values()
        signature = inspect.signature(function).replace(parameters=[*own, *taken])
        make_options: Callable[..., Options] = options

        @wraps(function)
        def taking_options(*args: Any, **kwargs: Any) -> Returned:
            try:
                given = signature.bind(*args, **kwargs).arguments
            except TypeError as error:
                raise TypeError(f"{function.__qualname__}() {error}") from None
            first, second = (given.pop(parameter.name) for parameter in own)
            return function(first, second, make_options(**given))

        taking_options.__signature__ = signature  # type: ignore[attr-defined]
        taking_options.__annotations__ = {
            parameter.name: parameter.annotation for parameter in signature.parameters.values()
        } | {"return": signature.return_annotation}
        del taking_options.__wrapped__  # which has another signature
        return taking_options

    return decorate
