"""EvaluationResult: the metrics of one evaluation, on average and per user."""

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

import torch
from torch import Tensor

from pyg_recmetrics.metrics import Metric, parse, parse_all
from pyg_recmetrics.ranked_edges import RankedEdges

if TYPE_CHECKING:
    import pandas as pd

#: What a user without truth counts as in a mean, in torchmetrics' words.
EmptyTargetAction: TypeAlias = Literal["skip", "neg", "pos", "error"]


class EvaluationResult(Mapping[str, float]):
    r"""The metrics of one evaluation: a mapping of `name@k` to the mean over users.

    A metric is undefined for a user without truth, and `NaN` in :attr:`per_user`. What such users
    count as in the mean is said by `empty_target_action`.

    Args:
        ranked (RankedEdges): The ranked ground truth.
        metrics (sequence of str or Metric): The metrics, as `name@k`.
        users (torch.Tensor, optional): The ids of the users that are evaluated.
            (default: `None`, all users)
        empty_target_action (str, optional): What users without truth count as: `"skip"` leaves
            them out, `"neg"` counts them as zero, `"pos"` as one, `"error"` raises an error.
            (default: `"skip"`)

    Attributes:
        ranked (RankedEdges): The ranked ground truth, for more metrics of the same ranking.
        per_user (mapping): The same keys; a tensor of shape `[num_users]` each.
        num_evaluated (int): How many users have truth that can be retrieved.
        num_without_truth (int): How many of the users that were to be evaluated have none.
        num_with_few_candidates (int or None): How many evaluated users have fewer candidates than
            the largest k; `None` if candidates are not known.

    Raises:
        ValueError: If `empty_target_action` is none of these, or is `"error"` and there is a user
            without truth.

    Example:
        >>> import torch
        >>> from pyg_recmetrics import RankedEdges
        >>> lists = torch.tensor([[2, 0, 1], [1, 0, 2], [0, 1, 2]])
        >>> ranked = RankedEdges.from_topk(lists, torch.tensor([[0, 0, 1], [1, 2, 2]]))
        >>> result = EvaluationResult(ranked, ["r_precision", "recall@1", "recall@3"])
        >>> result["recall@3"], result.per_user["recall@1"].tolist()
        (1.0, [0.5, 0.0, nan])
        >>> print(result)
        metric                   @1      @3
        -----------------------------------
        r_precision  0.2500
        recall               0.2500  1.0000
        2 users evaluated, 1 without ground truth
    """

    def __init__(
        self,
        ranked: RankedEdges,
        metrics: Sequence[str | Metric],
        users: Tensor | None = None,
        empty_target_action: EmptyTargetAction = "skip",
    ) -> None:
        if empty_target_action not in get_args(EmptyTargetAction):
            raise ValueError(
                f"'empty_target_action' needs to be one of {list(get_args(EmptyTargetAction))} "
                f"(got {empty_target_action!r})"
            )
        self.ranked = ranked
        self.metrics = parse_all(metrics)
        self.empty_target_action = empty_target_action
        population = torch.full_like(ranked.degree, users is None, dtype=torch.bool)
        if users is not None:
            population[users] = True
        self._count_users(population)
        per_user = {str(metric): metric(ranked) for metric in self.metrics}
        self.per_user: Mapping[str, Tensor] = MappingProxyType(per_user)
        self._means = {name: self._mean(value, population) for name, value in per_user.items()}

    def to_dict(self) -> dict[str, float]:
        """Returns the means as a plain dictionary."""
        return dict(self._means)

    def to_pandas(self) -> "pd.DataFrame":
        """Returns the means as a data frame with a row per metric, and its name and k apart.

        Raises:
            ImportError: If pandas is not installed.
        """
        try:
            import pandas as pd
        except ImportError as error:
            raise ImportError(
                "'to_pandas' needs pandas: pip install 'pyg-recmetrics[examples]'"
            ) from error
        rows = [(metric.label, metric.k, self[metric]) for metric in self.metrics]
        frame = pd.DataFrame(rows, columns=["metric", "k", "value"], index=list(self))
        return frame.astype({"k": "Int64"})

    def __getitem__(self, metric: str | Metric) -> float:
        name = str(parse(metric))
        if name not in self._means:
            raise KeyError(f"{name} was not evaluated, only {', '.join(self)}")
        return self._means[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._means)

    def __len__(self) -> int:
        return len(self._means)

    def __str__(self) -> str:
        return "\n".join([*self._table(), self._population()])

    def __repr__(self) -> str:
        means = ", ".join(f"{name}: {mean:.4f}" for name, mean in self.items())
        return f"{type(self).__name__}({means})"

    def _count_users(self, population: Tensor) -> None:
        has_truth = population & (self.ranked.degree > 0)
        self.num_evaluated = int(has_truth.sum())
        self.num_without_truth = int(population.sum()) - self.num_evaluated
        if self.empty_target_action == "error" and self.num_without_truth:
            raise ValueError(
                f"'empty_target_action' needs every user to have ground truth if it is 'error' "
                f"(got {self.num_without_truth} without)"
            )
        self.max_k = max((metric.k for metric in self.metrics if metric.k), default=None)
        self.num_with_few_candidates: int | None = None
        if self.ranked.num_candidates is not None:
            has_few = self.ranked.num_candidates < (self.max_k or 0)
            self.num_with_few_candidates = int((has_truth & has_few).sum())

    def _mean(self, value: Tensor, population: Tensor) -> float:
        without_truth = {"skip": torch.nan, "neg": 0.0, "pos": 1.0, "error": torch.nan}
        value = value.masked_fill(self.ranked.degree == 0, without_truth[self.empty_target_action])
        return float(value[population].nanmean())

    def _table(self) -> list[str]:
        """The lines of a table with metrics down and k across."""
        labels = list(dict.fromkeys(metric.label for metric in self.metrics))
        cut_offs = sorted({metric.k or 0 for metric in self.metrics})
        cells = {(metric.label, metric.k or 0): f"{self[metric]:.4f}" for metric in self.metrics}
        head = ["metric", *(f"@{k}" if k else "" for k in cut_offs)]
        rows = [[label, *(cells.get((label, k), "") for k in cut_offs)] for label in labels]
        widths = [max(len(row[column]) for row in [head, *rows]) for column in range(len(head))]
        lines = [
            "  ".join(
                [row[0].ljust(widths[0])]
                + [cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True)]
            ).rstrip()
            for row in [head, *rows]
        ]
        return [lines[0], "-" * max(len(line) for line in lines), *lines[1:]]

    def _population(self) -> str:
        parts = [f"{self.num_evaluated:,} users evaluated"]
        if self.num_without_truth:
            treated = {"neg": " (count as 0)", "pos": " (count as 1)"}
            action = treated.get(self.empty_target_action, "")
            parts.append(f"{self.num_without_truth:,} without ground truth{action}")
        if self.num_with_few_candidates:
            parts.append(
                f"{self.num_with_few_candidates:,} with fewer than {self.max_k} candidates"
            )
        return ", ".join(parts)
