"""Which recommender is better on which data sets."""

from collections.abc import Iterator, Mapping
from itertools import chain
from typing import TYPE_CHECKING

from pyg_recmetrics.benchmark.means import Results, notes_of_all, on
from pyg_recmetrics.frozen import Frozen, FrozenDict
from pyg_recmetrics.metrics import Metric
from pyg_recmetrics.results import Comparison, PairedDifference
from pyg_recmetrics.results.notes import notes_on_data_set
from pyg_recmetrics.results.runs import Name, read_name
from pyg_recmetrics.results.verdicts import Verdict
from pyg_recmetrics.tables import Faint, Table, Tabular, format_interval, to_data_frame

if TYPE_CHECKING:
    import pandas as pd

#: For as many pairs as this, the printed table ends with a sentence on each.
_NUM_CLAIMED = 6

#: How a sentence calls what is not open.
_WORDS: dict[Verdict, tuple[str, str]] = {
    "better": ("better", "than"),
    "worse": ("worse", "than"),
    "equivalent": ("as good", "as"),
}


class BenchmarkComparison(Frozen, Tabular, FrozenDict[str, Comparison]):
    r"""The differences of recommenders on several data sets, corrected for all tests together.

    :meth:`Benchmark.compare` returns it. It is a mapping of each data set to its
    :class:`Comparison`, whose adjusted p-values allow for the tests on all data sets: the chance
    that any star of the table is false is at most one minus the level.

    Attributes:
        metric (Metric): The metric.
        recommenders (tuple of str): The names of all recommenders of the benchmark.
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
        >>> comparison.table().rows[0][:2]
        ('perfect - popular', '+0.3850 ± .0567 *')
        >>> comparison.claims()
        ('perfect is better than popular in mrr on small and large.',)
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
        left_out: tuple[str, ...] = (),
    ) -> None:
        super().__init__(comparisons)
        self.metric, self.recommenders, self.left_out = metric, recommenders, left_out
        # All data sets list recommenders alike.
        self._by_pair: dict[tuple[str, str], dict[str, PairedDifference]] = {}
        for data_set, comparison in self.items():
            for row in comparison:
                self._by_pair.setdefault((row.a, row.b), {})[data_set] = row
        self._freeze()

    @property
    def pairs(self) -> list[tuple[str, str]]:
        """The pairs of recommenders that were compared on any data set."""
        return list(self._by_pair)

    def claims(self) -> tuple[str, ...]:
        """Returns one sentence for each pair: on which data sets one is better."""
        return tuple(self._claim(a, b) for a, b in self.pairs)

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
        return BenchmarkComparison(selected, self.metric, self.recommenders, left_out)

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
            with on(data_set):
                found.check_results(results[data_set])

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
        rows = [
            [f"{a} - {b}", *(self._cell(data_set, of_pair.get(data_set)) for data_set in self)]
            for (a, b), of_pair in self._by_pair.items()
        ]
        return Table([f"{self.metric}, a - b", *self], rows, tuple(self._notes()))

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}({self.metric}, {len(self)} data sets, {len(self.pairs)} pairs)"
        )

    def _cell(self, data_set: str, row: PairedDifference | None) -> str:
        if row is None:
            return "-"
        text = format_interval(row.difference, row.low, row.high, "+")
        mark = "=" if row.verdict == "equivalent" else self[data_set].star(row)
        return f"{text} {mark}" if mark else Faint(text)

    def _claim(self, a: str, b: str) -> str:
        of_pair = {x: row for x, row in self._by_pair[a, b].items() if row.verdict is not None}
        if not of_pair:
            return f"{a} and {b} were not tested in {self.metric}."
        sets: dict[Verdict | None, list[str]] = {}
        for data_set, row in of_pair.items():
            sets.setdefault(row.verdict, []).append(data_set)
        where = {verdict: " and ".join(names) for verdict, names in sets.items()}
        if not (said := [verdict for verdict in _WORDS if verdict in where]):
            return f"{a} and {b} are undecided in {self.metric} on {where['inconclusive']}."
        first, *others = said
        more = "".join(f", and {_WORDS[verdict][0]} on {where[verdict]}" for verdict in others)
        sentence = f"{a} is {' '.join(_WORDS[first])} {b} in {self.metric} on {where[first]}{more}."
        covers_training = all(self[x].covers_training(row) for x, row in of_pair.items())
        return sentence if covers_training else f"As trained here, {sentence}"

    def _notes(self) -> Iterator[str]:
        if len(self.pairs) <= _NUM_CLAIMED:
            yield from self.claims()
        yield from notes_of_all(
            {
                data_set: notes_on_data_set(found.protocol, tuple(found))
                for data_set, found in self.items()
            }
        )
        if any(row.verdict == "equivalent" for found in self.values() for row in found):
            yield "=: equivalent"
        if self.left_out:
            yield f"left out, without two to compare: {', '.join(self.left_out)}"
