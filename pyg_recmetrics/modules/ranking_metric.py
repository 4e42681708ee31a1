"""Metrics over mini-batches of lists or of scored pairs, and how their classes are made."""

import inspect
import re
from abc import abstractmethod
from collections.abc import Callable, Mapping
from functools import cache
from math import isinf
from typing import Any, ClassVar, Literal, TypedDict, cast, get_type_hints

import torch
from torch import Tensor
from torch_geometric.metrics import link_pred

from pyg_recmetrics.checks import (
    EdgesLike,
    TensorLike,
    check_boolean,
    check_integer,
    check_positive_integer,
    holds_double_precision,
)
from pyg_recmetrics.kernels.entries import max_id
from pyg_recmetrics.kernels.exact.ranks import ranks_within_rows
from pyg_recmetrics.metrics import Definition, Metric, precision_recall_curve
from pyg_recmetrics.metrics.curves import (
    Aggregation,
    Curve,
    aggregate_of,
    check_min_precision,
    largest_recall,
)
from pyg_recmetrics.metrics.registry import (
    EmptyTargetAction,
    check_empty_target_action,
    check_num_without_truth,
    fill_without_truth,
)
from pyg_recmetrics.ranked_edges import RankedEdges, check_scored_pairs, lists_of
from pyg_recmetrics.task import Catalogue
from pyg_recmetrics.task.task import check_catalogue
from pyg_recmetrics.utils import warn


class TorchmetricsArguments(TypedDict, total=False):
    """The arguments of all metrics of torchmetrics, which say how processes share their states."""

    compute_on_cpu: bool
    dist_sync_on_step: bool
    process_group: Any
    dist_sync_fn: Callable[..., Any] | None
    distributed_available_fn: Callable[[], bool] | None
    sync_on_compute: bool
    compute_with_cache: bool


def to_double_precision_device(value: Any) -> Any:
    """Returns a value. A tensor whose device holds no double precision moves to the CPU."""
    if isinstance(value, Tensor) and not holds_double_precision(value.device):
        return value.cpu()
    return value


def check_torchmetrics(name: str) -> None:
    """Raises if something is asked for that only torchmetrics has."""
    if not link_pred.WITH_TORCHMETRICS:
        raise ImportError(f"'{name}' needs torchmetrics: pip install torchmetrics")


class StreamingMetric(link_pred.BaseMetric):  # type: ignore[misc]
    r"""A metric over mini-batches: `update`, `compute` and `reset`.

    Between updates, a metric keeps a state of few tensors. The class says how the states of several
    processes become one: `"sum"` adds up the tensors, `"cat"` concatenates them. The state
    moves between devices, and stays in double precision when a model that holds the metric is
    converted to another precision. If a device holds no double precision, as Apple's do not, the
    state stays on the CPU. Results are in the default dtype, and on the device that the metric was
    moved to.

    Raises:
        ImportError: If an argument is one of torchmetrics, which is not installed.
        TypeError: If an argument is unknown.

    Example:
        >>> import torch
        >>> from pyg_recmetrics import modules
        >>> lists = torch.tensor([[3, 1, 4], [1, 5, -1]])
        >>> truth = torch.tensor([[0, 0, 1], [1, 9, 5]])
        >>> metric = modules.Recall(k=2)
        >>> metric.update(lists, truth)
        >>> metric.compute()
        tensor(0.7500)
        >>> metric.reset()
        >>> metric.update(lists[:1], truth[:, :2])
        >>> metric.compute()
        tensor(0.5000)
    """

    is_differentiable: ClassVar[bool] = False
    full_state_update: ClassVar[bool] = False
    higher_is_better: ClassVar[bool | None] = None
    #: How the states of several processes become one.
    merging: ClassVar[Literal["sum", "cat"]] = "sum"
    #: Each metric sets it where torchmetrics is installed.
    compute_on_cpu = False

    def __init__(self, **kwargs: Any) -> None:
        if unknown := kwargs.keys() - TorchmetricsArguments.__annotations__.keys():
            name, takes = type(self).__name__, self._takes()
            raise TypeError(f"{name}() takes no '{min(unknown)}', only {takes}")
        if kwargs:
            check_torchmetrics(min(kwargs))
        # Not that of PyG's own metrics, which requires a cut-off.
        link_pred.BaseMetric.__init__(self, **kwargs)
        self._result_device = torch.device("cpu")

    def _takes(self) -> str:
        """Returns the names of the arguments, but those of torchmetrics."""
        return ", ".join(inspect.signature(type(self)).parameters).removesuffix(", kwargs")

    @abstractmethod
    def arguments(self) -> dict[str, Any]:
        """Returns the arguments to print, by name."""

    @abstractmethod
    def compute(self) -> Tensor:
        """Returns the metric of all users since the last reset, in the default dtype."""

    @property
    def state_device(self) -> torch.device:
        """Where the state is."""
        if self.compute_on_cpu or not holds_double_precision(self._result_device):
            return torch.device("cpu")
        return self._result_device

    def as_result(self, value: Tensor) -> Tensor:
        """Returns a value as others see it: in the default dtype, unless it is an integer.

        It is on the device that the metric was moved to.
        """
        if value.is_floating_point():
            # Before it is moved, because that device may not hold double precision.
            value = value.to(torch.get_default_dtype())
        return value.to(self._result_device)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Adds a mini-batch, and returns the value of this batch alone, as torchmetrics does.

        Raises:
            ImportError: If torchmetrics is not installed.
        """
        if not link_pred.WITH_TORCHMETRICS:
            raise ImportError(
                "a call of a metric needs torchmetrics: pip install torchmetrics; without it, "
                "write update(...) and compute()"
            )
        return super().forward(*args, **kwargs)

    def reset(self) -> None:
        """Forgets all users."""
        if link_pred.WITH_TORCHMETRICS:
            super().reset()
        self._set(self._initial)

    @property
    def state(self) -> dict[str, Tensor]:
        """The tensors of the state, by name."""
        kept = {name: getattr(self, attribute) for name, attribute in self._attributes.items()}
        return {
            name: torch.cat(value) if isinstance(value, list) else value
            for name, value in kept.items()
        }

    def merge(self, **values: Tensor) -> None:
        """Merges what other users have as tensors of the state into them.

        The previous tensors themselves are not written to.
        """
        for name, value in values.items():
            merged = getattr(self, self._attributes[name]) + self._kept(value)
            setattr(self, self._attributes[name], merged)

    def _set(self, values: Mapping[str, Tensor]) -> None:
        for name, value in values.items():
            setattr(self, self._attributes[name], self._kept(value))

    def _kept(self, value: Tensor) -> Any:
        # A list is concatenated when it is read, and not at every update.
        value = value.to(self.state_device)
        return [value] if self.merging == "cat" else value

    def _declare_state(self, counted: str, initial: Mapping[str, Tensor]) -> None:
        """Declares the tensors of the state, as they are before the first update.

        A collection of torchmetrics lets metrics share their state if the names and, after the
        first update, the values are the same. So each name says what exactly is `counted`.
        """
        suffix = re.sub(r"\W+", "_", counted)
        self._initial = initial
        self._attributes = {name: f"{name}_of_{suffix}" for name in initial}
        if link_pred.WITH_TORCHMETRICS:
            for name, attribute in self._attributes.items():
                default: Any = [] if self.merging == "cat" else initial[name]
                self.add_state(attribute, default, dist_reduce_fx=self.merging)
        self.reset()

    def _apply(self, fn: Callable[[Tensor], Tensor], *args: Any, **kwargs: Any) -> Any:
        # `fn` may both move and convert tensors. The state must move, but keep its precision.
        probe = fn(torch.empty(0, dtype=torch.bool, device=self._result_device))
        self._result_device = probe.device
        module = super()._apply(lambda value: value.to(self.state_device), *args, **kwargs)
        self._set(self.state)
        self._computed = None  # which torchmetrics would return again
        return module

    def plot(self, val: Any = None, ax: Any = None) -> Any:
        """Plots one value or several, as all metrics of torchmetrics do.

        Args:
            val: A value that :meth:`compute` returned, or a list of such values.
                (default: `None`, the current value)
            ax: The axes to plot on. (default: `None`, new axes)

        Returns:
            A figure and its axes.

        Raises:
            ImportError: If torchmetrics or matplotlib is not installed.

        Example:
            >>> import torch
            >>> from pyg_recmetrics import modules
            >>> metric = modules.Recall(k=2)
            >>> metric.update(torch.tensor([[3, 1], [1, 5]]), torch.tensor([[0, 0, 1], [1, 9, 5]]))
            >>> figure, axes = metric.plot()  # needs torchmetrics and matplotlib
        """
        check_torchmetrics("plot")
        return self._plot(val, ax)

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={value!r}" for name, value in self.arguments().items())
        return f"{type(self).__name__}({shown})"


# PyG's collection of metrics takes only what derives from PyG's own base. PyG 2.6 has neither.
_PyGMetric = getattr(link_pred, "_LinkPredMetric", link_pred.BaseMetric)


class _NoCutOff(int):
    """Zero, so that PyG's collection never takes it for its largest `k`, but printed as `all`."""

    def __str__(self) -> str:
        return "all"


class RankingMetric(StreamingMetric, _PyGMetric):  # type: ignore[misc, valid-type]
    r"""A metric over mini-batches of lists.

    All classes that are made from the registry derive from it and differ only in their definition.

    Attributes:
        metric (Metric): The metric that is computed, spelled `name@k`.
        k (int): The cut-off of the metric; zero if there is none.
        weighted (bool): Whether every mini-batch needs to hold weights.

    Raises:
        TypeError: If an argument has a wrong type or is unknown.
        ValueError: If an argument is not one that the metric takes, or `average` is `"micro"`.

    Example:
        >>> import torch
        >>> from pyg_recmetrics import modules
        >>> lists = torch.tensor([[3, 1, 4], [1, 5, -1]])
        >>> truth = torch.tensor([[0, 0, 1], [1, 9, 5]])
        >>> metric = modules.NDCG(k=3)
        >>> metric.update(lists, truth)
        >>> metric.metric, metric.k, metric.compute()
        (ndcg@3, 3, tensor(0.5089))
    """

    #: The definition that the class is made from.
    definition: ClassVar[Definition]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        name = type(self).__name__
        try:
            arguments = inspect.signature(type(self)).bind(*args, **kwargs).arguments
        except TypeError as error:
            raise TypeError(f"{name}() takes {self._takes()} ({error})") from None
        if args and isinstance(args[0], int) and not self.definition.has_cut_off:
            raise TypeError(f"{name}() takes no cut-off (got {args[0]}); write {name}()")
        super().__init__(**arguments.pop("kwargs", {}))
        self._arguments = arguments
        self.weighted = check_boolean(arguments.get("weighted", False), "weighted")
        self.empty_target_action: EmptyTargetAction = arguments.get("empty_target_action", "skip")
        check_empty_target_action(self.empty_target_action)
        self.catalogue: Catalogue | None = arguments.get("catalogue")
        if self.catalogue is not None:
            check_catalogue(self.catalogue)
        of_function = {n: arguments[n] for n in self.definition.parameters if n in arguments}
        self.metric = Metric.of(self.definition, arguments.get("k"), of_function)
        if self.metric.is_pooled:
            raise ValueError(
                "'average' needs to be 'macro' over mini-batches, because the denominator of a "
                "micro-average is that of all users: use 'evaluate' for it (got 'micro')"
            )
        self.metric.check_catalogue(self.catalogue)
        self.k = _NoCutOff() if self.metric.k is None else self.metric.k
        self._has_warned = False
        counted = f"{self.metric.describe()}_{self.empty_target_action}"
        self._declare_state(counted, self.initial_state())

    def arguments(self) -> dict[str, Any]:
        """Returns the arguments that were given."""
        return self._arguments

    @abstractmethod
    def initial_state(self) -> dict[str, Tensor]:
        """Returns the tensors of the state as they are before the first update, by name."""

    @abstractmethod
    def add(self, ranked: RankedEdges) -> None:
        """Adds users to the state, by :meth:`merge`."""

    def update(
        self,
        pred_index_mat: TensorLike,
        edge_label_index: EdgesLike,
        edge_label_weight: TensorLike | None = None,
    ) -> None:
        """Adds the users of a mini-batch. Each user may appear in one mini-batch only.

        Args:
            pred_index_mat (torch.Tensor): The recommended items of every user, best first: integers
                of shape `[batch_size, K]`, where `-1` stands for no item. A relevant item that is
                not in the list counts as not retrieved.
            edge_label_index (torch.Tensor or tuple): The ground-truth edges, of shape
                `[2, num_edges]`: rows of `pred_index_mat` and item ids.
            edge_label_weight (torch.Tensor, optional): How relevant each edge is, of shape
                `[num_edges]`. (default: `None`, all edges are equally relevant)

        Raises:
            TypeError: If an argument does not hold numbers.
            ValueError: If a shape, a dtype, a device or an id is wrong, if `weighted` is `True` and
                there are no weights, or if there are users without ground truth and
                `empty_target_action` is `"error"`.
        """
        if self.weighted and edge_label_weight is None:
            raise ValueError(
                f"'edge_label_weight' needs to be given to a '{type(self).__name__}' with "
                f"'weighted=True' (got None)"
            )
        ranked = RankedEdges.from_topk(
            to_double_precision_device(pred_index_mat),
            to_double_precision_device(edge_label_index),
            to_double_precision_device(edge_label_weight),
        )
        self._warn_about_short_lists(ranked)
        self.add(self.with_catalogue(ranked))

    def with_catalogue(self, ranked: RankedEdges) -> RankedEdges:
        """Returns `ranked` with the catalogue of the metric, if the metric has one."""
        if self.catalogue is None:
            return ranked
        self.catalogue = self.catalogue.to(ranked.rank.device)
        return ranked.with_catalogue(self.catalogue)

    def _warn_about_short_lists(self, ranked: RankedEdges) -> None:
        """Warns, but only once, of lists that are too short for the metric."""
        if self._has_warned or ranked.num_users == 0:
            return
        lists = lists_of(ranked)
        # Without a cut-off, lists are as long as they are.
        has_cut_off = self.definition.has_cut_off
        needed = self.metric.depth or 0 if has_cut_off else int(ranked.degree.max())
        if lists.width >= needed:
            return
        num_items = max_id(lists.item, ranked.edge_label_index[1]) + 1
        if self.catalogue is not None:
            num_items = self.catalogue.num_items
        if lists.width < num_items:
            self._has_warned = True
            warn(
                f"'pred_index_mat' holds lists of {lists.width} items, but {needed} are needed "
                f"(for k, or the largest R); missing items count as not retrieved"
            )


class MeanOverUsers(RankingMetric):
    """A metric that is a mean over users. Its state is a sum and a count.

    Raises:
        TypeError: If an argument has a wrong type or is unknown.
        ValueError: If an argument is not one that the metric takes.

    Example:
        >>> import torch
        >>> from pyg_recmetrics import modules
        >>> lists = torch.tensor([[3, 1, 4], [1, 5, -1]])
        >>> truth = torch.tensor([[0, 0, 1], [1, 9, 5]])
        >>> metric = modules.Recall(k=2)
        >>> metric.update(lists, truth)
        >>> metric.compute()
        tensor(0.7500)
    """

    def initial_state(self) -> dict[str, Tensor]:
        """Returns a sum over users and their number, of no users."""
        zero = torch.zeros((), dtype=torch.float64, device="cpu")
        return {"sum": zero, "count": zero.long()}

    def add(self, ranked: RankedEdges) -> None:
        """Adds users to the sum and the count."""
        if self.empty_target_action == "error":
            check_num_without_truth(int((ranked.degree == 0).sum()))
        value = self.metric(ranked)
        if self.definition.needs_truth:
            value = fill_without_truth(value, ranked.degree, self.empty_target_action)
        self.merge(sum=value.nansum(), count=(~value.isnan()).sum())

    def compute(self) -> Tensor:
        """Returns the mean over all users since the last reset; `NaN` if there are none."""
        return self.as_result(self.state["sum"] / self.state["count"])


class OverAllUsers(RankingMetric):
    """A metric with one value for all users together. Its state adds up over users.

    The state has about as many elements as there are items.

    Raises:
        TypeError: If an argument has a wrong type or is unknown.
        ValueError: If an argument is not one that the metric takes.

    Example:
        >>> import torch
        >>> from pyg_recmetrics import Catalogue, modules
        >>> lists = torch.tensor([[3, 1, 4], [1, 5, -1]])
        >>> truth = torch.tensor([[0, 0, 1], [1, 9, 5]])
        >>> metric = modules.Coverage(k=2, catalogue=Catalogue(num_items=10))
        >>> metric.update(lists, truth)
        >>> metric.compute()
        tensor(0.3000)
    """

    def initial_state(self) -> dict[str, Tensor]:
        """Returns the state of no users."""
        no_lists = torch.empty(0, 1, dtype=torch.long, device=self.state_device)
        no_users = RankedEdges.from_topk(no_lists, no_lists.new_empty(2, 0))
        return {"state": self._state_of(self.with_catalogue(no_users))}

    def add(self, ranked: RankedEdges) -> None:
        """Adds the state of some users."""
        self.merge(state=self._state_of(ranked))

    def _state_of(self, ranked: RankedEdges) -> Tensor:
        self.metric.check_holds(ranked)
        state: Tensor = self.definition.state(ranked, self.k)  # type: ignore[misc]
        return state

    def compute(self) -> Tensor:
        """Returns the metric of all users since the last reset; `NaN` if it is undefined."""
        return self.as_result(self.definition.compute(self.state["state"]))  # type: ignore[misc]


#: Where all classes are imported from.
_PACKAGE = __name__.rpartition(".")[0]

#: The words of a metric's name that a class name spells in capitals.
_ABBREVIATIONS = ("auc", "dcg", "err", "map", "mrr", "ndcg", "pr", "rbp", "roc")


#: What is said of each class besides what its metric is.
_ABOUT = """\
This class computes :func:`~pyg_recmetrics.metrics.{0}` over mini-batches. It takes the arguments of
the function, and the options that :mod:`pyg_recmetrics.modules` explains."""


def _options(
    *,
    catalogue: Catalogue,
    weighted: bool = False,
    empty_target_action: EmptyTargetAction = "skip",
    **kwargs: Any,
) -> None:
    """What a class takes besides what the function of the same metric takes."""


def class_name(name: str) -> str:
    """Returns the name of the class for a metric of the registry.

    Example:
        >>> from pyg_recmetrics.modules import class_name
        >>> [class_name(name) for name in ("r_precision", "ndcg", "f1")]
        ['RPrecision', 'NDCG', 'F1']
    """
    words = name.split("_")
    return "".join(word.upper() if word in _ABBREVIATIONS else word.capitalize() for word in words)


def base_class(definition: Definition) -> type[RankingMetric] | None:
    """Returns the base class for a metric, which says what the metric keeps between updates.

    Returns:
        :class:`MeanOverUsers`, :class:`OverAllUsers`, or `None` if lists are not enough for the
        metric.
    """
    if definition.needs_all_ranks or definition.needs_candidates or "seen" in definition.needs:
        return None
    return MeanOverUsers if definition.state is None else OverAllUsers


@cache
def make_class(definition: Definition) -> type[RankingMetric]:
    """Makes the class of a metric.

    Raises:
        AttributeError: If lists are not enough for the metric.
    """
    base = base_class(definition)
    name = class_name(definition.name)
    if base is None:
        raise AttributeError(
            f"there is no '{name}': '{definition.name}' needs the rank of every relevant item, the "
            f"number of candidates, or the history of every user, which lists do not hold; use "
            f"'evaluate(model, data, [\"{definition.name}\"])'"
        )
    low, high = (None if isinf(end) else end for end in definition.range)
    attributes = {
        "__module__": _PACKAGE,
        "__doc__": f"{definition.about}\n\n{_ABOUT.format(definition.name)}",
        "__signature__": _signature(definition),
        "definition": definition,
        "higher_is_better": definition.higher_is_better,
        # Where torchmetrics ends the axis of its plots.
        "plot_lower_bound": low,
        "plot_upper_bound": high,
    }
    return cast(type[RankingMetric], type(name, (base,), attributes))


def _signature(definition: Definition) -> inspect.Signature:
    """The signature of the function without `ranked`, and the options of the class."""
    function = definition.formula
    _, *of_function = inspect.signature(function).parameters.values()
    hints = get_type_hints(function)
    # A metric of one's own need not have annotations.
    parameters = [
        parameter.replace(annotation=hints.get(parameter.name, parameter.annotation))
        for parameter in of_function
    ]
    options = dict(inspect.signature(_options).parameters)
    if not set(definition.needs) - {"items"}:
        del options["catalogue"]
    if not definition.depends_on_weight:
        del options["weighted"]
    if not definition.needs_truth:
        del options["empty_target_action"]
    return inspect.Signature([*parameters, *options.values()])


class PrecisionRecallCurve(StreamingMetric):
    r"""Precision and recall at every cut-off from one to `max_k`, over all users.

    This class computes :func:`~pyg_recmetrics.metrics.precision_recall_curve` over mini-batches. It
    takes what torchmetrics' `RetrievalPrecisionRecallCurve` takes, and has its values. The pairs of
    a user may come in several mini-batches, and in several processes.

    Memory is needed for the pairs that can matter: with a given `max_k`, the best `max_k` of every
    user in every mini-batch, and all that are relevant. Otherwise, all pairs are kept.

    Args:
        max_k (int, optional): The largest cut-off. (default: `None`, the largest number of
            candidates of a user)
        adaptive_k (bool, optional): Whether to divide the precision of a user with fewer than `k`
            candidates by the number of candidates. (default: `False`)
        empty_target_action (str, optional): What users without truth count as. `"neg"` counts them
            as zero, `"pos"` counts them as one, `"skip"` leaves them out, and `"error"` raises an
            error. (default: `"neg"`)
        ignore_index (int, optional): Pairs whose target is this number are left out.
            (default: `None`)
        aggregation (str or callable, optional): How to get from the values of all users to one:
            `"mean"`, `"median"`, `"min"`, `"max"`, or a function that takes a tensor of shape
            `[num_users, num_cut_offs]` and `dim=0`. (default: `"mean"`)
        **kwargs: The arguments of all metrics of torchmetrics, see :mod:`pyg_recmetrics.modules`.

    Raises:
        TypeError: If `adaptive_k` is not a boolean, or an argument is none of the above.
        ValueError: If the value of another argument is none of the above.

    Example:
        >>> import torch
        >>> from pyg_recmetrics.modules import PrecisionRecallCurve
        >>> metric = PrecisionRecallCurve(max_k=4)
        >>> metric.update(
        ...     preds=torch.tensor([0.4, 0.01, 0.5, 0.6, 0.2, 0.3, 0.5]),
        ...     target=torch.tensor([True, False, False, True, True, False, True]),
        ...     indexes=torch.tensor([0, 0, 0, 0, 1, 1, 1]),
        ... )
        >>> precisions, recalls, top_k = metric.compute()
        >>> precisions
        tensor([1.0000, 0.5000, 0.6667, 0.5000])
        >>> recalls
        tensor([0.5000, 0.5000, 1.0000, 1.0000])
    """

    higher_is_better: ClassVar[bool | None] = True
    merging: ClassVar[Literal["sum", "cat"]] = "cat"

    def __init__(
        self,
        max_k: int | None = None,
        adaptive_k: bool = False,
        empty_target_action: EmptyTargetAction = "neg",
        ignore_index: int | None = None,
        aggregation: Aggregation = "mean",
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.max_k = None if max_k is None else check_positive_integer(max_k, "max_k")
        self.adaptive_k = check_boolean(adaptive_k, "adaptive_k")
        check_empty_target_action(empty_target_action)
        self.empty_target_action = empty_target_action
        self.ignore_index = (
            None if ignore_index is None else check_integer(ignore_index, "ignore_index")
        )
        aggregate_of(aggregation)
        self.aggregation = aggregation
        none = torch.empty(0, dtype=torch.long, device="cpu")
        self._declare_state(
            f"max_k={self.max_k}, ignore_index={self.ignore_index}",
            {"preds": none.double(), "target": none.bool(), "indexes": none},
        )

    def arguments(self) -> dict[str, Any]:
        """Returns the arguments that are not the default."""
        # Not those of its own type, as a class that derives from it may take others.
        *own, _ = inspect.signature(PrecisionRecallCurve).parameters.values()
        return {p.name: value for p in own if (value := getattr(self, p.name)) != p.default}

    def update(
        self, preds: TensorLike, target: TensorLike, indexes: TensorLike | None = None
    ) -> None:
        """Adds the pairs of a mini-batch.

        Args:
            preds (torch.Tensor): Floating-point scores of shape `[num_pairs]`, higher is better;
                with `indexes`, of any shape.
            target (torch.Tensor): Whether each pair is relevant: booleans, or numbers. Zero or less
                is not relevant.
            indexes (torch.Tensor, optional): The query (user) each pair belongs to, integers of any
                size. (default: `None`, all pairs belong to query zero)

        Raises:
            TypeError: If an argument does not hold numbers.
            ValueError: If a shape, a dtype or a device is wrong, or if scores are NaN or `inf`.
        """
        preds, target, indexes = map(to_double_precision_device, (preds, target, indexes))
        score, relevance, query = check_scored_pairs(preds, target, indexes, self.ignore_index)
        is_relevant = relevance > 0
        if self.max_k is not None:
            # All others rank below `max_k` whatever comes, and so does what ranks below them.
            is_kept = is_relevant | (ranks_within_rows(query, score).rank <= self.max_k)
            score, is_relevant, query = score[is_kept], is_relevant[is_kept], query[is_kept]
        self.merge(preds=score.double(), target=is_relevant, indexes=query)

    def compute(self) -> Any:
        """Returns the curve of all users since the last reset.

        Returns:
            The precisions and the recalls, and the cut-offs as integers, each of shape `[max_k]`.
            Precisions and recalls are zero, and not `NaN`, if all users are left out. If `max_k` is
            one, torchmetrics makes numbers of them, as of all its metrics.

        Raises:
            ValueError: If there are no pairs, if all scores of a user are `-inf`, or if
                `empty_target_action` is `"error"` and there are users without truth.
        """
        return tuple(map(self.as_result, self.curve()))

    def curve(self) -> Curve:
        """Returns the curve in double precision."""
        preds, target, indexes = self.state.values()
        if preds.numel() == 0:
            raise ValueError("'update' needs to be called with pairs before 'compute' (got none)")
        return precision_recall_curve(
            RankedEdges.from_pairs(preds, target, indexes),
            self.max_k,
            self.adaptive_k,
            empty_target_action=self.empty_target_action,
            aggregation=self.aggregation,
        )

    def plot(self, curve: Curve | None = None, ax: Any = None) -> Any:
        """Plots precision against recall.

        Args:
            curve (tuple): What :meth:`compute` returned. (default: `None`, the current curve)
            ax: The axes to plot on. (default: `None`, new axes)

        Returns:
            A figure and its axes.

        Raises:
            ImportError: If torchmetrics or matplotlib is not installed.

        Example:
            >>> import torch
            >>> from pyg_recmetrics import modules
            >>> curve = modules.PrecisionRecallCurve(max_k=2)
            >>> preds, target = torch.tensor([0.9, 0.3, 0.7]), torch.tensor([True, False, True])
            >>> curve.update(preds, target, indexes=torch.tensor([0, 0, 1]))
            >>> figure, axes = curve.plot()  # needs torchmetrics and matplotlib
        """
        check_torchmetrics("plot")
        from torchmetrics.utilities.plot import plot_curve

        precisions, recalls, top_k = self.compute() if curve is None else curve
        labels, name = ("Recall", "Precision"), type(self).__name__
        return plot_curve((recalls, precisions, top_k), ax=ax, label_names=labels, name=name)


class RecallAtFixedPrecision(PrecisionRecallCurve):
    r"""The largest recall at a precision of at least `min_precision`, and its cut-off.

    This class computes :func:`~pyg_recmetrics.metrics.recall_at_fixed_precision` over mini-batches.
    It takes what torchmetrics' `RetrievalRecallAtFixedPrecision` takes, and has its values. It
    keeps the pairs that :class:`PrecisionRecallCurve` keeps.

    Args:
        min_precision (float, optional): The smallest precision to accept, from zero to one.
            (default: `0.0`)
        max_k (int, optional): See :class:`PrecisionRecallCurve`. (default: `None`)
        adaptive_k (bool, optional): See :class:`PrecisionRecallCurve`. (default: `False`)
        empty_target_action (str, optional): See :class:`PrecisionRecallCurve`. (default: `"neg"`)
        ignore_index (int, optional): See :class:`PrecisionRecallCurve`. (default: `None`)
        aggregation (str or callable, optional): See :class:`PrecisionRecallCurve`.
            (default: `"mean"`)
        **kwargs: See :class:`PrecisionRecallCurve`.

    Raises:
        TypeError: If `adaptive_k` is not a boolean, or an argument is none of the above.
        ValueError: If the value of another argument is none of the above.

    Example:
        >>> import torch
        >>> from pyg_recmetrics.modules import RecallAtFixedPrecision
        >>> metric = RecallAtFixedPrecision(min_precision=0.8)
        >>> metric.update(
        ...     preds=torch.tensor([0.4, 0.01, 0.5, 0.6, 0.2, 0.3, 0.5]),
        ...     target=torch.tensor([True, False, False, True, True, False, True]),
        ...     indexes=torch.tensor([0, 0, 0, 0, 1, 1, 1]),
        ... )
        >>> metric.compute()
        (tensor(0.5000), tensor(1))
    """

    plot_lower_bound: ClassVar[float | None] = 0.0
    plot_upper_bound: ClassVar[float | None] = 1.0

    def __init__(
        self,
        min_precision: float = 0.0,
        max_k: int | None = None,
        adaptive_k: bool = False,
        empty_target_action: EmptyTargetAction = "neg",
        ignore_index: int | None = None,
        aggregation: Aggregation = "mean",
        **kwargs: Any,
    ) -> None:
        super().__init__(
            max_k, adaptive_k, empty_target_action, ignore_index, aggregation, **kwargs
        )
        self.min_precision = check_min_precision(min_precision)

    def arguments(self) -> dict[str, Any]:
        """Returns the arguments that are not the default."""
        own = {"min_precision": self.min_precision} if self.min_precision else {}
        return own | super().arguments()

    def compute(self) -> Any:
        """Returns the largest recall of all users since the last reset, and its cut-off.

        Raises:
            ValueError: See :meth:`PrecisionRecallCurve.compute`.
        """
        return tuple(map(self.as_result, largest_recall(*self.curve(), self.min_precision)))

    def plot(self, val: Any = None, ax: Any = None) -> Any:
        """Plots one recall or several, as all metrics of torchmetrics do.

        Args:
            val: A recall that :meth:`compute` returned, or a list of such recalls.
                (default: `None`, the current recall)
            ax: The axes to plot on. (default: `None`, new axes)

        Returns:
            A figure and its axes.

        Raises:
            ImportError: If torchmetrics or matplotlib is not installed.

        Example:
            >>> import torch
            >>> from pyg_recmetrics import modules
            >>> metric = modules.RecallAtFixedPrecision(min_precision=0.5, max_k=2)
            >>> preds, target = torch.tensor([0.9, 0.3, 0.7]), torch.tensor([True, False, True])
            >>> metric.update(preds, target, indexes=torch.tensor([0, 0, 1]))
            >>> figure, axes = metric.plot()  # needs torchmetrics and matplotlib
        """
        return StreamingMetric.plot(self, self.compute()[0] if val is None else val, ax)
