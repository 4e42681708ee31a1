"""The table of a paper: several recommenders in several metrics, on one data set or several."""

import math
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from itertools import chain, combinations, product
from typing import Any

import pandas as pd

from pyg_recmetrics.checks import check_level
from pyg_recmetrics.metrics import Metric, parse_all
from pyg_recmetrics.results import Comparison, EvaluationResult
from pyg_recmetrics.results.comparison import (
    Hypothesis,
    best_first,
    compare_on_each,
    places_of,
    read_names,
)
from pyg_recmetrics.results.notes import MARKS, RECIPE, lines, notes_of_all, paragraph
from pyg_recmetrics.results.result import Measured
from pyg_recmetrics.results.runs import (
    Name,
    budgets_of,
    by_name,
    check_alike,
    common_metrics,
    every_run,
    how_measured,
    recommenders_by_name,
    remarks_on,
)
from pyg_recmetrics.results.verdicts import PairedDifference
from pyg_recmetrics.tables import Best, Second, Table, Tabular, format_error
from pyg_recmetrics.utils import Frozen, FrozenDict

#: The recommenders of one data set, by name.
Results = Mapping[str, Measured]


@contextmanager
def on(data_set: str) -> Iterator[None]:
    """Lets errors about arguments name a data set."""
    try:
        yield
    except (TypeError, ValueError) as error:
        raise type(error)(f"{data_set}: {error}" if data_set else str(error)) from error


def by_data_set(results: Any) -> dict[str, Any]:
    """Returns the results of each data set, of which one alone has no name."""
    is_nested = isinstance(results, Mapping) and any(
        isinstance(of_one, Mapping) and not isinstance(of_one, EvaluationResult)
        for of_one in results.values()
    )
    return by_name(results, Mapping, "results by name") if is_nested else {"": results}


def with_best(
    cells: Mapping[str, tuple[float, str]], names: Iterable[str], metric: str | Metric
) -> list[str]:
    """Returns a cell for each recommender, of which the best and the second best are marked.

    Args:
        cells (mapping): The mean of each recommender that has one, and how it is printed.
        names (iterable): All recommenders.
        metric (str or Metric): The metric.

    Example:
        >>> cells = {"x": (0.3, ".3"), "y": (0.1 + 0.2, ".3"), "z": (0.2, ".2")}
        >>> [type(cell).__name__ for cell in with_best(cells, "xyz", "mrr")]
        ['Best', 'Best', 'Second']
    """
    places = places_of({name: mean for name, (mean, _) in cells.items()}, metric)
    marked = []
    for name in names:
        _, text = cells.get(name, (math.nan, "-"))
        place = places.get(name)
        if place == 1 and len(places) > 1:
            text = Best(text)
        elif place == 2 and len(places) > 2:  # the worse of two is not the second best
            text = Second(text)
        marked.append(text)
    return marked


class Benchmark(Frozen, Tabular, FrozenDict[str, Results]):
    r"""The table of a paper: recommenders down, metrics across, for one data set or several.

    Each cell is the mean over users. A recommender that was trained with several seeds has the
    standard deviation over its runs in brackets. The best mean of a column is bold, or `best` in
    plain text, and LaTeX underlines the second best. A dagger † marks a mean that is significantly
    better than the best of the others, and ‡ one that is significantly worse; :func:`compare` tests
    this user by user. The data decide which is best, so Holm's method adjusts the p-values for all
    pairs: each proposed recommender with all others, in all columns of the table. If results say
    how they were tuned, see :meth:`EvaluationResult.with_trials`, there are columns for it. A
    benchmark is a mapping of each data set to its results, and a single data set has the name `""`.

    A recommender need not have been run on every data set. All results of a data set are of one
    task, and all of the benchmark have one convention.

    Args:
        results (dict): The results by name, or for each data set, its results by name. Each is an
            `EvaluationResult`, or the `Runs` of a recommender, or a sequence of these.
        metrics (sequence of str, optional): The metrics. (default: `None`, those that all have)
        proposed (sequence of str, optional): The names of your recommenders, which alone can have
            a dagger. All others are baselines, and each of yours is compared with the best of
            these. (default: `None`, the best of each column, which is compared with the next)
        deterministic (sequence of str, optional): The names of recommenders that no seed changes,
            see :func:`compare`. (default: `()`)
        level (float, optional): The level of confidence of all daggers together.
            (default: `0.95`)

    Attributes:
        recommenders (tuple of str): The names of the recommenders, in the order in which data sets
            list them first.
        metrics (tuple of Metric): The metrics.

    Raises:
        TypeError: If `results` does not hold results by name.
        ValueError: If a data set has no results or results of several tasks, if conventions or
            actions for users without truth differ, results have no metric in common, or a name is
            unknown.

    Example:
        >>> import torch
        >>> from pyg_recmetrics import Benchmark, RankingTask, evaluate
        >>> def run(num_users):
        ...     truth = torch.stack([torch.arange(num_users), torch.arange(num_users) % 3])
        ...     task = RankingTask(truth, num_users=num_users, num_items=3)
        ...     scores = {"first": [3.0, 2.0, 1.0], "last": [1.0, 2.0, 3.0]}
        ...     return {name: evaluate(torch.tensor(x), task, "mrr") for name, x in scores.items()}
        >>> benchmark = Benchmark({"small": run(101), "large": run(200)})
        >>> print(benchmark)  # doctest: +ELLIPSIS
        recommender    small mrr    large mrr
        -------------------------------------
        first        best 0.6139  best 0.6125
        last              0.6073       0.6092
        users: 101 on small, 200 on large
        no best mean differs significantly from the next in a column (paired t-test, ...
        2 data sets were looked at: decide by what was chosen before
        >>> benchmark.to_pandas().shape
        (4, 14)
    """

    def __init__(
        self,
        results: Mapping[str, Any],
        metrics: str | Metric | Iterable[str | Metric] | None = None,
        *,
        proposed: str | Iterable[Name] | None = None,
        deterministic: str | Iterable[Name] = (),
        level: float = 0.95,
    ) -> None:
        read = {}
        for data_set, of_one in by_data_set(results).items():
            with on(data_set):
                read[data_set] = recommenders_by_name(of_one)
        self.recommenders = tuple(dict.fromkeys(chain.from_iterable(read.values())))
        super().__init__(
            {
                data_set: FrozenDict({x: of_one[x] for x in self.recommenders if x in of_one})
                for data_set, of_one in read.items()
            }
        )
        every = {
            _place(data_set, name): result
            for data_set, of_one in self.items()
            for name, result in every_run(of_one).items()
        }
        how = {name: how_measured(result) for name, result in every.items()}
        check_alike(how, "be measured alike on all data sets")
        if metrics is None:
            metrics = common_metrics(list(every.values()))
            if not metrics:
                raise ValueError(
                    "'metrics' needs to be given if results have none in common (got None)"
                )
        self.metrics = parse_all(metrics)
        names = self.recommenders
        self.proposed = None if proposed is None else read_names(proposed, names, "proposed")
        self.deterministic = read_names(deterministic, names)
        self.level = check_level(level)
        self._freeze()

    @cached_property
    def comparisons(self) -> Mapping[str, Comparison]:
        """What signs stand for: each proposed mean beside all others, the best of them first."""
        asked = {}
        for data_set, of_one in self.items():
            if questions := list(self._questions(of_one)):
                asked[data_set] = questions
        return compare_on_each(self, asked, deterministic=self.deterministic, level=self.level)

    def table(self) -> Table:
        """Returns the printed table."""
        head = ["recommender"]
        columns = []
        groups = [""]
        for data_set, of_one in self.items():
            for metric in self.metrics:
                cells = {}
                for name, result in of_one.items():
                    with on(_place(data_set, name)):
                        cells[name] = self._cell(data_set, name, result, metric)
                columns.append(with_best(cells, self.recommenders, metric))
            budgets = budgets_of(of_one)
            for budget in budgets.values():
                columns.append([budget.get(name, "-") for name in self.recommenders])
            names = [*map(str, self.metrics), *budgets]
            head += [f"{data_set} {name}".strip() for name in names]
            groups += [data_set] * len(names)
        rows = list(zip(self.recommenders, *columns, strict=True))
        return Table(head, rows, tuple(self._notes()), groups=groups)

    def to_pandas(self) -> pd.DataFrame:
        """Returns a data frame with a row for every mean.

        Its columns are `data_set`, `recommender`, `metric`, what :meth:`Runs.mean` returns,
        `num_runs`, the corrected p-value of what a sign stands for, `num_trials` and `seconds`.
        """
        rows = [
            {
                "data_set": data_set,
                "recommender": name,
                "metric": str(metric),
                **result.mean(metric, self.level)._asdict(),
                "num_runs": len(result.runs),
                "p_adjusted": getattr(self._row(data_set, name, metric), "p_adjusted", math.nan),
                "num_trials": result.num_trials,
                "seconds": result.seconds,
            }
            for data_set, of_one in self.items()
            for name, result in of_one.items()
            for metric in self.metrics
        ]
        return pd.DataFrame(rows)

    def recipe(self) -> str:
        """Returns what was measured on each data set, in how many runs, and how tested.

        These are the sentences of :meth:`EvaluationResult.recipe` about the metrics of this table.
        Sentences that are the same stand once, and others name what they are about.

        Example:
            >>> import torch
            >>> from pyg_recmetrics import Benchmark, RankingTask, evaluate
            >>> task = RankingTask(torch.tensor([[0, 1], [2, 0]]), num_users=2, num_items=3)
            >>> scores = {"up": torch.arange(3.0), "down": -torch.arange(3.0)}
            >>> results = {name: evaluate(x, task, "mrr") for name, x in scores.items()}
            >>> print(Benchmark(results).recipe().splitlines()[-1])
            Tests: paired t-test, a single test; significant: at most 0.05.
        """
        said = []
        for begin in RECIPE:
            of_each = {}
            for data_set, of_one in self.items():
                recipes = {name: x.recipe_of(self.metrics, begin) for name, x in of_one.items()}
                of_each[data_set] = notes_of_all(recipes)
            said += notes_of_all(of_each)
        tests = {x: lines("recipe_of_tests", of.protocol) for x, of in self.comparisons.items()}
        return "\n".join(map(paragraph, [*said, *notes_of_all(tests)]))

    def __repr__(self) -> str:
        data_sets = ", ".join(filter(None, self))
        shown = filter(None, [data_sets, ", ".join(self.recommenders)])
        return f"{type(self).__name__}({'; '.join(shown)})"

    def _questions(self, of_one: Results) -> Iterator[Hypothesis]:
        for metric in self.metrics:
            order = best_first(of_one, metric)
            pairs = list(combinations(order, 2))
            if self.proposed is not None:
                proposed = [name for name in self.proposed if name in order]
                pairs = list(product(proposed, [name for name in order if name not in proposed]))
            yield from product([metric], pairs)

    @cached_property
    def _beside_best(self) -> Mapping[str, Mapping[tuple[str, str], PairedDifference]]:
        """The difference of each mean that may have a sign from the best of the others.

        The best comes first in each metric. Without proposed recommenders, only the first of all
        means may have a sign.
        """
        found = {}
        for data_set, comparison in self.comparisons.items():
            first: dict[tuple[str, str], PairedDifference] = {}
            for row in comparison:
                first.setdefault((row.metric, row.a if self.proposed else ""), row)
            found[data_set] = {(row.metric, row.a): row for row in first.values()}
        return found

    def _row(self, data_set: str, name: str, metric: Metric) -> PairedDifference | None:
        return self._beside_best.get(data_set, {}).get((str(metric), name))

    def _cell(
        self, data_set: str, name: str, result: Measured, metric: Metric
    ) -> tuple[float, str]:
        mean = result.estimate_of(metric)
        if math.isnan(mean.value):
            return mean.value, "-"
        text = f"{mean.value:.4f}"
        if not math.isnan(mean.deviation):
            text += f" ({format_error(mean.deviation)})"
        row = self._row(data_set, name, metric)
        if row is not None and (star := self.comparisons[data_set].star(row)):
            text += f" {star.replace('*', MARKS[row.verdict])}"
        return mean.value, text

    def _notes(self) -> Iterator[str]:
        names: dict[int, list[str]] = {}
        for name in self.recommenders:
            numbers = [len(of_one[name].runs) for of_one in self.values() if name in of_one]
            for number in dict.fromkeys(numbers):
                names.setdefault(number, []).append(name)
        runs = {data_set: every_run(of_one).values() for data_set, of_one in self.items()}
        yield from lines("below_means", runs, names)
        verdicts = {row.verdict for rows in self._beside_best.values() for row in rows.values()}
        if verdicts := verdicts - {None}:
            # All data sets are tested together.
            protocol = next(iter(self.comparisons.values())).protocol
            yield from lines("below_marks", protocol, verdicts, self.proposed is None)
        yield from notes_of_all(
            {data_set: self._notes_on(data_set) for data_set in self.comparisons}
        )
        metrics = [*map(str, self.metrics)]
        yield from notes_of_all({x: remarks_on(of_one, metrics) for x, of_one in self.items()})

    def _notes_on(self, data_set: str) -> Iterator[str]:
        rows = list(self._beside_best[data_set].values())
        if self.proposed is not None and rows:
            best = pd.DataFrame(rows).groupby("b", sort=False).metric.unique().map(", ".join)
            in_metrics = [f"{name} in {metrics}" for name, metrics in best.items()]
            yield f"best baseline: {'; '.join(in_metrics if len(best) > 1 else best.index)}"
        protocol = self.comparisons[data_set].protocol
        yield from lines("limits", protocol, rows, "signs in brackets: for these trained models")


def _place(data_set: str, name: str) -> str:
    """Returns how an error names a result, of a data set that may have no name."""
    return ", ".join(filter(None, (data_set, name)))
