r"""Metric classes for loops over mini-batches, with `update` and `compute` as PyG's own have them.

There is one class for every metric of the registry that lists of recommended items are enough for.
A class and the function of the same metric share one definition. `metrics.ndcg` is `NDCG` here and
`metrics.r_precision` is `RPrecision`: abbreviations are in capitals, and other words start with a
capital. `dir(modules)` lists all classes.

A class takes the arguments of the function, and these:

- `empty_target_action` (str): What users without ground truth count as. `"skip"` leaves them out of
  the mean, `"neg"` counts them as zero, `"pos"` counts them as one, and `"error"` raises an error.
  (default: `"skip"`)
- `keep_per_user` (bool): Whether the metric keeps the value of every user for `compute_per_user()`,
  besides a sum and a count. (default: `False`)
- `catalogue` (:class:`~pyg_recmetrics.Catalogue`): What is known about the items. Only metrics that
  look at the items take it, such as `Coverage` and `Novelty`.

PyG's `LinkPredMetricCollection` accepts all of these classes. Where torchmetrics is installed, they
are torchmetrics metrics: they work in its `MetricCollection`, with its synchronisation of
processes, its plots, and Lightning's `self.log`.

A mini-batch holds lists and nothing else. Four kinds of metrics therefore have no class, and
:func:`~pyg_recmetrics.evaluate` computes them:

- Metrics that need the rank of every relevant item, such as `roc_auc`. A list leaves out all items
  that rank below its end.
- `fall_out`, which needs the number of candidates of each user. A list does not tell it.
- `calibration`, which compares each list with the history of its user. A row of a mini-batch does
  not say which user it belongs to.
- Micro-averages, whose denominator is that of all users. They do not add up over mini-batches.

Lists need to have at least `k` items: an item beyond the end of a list counts as not retrieved,
which makes most values too low. R-precision needs lists as long as the largest number of relevant
items of a user. A metric warns about shorter lists, unless they hold all items. It does so once,
also after `reset()`, so that a training of many epochs is not flooded with warnings.

Example:
    >>> import torch
    >>> from pyg_recmetrics.modules import NDCG, RPrecision
    >>> lists, truth = torch.tensor([[3, 1, 4], [2, 6, -1]]), torch.tensor([[0, 0, 1], [1, 9, 2]])
    >>> metric = RPrecision(keep_per_user=True)
    >>> metric.update(pred_index_mat=lists, edge_label_index=truth)
    >>> metric.compute(), metric.compute_per_user()
    (tensor(0.7500, dtype=torch.float64), tensor([0.5000, 1.0000], dtype=torch.float64))
    >>> NDCG(k=20, gain="exponential")
    NDCG(k=20, gain='exponential')
"""

import inspect
import re
from abc import abstractmethod
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar, Literal, TypeAlias, cast, get_type_hints

import torch
from torch import Tensor
from torch_geometric.metrics import link_pred

from pyg_recmetrics import distributed, metrics
from pyg_recmetrics.checks import check_boolean, check_mapping, check_tensor
from pyg_recmetrics.metrics import AggregateDefinition, Definition, Metric
from pyg_recmetrics.metrics.undefined import (
    EmptyTargetAction,
    check_empty_target_action,
    check_num_without_truth,
    fill_without_truth,
)
from pyg_recmetrics.ranked_edges import RankedEdges
from pyg_recmetrics.ranked_edges.sources import max_id
from pyg_recmetrics.task import Catalogue

#: How the states of several processes become one: by their sum, or one after the other.
Merging: TypeAlias = Literal["sum", "cat"]

#: The words of a metric's name that a class name spells in capitals.
_ABBREVIATIONS = ("auc", "dcg", "err", "map", "mrr", "ndcg", "pr", "rbp", "roc")


@dataclass(frozen=True)
class _ClassArgument:
    """An argument that a class takes and the function of the same metric does not."""

    parameter: inspect.Parameter
    #: Its lines in the `Args:` section of a docstring.
    explanation: str
    #: Whether the class of a metric takes it.
    applies_to: Callable[[Definition], bool]


_CLASS_ARGUMENTS = (
    _ClassArgument(
        inspect.Parameter("catalogue", inspect.Parameter.KEYWORD_ONLY, annotation=Catalogue),
        """\
    catalogue (Catalogue): What is known about the items.""",
        lambda definition: bool(set(definition.needs) - {"items"}),
    ),
    _ClassArgument(
        inspect.Parameter(
            "empty_target_action",
            inspect.Parameter.KEYWORD_ONLY,
            default="skip",
            annotation=EmptyTargetAction,
        ),
        """\
    empty_target_action (str, optional): What users without ground truth count as. `"skip"` leaves
        them out of the mean, `"neg"` counts them as zero, `"pos"` counts them as one, and
        `"error"` raises an error. (default: `"skip"`)""",
        lambda definition: definition.needs_truth,
    ),
    _ClassArgument(
        inspect.Parameter(
            "keep_per_user", inspect.Parameter.KEYWORD_ONLY, default=False, annotation=bool
        ),
        """\
    keep_per_user (bool, optional): Whether to keep the value of every user for
        `compute_per_user()`. (default: `False`)""",
        lambda definition: not isinstance(definition, AggregateDefinition),
    ),
)

# PyG's collection of metrics takes only what derives from PyG's own base. PyG 2.6 has neither.
_PyGMetric = getattr(link_pred, "_LinkPredMetric", link_pred.BaseMetric)


class _NoCutOff(int):
    """Zero, so that PyG's collection never takes it for its largest `k`, but printed as `all`."""

    def __str__(self) -> str:
        return "all"


class _TorchmetricsBase(_PyGMetric):  # type: ignore[misc, valid-type]
    """The base of all classes where torchmetrics is installed, which then keeps their state."""

    def declare_state(self, name: str, default: Tensor | list[Tensor], merging: Merging) -> None:
        """Declares an attribute that is part of the state."""
        self.add_state(name, default, dist_reduce_fx=merging)

    def note_loaded_state(self) -> None:
        """Lets `compute` use a state that did not come from `update`."""
        # Otherwise torchmetrics returns an earlier result, or warns that there was no update.
        self._computed = None
        self._update_count = 1

    def synchronised(self) -> AbstractContextManager[None]:
        """Returns a context in which the state is that of all processes together."""
        context: AbstractContextManager[None] = self.sync_context(
            should_sync=self._to_sync, should_unsync=self._should_unsync
        )
        return context

    def draw(self, val: Any, ax: Any) -> Any:
        """Plots values of the metric on axes."""
        return self._plot(val, ax)


class _ModuleBase(_PyGMetric):  # type: ignore[misc, valid-type]
    """The base of all classes where torchmetrics is missing: one process, and no plots."""

    def declare_state(self, name: str, default: Tensor | list[Tensor], merging: Merging) -> None:
        """Declares an attribute that is part of the state."""
        setattr(self, name, default)

    def note_loaded_state(self) -> None:
        """Does nothing, because a plain module keeps no result of `compute`."""

    def reset(self) -> None:
        """Does nothing, because :class:`RankingMetric` puts its state back itself."""

    def synchronised(self) -> AbstractContextManager[None]:
        """Returns a context that changes nothing."""
        return nullcontext()

    def draw(self, val: Any, ax: Any) -> Any:
        """Raises, because the plots are those of torchmetrics."""
        raise ImportError("'plot' needs torchmetrics: pip install 'pyg-recmetrics[lightning]'")


_Base = _TorchmetricsBase if link_pred.WITH_TORCHMETRICS else _ModuleBase


class RankingMetric(_Base):  # type: ignore[misc, valid-type]
    r"""A metric over mini-batches of lists: `update`, `compute` and `reset`.

    All classes of this module derive from it and differ only in their definition. Between updates,
    a metric keeps a state of few tensors. Each tensor says how those of several processes become
    one: `"sum"` adds them up, `"cat"` concatenates them. The `state_dict` holds the state. The
    state moves between devices, and stays in double precision when a model that holds the metric
    is converted to another precision.

    Attributes:
        metric (Metric): The metric that is computed, spelled `name@k`.
        k (int): The cut-off of the metric; zero if there is none.
    """

    is_differentiable: ClassVar[bool] = False
    full_state_update: ClassVar[bool] = False
    higher_is_better: ClassVar[bool | None] = None

    #: The definition that the class is made from.
    definition: ClassVar[Definition]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        # Not PyG's own `__init__`, which requires a cut-off.
        link_pred.BaseMetric.__init__(self)
        arguments = inspect.signature(type(self)).bind(*args, **kwargs).arguments
        self._arguments = dict(arguments)
        self.empty_target_action: EmptyTargetAction = arguments.pop("empty_target_action", "skip")
        check_empty_target_action(self.empty_target_action)
        self.keep_per_user = check_boolean(arguments.pop("keep_per_user", False), "keep_per_user")
        self.catalogue = _check_catalogue(arguments.pop("catalogue", None))
        k = arguments.pop("k", None)
        self.metric = Metric(self.definition.name, k, tuple(arguments.items()))
        self.metric.check_catalogue(self.catalogue)
        self.k = _NoCutOff() if k is None else k
        self._has_warned = False
        self._state_device = torch.device("cpu")
        self._declare_states()

    @abstractmethod
    def merged_by(self) -> dict[str, Merging]:
        """Returns how several processes merge each tensor of the state, by its name."""

    @abstractmethod
    def initial(self, name: str) -> Tensor:
        """Returns a tensor of the state as it is before the first update."""

    @abstractmethod
    def add(self, ranked: RankedEdges) -> None:
        """Adds users to the state, by :meth:`get` and :meth:`set`."""

    @abstractmethod
    def compute(self) -> Tensor:
        """Returns the metric of all users since the last reset, in double precision."""

    def update(
        self,
        pred_index_mat: Tensor,
        edge_label_index: Tensor | tuple[Tensor, Tensor],
        edge_label_weight: Tensor | None = None,
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
            TypeError: If an argument is not a tensor.
            ValueError: If a shape, a dtype, a device or an id is wrong, or if there are users
                without ground truth and `empty_target_action` is `"error"`.
        """
        ranked = RankedEdges.from_topk(pred_index_mat, edge_label_index, edge_label_weight)
        self._warn_about_short_lists(ranked)
        self.add(self.with_catalogue(ranked))

    def with_catalogue(self, ranked: RankedEdges) -> RankedEdges:
        """Returns `ranked` with the catalogue of the metric, if the metric has one."""
        if self.catalogue is None:
            return ranked
        self.catalogue = self.catalogue.to(ranked.rank.device)
        return ranked.with_catalogue(self.catalogue)

    def reset(self) -> None:
        """Forgets all users."""
        super().reset()
        self._set_initial_state()

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
        """
        return self.draw(val, ax)

    def get(self, name: str) -> Tensor:
        """Returns the current value of a tensor of the state."""
        value: Tensor | list[Tensor] = getattr(self, self._attributes[name])
        return value if isinstance(value, Tensor) else torch.cat(value)

    def set(self, name: str, value: Tensor) -> None:
        """Replaces a tensor of the state. The previous tensor itself is not written to."""
        is_list = self.merged_by()[name] == "cat"
        setattr(self, self._attributes[name], [value] if is_list else value)

    def extend(self, name: str, value: Tensor) -> None:
        """Appends to a tensor of the state that is merged by `"cat"`."""
        values: list[Tensor] = getattr(self, self._attributes[name])
        setattr(self, self._attributes[name], [*values, value])

    def get_extra_state(self) -> dict[str, Any]:
        """Returns what the `state_dict` holds: the tensors of the state, and whose they are."""
        return self._owner | self._tensors()

    def set_extra_state(self, state: dict[str, Any]) -> None:
        """Restores the state that :meth:`get_extra_state` returned.

        Raises:
            TypeError: If `state` is not a dictionary.
            ValueError: If it is the state of another metric, or of the same metric with other
                arguments.
        """
        tensors = dict(check_mapping(state, "state"))
        owner = {name: tensors.pop(name, None) for name in self._owner}
        if owner != self._owner or tensors.keys() != self._attributes.keys():
            raise ValueError(
                f"'state' needs to hold {list(self._attributes)} of {self._owner} (got "
                f"{list(tensors)} of {owner})"
            )
        for name, value in tensors.items():
            self._check_part(name, check_tensor(value, "state"))
        for name, value in tensors.items():
            self.set(name, value.to(self._state_device))
        self.note_loaded_state()

    @property
    def _owner(self) -> dict[str, str]:
        """Which metric a state is of, since a state makes no sense to others."""
        return {"metric": self.metric.words, "empty_target_action": self.empty_target_action}

    def _tensors(self) -> dict[str, Tensor]:
        return {name: self.get(name) for name in self._attributes}

    def _check_part(self, name: str, value: Tensor) -> None:
        """Raises if a tensor cannot be this part of the state."""
        initial, is_list = self.initial(name), self.merged_by()[name] == "cat"
        fits = value.dim() == 1 if is_list else value.shape == initial.shape
        if not fits or value.dtype != initial.dtype:
            shape = "[num_users]" if is_list else list(initial.shape)
            raise ValueError(
                f"'state' needs to hold '{name}' in {initial.dtype} of shape {shape} (got "
                f"{value.dtype} of shape {list(value.shape)})"
            )

    def _warn_about_short_lists(self, ranked: RankedEdges) -> None:
        """Warns, but only once, of lists that are too short for the metric."""
        if self._has_warned or ranked.num_users == 0:
            return
        lists = ranked.required_lists
        if self.definition.has_cut_off:
            needed = self.metric.depth or 0  # without a cut-off, lists are as long as they are
        else:
            needed = int(ranked.degree.max())
        if lists.width >= needed:
            return
        num_items = max_id(lists.item, ranked.edge_index[1]) + 1
        if self.catalogue is not None:
            num_items = self.catalogue.num_items
        if lists.width < num_items:
            self._has_warned = True
            distributed.warn(
                f"'pred_index_mat' holds lists of {lists.width} items, but {needed} are needed "
                f"(for k, or for the largest R); all others count as not retrieved"
            )

    def _declare_states(self) -> None:
        # A collection of torchmetrics lets metrics share their state if the names and, after the
        # first update, the values are the same. So each name says what exactly is counted.
        suffix = re.sub(r"\W+", "_", f"{self.metric}_{self.empty_target_action}")
        self._attributes = {name: f"{name}_of_{suffix}" for name in self.merged_by()}
        for name, merging in self.merged_by().items():
            default: Tensor | list[Tensor] = [] if merging == "cat" else self.initial(name)
            self.declare_state(self._attributes[name], default, merging)
        self._set_initial_state()

    def _set_initial_state(self) -> None:
        for name in self._attributes:
            self.set(name, self.initial(name).to(self._state_device))

    def _apply(self, fn: Callable[[Tensor], Tensor], *args: Any, **kwargs: Any) -> Any:
        # `fn` may both move and convert tensors. The state must move, but keep its precision.
        state = self._tensors()
        module = super()._apply(fn, *args, **kwargs)
        moved = fn(torch.empty(0, dtype=torch.bool, device=self._state_device))
        self._state_device = moved.device
        for name, value in state.items():
            self.set(name, value.to(self._state_device))
        return module

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={value!r}" for name, value in self._arguments.items())
        return f"{type(self).__name__}({shown})"


class MeanOverUsers(RankingMetric):
    """A metric that is a mean over users. Its state is a sum and a count."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if dict(self.metric.arguments).get("average") == "micro":
            raise ValueError(
                "'average' needs to be 'macro' over mini-batches, because the denominator of a "
                "micro-average is that of all users: use 'evaluate' for it (got 'micro')"
            )

    def merged_by(self) -> dict[str, Merging]:
        """Returns how to merge the sum over users, their number, and the values if kept."""
        merged_by: dict[str, Merging] = {"sum": "sum", "count": "sum"}
        if self.keep_per_user:
            merged_by["per_user"] = "cat"
        return merged_by

    def initial(self, name: str) -> Tensor:
        """Returns a sum of zero, a count of zero, or the values of no users."""
        if name == "per_user":
            return torch.empty(0, dtype=torch.float64)
        return torch.zeros((), dtype=torch.float64 if name == "sum" else torch.long)

    def add(self, ranked: RankedEdges) -> None:
        """Adds users to the sum and the count."""
        if self.empty_target_action == "error" and self.definition.needs_truth:
            check_num_without_truth(int((ranked.degree == 0).sum()), self.empty_target_action)
        counted = value = self.metric(ranked)
        if self.definition.needs_truth:
            counted = fill_without_truth(value, ranked.degree, self.empty_target_action)
        self.set("sum", self.get("sum") + counted.nansum().to(self._state_device))
        num_counted = (~counted.isnan()).sum().to(self._state_device)
        self.set("count", self.get("count") + num_counted)
        if self.keep_per_user:
            self.extend("per_user", value.to(self._state_device))

    def compute(self) -> Tensor:
        """Returns the mean over all users since the last reset; `NaN` if there are none."""
        return self.get("sum") / self.get("count")

    def compute_per_user(self) -> Tensor:
        """Returns the value of every user since the last reset.

        Users are in the order of the updates. If there are several processes, the users of the
        first process come first, then those of the second, and so on.

        Returns:
            A double-precision tensor of shape `[num_users]`; `NaN` where the metric is undefined.

        Raises:
            ValueError: If `keep_per_user` is `False`.
        """
        if not self.keep_per_user:
            raise ValueError(
                "'keep_per_user' needs to be set to compute values per user (got False)"
            )
        with self.synchronised():
            return self.get("per_user")


class OverAllUsers(RankingMetric):
    """A metric with one value for all users together. Its state adds up over users.

    The state has about as many elements as there are items.
    """

    definition: ClassVar[AggregateDefinition]

    def merged_by(self) -> dict[str, Merging]:
        """Returns how to merge the state: by the sum over all users."""
        return {"state": "sum"}

    def initial(self, name: str) -> Tensor:
        """Returns the state of no users."""
        lists, truth = torch.empty(0, 1, dtype=torch.long), torch.empty(2, 0, dtype=torch.long)
        nobody = self.with_catalogue(RankedEdges.from_topk(lists, truth))
        return self.definition.state(nobody, self.k)

    def add(self, ranked: RankedEdges) -> None:
        """Adds the state of some users."""
        state = self.definition.state(ranked, self.k)
        self.set("state", self.get("state") + state.to(self._state_device))

    def compute(self) -> Tensor:
        """Returns the metric of all users since the last reset; `NaN` if it is undefined."""
        return self.definition.compute(self.get("state"))


def _check_catalogue(catalogue: object) -> Catalogue | None:
    if catalogue is not None and not isinstance(catalogue, Catalogue):
        raise TypeError(f"'catalogue' needs to be a 'Catalogue' (got {type(catalogue).__name__})")
    return catalogue


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
        :class:`OverAllUsers`, :class:`MeanOverUsers`, or `None` if lists are not enough for the
        metric.
    """
    if definition.needs_all_ranks or definition.needs_candidates or "seen" in definition.needs:
        return None
    return OverAllUsers if isinstance(definition, AggregateDefinition) else MeanOverUsers


@cache
def _make_class(definition: Definition) -> type[RankingMetric]:
    base = base_class(definition)
    name = class_name(definition.name)
    if base is None:
        raise AttributeError(
            f"there is no '{name}': '{definition.name}' needs the rank of every relevant item, the "
            f"number of candidates, or the history of every user, which lists do not hold; use "
            f"'evaluate(model, data, [\"{definition.name}\"])'"
        )
    low, high = definition.bounds
    attributes = {
        "__module__": __name__,
        "__doc__": _docstring(definition),
        "__signature__": _signature(definition),
        "definition": definition,
        "higher_is_better": definition.higher_is_better,
        # Where torchmetrics ends the axis of its plots.
        "plot_lower_bound": None if low == -torch.inf else low,
        "plot_upper_bound": None if high == torch.inf else high,
    }
    return cast(type[RankingMetric], type(name, (base,), attributes))


def _class_arguments(definition: Definition) -> list[_ClassArgument]:
    return [argument for argument in _CLASS_ARGUMENTS if argument.applies_to(definition)]


def _signature(definition: Definition) -> inspect.Signature:
    """The signature of the function without `ranked`, and the arguments of the class."""
    function = inspect.unwrap(definition.function)
    _, *of_function = inspect.signature(function).parameters.values()
    hints = get_type_hints(function)
    parameters = [parameter.replace(annotation=hints[parameter.name]) for parameter in of_function]
    of_class = [argument.parameter for argument in _class_arguments(definition)]
    return inspect.Signature([*parameters, *of_class])


def _docstring(definition: Definition) -> str:
    """The docstring of the function, with the arguments of the class in place of `ranked`."""
    docstring = definition.docstring
    arguments = [
        *(lines for name, lines in docstring.arguments.items() if name != "ranked"),
        *(argument.explanation for argument in _class_arguments(definition)),
    ]
    sections = [
        docstring.about,
        f"This class computes :func:`~pyg_recmetrics.metrics.{definition.name}` over mini-batches.",
        "\n".join(["Args:", *arguments]),
        docstring.source,
    ]
    return "\n\n".join(section for section in sections if section)


def _definitions_by_class_name() -> dict[str, Definition]:
    # Where two metrics have one class name, such as `ndcg` and `n_dcg`, the first keeps it.
    by_class_name: dict[str, Definition] = {}
    for name in metrics.names():
        by_class_name.setdefault(class_name(name), metrics.definition(name))
    return by_class_name


def __getattr__(name: str) -> type[RankingMetric]:
    # A class is made when it is first asked for, so that any registered metric has one.
    definitions = _definitions_by_class_name()
    if name not in definitions:
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    return _make_class(definitions[name])


def __dir__() -> list[str]:
    definitions = _definitions_by_class_name()
    return sorted(name for name, defined in definitions.items() if base_class(defined) is not None)
