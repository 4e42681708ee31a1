"""EvaluationResult: the metrics of one evaluation, on average and per user."""

import textwrap
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, get_args

import torch
from torch import Tensor

from pyg_recmetrics import conventions
from pyg_recmetrics.conventions import Convention, EmptyTargetAction
from pyg_recmetrics.metrics import Metric, parse, parse_all
from pyg_recmetrics.ranked_edges import RankedEdges
from pyg_recmetrics.tables import format_table
from pyg_recmetrics.task import RankingTask
from pyg_recmetrics.version import __version__

if TYPE_CHECKING:
    import pandas as pd


class _PerUser(dict[str, Tensor]):
    """Values per user, which knows why some metrics are not in it."""

    def __missing__(self, name: str) -> Tensor:
        try:
            is_aggregate = parse(name).is_aggregate
        except ValueError as error:
            raise KeyError(str(error)) from error
        if is_aggregate:
            raise KeyError(f"{name} has one value for all users together, and none for each")
        raise KeyError(f"{name} was not evaluated per user, only {', '.join(self)}")


class EvaluationResult(Mapping[str, float]):
    r"""The metrics of one evaluation: a mapping of `name@k` to the mean over users.

    A metric is undefined for a user without truth, and `NaN` in :attr:`per_user`. What such users
    count as in the mean is said by `empty_target_action`. Metrics of lists that need no truth,
    such as `coverage@20` and `novelty@20`, are over all users who have a list.

    Args:
        ranked (RankedEdges): The ranked ground truth.
        metrics (sequence of str or Metric): The metrics, as `name@k`.
        task (RankingTask, optional): What was ranked: who is evaluated, and what :meth:`recipe`
            says of it. (default: `None`, all users)
        empty_target_action (str, optional): What users without truth count as: `"skip"` leaves
            them out, `"neg"` counts them as zero, `"pos"` as one, `"error"` raises an error.
            (default: `None`, as the convention has it)
        convention (str or Convention, optional): How the metrics are defined, see
            :mod:`~pyg_recmetrics.conventions`. (default: `"standard"`)
        num_left_out (int, optional): How many users the convention does not evaluate.
            (default: `0`)

    Attributes:
        ranked (RankedEdges): The ranked ground truth, for more metrics of the same ranking.
        per_user (mapping): The same keys, but those of metrics that have one value for all users
            together, such as `coverage@20`; a tensor of shape `[num_users]` each.
        definitions (mapping): The same keys; the metric that the convention has under that name.
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
        metrics: str | Metric | Iterable[str | Metric],
        *,
        task: RankingTask | None = None,
        empty_target_action: EmptyTargetAction | None = None,
        convention: str | Convention = "standard",
        num_left_out: int = 0,
    ) -> None:
        self.convention = conventions.get(convention)
        self.empty_target_action = empty_target_action or self.convention.empty_target_action
        check_empty_target_action(self.empty_target_action)
        self.ranked = ranked
        self.task = task
        self.metrics = parse_all(metrics)
        self.definitions = MappingProxyType(resolve_all(self.metrics, self.convention))
        self.num_left_out = num_left_out
        population = torch.full_like(ranked.degree, task is None, dtype=torch.bool)
        if task is not None:
            population[task.users] = True
        self._is_evaluated = population
        self._count_users(population)
        values = {name: self._measure(metric) for name, metric in self.definitions.items()}
        self.per_user: Mapping[str, Tensor] = MappingProxyType(
            _PerUser((name, value) for name, value in values.items() if value.dim())
        )
        self._means = {
            name: self._mean(self.definitions[name], value, population)
            for name, value in values.items()
        }

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

    def to_trec(self, run: str | Path, qrels: str | Path) -> None:
        """Writes the lists and the ground truth, see :meth:`RankedEdges.to_trec`.

        Raises:
            ValueError: If lists were not kept: evaluate with `keep_items=True`.
        """
        self.ranked.to_trec(run, qrels)

    def to_ranx(self) -> tuple[Any, Any]:
        """Returns the ground truth and the lists for ranx, see :meth:`RankedEdges.to_ranx`.

        Raises:
            ImportError: If ranx is not installed.
            ValueError: If lists were not kept: evaluate with `keep_items=True`.
        """
        return self.ranked.to_ranx()

    def recipe(self) -> str:
        r"""Says in a paragraph for a paper what exactly was measured.

        Example:
            >>> import torch
            >>> from pyg_recmetrics import RankingTask, evaluate
            >>> task = RankingTask(torch.tensor([[0, 1], [2, 0]]), num_users=2, num_items=3)
            >>> print(evaluate(torch.rand(3), task, "recall@2").recipe())
            Metrics: recall@2 (divided by R, averaged over users), where R is the number of relevant
            items of a user. Population: all 2 users with ground truth. Ranking: all 3 items; equal
            scores rank the lower item id first. Computed with pyg_recmetrics 0.1.0, convention
            'standard' (torch_geometric.metrics 2.8).
        """
        metrics = "; ".join(metric.words for metric in self.definitions.values())
        text = (
            f"Metrics: {metrics}, where R is the number of relevant items of a user. "
            f"Population: {self._words_on_population()}. "
            f"Ranking: {self._words_on_ranking()}. "
            f"Computed with pyg_recmetrics {__version__}, convention '{self.convention.name}' "
            f"({self.convention.source})."
        )
        return textwrap.fill(text, width=88)

    def _words_on_population(self) -> str:
        treated = {"skip": "are left out", "neg": "count as zero", "pos": "count as one"}
        text = f"all {self.num_evaluated:,} users with ground truth"
        if self.num_without_truth:
            action = treated.get(self.empty_target_action, "")
            text += f" ({self.num_without_truth:,} without {action})"
        of_lists = [str(m) for m in self.definitions.values() if not m.needs_truth]
        if of_lists:
            num_lists = int((self._is_evaluated & self.ranked.has_list).sum())
            text += f", and for {', '.join(of_lists)} all {num_lists:,} users with a list"
        if wanted := self.convention.population.words:
            text += f", if they have {' and '.join(wanted)} ({self.num_left_out:,} are left out)"
        return text

    def _words_on_ranking(self) -> str:
        ties = "equal scores rank the lower item id first"
        if self.task is None:
            return f"as given; {ties}"
        if self.task.candidates is None:
            items = f"all {self.task.num_items:,} items"
        elif self.task.candidates.dim() == 1:
            items = f"{self.task.candidates.numel():,} of {self.task.num_items:,} items"
        else:
            items = "candidates of each user's own"
        if num_seen := self.task.seen.size(1):
            items += f" but those that the user is connected to by {num_seen:,} seen edges"
        return f"{items}; {ties}"

    def __getitem__(self, metric: str | Metric) -> float:
        try:
            name = str(parse(metric))
        except ValueError as error:
            raise KeyError(str(error)) from error
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
        check_num_without_truth(self.num_without_truth, self.empty_target_action)
        self.max_k = max((metric.k for metric in self.metrics if metric.k), default=None)
        self.num_with_few_candidates: int | None = None
        if self.ranked.num_candidates is not None:
            has_few = self.ranked.num_candidates < (self.max_k or 0)
            self.num_with_few_candidates = int((has_truth & has_few).sum())

    def _measure(self, metric: Metric) -> Tensor:
        if metric.is_aggregate:
            is_all = bool(self._is_evaluated.all())
            return metric(self.ranked if is_all else self.ranked.with_lists_of(self._is_evaluated))
        is_defined = self.convention.population.is_defined(metric, self.ranked)
        return metric(self.ranked).masked_fill(~is_defined, torch.nan)

    def _mean(self, metric: Metric, value: Tensor, population: Tensor) -> float:
        if metric.is_aggregate:
            return float(value)
        if metric.needs_truth:
            value = fill_without_truth(value, self.ranked.degree, self.empty_target_action)
        return float(value[population].nanmean())

    def _table(self) -> list[str]:
        """The lines of a table with metrics down and k across."""
        labels = list(dict.fromkeys(metric.label for metric in self.metrics))
        cut_offs = sorted({metric.k or 0 for metric in self.metrics})
        cells = {(metric.label, metric.k or 0): f"{self[metric]:.4f}" for metric in self.metrics}
        head = ["metric", *(f"@{k}" if k else "" for k in cut_offs)]
        rows = [[label, *(cells.get((label, k), "") for k in cut_offs)] for label in labels]
        return format_table(head, rows)

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
        if self.num_left_out:
            parts.append(f"{self.num_left_out:,} left out by the convention")
        if self.convention.name != "standard":
            parts.append(f"convention {self.convention.name}")
        return ", ".join(parts)


def resolve_all(metrics: tuple[Metric, ...], convention: Convention) -> dict[str, Metric]:
    """Returns what a convention computes under the names that are asked for together."""
    deepest = max((metric.k for metric in metrics if metric.k), default=None)
    return {str(metric): convention.resolve(metric, deepest) for metric in metrics}


def check_empty_target_action(action: str) -> None:
    """Raises if `action` is not known."""
    if action not in get_args(EmptyTargetAction):
        raise ValueError(
            f"'empty_target_action' needs to be one of {list(get_args(EmptyTargetAction))} "
            f"(got {action!r})"
        )


def check_num_without_truth(num_without_truth: int, action: EmptyTargetAction) -> None:
    """Raises if there are users without truth where this is an error."""
    if action == "error" and num_without_truth:
        raise ValueError(
            f"'empty_target_action' needs every user to have ground truth if it is 'error' "
            f"(got {num_without_truth} without)"
        )


def fill_without_truth(value: Tensor, degree: Tensor, action: EmptyTargetAction) -> Tensor:
    """Returns what every user counts as in a mean, `NaN` if it is left out."""
    without_truth = {"skip": torch.nan, "neg": 0.0, "pos": 1.0, "error": torch.nan}
    return value.masked_fill(degree == 0, without_truth[action])
