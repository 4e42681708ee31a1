"""Benchmark: the results of several recommenders on several data sets."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyg_recmetrics.benchmark.comparison import BenchmarkComparison
from pyg_recmetrics.benchmark.means import Results, notes_of_all, on, with_best
from pyg_recmetrics.frozen import Frozen, FrozenDict
from pyg_recmetrics.metrics import Metric, parse
from pyg_recmetrics.results import EvaluationResult, archive
from pyg_recmetrics.results.archive import numbered
from pyg_recmetrics.results.cohorts import CohortMean
from pyg_recmetrics.results.comparison import compare_on_each, read_names
from pyg_recmetrics.results.notes import describe_samples, note_on_intervals
from pyg_recmetrics.results.result import Measured, has_rows, mean_of
from pyg_recmetrics.results.runs import (
    Name,
    Runnable,
    by_name,
    common_metrics,
    every_run,
    fields_of_runs,
    read_name,
    recommenders_by_name,
    results_of,
    runs_from_fields,
    samples_of,
)
from pyg_recmetrics.results.same_task import check_same_task
from pyg_recmetrics.tables import Table, Tabular, format_interval, to_data_frame

if TYPE_CHECKING:
    import pandas as pd

#: The columns of a data frame of means.
_COLUMNS = ["data_set", "recommender", "metric", "value", "low", "high", "num_users", "num_runs"]


class Benchmark(Frozen, Tabular, FrozenDict[str, Results]):
    r"""Several recommenders on several data sets: a mapping of each data set to its results.

    The table has a row for each recommender and a column for each data set. :meth:`compare` says
    on which data sets a recommender is better. :func:`~pyg_recmetrics.report` puts all of it on a
    page.

    A recommender need not have been run on every data set. All results of a data set are of one
    task, and all of the benchmark have one convention.

    Args:
        results (dict): For each data set, its results by name. Each is an `EvaluationResult`, or
            the `Runs` of a recommender, or a sequence of these.

    Attributes:
        recommenders (tuple of str): The names of the recommenders, in the order in which data sets
            list them first.
        metrics (tuple of Metric): The metrics that all results have. Methods take the first of them
            if none is asked for, or any other that the rankings are deep enough for.

    Raises:
        ImportError: If a recommender has several runs, and scipy is not installed.
        TypeError: If `results` does not hold results by name for each data set.
        ValueError: If there are fewer than two data sets, one of them has no results or those of
            different tasks, or conventions or actions for users without truth differ.

    Example:
        >>> import torch
        >>> from pyg_recmetrics import Benchmark, RankingTask, evaluate
        >>> def run(num_users):
        ...     truth = torch.stack([torch.arange(num_users), torch.arange(num_users) % 3])
        ...     task = RankingTask(truth, num_users=num_users, num_items=3)
        ...     scores = {"first": [3.0, 2.0, 1.0], "last": [1.0, 2.0, 3.0]}
        ...     return {name: evaluate(torch.tensor(x), task, "mrr") for name, x in scores.items()}
        >>> benchmark = Benchmark({"small": run(101), "large": run(200)})
        >>> print(benchmark)
        mrr             small           large
        -------------------------------------
        first  0.6139 ± .0562  0.6125 ± .0396
        last   0.6073 ± .0559  0.6092 ± .0395
        ±: 95% confidence interval of the mean over users
        bold: the best mean of a data set, significantly better or not
        >>> str(benchmark.metric()), len(benchmark.to_pandas())
        ('mrr', 4)
    """

    def __init__(self, results: Mapping[str, Mapping[str, Runnable]]) -> None:
        found = by_name(results, Mapping, "results by name")
        if len(found) < 2:
            raise ValueError(
                f"'results' needs to hold at least two data sets (got {list(found)}); 'compare' "
                f"and 'report' take the results of one"
            )
        read: dict[str, dict[str, Measured]] = {}
        for data_set, of_one in found.items():
            with on(data_set):
                read[data_set] = recommenders_by_name(of_one)
                check_same_task(every_run(read[data_set]))
        self.recommenders = tuple(dict.fromkeys(chain.from_iterable(read.values())))
        super().__init__(
            {
                data_set: FrozenDict({x: of_one[x] for x in self.recommenders if x in of_one})
                for data_set, of_one in read.items()
            }
        )
        every = {
            f"{data_set}, {name}": result
            for data_set, of_one in self.items()
            for name, result in every_run(of_one).items()
        }
        _check_same_definitions(every)
        self.metrics = common_metrics(list(every.values()))
        self._freeze()

    def table(self, metric: str | Metric | None = None, *, level: float = 0.95) -> Table:
        """Returns the means of a metric: recommenders down, and data sets across.

        Each mean has its interval, and the best of a data set is bold.

        Args:
            metric (str or Metric, optional): The metric. (default: `None`, the first of `metrics`)
            level (float, optional): The level of the confidence intervals. (default: `0.95`)

        Raises:
            ValueError: If a result has no such metric, or `level` is not between 0 and 1.
        """
        metric, columns = self.metric(metric), []
        for means in self._means(metric, level).values():
            cells = {name: (mean.value, format_interval(*mean[:3])) for name, mean in means.items()}
            columns.append(with_best(cells, self.recommenders, metric))
        rows = list(zip(self.recommenders, *columns, strict=True))
        notes = notes_of_all({name: _notes_on(of, metric, level) for name, of in self.items()})
        notes.append("bold: the best mean of a data set, significantly better or not")
        return Table([str(metric), *self], rows, tuple(notes))

    def to_pandas(
        self, metric: str | Metric | None = None, *, level: float = 0.95
    ) -> "pd.DataFrame":
        """Returns a data frame with a row for every recommender on every data set.

        Its columns are `data_set`, `recommender`, `metric`, `value`, `low`, `high`, `num_users`
        and `num_runs`.

        Args:
            metric (str or Metric, optional): The metric. (default: `None`, the first of `metrics`)
            level (float, optional): The level of the confidence intervals. (default: `0.95`)

        Raises:
            ImportError: If pandas is not installed.
            ValueError: If a result has no such metric, or `level` is not between 0 and 1.
        """
        metric = self.metric(metric)
        rows = [
            (data_set, name, str(metric), *mean, len(self[data_set][name].runs))
            for data_set, means in self._means(metric, level).items()
            for name, mean in means.items()
        ]
        return to_data_frame(rows, _COLUMNS)

    def compare(
        self,
        metric: str | Metric | None = None,
        *,
        baseline: Name | None = None,
        equivalence: float | str | None = None,
        deterministic: str | Iterable[Name] = (),
        level: float = 0.95,
    ) -> BenchmarkComparison:
        """Compares recommenders on every data set, user by user, as :func:`compare` does.

        One correction by Holm's method covers all tests on all data sets, so that the number of
        stars is one of data sets with confidence: the true number is no smaller. A pair is tested
        on the data sets that have both, and a data set that lacks the baseline is left out.

        Args:
            metric (str or Metric, optional): The metric. (default: `None`, the first of `metrics`)
            baseline (str, optional): A recommender. Each of the others is compared with it, as `b`.
                (default: `None`, all pairs, where `a` comes before `b`)
            equivalence (float or str, optional): The smallest difference that matters, see
                :func:`compare`. (default: `None`)
            deterministic (sequence of str, optional): The names of recommenders that no seed
                changes. A single run of them is all there can be. (default: `()`)
            level (float, optional): The level of confidence. (default: `0.95`)

        Raises:
            ImportError: If scipy is not installed.
            TypeError: If `deterministic` holds no names.
            ValueError: If a result has no such metric, a name is unknown, no two recommenders share
                a data set, or another argument is not what :func:`compare` takes.

        Source: Dror et al., "Replicability analysis for natural language processing: testing
        significance with multiple datasets" (2017).

        Example:
            >>> import torch
            >>> from pyg_recmetrics import Benchmark, RankingTask, evaluate
            >>> def run(num_users):
            ...     truth = torch.stack([torch.arange(num_users), torch.arange(num_users) % 3])
            ...     task = RankingTask(truth, num_users=num_users, num_items=3)
            ...     perfect = torch.nn.functional.one_hot(truth[1]).float()
            ...     scores = {"perfect": perfect, "popular": torch.tensor([3.0, 2.0, 1.0])}
            ...     return {name: evaluate(x, task, "mrr") for name, x in scores.items()}
            >>> benchmark = Benchmark({"small": run(100), "large": run(200)})
            >>> fixed = ["perfect", "popular"]
            >>> print(*benchmark.compare(baseline="popular", deterministic=fixed).claims())
            perfect is better than popular in mrr on small and large.
        """
        asked = self.metric(metric)
        if baseline is not None:
            baseline = read_name(baseline, "baseline", self.recommenders)
        # The order of recommenders is that of their names in every data set.
        compared = {
            data_set: of_one
            for data_set, of_one in self.items()
            if len(of_one) > 1 and (baseline is None or baseline in of_one)
        }
        if not compared:
            raise ValueError(
                f"'results' needs to hold a data set with two recommenders to compare "
                f"(got none for baseline={baseline!r})"
            )
        comparisons = compare_on_each(
            compared,
            asked,
            baseline=baseline,
            equivalence=equivalence,
            deterministic=read_names(deterministic, self.recommenders),
            level=level,
        )
        left_out = tuple(data_set for data_set in self if data_set not in compared)
        return BenchmarkComparison(comparisons, asked, self.recommenders, left_out)

    def metric(self, metric: str | Metric | None = None) -> Metric:
        """Returns a metric as methods take it: the first that all results have if none is given.

        Args:
            metric (str or Metric, optional): The metric. (default: `None`)

        Raises:
            ValueError: If there is no such metric, or none is given and results have none in
                common.
        """
        if metric is not None:
            return parse(metric)
        if not self.metrics:
            raise ValueError("'metric' needs to be given if results have none in common (got None)")
        return self.metrics[0]

    def _means(self, metric: Metric, level: float) -> dict[str, dict[str, CohortMean]]:
        """Returns the mean of every recommender on every data set."""
        means: dict[str, dict[str, CohortMean]] = {data_set: {} for data_set in self}
        for data_set, of_one in self.items():
            for name, result in of_one.items():
                with on(f"{data_set}, {name}"):
                    means[data_set][name] = mean_of(result, metric, level)
        return means

    def save(self, path: str | Path) -> None:
        """Saves all results in one file, for :meth:`load`. What they share is stored once.

        Args:
            path (str or Path): The file to write, see :meth:`EvaluationResult.save`.

        Raises:
            OSError: If the file cannot be written, such as `PermissionError`.
        """
        data_sets = [
            {
                "name": data_set,
                "recommenders": numbered(
                    {"name": name, "runs": fields_of_runs(results_of(result))}
                    for name, result in of_one.items()
                ),
            }
            for data_set, of_one in self.items()
        ]
        archive.write(path, {"data_sets": numbered(data_sets)})

    @classmethod
    def load(cls, path: str | Path) -> "Benchmark":
        """Loads a saved benchmark, as :meth:`EvaluationResult.load` does.

        Args:
            path (str or Path): The file.

        Raises:
            OSError: If the file cannot be opened, such as `FileNotFoundError`.
            ValueError: If `path` does not hold a saved benchmark, is damaged, or has an unsupported
                format.

        Example:
            >>> import tempfile
            >>> from pathlib import Path
            >>> import torch
            >>> from pyg_recmetrics import Benchmark, RankingTask, evaluate
            >>> task = RankingTask(torch.tensor([[0, 1], [2, 0]]), num_users=2, num_items=3)
            >>> results = {"fixed": evaluate(torch.tensor([0.1, 0.3, 0.2]), task, "mrr")}
            >>> path = Path(tempfile.mkdtemp()) / "benchmark.npz"
            >>> Benchmark({"A": results, "B": results}).save(path)
            >>> Benchmark.load(path)
            Benchmark(A, B; fixed)
        """
        return archive.read(path, cls._from_fields)

    @classmethod
    def _from_fields(cls, fields: dict[str, Any]) -> "Benchmark":
        return cls(
            {
                data_set["name"]: {
                    recommender["name"]: runs_from_fields(recommender["runs"])
                    for recommender in data_set["recommenders"].values()
                }
                for data_set in fields["data_sets"].values()
            }
        )

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(self)}; {', '.join(self.recommenders)})"


def _check_same_definitions(results: Mapping[str, EvaluationResult]) -> None:
    """Raises if results mean different things by the name of a metric."""
    (first_name, first), *others = results.items()
    for what in ("convention", "empty_target_action", "average_over"):
        for name, result in others:
            if getattr(result, what) != getattr(first, what):
                raise ValueError(
                    f"'results' needs to be measured alike on all data sets (got '{first_name}' "
                    f"and '{name}', which differ in {what})"
                )


def _notes_on(results: Results, metric: Metric, level: float) -> Iterator[str]:
    """Yields what stands behind the numbers of a data set."""
    first = next(iter(results.values())).runs[0]
    yield note_on_intervals(level, first._person, first.nouns)
    if note := describe_samples(samples_of(results), first.nouns, "count"):
        yield note
    if has_rows(first, metric) and (note := first._caution(metric)):
        yield note
    if counts := [f"{len(of.runs)} of {name}" for name, of in results.items() if len(of.runs) > 1]:
        yield f"runs: {', '.join(counts)}; their ± allows for other runs, too"
