"""Curves of precision and recall over mini-batches of scored pairs, as torchmetrics' own are."""

import inspect
from typing import Any, ClassVar

import torch

from pyg_recmetrics.checks import check_boolean, check_integer, check_positive_integer
from pyg_recmetrics.inputs import TensorLike
from pyg_recmetrics.kernels.exact.ranks import ranks_within_rows
from pyg_recmetrics.metrics import precision_recall_curve
from pyg_recmetrics.metrics.curves import (
    Aggregation,
    Curve,
    aggregate_of,
    check_min_precision,
    largest_recall,
)
from pyg_recmetrics.metrics.registry import EmptyTargetAction, check_empty_target_action
from pyg_recmetrics.modules.ranking_metric import (
    StateTensor,
    StreamingMetric,
    check_torchmetrics,
    to_double_precision_device,
)
from pyg_recmetrics.ranked_edges import RankedEdges
from pyg_recmetrics.ranked_edges.sources import check_scored_pairs


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
        self._declare_states()

    def arguments(self) -> dict[str, Any]:
        """Returns the arguments that are not the default."""
        # Not those of its own type, as a class that derives from it may take others.
        *own, _ = inspect.signature(PrecisionRecallCurve).parameters.values()
        return {p.name: value for p in own if (value := getattr(self, p.name)) != p.default}

    @property
    def identity(self) -> str:
        """Which pairs a state is of."""
        return f"max_k={self.max_k}, ignore_index={self.ignore_index}"

    def parts(self) -> dict[str, StateTensor]:
        """Returns the scores, relevance and users of no pairs."""
        dtypes = {"preds": torch.float64, "target": torch.bool, "indexes": torch.long}
        return {
            name: StateTensor("cat", torch.empty(0, dtype=dtype, device="cpu"))
            for name, dtype in dtypes.items()
        }

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
        for name, value in zip(self._parts, (score.double(), is_relevant, query), strict=True):
            self.merge(name, value)

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
        pairs = self._tensors()
        if pairs["preds"].numel() == 0:
            raise ValueError("'update' needs to be called with pairs before 'compute' (got none)")
        return precision_recall_curve(
            RankedEdges.from_pairs(*pairs.values()),
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
