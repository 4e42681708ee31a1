"""Metrics over mini-batches of lists, as PyG's own are."""

import inspect
from abc import abstractmethod
from typing import Any, ClassVar

import torch
from torch import Tensor
from torch_geometric.metrics import link_pred

from pyg_recmetrics.checks import check_boolean
from pyg_recmetrics.inputs import EdgesLike, TensorLike
from pyg_recmetrics.kernels.entries import max_id
from pyg_recmetrics.messages import warn
from pyg_recmetrics.metrics import Definition, Metric
from pyg_recmetrics.metrics.empty_target_action import (
    EmptyTargetAction,
    check_empty_target_action,
    check_num_without_truth,
    fill_without_truth,
)
from pyg_recmetrics.modules.streaming_metric import (
    Part,
    StreamingMetric,
    to_double_precision_device,
)
from pyg_recmetrics.ranked_edges import RankedEdges, lists_of
from pyg_recmetrics.task import Catalogue

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
        ValueError: If an argument is not one that the metric takes.

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
            raise TypeError(f"{name}() got other arguments than it takes ({error})") from None
        if args and isinstance(args[0], int) and not self.definition.has_cut_off:
            raise TypeError(f"{name}() takes no cut-off (got {args[0]}); write {name}()")
        super().__init__(**arguments.pop("kwargs", {}))
        self._arguments = arguments
        self.weighted = check_boolean(arguments.get("weighted", False), "weighted")
        self.empty_target_action: EmptyTargetAction = arguments.get("empty_target_action", "skip")
        check_empty_target_action(self.empty_target_action)
        self.catalogue: Catalogue | None = arguments.get("catalogue")
        if not isinstance(self.catalogue, Catalogue | None):
            kind = type(self.catalogue).__name__
            raise TypeError(f"'catalogue' needs to be a 'Catalogue' (got {kind})")
        of_function = {n: arguments[n] for n in self.definition.parameters if n in arguments}
        self.metric = Metric(self.definition.name, arguments.get("k"), tuple(of_function.items()))
        self.metric.check_catalogue(self.catalogue)
        self.k = _NoCutOff() if self.metric.k is None else self.metric.k
        self._has_warned = False
        self._declare_states()

    def arguments(self) -> dict[str, Any]:
        """Returns the arguments that were given."""
        return self._arguments

    @property
    def identity(self) -> str:
        """Which metric a state is of."""
        return f"{self.metric.describe()}_{self.empty_target_action}"

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
        batch = (pred_index_mat, edge_label_index, edge_label_weight)
        ranked = RankedEdges.from_topk(*map(to_double_precision_device, batch))
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
                f"(for k, or for the largest R); all others count as not retrieved"
            )


class MeanOverUsers(RankingMetric):
    """A metric that is a mean over users. Its state is a sum and a count.

    Raises:
        TypeError: If an argument has a wrong type or is unknown.
        ValueError: If an argument is not one that the metric takes, or `average` is `"micro"`.

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

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if self.metric.is_pooled:
            raise ValueError(
                "'average' needs to be 'macro' over mini-batches, because the denominator of a "
                "micro-average is that of all users: use 'evaluate' for it (got 'micro')"
            )

    def parts(self) -> dict[str, Part]:
        """Returns a sum over users and their number, of no users."""
        zero = torch.zeros((), dtype=torch.float64, device="cpu")
        return {"sum": Part("sum", zero), "count": Part("sum", zero.long())}

    def add(self, ranked: RankedEdges) -> None:
        """Adds users to the sum and the count."""
        if self.empty_target_action == "error":
            check_num_without_truth(int((ranked.degree == 0).sum()))
        value = self.metric(ranked)
        if self.definition.needs_truth:
            value = fill_without_truth(value, ranked.degree, self.empty_target_action)
        self.merge("sum", value.nansum())
        self.merge("count", (~value.isnan()).sum())

    def compute(self) -> Tensor:
        """Returns the mean over all users since the last reset; `NaN` if there are none."""
        return self.as_result(self.get("sum") / self.get("count"))


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

    def parts(self) -> dict[str, Part]:
        """Returns the state of no users."""
        no_lists = torch.empty(0, 1, dtype=torch.long, device=self.state_device)
        no_users = RankedEdges.from_topk(no_lists, no_lists.new_empty(2, 0))
        return {"state": Part("sum", self._state_of(self.with_catalogue(no_users)))}

    def add(self, ranked: RankedEdges) -> None:
        """Adds the state of some users."""
        self.merge("state", self._state_of(ranked))

    def _state_of(self, ranked: RankedEdges) -> Tensor:
        self.definition.check_holds(ranked, {"k": self.k})
        state: Tensor = self.definition.state(ranked, self.k)  # type: ignore[misc]
        return state

    def compute(self) -> Tensor:
        """Returns the metric of all users since the last reset; `NaN` if it is undefined."""
        return self.as_result(self.definition.compute(self.get("state")))  # type: ignore[misc]
