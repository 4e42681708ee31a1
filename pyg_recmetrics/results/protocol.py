"""How a comparison was made, and what the notes below its table say of it."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from pyg_recmetrics.metrics import Metric
from pyg_recmetrics.results.inference import PairedTest
from pyg_recmetrics.results.multiple_tests import alpha_of
from pyg_recmetrics.results.paired import Equivalence, PairedDifference
from pyg_recmetrics.tables import format_level

_WORDS_ON_TESTS: dict[PairedTest, str] = {
    "t-test": "paired t-test",
    "randomization": "randomisation test of the mean difference",
}


@dataclass(frozen=True)
class Protocol:
    """How differences were tested.

    Attributes:
        test (str): The paired test.
        level (float): The level of the intervals and of all tests together.
        equivalence (Equivalence or None): The smallest difference that matters.
        primary (Metric or None): The only metric that was tested; `None` if all were.
        simultaneous (bool): Whether all intervals hold together.
        num_runs (mapping): The number of runs of each recommender.
        deterministic (tuple of str): The recommenders that have no other runs.
        unit (str): What was drawn: `"users"`, `"queries"` or `"persons"`.
        caution (str or None): What makes intervals too narrow.
        num_tests (int): How many tests p-values are corrected for. Those of differences that were
            not selected are among them.
        num_tested_metrics (int): How many metrics these tests are of.
        sample (str or None): Whose users stand for all of the task, and how many they are.
        means (str): What differences are means over: what was drawn, or `"edges"`.
        num_data_sets (int): How many data sets the tests that p-values are corrected for are of.

    Example:
        >>> import torch
        >>> from pyg_recmetrics import RankingTask, compare, evaluate
        >>> truth = torch.tensor([[0, 1, 2, 3, 4, 5], [0, 1, 2, 0, 1, 0]])
        >>> task = RankingTask(truth, num_users=6, num_items=3)
        >>> popular = evaluate(torch.tensor([3.0, 2.0, 1.0]), task, "recall@1")
        >>> perfect = evaluate(torch.nn.functional.one_hot(truth[1]).float(), task, "recall@1")
        >>> comparison = compare({"perfect": perfect, "popular": popular})
        >>> comparison.protocol.test, comparison.protocol.level
        ('t-test', 0.95)
    """

    test: PairedTest
    level: float
    equivalence: Equivalence | None
    primary: Metric | None
    simultaneous: bool
    num_runs: Mapping[str, int]
    deterministic: tuple[str, ...]
    unit: str
    caution: str | None = None
    num_tests: int = 0
    num_tested_metrics: int = 0
    sample: str | None = None
    means: str = "users"
    num_data_sets: int = 1

    @property
    def alpha(self) -> float:
        """The largest corrected p-value that is significant."""
        return alpha_of(self.level)

    @property
    def are_together(self) -> bool:
        """Whether there are several intervals that hold together."""
        return self.simultaneous and self.num_tests > 1

    @property
    def has_runs(self) -> bool:
        """Whether any recommender has several runs."""
        return max(self.num_runs.values()) > 1

    @property
    def uncovered(self) -> list[str]:
        """The recommenders with a single run that might have had others."""
        singles = [name for name, number in self.num_runs.items() if number == 1]
        return [name for name in singles if name not in self.deterministic]

    def notes(self, rows: Sequence[PairedDifference]) -> Iterator[str]:
        """Says how some of the differences were tested."""
        tested = [row for row in rows if not math.isnan(row.p_value)]
        yield self._on_intervals(rows)
        yield from self._on_tests(tested)
        if self.has_runs:
            counts = ", ".join(f"{number} of {name}" for name, number in self.num_runs.items())
            yield f"runs: {counts}; wins are averaged over pairs of runs"
        yield from self._on_what_is_missing(tested)

    def notes_on_data_set(self, rows: Sequence[PairedDifference]) -> Iterator[str]:
        """Says how differences on one of several data sets were tested, below a table of all."""
        yield self._on_intervals(rows)
        tested = [row for row in rows if not math.isnan(row.p_value)]
        if tested:
            yield (
                f"*: significant at {1 - self.level:.4g} by a {_WORDS_ON_TESTS[self.test]}, "
                f"{self._on_correction()}; an interval is one of a single difference"
            )
            yield from self._on_equivalence()
        yield from self._on_what_is_missing(tested)

    def _on_what_is_missing(self, tested: Sequence[PairedDifference]) -> Iterator[str]:
        compared = {name for row in tested for name in (row.a, row.b)}
        if single := [name for name in self.uncovered if name in compared]:
            yield (
                f"(*): for these trained models; other seeds of {', '.join(single)} are not covered"
            )
        if self.sample:
            yield self.sample
        if self.caution:
            yield self.caution

    def _on_intervals(self, rows: Sequence[PairedDifference]) -> str:
        if all(math.isnan(row.low) for row in rows):
            return "a - b: the difference; an interval and a test need values of two users or more"
        drawn = f", for other {self.unit}"
        if self.has_runs:
            drawn += " and other runs"
        together = " of all differences together" if self.are_together else ""
        return (
            f"a - b: mean difference over {self.means} ± its {format_level(self.level)} confidence "
            f"interval{together}{drawn}"
        )

    def _on_tests(self, tested: Sequence[PairedDifference]) -> Iterator[str]:
        if not tested:
            if self.primary is not None:
                yield f"p: only {self.primary} is tested"
            return
        yield (
            f"p: {_WORDS_ON_TESTS[self.test]}, {self._on_correction()}; "
            f"*: at most {1 - self.level:.4g}"
        )
        if self.num_tests > 1 and not self.simultaneous:
            # What draws signs of users has no users in common between data sets.
            hint = "" if self.num_data_sets > 1 else "; 'simultaneous=True' corrects it, too"
            yield f"an interval is one of a single difference{hint}"
        yield from self._on_equivalence()

    def _on_equivalence(self) -> Iterator[str]:
        if self.equivalence is not None:
            yield (
                f"equivalent: the difference is smaller than {self.equivalence}"
                f"{' of the mean of b' if self.equivalence.is_share else ''}, by two one-sided "
                f"tests"
            )

    def _on_correction(self) -> str:
        if self.num_tests == 1:
            by_signs = f" by random signs of {self.unit}" if self.simultaneous else ""
            return f"a single test{by_signs}"
        how = "the largest of all" if self.simultaneous else "Holm's method"
        metrics = f"{self.num_tested_metrics} metric{'' if self.num_tested_metrics == 1 else 's'}"
        where = f" on {self.num_data_sets} data sets" if self.num_data_sets > 1 else ""
        return f"adjusted for {self.num_tests} tests of {metrics}{where} by {how}"
