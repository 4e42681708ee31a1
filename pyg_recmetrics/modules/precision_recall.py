"""Curves of precision and recall over mini-batches of scored pairs, as torchmetrics' own are."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import torch
from torch import Tensor

from pyg_recmetrics.checks import check_boolean, check_integer, check_positive_integer
from pyg_recmetrics.inputs import TensorLike
from pyg_recmetrics.metrics import precision_recall_curve
from pyg_recmetrics.metrics.curves import (
    Aggregation,
    Curve,
    aggregate_of,
    check_min_precision,
    largest_recall,
)
from pyg_recmetrics.metrics.definitions import check_ranked
from pyg_recmetrics.metrics.empty_target_action import (
    EmptyTargetAction,
    check_empty_target_action,
    check_num_without_truth,
    counts_in_mean,
)
from pyg_recmetrics.modules.streaming_metric import (
    Merging,
    StreamingMetric,
    to_double_precision_device,
)
from pyg_recmetrics.ranked_edges import RankedEdges

#: A rank that no item has, and that double precision holds exactly.
_NOT_RANKED = 2**53


@dataclass(frozen=True)
class _Sums:
    """Sums over users at every cut-off, which are enough for a mean: `[max_k]`."""

    #: The curve of ranked users, for any aggregation.
    measure: Callable[..., Curve]
    empty_target_action: EmptyTargetAction

    def merged_by(self) -> dict[str, Merging]:
        """Returns how to merge each tensor, by its name."""
        return {"precision": "sum", "recall": "sum", "count": "sum"}

    def of(self, ranked: RankedEdges) -> dict[str, Tensor]:
        """Returns the tensors of some users."""
        precision, recall, _ = self.measure(ranked, aggregation=torch.sum)
        is_counted = ranked.is_evaluated & counts_in_mean(ranked.degree, self.empty_target_action)
        return {"precision": precision, "recall": recall, "count": is_counted.sum()}

    def curve(self, state: dict[str, Tensor]) -> Curve:
        """Returns the curve of all users."""
        precision, recall = state["precision"], state["recall"]
        count = state["count"].clamp(min=1)  # so that it is zero, and not NaN, if there is nobody
        top_k = torch.arange(1, precision.numel() + 1, device=count.device)
        return precision / count, recall / count, top_k


@dataclass(frozen=True)
class _Ranks:
    """The ranks of all relevant items, which are enough for every curve: `[num_edges]`."""

    #: The curve of ranked users.
    measure: Callable[[RankedEdges], Curve]
    empty_target_action: EmptyTargetAction
    needs_candidates: bool

    def merged_by(self) -> dict[str, Merging]:
        """Returns how to merge each tensor, by its name."""
        merged_by: dict[str, Merging] = {"rank": "cat", "degree": "cat"}
        if self.needs_candidates:
            merged_by["num_candidates"] = "cat"
        return merged_by

    def of(self, ranked: RankedEdges) -> dict[str, Tensor]:
        """Returns the tensors of some users."""
        is_evaluated = ranked.is_evaluated
        degree, user = ranked.degree[is_evaluated], ranked.edge_label_index[0]
        check_num_without_truth(int((degree == 0).sum()), self.empty_target_action)
        # A relevant item at rank 2.5 is in the top 3, and not in the top 2.
        rank = ranked.rank[is_evaluated[user]].ceil().clamp(max=_NOT_RANKED).long()
        state = {"rank": rank, "degree": degree}
        if self.needs_candidates:
            state["num_candidates"] = ranked.required_candidates[is_evaluated]
        return state

    def curve(self, state: dict[str, Tensor]) -> Curve:
        """Returns the curve of all users."""
        rank, degree = state["rank"], state["degree"]
        edge = torch.arange(rank.numel(), device=rank.device)
        user = torch.arange(degree.numel(), device=rank.device).repeat_interleave(degree)
        ranked = RankedEdges.from_ranks(
            torch.stack([user, edge]),
            rank,
            degree.numel(),
            num_candidates=state.get("num_candidates"),
        )
        return self.measure(ranked)


class PrecisionRecallCurve(StreamingMetric):
    r"""Precision and recall at every cut-off from one to `max_k`, over all users.

    This class computes :func:`~pyg_recmetrics.metrics.precision_recall_curve` over mini-batches. It
    takes what torchmetrics' `RetrievalPrecisionRecallCurve` takes, and has its values. One thing
    differs: torchmetrics keeps all pairs until the end, and this class does not, so all pairs of a
    user have to be in the same mini-batch.

    For a mean up to a given `max_k`, memory is needed for `max_k` sums, however many users there
    are. Otherwise, the rank of every relevant item is kept.

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

    Raises:
        TypeError: If `adaptive_k` is not a boolean.
        ValueError: If another argument is none of the above.

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

    def __init__(
        self,
        max_k: int | None = None,
        adaptive_k: bool = False,
        empty_target_action: EmptyTargetAction = "neg",
        ignore_index: int | None = None,
        aggregation: Aggregation = "mean",
    ) -> None:
        super().__init__()
        self.max_k = None if max_k is None else check_positive_integer(max_k, "max_k")
        self.adaptive_k = check_boolean(adaptive_k, "adaptive_k")
        check_empty_target_action(empty_target_action)
        self.empty_target_action = empty_target_action
        self.ignore_index = (
            None if ignore_index is None else check_integer(ignore_index, "ignore_index")
        )
        aggregate_of(aggregation)
        self.aggregation = aggregation
        self._kept = self._what_to_keep()
        self._declare_states()

    def _what_to_keep(self) -> _Sums | _Ranks:
        action = self.empty_target_action
        measure = partial(
            precision_recall_curve,
            max_k=self.max_k,
            adaptive_k=self.adaptive_k,
            empty_target_action=action,
        )
        if self.max_k is not None and self.aggregation == "mean":
            return _Sums(measure, action)
        needs_candidates = self.max_k is None or self.adaptive_k
        return _Ranks(partial(measure, aggregation=self.aggregation), action, needs_candidates)

    def arguments(self) -> dict[str, Any]:
        """Returns the arguments that are not the default."""
        parameters = inspect.signature(type(self)).parameters.values()
        values = {parameter.name: getattr(self, parameter.name) for parameter in parameters}
        return {p.name: values[p.name] for p in parameters if values[p.name] != p.default}

    @property
    def identity(self) -> dict[str, str]:
        """Which metric a state is of."""
        names = ("max_k", "adaptive_k", "ignore_index")
        given = ", ".join(f"{name}={getattr(self, name)}" for name in names)
        return {
            "metric": f"precision_recall_curve({given})",
            "empty_target_action": self.empty_target_action,
        }

    def merged_by(self) -> dict[str, Merging]:
        """Returns how several processes merge each tensor of the state, by its name."""
        return self._kept.merged_by()

    def initial(self, name: str) -> Tensor:
        """Returns a tensor of the state of no users."""
        no_pairs = torch.empty(0, dtype=torch.long)
        return self._kept.of(RankedEdges.from_pairs(no_pairs.double(), no_pairs, no_pairs))[name]

    def update(
        self, preds: TensorLike, target: TensorLike, indexes: TensorLike | None = None
    ) -> None:
        """Adds the users of a mini-batch. Each user may appear in one mini-batch only.

        Args:
            preds (torch.Tensor): Floating-point scores of shape `[num_pairs]` (other shapes are
                flattened), higher is better.
            target (torch.Tensor): Whether each pair is relevant: booleans, or numbers. Zero or less
                is not relevant.
            indexes (torch.Tensor, optional): The query (user) each pair belongs to, integers of any
                size. (default: `None`, all pairs belong to one query)

        Raises:
            TypeError: If an argument does not hold numbers.
            ValueError: If a shape, a dtype or a device is wrong, if scores are NaN or `inf`, or if
                there are users without ground truth and `empty_target_action` is `"error"`.
        """
        batch = map(to_double_precision_device, (preds, target, indexes))
        self.add(RankedEdges.from_pairs(*batch, ignore_index=self.ignore_index))

    def add(self, ranked: RankedEdges) -> None:
        """Adds users who were ranked elsewhere, such as by :meth:`RankedEdges.from_topk`.

        Args:
            ranked (RankedEdges): The ranked ground truth.

        Raises:
            TypeError: If `ranked` is not `RankedEdges`.
            ValueError: If `max_k` is `None` or `adaptive_k` is `True` and `ranked` does not know
                the number of candidates, if it is not as deep as `max_k`, or if
                `empty_target_action` is `"error"` and there is a user without truth.
        """
        check_ranked(ranked)
        for name, value in self._kept.of(ranked).items():
            self.merge(name, value)
        self.note_loaded_state()

    def compute(self) -> Any:
        """Returns the curve of all users since the last reset.

        Returns:
            The precisions and the recalls, and the cut-offs as integers, each of shape `[max_k]`.
            Precisions and recalls are zero, and not `NaN`, if all users are left out. If `max_k` is
            one, torchmetrics makes numbers of them, as of all its metrics.

        Raises:
            ValueError: If `max_k` is `None` and there are no users.
        """
        return tuple(map(self.as_result, self.curve()))

    def curve(self) -> Curve:
        """Returns the curve in double precision."""
        return self._kept.curve(self._tensors())

    def plot(self, curve: Curve | None = None, ax: Any = None) -> Any:
        """Plots precision against recall.

        Args:
            curve (tuple): What :meth:`compute` returned. (default: `None`, the current curve)
            ax: The axes to plot on. (default: `None`, new axes)

        Returns:
            A figure and its axes.

        Raises:
            ImportError: If torchmetrics or matplotlib is not installed.
        """
        precisions, recalls, top_k = self.compute() if curve is None else curve
        return self.draw_curve((recalls, precisions, top_k), ("Recall", "Precision"), ax)


class RecallAtFixedPrecision(PrecisionRecallCurve):
    r"""The largest recall at a precision of at least `min_precision`, and its cut-off.

    This class computes :func:`~pyg_recmetrics.metrics.recall_at_fixed_precision` over mini-batches.
    It takes what torchmetrics' `RetrievalRecallAtFixedPrecision` takes, and has its values. As for
    :class:`PrecisionRecallCurve`, all pairs of a user have to be in the same mini-batch.

    Args:
        min_precision (float, optional): The smallest precision to accept, from zero to one.
            (default: `0.0`)
        max_k (int, optional): See :class:`PrecisionRecallCurve`. (default: `None`)
        adaptive_k (bool, optional): See :class:`PrecisionRecallCurve`. (default: `False`)
        empty_target_action (str, optional): See :class:`PrecisionRecallCurve`. (default: `"neg"`)
        ignore_index (int, optional): See :class:`PrecisionRecallCurve`. (default: `None`)
        aggregation (str or callable, optional): See :class:`PrecisionRecallCurve`.
            (default: `"mean"`)

    Raises:
        TypeError: If `adaptive_k` is not a boolean.
        ValueError: If another argument is none of the above.

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
    ) -> None:
        super().__init__(max_k, adaptive_k, empty_target_action, ignore_index, aggregation)
        self.min_precision = check_min_precision(min_precision)

    def compute(self) -> Any:
        """Returns the largest recall of all users since the last reset, and its cut-off.

        Raises:
            ValueError: If `max_k` is `None` and there are no users.
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
        """
        return self.draw(self.compute()[0] if val is None else val, ax)
