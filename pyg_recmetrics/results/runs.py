"""Runs: what several runs of a recommender say together, and results by name."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import torch
from torch import Tensor

from pyg_recmetrics.checks import check_choice, check_level
from pyg_recmetrics.messages import list_some
from pyg_recmetrics.metrics import Metric, parse
from pyg_recmetrics.metrics.beyond_accuracy import exposure
from pyg_recmetrics.ranked_edges import catalogue_of
from pyg_recmetrics.results import archive
from pyg_recmetrics.results.cohorts import (
    CohortMean,
    Cohorts,
    Intervals,
    by_groups,
    by_popularity,
    group_by_degree,
)
from pyg_recmetrics.results.estimates import (
    Uncertainty,
    check_scipy,
    uncertainty_of_means,
    uncertainty_over_runs,
)
from pyg_recmetrics.results.recipe import note_on_intervals
from pyg_recmetrics.results.result import EvaluationResult, TieRange
from pyg_recmetrics.results.same_task import check_same_task
from pyg_recmetrics.tables import Rows, Table, format_error, format_mean, to_data_frame
from pyg_recmetrics.task.catalogue import check_has

if TYPE_CHECKING:
    import pandas as pd


def check_users_in_common(results: Mapping[str, EvaluationResult]) -> None:
    """Raises if there is no user whom all results have ranked."""
    ranked = [result.ranked.users for result in results.values()]
    some = [users.cpu() for users in ranked if users is not None]
    if some and reduce(lambda one, other: one[torch.isin(one, other)], some).numel() == 0:
        raise ValueError(
            f"'results' needs to have users whom all have ranked (got none for "
            f"{list_some(list(results))}; with a 'margin', the same 'seed' draws the same users)"
        )


def describe_samples(
    results: Mapping[str, EvaluationResult], purpose: str = "are compared"
) -> str | None:
    """Returns whose users stand for all of the task; `None` if nobody's do.

    Args:
        results (mapping): Results of one task by name.
        purpose (str, optional): What becomes of the users whom all results have ranked.
    """
    samples = {
        name: result.sampling
        for name, result in results.items()
        if result.sampling is not None and not result.sampling.is_complete
    }
    if not samples:
        return None
    first = next(iter(samples.values()))
    users = next(iter(results.values())).nouns.users
    sizes = [f"{sample.num_ranked:,} for {name}" for name, sample in samples.items()]
    return (
        f"of {first.num_users:,} {users}, a 'margin' drew {list_some(sizes)}; those whom all have "
        f"ranked {purpose}"
    )


#: One result of a recommender, or several.
Runnable: TypeAlias = EvaluationResult | Sequence[EvaluationResult]

#: How many runs the printed table looks ahead to.
_MANY_RUNS = 10


class MeanOfRuns(NamedTuple):
    """The mean of a metric over users and runs.

    Attributes:
        value: The mean.
        low: The lower end of its confidence interval, for other users and other runs.
        high: The upper end.
        deviation: The standard deviation of the means of runs.
        user_error: The standard error that comes from the choice of users.
        run_error: The standard error that comes from the choice of runs.
    """

    value: float
    low: float
    high: float
    deviation: float
    user_error: float
    run_error: float


class Runs(Rows[EvaluationResult]):
    r"""The results of several runs of one recommender on one task, such as one for each seed.

    A mean over users and runs has two sources of variance: other users might have been evaluated,
    and the recommender might have been trained with other seeds. The table shows the mean with an
    interval that allows for both, how much the means of runs vary, and the standard error that
    comes from each source. It says how wide the interval would be with more runs, and with all that
    there could be. Cochran's quantile allows for few runs: 95% intervals hold in 92 to 97% of
    cases, where the usual mean ± t over seeds holds in 14 to 95%.

    Args:
        results (sequence of EvaluationResult): The results, at least two.

    Raises:
        ImportError: If scipy is not installed.
        TypeError: If something is not an `EvaluationResult`.
        ValueError: If there are fewer than two results, they are of different tasks, conventions or
            actions for users without truth, or they have no metric in common.

    Sources: Searle, Casella and McCulloch, "Variance components", 4 (1992); Cochran, "Approximate
    significance levels of the Behrens-Fisher test" (1964).

    Example:
        >>> import torch
        >>> from pyg_recmetrics import RankingTask, Runs, evaluate
        >>> generator = torch.Generator().manual_seed(0)
        >>> truth = torch.stack([torch.arange(50), torch.randint(20, (50,), generator=generator)])
        >>> task = RankingTask(truth, num_users=50, num_items=20)
        >>> models = [torch.rand(50, 20, generator=generator) for seed in range(3)]
        >>> runs = Runs([evaluate(model, task, "recall@5") for model in models])
        >>> print(runs)
        metric              mean  sd of runs  se users  se runs  10 runs  all runs
        --------------------------------------------------------------------------
        recall@5  0.2733 ± .0596       .0577     .0296        -  ± .0326         -
        ±: 95% confidence interval of the mean for other users and other runs
        3 runs; sd: standard deviation; se: standard error from users, and from runs
        10 runs, all runs: the interval with that many runs, and with all there could be
        more runs would help most for recall@5
    """

    def __init__(self, results: Iterable[EvaluationResult]) -> None:
        check_scipy("Runs")
        self._rows = runs_of(results)
        if len(self) < 2:
            raise ValueError(f"'results' needs to hold at least two (got {len(self)})")
        check_same_task({f"run {i}": result for i, result in enumerate(self, start=1)})
        self.metrics = common_metrics(self)
        if not self.metrics:
            raise ValueError(
                f"'results' needs to have metrics in common (got {list(map(list, self))})"
            )

    def mean(self, metric: str | Metric, level: float = 0.95) -> MeanOfRuns:
        """Returns the mean of a metric over users and runs, with its interval.

        Args:
            metric (str or Metric): A metric that all results have, or any other metric of the
                convention that the rankings are deep enough for.
            level (float, optional): The level of confidence, in :math:`(0, 1)`. (default: `0.95`)

        Returns:
            The mean. A metric that has one value for all users together has an interval for other
            runs alone, and an error of `NaN` that comes from users.

        Raises:
            ValueError: If there is no such metric, or `level` is not between 0 and 1.

        Example:
            >>> import torch
            >>> from pyg_recmetrics import RankingTask, Runs, evaluate
            >>> truth, seen = torch.tensor([[0, 1, 2], [0, 1, 0]]), torch.tensor([[1, 2], [2, 3]])
            >>> task = RankingTask(truth, num_users=3, num_items=5, seen=seen)
            >>> scores = torch.tensor([[0.9, 0.8, 0.7, 0.6, 0.5], [0.5, 0.6, 0.7, 0.8, 0.9]])
            >>> runs = Runs([evaluate(each, task, ["mrr", "recall@1"]) for each in scores])
            >>> round(runs.mean("mrr").value, 4)
            0.5472
        """
        return _mean_of(*self._measure(metric), check_level(level))

    def contributions(self, metric: str | Metric) -> Tensor:
        """Returns what every user contributes to a mean, on average over runs: `[num_users]`.

        It is `NaN` for users who do not count in every run.

        Raises:
            ValueError: If there is no such metric, or it has one value for all users together.

        Example:
            >>> import torch
            >>> from pyg_recmetrics import RankingTask, Runs, evaluate
            >>> truth, seen = torch.tensor([[0, 1, 2], [0, 1, 0]]), torch.tensor([[1, 2], [2, 3]])
            >>> task = RankingTask(truth, num_users=3, num_items=5, seen=seen)
            >>> scores = torch.tensor([[0.9, 0.8, 0.7, 0.6, 0.5], [0.5, 0.6, 0.7, 0.8, 0.9]])
            >>> runs = Runs([evaluate(each, task, ["mrr", "recall@1"]) for each in scores])
            >>> runs.contributions("mrr").shape
            torch.Size([3])
        """
        return values_of_runs(self, metric).mean(dim=0)

    def by(self, groups: Any, *, level: float = 0.95) -> Cohorts:
        """Measures groups of users separately, as the mean over runs.

        Args:
            groups (torch.Tensor or sequence): A label for every user, see
                :meth:`EvaluationResult.by`.
            level (float, optional): The level of the confidence intervals, which allow for other
                users and other runs. (default: `0.95`)

        Returns:
            What :meth:`EvaluationResult.by` returns, over the users who count in every run, and
            for the metrics that all results have.

        Raises:
            TypeError: If `groups` does not hold labels.
            ValueError: If there is not one label for every user, or `level` is not between 0 and 1.

        Example:
            >>> import torch
            >>> from pyg_recmetrics import RankingTask, Runs, evaluate
            >>> truth, seen = torch.tensor([[0, 1, 2], [0, 1, 0]]), torch.tensor([[1, 2], [2, 3]])
            >>> task = RankingTask(truth, num_users=3, num_items=5, seen=seen)
            >>> scores = torch.tensor([[0.9, 0.8, 0.7, 0.6, 0.5], [0.5, 0.6, 0.7, 0.8, 0.9]])
            >>> runs = Runs([evaluate(each, task, ["mrr", "recall@1"]) for each in scores])
            >>> groups = runs.by(["old", "old", "new"])
            >>> {name: round(means["mrr"].value, 4) for name, means in groups.items()}
            {'new': 0.625, 'old': 0.5083}
        """
        group, labels = self[0]._read_groups(groups)
        values = self._values_of(group, len(labels))
        return by_groups(values, group, labels, "group", self._intervals(level))

    def by_degree(self, bins: int = 5, *, level: float = 0.95) -> Cohorts:
        """Measures users with few and with many seen edges separately, as the mean over runs.

        Args:
            bins (int, optional): The number of groups, see :meth:`EvaluationResult.by_degree`.
                (default: `5`)
            level (float, optional): See :meth:`by`. (default: `0.95`)

        Raises:
            ValueError: If seen edges are not known, `bins` is not a positive integer, or `level` is
                not between 0 and 1.

        Example:
            >>> import torch
            >>> from pyg_recmetrics import RankingTask, Runs, evaluate
            >>> truth = torch.tensor([[0, 1, 2, 3], [0, 1, 0, 1]])
            >>> seen = torch.tensor([[1, 2, 2, 3, 3, 3], [2, 2, 3, 2, 3, 4]])
            >>> task = RankingTask(truth, num_users=4, num_items=5, seen=seen)
            >>> scores = torch.tensor([[0.9, 0.8, 0.7, 0.6, 0.5], [0.5, 0.6, 0.7, 0.8, 0.9]])
            >>> runs = Runs([evaluate(each, task, "mrr") for each in scores])
            >>> [round(means["mrr"].value, 4) for means in runs.by_degree(bins=2).values()]
            [0.5083, 0.7083]
        """
        first = self[0]
        degree = first._degree
        is_counted = torch.stack([result._is_counted.to(degree.device) for result in self])
        group, labels = group_by_degree(degree, is_counted.all(dim=0), bins)
        return by_groups(
            self._values_of(group, len(labels)),
            group,
            labels,
            "training degree",
            self._intervals(level),
        )

    def recall_by_popularity(self, k: int = 20, bins: int = 5, *, level: float = 0.95) -> Cohorts:
        """Measures the recall of popular and of other items separately, as the mean over runs.

        Args:
            k (int, optional): The cut-off, see :meth:`EvaluationResult.recall_by_popularity`.
                (default: `20`)
            bins (int, optional): The number of buckets. (default: `5`)
            level (float, optional): See :meth:`by`. (default: `0.95`)

        Raises:
            ValueError: If seen edges are not known or not the same, the convention has no recall,
                `k` is deeper than was ranked, `bins` is not a positive integer, or `level` is not
                between 0 and 1.

        Example:
            >>> import torch
            >>> from pyg_recmetrics import RankingTask, Runs, evaluate
            >>> truth, seen = torch.tensor([[0, 1, 2], [0, 1, 0]]), torch.tensor([[1, 2], [2, 3]])
            >>> task = RankingTask(truth, num_users=3, num_items=5, seen=seen)
            >>> scores = torch.tensor([[0.9, 0.8, 0.7, 0.6, 0.5], [0.5, 0.6, 0.7, 0.8, 0.9]])
            >>> runs = Runs([evaluate(each, task, ["mrr", "recall@1"]) for each in scores])
            >>> print(list(runs.recall_by_popularity(k=1, bins=2)))
            ['0', '1']
        """
        common_popularity(self, "recall_by_popularity")
        recalls = [result._partial_recall(k) for result in self]
        return by_popularity(recalls, self[0]._candidates, bins, self._intervals(level))

    def to_pandas(self, level: float = 0.95) -> "pd.DataFrame":
        """Returns a data frame with a row for every metric.

        Its columns are `metric`, `k`, `value`, `low`, `high`, `deviation`, `user_error` and
        `run_error`, as in :meth:`mean`.

        Raises:
            ImportError: If pandas is not installed.
            ValueError: If `level` is not between 0 and 1.

        Example:
            >>> import torch
            >>> from pyg_recmetrics import RankingTask, Runs, evaluate
            >>> truth, seen = torch.tensor([[0, 1, 2], [0, 1, 0]]), torch.tensor([[1, 2], [2, 3]])
            >>> task = RankingTask(truth, num_users=3, num_items=5, seen=seen)
            >>> scores = torch.tensor([[0.9, 0.8, 0.7, 0.6, 0.5], [0.5, 0.6, 0.7, 0.8, 0.9]])
            >>> runs = Runs([evaluate(each, task, ["mrr", "recall@1"]) for each in scores])
            >>> runs.to_pandas().columns.tolist()
            ['metric', 'k', 'value', 'low', 'high', 'deviation', 'user_error', 'run_error']
        """
        rows = [(metric.label, metric.k, *self.mean(metric, level)) for metric in self.metrics]
        columns = ["metric", "k", *MeanOfRuns._fields]
        frame = to_data_frame(rows, columns, index=[str(metric) for metric in self.metrics])
        return frame.astype({"k": "Int64"})

    def save(self, path: str | Path) -> None:
        """Saves all results in one file, for :meth:`load`. Edges of the task are stored once.

        Args:
            path (str or Path): The file to write, see :meth:`EvaluationResult.save`.

        Raises:
            OSError: If the file cannot be written, such as `PermissionError`.

        Example:
            >>> import tempfile
            >>> import torch
            >>> from pyg_recmetrics import RankingTask, Runs, evaluate
            >>> truth, seen = torch.tensor([[0, 1, 2], [0, 1, 0]]), torch.tensor([[1, 2], [2, 3]])
            >>> task = RankingTask(truth, num_users=3, num_items=5, seen=seen)
            >>> scores = torch.tensor([[0.9, 0.8, 0.7, 0.6, 0.5], [0.5, 0.6, 0.7, 0.8, 0.9]])
            >>> runs = Runs([evaluate(each, task, ["mrr", "recall@1"]) for each in scores])
            >>> with tempfile.TemporaryDirectory() as folder:
            ...     runs.save(f"{folder}/runs.npz")
            ...     len(Runs.load(f"{folder}/runs.npz"))
            2
        """
        archive.write(path, {"runs": fields_of_runs(self)})

    @classmethod
    def load(cls, path: str | Path) -> "Runs":
        """Loads saved runs, as :meth:`EvaluationResult.load` does.

        Args:
            path (str or Path): The file.

        Raises:
            OSError: If the file cannot be opened, such as `FileNotFoundError`.
            ValueError: If `path` does not hold saved runs, is damaged, or has an unsupported
                format.

        Example:
            >>> import tempfile
            >>> import torch
            >>> from pyg_recmetrics import RankingTask, Runs, evaluate
            >>> truth, seen = torch.tensor([[0, 1, 2], [0, 1, 0]]), torch.tensor([[1, 2], [2, 3]])
            >>> task = RankingTask(truth, num_users=3, num_items=5, seen=seen)
            >>> scores = torch.tensor([[0.9, 0.8, 0.7, 0.6, 0.5], [0.5, 0.6, 0.7, 0.8, 0.9]])
            >>> runs = Runs([evaluate(each, task, ["mrr", "recall@1"]) for each in scores])
            >>> with tempfile.TemporaryDirectory() as folder:
            ...     runs.save(f"{folder}/runs.npz")
            ...     again = Runs.load(f"{folder}/runs.npz")
            >>> again.mean("mrr") == runs.mean("mrr")
            True
        """
        return archive.read(path, cls._from_fields)

    @classmethod
    def _from_fields(cls, fields: dict[str, Any]) -> "Runs":
        return cls(runs_from_fields(fields["runs"]))

    def __repr__(self) -> str:
        means = ", ".join(f"{metric}: {self.mean(metric).value:.4f}" for metric in self.metrics)
        return f"{type(self).__name__}({len(self)} runs, {means})"

    def _measure(self, metric: str | Metric) -> tuple[Uncertainty, Tensor]:
        """Returns the uncertainty of a mean, and the mean of every run, of shape `[num_runs]`."""
        if (means := means_of_all_users(self, metric)) is not None:
            return uncertainty_of_means(means), means
        return uncertainty_over_runs(values_of_runs(self, metric), self[0].person)

    def _values_of(self, group: Tensor, num_groups: int) -> dict[str, Tensor]:
        """Returns what users contribute to the mean of their group in every run.

        It is of shape `[num_runs, num_users]` for each metric, on the device of the first run.
        """
        device = self[0].ranked.rank.device
        of_runs = [result._values_of(group, num_groups) for result in self]
        return {
            name: torch.cat([values[name].to(device) for values in of_runs])
            for name in of_runs[0]
            if all(name in values for values in of_runs)
        }

    def _intervals(self, level: float) -> Intervals:
        first = self[0]
        level, sample = check_level(level), self._sample()
        return Intervals(first.person, level, nouns=first.nouns, sample=sample)

    def _sample(self) -> str | None:
        """Returns whose users stand for all of the task; `None` if nobody's do."""
        runs = {f"run {number}": result for number, result in enumerate(self, 1)}
        return describe_samples(runs, "count")

    def table(self) -> Table:
        """Returns the printed table."""
        unit = self[0].nouns.drawn
        head = ["metric", "mean", "sd of runs", f"se {unit}", "se runs"]
        head += [f"{_MANY_RUNS} runs", "all runs"]
        measured = {str(metric): self._measure(metric) for metric in self.metrics}
        uncertainties = {name: uncertainty for name, (uncertainty, _) in measured.items()}
        notes = (
            note_on_intervals(0.95, self[0].person, self[0].nouns, len(self)),
            f"{len(self)} runs; sd: standard deviation; se: standard error from {unit}, and from "
            f"runs",
            f"{_MANY_RUNS} runs, all runs: the interval with that many runs, and with all there "
            f"could be",
            *_notes_on_sources(uncertainties),
        )
        if (sample := self._sample()) is not None:
            notes = (*notes, sample)
        return Table(head, [_row(name, *found) for name, found in measured.items()], notes)


def _mean_of(uncertainty: Uncertainty, means: Tensor, level: float) -> MeanOfRuns:
    """Returns the mean of all runs, given the mean of each, of shape `[num_runs]`."""
    value, margin = float(means.mean()), uncertainty.margin(level)
    return MeanOfRuns(
        value,
        value - margin,
        value + margin,
        float(means.std()),
        math.sqrt(uncertainty.of("users")) if uncertainty.has_users else math.nan,
        math.sqrt(uncertainty.of("runs")),
    )


def _row(name: str, uncertainty: Uncertainty, means: Tensor) -> list[str]:
    mean = _mean_of(uncertainty, means, level=0.95)
    margins = [uncertainty.with_runs(number).margin(0.95) for number in (_MANY_RUNS, math.inf)]
    return [
        name,
        format_mean(mean.value, mean.high - mean.value),
        *map(format_error, (mean.deviation, mean.user_error, mean.run_error or math.nan)),
        *(f"± {format_error(margin)}" if margin else "-" for margin in margins),
    ]


def _notes_on_sources(uncertainties: Mapping[str, Uncertainty]) -> Iterator[str]:
    """Says which metrics vary by runs alone, and which source of variance dominates in which."""
    of_all = [name for name, uncertainty in uncertainties.items() if not uncertainty.has_users]
    if of_all:
        yield f"{', '.join(of_all)}: for other runs alone"
    helped: dict[str, list[str]] = {"runs": [], "users": []}
    for name, uncertainty in uncertainties.items():
        left = uncertainty.with_runs(math.inf).variance
        if uncertainty.variance > 0:
            helped["users" if 2 * left > uncertainty.variance else "runs"].append(name)
    for source, metrics in helped.items():
        if metrics:
            yield f"more {source} would help most for {', '.join(metrics)}"


def runs_of(results: Any) -> tuple[EvaluationResult, ...]:
    """Returns the runs of a recommender, which may be a single result.

    Raises:
        TypeError: If something is not an `EvaluationResult`.
        ValueError: If there is none.
    """
    if isinstance(results, EvaluationResult):
        results = [results]
    if isinstance(results, str | Mapping) or not isinstance(results, Iterable):
        raise TypeError(
            f"'results' needs to hold 'EvaluationResult' or sequences of these "
            f"(got {type(results).__name__})"
        )
    runs: tuple[EvaluationResult, ...] = tuple(results)
    for result in runs:
        if not isinstance(result, EvaluationResult):
            raise TypeError(
                f"'results' needs to hold 'EvaluationResult' (got {type(result).__name__})"
            )
    if not runs:
        raise ValueError("'results' needs to hold at least one run of a recommender (got none)")
    return runs


def every_run(results: Mapping[str, Runnable]) -> dict[str, EvaluationResult]:
    """Returns all results, by a name that tells the runs of a recommender apart."""
    runs = {name: runs_of(of_name) for name, of_name in results.items()}
    return {
        name if len(of_name) == 1 else f"{name}, run {number}": result
        for name, of_name in runs.items()
        for number, result in enumerate(of_name, start=1)
    }


def result_or_runs(results: Runnable) -> EvaluationResult | Runs:
    """Returns the only run of a recommender, or all of its runs.

    Raises:
        ImportError: If there are several runs, and scipy is not installed.
        TypeError: If something is not an `EvaluationResult`.
        ValueError: If there is none, or they are of different tasks or have no metric in common.
    """
    if isinstance(results, Runs):
        return results
    runs = runs_of(results)
    return runs[0] if len(runs) == 1 else Runs(runs)


def fields_of_runs(runs: Iterable[EvaluationResult]) -> dict[str, Any]:
    """Returns everything that results were computed from, as files hold it, by their numbers."""
    return archive.numbered(result._to_fields() for result in runs)


def runs_from_fields(fields: dict[str, Any]) -> list[EvaluationResult]:
    """Returns what :func:`fields_of_runs` was called on."""
    return [EvaluationResult._from_fields(run) for run in fields.values()]


def means_of_all_users(runs: Sequence[EvaluationResult], metric: str | Metric) -> Tensor | None:
    """Returns the values of a metric that has one for all users, `[num_runs]`; `None` if not.

    Raises:
        ValueError: If only some runs have such a metric.
    """
    name = str(parse(metric))
    has_one = [name in result and name not in result.per_user for result in runs]
    if not any(has_one):
        return None
    if not all(has_one):
        raise ValueError(f"'metric' needs to be a metric of all results (got '{name}')")
    return torch.tensor([result[name] for result in runs], dtype=torch.double, device="cpu")


def values_of_runs(
    runs: Sequence[EvaluationResult], metric: str | Metric, device: torch.device | None = None
) -> Tensor:
    """Returns what every user contributes to a metric in each run, `[num_runs, num_users]`.

    They are on the device of the first run if none is given.
    """
    device = runs[0].ranked.rank.device if device is None else device
    return torch.stack([result.contributions(metric).to(device) for result in runs])


def mean_with_interval(
    result: EvaluationResult | Runs, metric: str | Metric, level: float = 0.95
) -> CohortMean:
    """Returns the mean of a metric over users, or over users and runs, with its interval."""
    runs = runs_of(result)
    return Intervals(runs[0].person, level).mean(values_of_runs(runs, metric))


def mean_of_any(
    result: EvaluationResult | Runs, metric: str | Metric, level: float = 0.95
) -> CohortMean:
    """Returns the mean of any metric. One for all users together varies by runs alone."""
    runs = runs_of(result)
    means = means_of_all_users(runs, metric)
    if means is None:
        return mean_with_interval(result, metric, level)
    num_users = runs[0].user_counts.num_with_list or runs[0].num_evaluated
    if isinstance(result, Runs):
        value, low, high, *_ = result.mean(metric, level)
        return CohortMean(value, low, high, num_users)
    return CohortMean(float(means[0]), math.nan, math.nan, num_users)


def exposure_of_runs(runs: Sequence[EvaluationResult], k: int) -> Tensor:
    """Counts for each item how many lists hold it in their top `k`, on average over runs.

    Where some users stand for all, counts are scaled up, so that samples of different sizes can be
    compared.

    Returns:
        A double-precision tensor of shape `[num_items]`, on the CPU.

    Raises:
        ValueError: If a result does not hold lists down to `k`.
    """
    counts = [exposure(run.ranked, k).cpu() * _users_per_ranked(run) for run in runs]
    return torch.stack(counts).mean(dim=0)


def _users_per_ranked(run: EvaluationResult) -> float:
    """Returns how many users of the task each user of a result stands for."""
    # A sample has users without ground truth in the same proportion.
    return 1.0 if run.sampling is None else run.sampling.num_users / run.sampling.num_ranked


def num_tied_in_runs(runs: Sequence[EvaluationResult]) -> float | None:
    """Returns :attr:`EvaluationResult.num_tied` on average over runs; `None` if one has none."""
    counts = [result.num_tied for result in runs if result.num_tied is not None]
    return sum(counts) / len(counts) if len(counts) == len(runs) else None


def tie_range_of_runs(runs: Sequence[EvaluationResult], metric: str | Metric) -> TieRange:
    """Returns the lowest and the highest mean over runs, over all orders of equal scores.

    Raises:
        ValueError: If there is no such metric, or it has one value for all users together.
    """
    lowest, highest = zip(*(result.tie_range(metric) for result in runs), strict=True)
    return TieRange(sum(lowest) / len(runs), sum(highest) / len(runs))


def common_popularity(results: Iterable[EvaluationResult], needed_by: str) -> Tensor:
    """Returns how many users have seen each item, of shape `[num_items]`, on the CPU.

    Raises:
        ValueError: If a result does not know the seen edges, or theirs are not the same. The error
            says that `needed_by` needs them.
    """
    counts = []
    for result in results:
        check_has(result.ranked.catalogue, "popularity", needed_by)
        counts.append(catalogue_of(result.ranked).popularity.cpu())
    if not all(torch.equal(count, counts[0]) for count in counts):
        raise ValueError("'results' needs to be of tasks with the same seen edges")
    return counts[0]


def common_metrics(results: Sequence[EvaluationResult]) -> tuple[Metric, ...]:
    """Returns the metrics that all results have, in the order of the first."""
    first, *others = results
    return tuple(
        metric for metric in first.metrics if all(str(metric) in other for other in others)
    )


#: What a recommender may be called. A number is the name that it prints as.
Name: TypeAlias = str | int | float

#: What a recommender has: one run, or several.
RUNNABLE = (EvaluationResult | Sequence, "'EvaluationResult' or 'Runs'")


def by_name(results: Any, kinds: Any, what: str, argument: str = "results") -> dict[str, Any]:
    """Returns what a mapping holds by name.

    Args:
        results (Any): What the caller gave.
        kinds (type or types.UnionType): What the mapping has to hold.
        what (str): What the error calls these types.
        argument (str): The name of the argument.

    Raises:
        TypeError: If it is no mapping, a name is neither a string nor a number, or something has
            another type.
        ValueError: If it is empty, or two names print alike.
    """
    return _read(results, kinds, what, argument, f"{argument} by name")


def one_or_by_name(
    results: Any, kinds: Any, what: str, argument: str = "results"
) -> dict[str, Any]:
    """Returns what a mapping holds by name, or a single object without a name.

    Arguments and errors are those of :func:`by_name`.
    """
    if isinstance(results, kinds):
        return {"": results}
    return _read(results, kinds, what, argument, f"one {what}, or {argument} by name")


def runs_by_name(results: Mapping[str, Runnable]) -> dict[str, tuple[EvaluationResult, ...]]:
    """Returns the runs of each recommender by name."""
    return {name: runs_of(result) for name, result in by_name(results, *RUNNABLE).items()}


def read_name(name: Name, argument: str, names: Sequence[str]) -> str:
    """Returns a name as results have it, by which they may be numbers.

    Raises:
        ValueError: If it is none of `names`.
    """
    return check_choice(str(name) if isinstance(name, Name) else name, argument, names)


def results_or_runs_by_name(
    results: Runnable | Mapping[str, Runnable],
) -> dict[str, EvaluationResult | Runs]:
    """Returns recommenders with one run or several by name; a single one has no name."""
    found = one_or_by_name(results, *RUNNABLE)
    return {name: result_or_runs(result) for name, result in found.items()}


def _read(results: Any, kinds: Any, what: str, argument: str, wanted: str) -> dict[str, Any]:
    if not isinstance(results, Mapping) or isinstance(results, EvaluationResult):
        raise TypeError(
            f"'{argument}' needs to be {wanted}, as in {{'A': a, 'B': b}} "
            f"(got {type(results).__name__})"
        )
    if not results:
        raise ValueError(f"'{argument}' needs to hold at least one {what} (got none)")
    for name, result in results.items():
        if not isinstance(name, Name):
            raise TypeError(f"'{argument}' needs strings or numbers as names (got {name!r})")
        if not isinstance(result, kinds) or isinstance(result, str):
            hint = "; choose one of the runs, such as runs[0]" if isinstance(result, Runs) else ""
            raise TypeError(
                f"'{argument}' needs to hold {what} (got {type(result).__name__} as '{name}'{hint})"
            )
        if any("\ud800" <= letter <= "\udfff" for letter in str(name)):
            raise ValueError(f"'{argument}' needs names that can be written (got {name!r})")
    named = {str(name): result for name, result in results.items()}
    if len(named) < len(results):
        raise ValueError(f"'{argument}' needs a name of its own for each (got {list(results)})")
    return named
