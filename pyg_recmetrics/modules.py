r"""Metric classes for loops over mini-batches, with the `update` and `compute` of PyG's own.

There is a class for every metric of the registry, made from the same definition as its function:
`metrics.ndcg` is `NDCG` here, `metrics.r_precision` is `RPrecision`, and so on (abbreviations in
capitals, other words with a capital); `dir(modules)` lists them. Arguments are those of the
function, and two more:

- `empty_target_action` (str): What users without truth count as: `"skip"` leaves them out of the
  mean, `"neg"` counts them as zero, `"pos"` as one, `"error"` raises an error.
  (default: `"skip"`)
- `keep_per_user` (bool): Whether the value of every user is kept for `compute_per_user()`, besides
  a sum and a count. (default: `False`)

The classes go into PyG's `LinkPredMetricCollection`, and, where torchmetrics is installed, they are
metrics of torchmetrics: for its `MetricCollection`, its synchronisation of processes, its plots,
and Lightning's `self.log`.

Metrics of the catalogue, such as `Coverage` and `Novelty`, take one more: `catalogue`
(:class:`~pyg_recmetrics.Catalogue`), what is known of the items.

Lists are all that such a loop knows. So there is no class for metrics that need all ranks, such as
`roc_auc`: a list leaves out what is ranked below it. Nor is there one for `calibration`, which
looks at the history of every user: a row of a mini-batch does not say whose it is. And
micro-averages have none, to which a mini-batch cannot be added. :func:`~pyg_recmetrics.evaluate`
has all of them.

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
from typing import Any, ClassVar, cast, get_type_hints

import torch
from torch import Tensor
from torch_geometric.metrics import link_pred

from pyg_recmetrics import metrics
from pyg_recmetrics.metrics import AggregateDefinition, Definition, Metric
from pyg_recmetrics.metrics.undefined import (
    EmptyTargetAction,
    check_empty_target_action,
    check_num_without_truth,
    fill_without_truth,
)
from pyg_recmetrics.ranked_edges import RankedEdges
from pyg_recmetrics.task import Catalogue

#: What PyG's collection of metrics holds: a metric of torchmetrics where that is installed, and
#: otherwise a module.
_PyGMetric = link_pred.LinkPredMetric.__base__

_ABBREVIATIONS = ("auc", "dcg", "map", "mrr", "ndcg", "pr", "roc")


class _NoCutOff(int):
    """Zero, so that it is never the largest k of a collection, but not printed as one."""

    def __str__(self) -> str:
        return "all"


class RankingMetric(_PyGMetric):  # type: ignore[misc, valid-type]
    r"""A metric over mini-batches of lists: `update`, `compute` and `reset`.

    The base of all classes here, which do not differ but in their definition. What is kept between
    updates is a state of few tensors, each with the way in which those of several processes are
    merged (`"sum"` or `"cat"`). It is saved in the `state_dict`, moves between devices, and stays
    in double precision whatever a model around it is converted to.

    Attributes:
        metric (Metric): What is computed, as `name@k`.
        k (int): Its cut-off; zero if there is none.
    """

    is_differentiable: ClassVar[bool] = False
    full_state_update: ClassVar[bool] = False
    higher_is_better: ClassVar[bool | None] = None

    #: What it is made from.
    definition: ClassVar[Definition]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        link_pred.BaseMetric.__init__(self)
        arguments = inspect.signature(type(self)).bind(*args, **kwargs).arguments
        self._arguments = dict(arguments)
        self.empty_target_action: EmptyTargetAction = arguments.pop("empty_target_action", "skip")
        check_empty_target_action(self.empty_target_action)
        self.keep_per_user = bool(arguments.pop("keep_per_user", False))
        self.catalogue: Catalogue | None = arguments.pop("catalogue", None)
        k = arguments.pop("k", None)
        self.metric = Metric(self.definition.name, k, tuple(arguments.items()))
        self.k = _NoCutOff() if k is None else k
        # In a collection of torchmetrics, metrics share their state if it has the same names and,
        # after the first update, the same values: so names must say what is counted.
        spelled = re.sub(r"\W+", "_", f"{self.metric}_{self.empty_target_action}")
        self._attributes = {part: f"{part}_of_{spelled}" for part in self.merged_by()}
        self._state_device = torch.device("cpu")
        if hasattr(self, "add_state"):
            for part, merged_by in self.merged_by().items():
                default: Tensor | list[Tensor] = [] if merged_by == "cat" else self.initial(part)
                self.add_state(self._attributes[part], default, dist_reduce_fx=merged_by)
        self._forget()

    @abstractmethod
    def merged_by(self) -> dict[str, str]:
        """The parts of the state, and whether several processes `"sum"` or `"cat"` them."""

    @abstractmethod
    def initial(self, part: str) -> Tensor:
        """A part of the state before the first update."""

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
        """Adds the users of a mini-batch. Every user belongs into one mini-batch only.

        Args:
            pred_index_mat (torch.Tensor): The recommended items of every user, best first, of
                shape `[batch_size, K]`, integers; `-1` where there is none. Lists are all there
                is: what they leave out counts as not retrieved.
            edge_label_index (torch.Tensor or tuple): The ground-truth edges of shape
                `[2, num_edges]`: rows of `pred_index_mat` and item ids.
            edge_label_weight (torch.Tensor, optional): How relevant each edge is, of shape
                `[num_edges]`. (default: `None`, all are equally relevant)

        Raises:
            TypeError: If an argument is not a tensor.
            ValueError: If shapes, dtypes, devices or ids are off, or there are users without truth
                and `empty_target_action` is `"error"`.
        """
        ranked = RankedEdges.from_topk(pred_index_mat, edge_label_index, edge_label_weight)
        self.add(self.with_catalogue(ranked))

    def with_catalogue(self, ranked: RankedEdges) -> RankedEdges:
        """Returns lists that know their items, if the metric looks at them."""
        if self.catalogue is None:
            return ranked
        self.catalogue = self.catalogue.to(ranked.rank.device)
        return ranked.with_catalogue(self.catalogue)

    def reset(self) -> None:
        """Forgets all users."""
        if hasattr(self, "add_state"):
            super().reset()
        self._forget()

    def plot(self, val: Any = None, ax: Any = None) -> Any:
        """Plots a value, or several, as all metrics of torchmetrics do.

        Args:
            val: What :meth:`compute` returned, or a list of it. (default: `None`, its value now)
            ax: Axes to plot on. (default: `None`, new ones)

        Returns:
            A figure and its axes.

        Raises:
            ImportError: If torchmetrics or matplotlib is not installed.
        """
        if not hasattr(self, "_plot"):
            raise ImportError("'plot' needs torchmetrics: pip install 'pyg-recmetrics[lightning]'")
        return self._plot(val, ax)

    def get(self, part: str) -> Tensor:
        """A part of the state as it is now."""
        value: Tensor | list[Tensor] = getattr(self, self._attributes[part])
        return value if isinstance(value, Tensor) else torch.cat(value)

    def set(self, part: str, value: Tensor) -> None:
        """Replaces a part of the state; what it was before is never written to."""
        is_list = self.merged_by()[part] == "cat"
        setattr(self, self._attributes[part], [value] if is_list else value)

    def extend(self, part: str, value: Tensor) -> None:
        """Appends to a part of the state that is merged by `"cat"`."""
        values: list[Tensor] = getattr(self, self._attributes[part])
        setattr(self, self._attributes[part], [*values, value])

    def get_extra_state(self) -> dict[str, Tensor]:
        """What is saved in the `state_dict`."""
        return {part: self.get(part) for part in self._attributes}

    def set_extra_state(self, state: dict[str, Tensor]) -> None:
        """Reads what :meth:`get_extra_state` saved."""
        for part, value in state.items():
            self.set(part, value.to(self._state_device))
        # Or else torchmetrics returns what it has computed before, or warns that there is nothing.
        self._computed = None
        self._update_count = 1

    def _forget(self) -> None:
        for part in self._attributes:
            self.set(part, self.initial(part).to(self._state_device))

    def _apply(self, fn: Callable[[Tensor], Tensor], *args: Any, **kwargs: Any) -> Any:
        # `fn` moves tensors and may convert them; only the first must reach the state.
        state = self.get_extra_state()
        module = super()._apply(fn, *args, **kwargs)
        moved = fn(torch.empty(0, dtype=torch.bool, device=self._state_device))
        self._state_device = moved.device
        for part, value in state.items():
            self.set(part, value.to(self._state_device))
        return module

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={value!r}" for name, value in self._arguments.items())
        return f"{type(self).__name__}({shown})"


class MeanOverUsers(RankingMetric):
    """A metric that is a mean over users: its state is a sum and a count."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if dict(self.metric.arguments).get("average") == "micro":
            raise ValueError(
                "'average' needs to be 'macro' over mini-batches, as the denominator of a "
                "micro-average is that of all users: use 'evaluate' for it (got 'micro')"
            )

    def merged_by(self) -> dict[str, str]:
        """The sum over users, their number, and the value of each if it is kept."""
        return {"sum": "sum", "count": "sum"} | ({"per_user": "cat"} if self.keep_per_user else {})

    def initial(self, part: str) -> Tensor:
        """Zero, and no user."""
        if part == "per_user":
            return torch.empty(0, dtype=torch.float64)
        return torch.zeros((), dtype=torch.float64 if part == "sum" else torch.long)

    def add(self, ranked: RankedEdges) -> None:
        """Adds users to sum and count."""
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
        """Returns the mean over all users since the last reset, `NaN` if there are none."""
        return self.get("sum") / self.get("count")

    def compute_per_user(self) -> Tensor:
        """Returns the value of every user since the last reset, of shape `[num_users]`.

        Users are in the order of the updates, and one process after the other. The metric is
        undefined (`NaN`) for those without truth.

        Raises:
            ValueError: If `keep_per_user` was not set.
        """
        if not self.keep_per_user:
            raise ValueError(
                "'keep_per_user' needs to be set to compute values per user (got False)"
            )
        if not hasattr(self, "sync_context"):
            return self.get("per_user")
        with self.sync_context(should_sync=self._to_sync, should_unsync=self._should_unsync):
            return self.get("per_user")


class OverAllUsers(RankingMetric):
    """A metric of all users together: its state is what the metric makes of each of them, summed.

    This is as large as the number of items.
    """

    definition: ClassVar[AggregateDefinition]

    def merged_by(self) -> dict[str, str]:
        """The sum of the states of all users."""
        return {"state": "sum"}

    def initial(self, part: str) -> Tensor:
        """The state of no users, which are those of an empty list."""
        lists, truth = torch.empty(0, self.k, dtype=torch.long), torch.empty(2, 0, dtype=torch.long)
        nobody = self.with_catalogue(RankedEdges.from_topk(lists, truth))
        return self.definition.state(nobody, self.k)

    def add(self, ranked: RankedEdges) -> None:
        """Adds the state of some users."""
        state = self.definition.state(ranked, self.k)
        self.set("state", self.get("state") + state.to(self._state_device))

    def compute(self) -> Tensor:
        """Returns the metric of all users since the last reset, `NaN` if it has none."""
        return self.definition.compute(self.get("state"))


def class_name(name: str) -> str:
    """Returns the name of the class for a metric of the registry.

    Example:
        >>> [class_name(name) for name in ("r_precision", "ndcg", "f1")]
        ['RPrecision', 'NDCG', 'F1']
    """
    words = name.split("_")
    return "".join(word.upper() if word in _ABBREVIATIONS else word.capitalize() for word in words)


def base_class(definition: Definition) -> type[RankingMetric] | None:
    """Returns the class that a metric's own class derives from: what its state is.

    `None` if it cannot be had from lists. A definition that is no mean over users has its place
    here, beside :class:`MeanOverUsers`.
    """
    if definition.needs_all_ranks or "seen" in definition.needs:
        return None
    return OverAllUsers if isinstance(definition, AggregateDefinition) else MeanOverUsers


def _make_class(definition: Definition) -> type[RankingMetric]:
    base = base_class(definition)
    name = class_name(definition.name)
    if base is None:
        raise AttributeError(
            f"there is no '{name}': '{definition.name}' needs the rank of every relevant item, or "
            f"the history of every user, which lists do not hold; use "
            f"'evaluate(model, data, [\"{definition.name}\"])'"
        )
    low, high = definition.bounds
    made = type(
        name,
        (base,),
        {
            "__module__": __name__,
            "__doc__": _docstring(definition),
            "__signature__": _signature(definition),
            "definition": definition,
            "higher_is_better": definition.higher_is_better,
            "plot_lower_bound": None if low == -torch.inf else low,
            "plot_upper_bound": None if high == torch.inf else high,
        },
    )
    return cast(type[RankingMetric], made)


def _signature(definition: Definition) -> inspect.Signature:
    function = inspect.unwrap(definition.function)
    _, *own = inspect.signature(function).parameters.values()
    hints = get_type_hints(function)
    parameters = [parameter.replace(annotation=hints[parameter.name]) for parameter in own]
    more = [parameter for parameter in _MORE if parameter.name in _more_arguments(definition)]
    return inspect.Signature([*parameters, *more])


def _more_arguments(definition: Definition) -> list[str]:
    """The arguments that a class has besides those of the function."""
    is_applicable = {
        "catalogue": bool(set(definition.needs) - {"items"}),
        "empty_target_action": definition.needs_truth,
        "keep_per_user": not isinstance(definition, AggregateDefinition),
    }
    return [name for name, applies in is_applicable.items() if applies]


def _docstring(definition: Definition) -> str:
    """The docstring of the function with the arguments of the class."""
    text = inspect.getdoc(definition.function) or ""
    about, _, rest = text.partition("\nArgs:\n")
    arguments = rest.partition("\n\n")[0]
    # An argument goes on as long as lines are indented further than its first.
    described = re.split(r"\n(?= {4}\S)", arguments)
    own = [argument for argument in described if not argument.lstrip().startswith("ranked ")]
    source = re.search(r"^Source: .*?(?=\n\n|\Z)", text, flags=re.MULTILINE | re.DOTALL)
    parts = [
        about.rstrip(),
        f"The metric over mini-batches of :func:`~pyg_recmetrics.metrics.{definition.name}`.",
        "\n".join(["Args:", *own, *(_MORE_WORDS[name] for name in _more_arguments(definition))]),
        *([source[0]] if source else []),
    ]
    return "\n\n".join(parts)


_MORE = (
    inspect.Parameter("catalogue", inspect.Parameter.KEYWORD_ONLY, annotation=Catalogue),
    inspect.Parameter(
        "empty_target_action",
        inspect.Parameter.KEYWORD_ONLY,
        default="skip",
        annotation=EmptyTargetAction,
    ),
    inspect.Parameter(
        "keep_per_user", inspect.Parameter.KEYWORD_ONLY, default=False, annotation=bool
    ),
)

_MORE_WORDS = {
    "catalogue": """\
    catalogue (Catalogue): What is known of the items.""",
    "empty_target_action": """\
    empty_target_action (str, optional): What users without truth count as: `"skip"` leaves them
        out of the mean, `"neg"` counts them as zero, `"pos"` as one, `"error"` raises an error.
        (default: `"skip"`)""",
    "keep_per_user": """\
    keep_per_user (bool, optional): Whether the value of every user is kept, for
        `compute_per_user()`. (default: `False`)""",
}


def _definitions() -> dict[str, Definition]:
    return {class_name(name): metrics.definition(name) for name in metrics.names()}


def __getattr__(name: str) -> type[RankingMetric]:
    # Classes are made when they are asked for, so that there is one for any registered metric.
    known = _definitions()
    if name not in known:
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    globals()[name] = made = _make_class(known[name])
    return made


def __dir__() -> list[str]:
    return sorted(name for name, known in _definitions().items() if base_class(known) is not None)
