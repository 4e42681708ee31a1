"""Which recommenders would differ on other data sets, given their ranks on some."""

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import TYPE_CHECKING, NamedTuple

from pyg_recmetrics.benchmark.ranks import Means, complete_data_sets, mean_ranks
from pyg_recmetrics.frozen import Frozen, FrozenDict
from pyg_recmetrics.metrics import Metric
from pyg_recmetrics.results.multiple_tests import alpha_of, holm
from pyg_recmetrics.results.paired import difference_of_means, is_higher_better
from pyg_recmetrics.tables import Rows, Table, format_level, format_p, to_data_frame

if TYPE_CHECKING:
    import pandas as pd

#: With fewer data sets than this, no test of two recommenders can reach a level of 95%.
_FEWEST = 5

#: From so many data sets on, Friedman's test tells something of any number of recommenders.
_ENOUGH = 8


class RankedPair(NamedTuple):
    """Two recommenders on several data sets, each of which is one observation.

    Attributes:
        a: The name of the one with the better mean rank.
        b: The name of the other.
        rank_a: The mean rank of `a`.
        rank_b: The mean rank of `b`.
        p_value: The p-value of Wilcoxon's signed-rank test of their means on the data sets.
        p_adjusted: The same, corrected for all pairs by Holm's method.
        is_significant: Whether it is small enough, and Friedman's test finds any difference.

    Example:
        >>> from pyg_recmetrics.benchmark import RankedPair
        >>> RankedPair("a", "b", 1.2, 1.8, 0.01, 0.03, is_significant=True).rank_b
        1.8
    """

    a: str
    b: str
    rank_a: float
    rank_b: float
    p_value: float
    p_adjusted: float
    is_significant: bool


class CriticalDifferences(Frozen, Rows[RankedPair]):
    r"""Which recommenders differ, taking data sets for a sample of all that there could be.

    :meth:`Benchmark.critical_differences` returns it: a sequence of a :class:`RankedPair` for each
    two recommenders. A data set is one observation, whatever its number of users. The table lists
    recommenders by mean rank, each with those from which it is not told apart.

    Attributes:
        metric (Metric): The metric.
        mean_ranks (mapping): The mean rank of each recommender, the best first.
        data_sets (tuple of str): The data sets, which have all recommenders.
        p_friedman (float): The p-value of Friedman's test that no recommender differs; `NaN` for
            two recommenders, of which Wilcoxon's test says all.
        level (float): The level of confidence of all that is said together.

    Example:
        >>> from pyg_recmetrics import metrics
        >>> from pyg_recmetrics.benchmark import CriticalDifferences
        >>> means = {f"set {i}": {"a": 0.3 + i / 90, "b": 0.1 + i / 70} for i in range(6)}
        >>> found = CriticalDifferences(means, ["a", "b"], metrics.parse("ndcg@20"), 0.95)
        >>> found[0].p_value, found.not_told_apart("a")
        (0.03125, ())
        >>> found.to_pandas()[["a", "b", "rank_a", "rank_b", "is_significant"]]
           a  b  rank_a  rank_b  is_significant
        0  a  b     1.0     2.0            True
    """

    def __init__(
        self, means: Means, recommenders: Sequence[str], metric: Metric, level: float
    ) -> None:
        self.metric, self.level = metric, level
        self.data_sets = tuple(complete_data_sets(means, recommenders))
        self._left_out = tuple(data_set for data_set in means if data_set not in self.data_sets)
        _check_number(len(self.data_sets), len(recommenders), alpha_of(level))
        complete = {data_set: means[data_set] for data_set in self.data_sets}
        found = mean_ranks(complete, recommenders, is_higher_better(str(metric)))
        names = sorted(recommenders, key=found.__getitem__)
        self.mean_ranks = FrozenDict({name: found[name] for name in names})
        self.p_friedman = friedman_test([[complete[x][name] for x in complete] for name in names])
        self._rows = tuple(self._pairs(complete, names))
        self._freeze()

    @property
    def any_differs(self) -> bool:
        """Whether Friedman's test finds any difference, without which no pair is significant."""
        return not self.p_friedman > alpha_of(self.level)

    def not_told_apart(self, name: str) -> tuple[str, ...]:
        """Returns the recommenders from which one does not differ significantly.

        Args:
            name (str): The name of the recommender.
        """
        return tuple(
            row.b if row.a == name else row.a
            for row in self
            if name in (row.a, row.b) and not row.is_significant
        )

    def to_pandas(self) -> "pd.DataFrame":
        """Returns a data frame with a row for every two recommenders.

        Raises:
            ImportError: If pandas is not installed.
        """
        return to_data_frame(self._rows, RankedPair._fields)

    def table(self) -> Table:
        """Returns the printed table."""
        rows = [
            [name, f"{rank:.2f}", ", ".join(self.not_told_apart(name)) or "-"]
            for name, rank in self.mean_ranks.items()
        ]
        head = [str(self.metric), "mean rank", "not told apart from"]
        return Table(head, rows, tuple(self._notes()))

    def __repr__(self) -> str:
        num = sum(row.is_significant for row in self)
        return f"{type(self).__name__}({self.metric}, {len(self)} pairs, {num} significant)"

    def _pairs(
        self, means: Mapping[str, Mapping[str, float]], names: Sequence[str]
    ) -> Iterator[RankedPair]:
        pairs = list(combinations(names, 2))
        p_values = [_wilcoxon_test(self.metric, means, pair) for pair in pairs]
        alpha = alpha_of(self.level)
        for (a, b), p, adjusted in zip(pairs, p_values, holm(p_values), strict=True):
            is_significant = adjusted <= alpha and self.any_differs
            ranks = self.mean_ranks[a], self.mean_ranks[b]
            yield RankedPair(a, b, *ranks, p, adjusted, is_significant)

    def _notes(self) -> Iterator[str]:
        yield f"over {len(self.data_sets)} data sets, each of which is one observation"
        if not math.isnan(self.p_friedman):
            found = "some differ" if self.any_differs else "no difference is found"
            yield f"Friedman's test: {found} (p = {format_p(self.p_friedman)})"
        yield (
            f"told apart by Wilcoxon's signed-rank test, corrected for {len(self)} "
            f"pair{'' if len(self) == 1 else 's'} by Holm's method, at {format_level(self.level)}"
        )
        if _least_p(len(self.data_sets), len(self)) > alpha_of(self.level):
            yield (
                f"{len(self.data_sets)} data sets are too few to tell any two of "
                f"{len(self.mean_ranks)} recommenders apart"
            )
        if self._left_out:
            yield f"left out, without all recommenders: {', '.join(self._left_out)}"


def friedman_test(values: Sequence[Sequence[float]]) -> float:
    """Returns the p-value that recommenders do not differ; `NaN` for fewer than three.

    Args:
        values (sequence): The mean of each recommender on each data set.
    """
    from scipy import stats

    if len(values) < 3:
        return math.nan
    rounded = [[float(f"{x:.12g}") for x in of_one] for of_one in values]
    if all(of_one == rounded[0] for of_one in rounded):
        return 1.0
    return float(stats.friedmanchisquare(*rounded).pvalue)


def _wilcoxon_test(
    metric: Metric, means: Mapping[str, Mapping[str, float]], pair: tuple[str, str]
) -> float:
    from scipy import stats

    differences = [
        difference_of_means(metric, pair, *(of_one[name] for name in pair)).difference
        for of_one in means.values()
    ]
    return float(stats.wilcoxon(differences).pvalue) if any(differences) else 1.0


def _least_p(num_data_sets: int, num_pairs: int) -> float:
    """Returns the smallest corrected p-value of a pair: that of data sets which all agree."""
    return num_pairs * 2.0 ** (1 - num_data_sets)


def _check_number(num_data_sets: int, num_recommenders: int, alpha: float) -> None:
    """Raises if there are too few data sets to say anything."""
    if num_recommenders < 2:
        raise ValueError("'results' needs to hold two recommenders or more (got 1)")
    least_p = _least_p(num_data_sets, math.comb(num_recommenders, 2))
    if num_data_sets >= _ENOUGH or (num_data_sets >= _FEWEST and least_p <= alpha):
        return
    needed = next(
        number
        for number in range(_FEWEST, _ENOUGH + 1)
        if number == _ENOUGH or _least_p(number, math.comb(num_recommenders, 2)) <= alpha
    )
    raise ValueError(
        f"'critical_differences' needs {needed} data sets that have all {num_recommenders} "
        f"recommenders (got {num_data_sets}): fewer cannot tell any two apart; 'compare' says on "
        f"how many data sets one is better"
    )
