"""Which recommender is better on how many data sets."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple, get_args

from pyg_recmetrics.benchmark.means import Results
from pyg_recmetrics.benchmark.notes import notes_of_all
from pyg_recmetrics.benchmark.partial_conjunction import count_with_confidence
from pyg_recmetrics.frozen import Frozen
from pyg_recmetrics.metrics import Metric
from pyg_recmetrics.results import Comparison, PairedDifference
from pyg_recmetrics.results.by_name import Name, read_name
from pyg_recmetrics.results.paired import Verdict, is_higher_better
from pyg_recmetrics.results.runs import runs_of
from pyg_recmetrics.tables import Faint, Table, Tabular, format_level, format_mean, to_data_frame

if TYPE_CHECKING:
    import pandas as pd


#: For as many pairs as this, the printed table ends with a sentence on each.
_NUM_CLAIMED = 6


class DataSetCount(NamedTuple):
    """On how many data sets a recommender is better than another, with confidence.

    Attributes:
        a: The name of one recommender.
        b: The name of the other.
        better: On how many data sets `a` is better, at least.
        worse: On how many it is worse, at least.
        num_data_sets: On how many both were tested.

    Example:
        >>> from pyg_recmetrics.benchmark import DataSetCount
        >>> DataSetCount("LightGCN", "most popular", better=2, worse=0, num_data_sets=3).better
        2
    """

    a: str
    b: str
    better: int
    worse: int
    num_data_sets: int


class BenchmarkComparison(Frozen, Tabular, Mapping[str, Comparison]):
    r"""The differences of recommenders on several data sets, corrected for all tests together.

    :meth:`Benchmark.compare` returns it. It is a mapping of each data set to its
    :class:`Comparison`, whose adjusted p-values allow for the tests on all data sets: the chance
    that any star of the table is false is at most one minus the level.

    Attributes:
        metric (Metric): The metric.
        recommenders (tuple of str): The names of all recommenders of the benchmark.
        counts (tuple of DataSetCount): For each pair, on how many data sets one is better. All
            counts hold together, with the level of the comparison.
        independent (bool): Whether counts are those of Fisher's combination, which needs data sets
            that have nothing in common. If not, they are numbers of stars.
        left_out (tuple of str): The data sets on which nothing could be compared.

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
        >>> comparison = benchmark.compare(deterministic=["perfect", "popular"])
        >>> comparison.table().rows[0][:4]
        ('perfect - popular', '2 of 2', '0 of 2', '+0.3850 ± .0567 *')
        >>> comparison.claims()
        ('perfect is better than popular in mrr on both data sets.',)
        >>> comparison["small"][0].verdict, comparison.select("popular").pairs
        ('better', [('perfect', 'popular')])
        >>> comparison.to_pandas()[["data_set", "a", "b", "verdict"]]
          data_set        a        b verdict
        0    small  perfect  popular  better
        1    large  perfect  popular  better
        >>> comparison.check_results(benchmark)  # which raises if they are others
    """

    def __init__(
        self,
        comparisons: Mapping[str, Comparison],
        metric: Metric,
        recommenders: tuple[str, ...],
        independent: bool = False,
        left_out: tuple[str, ...] = (),
        num_pairs: int | None = None,
    ) -> None:
        self._comparisons = dict(comparisons)
        self._num_pairs = len(self._rows_by_pair) if num_pairs is None else num_pairs
        self.metric, self.recommenders = metric, recommenders
        self.independent, self.left_out = independent, left_out
        self.counts = tuple(self._count(a, b) for a, b in self._rows_by_pair)
        self._freeze()

    @property
    def pairs(self) -> list[tuple[str, str]]:
        """The pairs of recommenders that were compared on any data set."""
        return list(self._rows_by_pair)

    @property
    def level(self) -> float:
        """The level of confidence of all tests together, and of all counts together."""
        return self._first.protocol.level

    def claims(self) -> tuple[str, ...]:
        """Returns one sentence for each pair: on how many data sets one is better, and on which."""
        return tuple(self._sentence(count) for count in self.counts)

    def select(self, name: Name) -> "BenchmarkComparison":
        """Returns the pairs of one recommender. They keep the corrections for all tests.

        Args:
            name (str): A recommender that is one of each pair.

        Raises:
            ValueError: If it was compared on no data set.
        """
        name = read_name(name, "name", list(dict.fromkeys(chain.from_iterable(self.pairs))))
        selected = {
            data_set: found.select(name=name)
            for data_set, found in self.items()
            if any(name in (row.a, row.b) for row in found)
        }
        left_out = (*self.left_out, *(data_set for data_set in self if data_set not in selected))
        return BenchmarkComparison(
            selected, self.metric, self.recommenders, self.independent, left_out, self._num_pairs
        )

    def check_results(self, results: Mapping[str, Results]) -> None:
        """Raises if the differences are not those of a benchmark.

        Args:
            results (mapping): The results by name, for each data set.

        Raises:
            ValueError: If they are not. The error names the data set, and what differs.
        """
        for data_set, found in self.items():
            if data_set not in results:
                raise ValueError(f"'comparison' needs to be of {list(results)} (got '{data_set}')")
            try:
                found.check_results({name: runs_of(x) for name, x in results[data_set].items()})
            except ValueError as error:
                raise ValueError(f"{data_set}: {error}") from error

    def to_pandas(self) -> "pd.DataFrame":
        """Returns a data frame with a row for every pair on every data set.

        The columns are `data_set`, and those of :meth:`Comparison.to_pandas`.

        Raises:
            ImportError: If pandas is not installed.
        """
        rows = [(data_set, *row) for data_set, found in self.items() for row in found]
        return to_data_frame(rows, ["data_set", *PairedDifference._fields])

    def table(self) -> Table:
        """Returns the printed table: pairs of recommenders down, and data sets across."""
        head = [f"{self.metric}, a - b", "better on", "worse on", *self]
        rows = [
            [
                f"{count.a} - {count.b}",
                *(_of_all(number, count) for number in (count.better, count.worse)),
                *(self._cell(data_set, count.a, count.b) for data_set in self),
            ]
            for count in self.counts
        ]
        return Table(head, rows, tuple(self._notes()))

    def __getitem__(self, data_set: str) -> Comparison:
        return self._comparisons[data_set]

    def __iter__(self) -> Iterator[str]:
        return iter(self._comparisons)

    def __len__(self) -> int:
        return len(self._comparisons)

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}({self.metric}, {len(self)} data sets, {len(self.counts)} pairs)"
        )

    @property
    def _first(self) -> Comparison:
        return next(iter(self.values()))

    @property
    def _rows_by_pair(self) -> dict[tuple[str, str], dict[str, PairedDifference]]:
        """The differences of each pair by data set, all of which list recommenders alike."""
        found: dict[tuple[str, str], dict[str, PairedDifference]] = {}
        for data_set, comparison in self.items():
            for row in comparison:
                found.setdefault((row.a, row.b), {})[data_set] = row
        return found

    def _count(self, a: str, b: str) -> DataSetCount:
        tested = self._tested(a, b)
        if not self.independent:
            found = self._found(a, b)
            return DataSetCount(a, b, len(found["better"]), len(found["worse"]), len(tested))
        # Both directions of all pairs share the chance of a mistake.
        alpha = self._first.protocol.alpha / 2 / self._num_pairs
        better, worse = (
            count_with_confidence([_one_sided(row, is_better) for row in tested], alpha, True)
            for is_better in (True, False)
        )
        return DataSetCount(a, b, better, worse, len(tested))

    def _tested(self, a: str, b: str) -> list[PairedDifference]:
        rows = self._rows_by_pair[a, b].values()
        return [row for row in rows if row.verdict is not None]

    def _found(self, a: str, b: str) -> dict[str, list[str]]:
        """Returns the data sets of each verdict on a pair."""
        found: dict[str, list[str]] = {verdict: [] for verdict in get_args(Verdict)}
        for data_set, row in self._rows_by_pair[a, b].items():
            if row.verdict is not None:
                found[row.verdict].append(data_set)
        return found

    def _cell(self, data_set: str, a: str, b: str) -> str:
        row = self._rows_by_pair[a, b].get(data_set)
        if row is None:
            return "-"
        sign = "+" if row.difference >= 0 else ""
        text = f"{sign}{format_mean(row.difference, (row.high - row.low) / 2)}"
        mark = "=" if row.verdict == "equivalent" else self[data_set].star(row)
        return f"{text} {mark}" if mark else Faint(text)

    def _sentence(self, count: DataSetCount) -> str:
        if not count.num_data_sets:
            return f"{count.a} and {count.b} were not tested in {self.metric}."
        clauses = list(self._clauses(count))
        if not clauses:
            where = _all_of(count) if count.num_data_sets > 1 else "the only data set with both"
            return f"{count.a} and {count.b} are undecided in {self.metric} on {where}."
        sentence = f"{count.a} is {' and '.join(clauses)}"
        return f"{sentence}." if self._covers_training(count) else f"As trained here, {sentence}."

    def _clauses(self, count: DataSetCount) -> Iterator[str]:
        """Yields what one is beside the other, and where. Only the first names the other."""
        found = self._found(count.a, count.b)
        than, measured = f" than {count.b}", f" in {self.metric}"
        for verdict, number in (("better", count.better), ("worse", count.worse)):
            if not number:
                continue
            names = [] if self.independent else found[verdict]
            yield f"{verdict}{than}{measured} on {_at_least(number, count, names)}"
            than = measured = ""
        if found["equivalent"]:
            other = f" as {count.b}{measured}" if measured else ""
            yield f"as good{other} on {', '.join(found['equivalent'])}"

    def _covers_training(self, count: DataSetCount) -> bool:
        """Returns whether what is said of a pair allows for other runs on all data sets."""
        rows = self._rows_by_pair[count.a, count.b].items()
        return all(self[data_set].covers_training(row) for data_set, row in rows)

    def _notes(self) -> Iterator[str]:
        if len(self.counts) <= _NUM_CLAIMED:
            yield from self.claims()
        yield from notes_of_all(
            {
                data_set: found.protocol.notes_on_data_set(tuple(found))
                for data_set, found in self.items()
            }
        )
        if any(row.verdict == "equivalent" for found in self.values() for row in found):
            yield "=: equivalent"
        level = f"with {format_level(self.level)} confidence for all counts"
        if self.independent:
            yield (
                f"better on, worse on: at least so many, by Fisher's combination of independent "
                f"data sets, {level}; a star speaks for its own data set, so that there may be "
                f"more or fewer of them"
            )
        else:
            yield f"better on, worse on: at least so many, which are those with a star, {level}"
        if self.left_out:
            yield f"left out, without two to compare: {', '.join(self.left_out)}"


def _one_sided(row: PairedDifference, is_better: bool) -> float:
    """Returns the p-value that `a` is not better, or not worse. What is equivalent is neither."""
    if row.verdict == "equivalent":
        return 1.0
    is_in_favour = (row.difference > 0) == (is_higher_better(row.metric) == is_better)
    return row.p_value / 2 if is_in_favour else 1 - row.p_value / 2


def _of_all(number: int, count: DataSetCount) -> str:
    """Returns a count, of which there is none for fewer than two data sets."""
    return f"{number} of {count.num_data_sets}" if count.num_data_sets > 1 else "-"


def _at_least(number: int, count: DataSetCount, data_sets: Sequence[str]) -> str:
    """Says on how many data sets, and on which if that is known."""
    if number == count.num_data_sets > 1:
        return _all_of(count)
    names = f" ({', '.join(data_sets)})" if data_sets else ""
    return f"at least {number} of {count.num_data_sets} data sets{names}"


def _all_of(count: DataSetCount) -> str:
    return "both data sets" if count.num_data_sets == 2 else f"all {count.num_data_sets} data sets"
