"""race(): ranks the same random users by several recommenders, and drops those that lose."""

import inspect
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from itertools import combinations
from typing import Any, cast

import torch
from torch import Tensor
from torch_geometric.data import Data, HeteroData

from pyg_recmetrics import processes
from pyg_recmetrics.checks import check_finite_number
from pyg_recmetrics.evaluation import Evaluator, evaluate
from pyg_recmetrics.inputs import EdgesLike
from pyg_recmetrics.margins import Frame, Margin, measure
from pyg_recmetrics.metrics import Metric
from pyg_recmetrics.ranked_edges import RankedEdges
from pyg_recmetrics.ranking import RecommenderLike
from pyg_recmetrics.ranking.adapt import complete_counts
from pyg_recmetrics.ranking.models import evaluation_mode
from pyg_recmetrics.ranking.ranking import OpenRanking
from pyg_recmetrics.results.comparison import is_higher_better
from pyg_recmetrics.results.race import Entrant, Race, RacedPair, RaceVerdict
from pyg_recmetrics.results.recipe import QUERIES, USERS
from pyg_recmetrics.results.runs import by_name
from pyg_recmetrics.sequential import ConfidenceSequence
from pyg_recmetrics.task import RankingTask

#: How many users are ranked before the first look, and by how much their number grows from one look
#: to the next.
_FIRST_LOOK, _GROWTH = 256, 1.25

#: Bettors look for differences of these multiples of the smallest that matters.
_STAKES = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0)

#: What the variance of a difference is taken for at first, as a share of its squared range: paired
#: values have much in common.
_PRIOR_VARIANCE = 1 / 16

#: Differences of this part of the range of a metric make no winner. The same values in another
#: order add up to another double, and the last interval of a race has no width to cover that.
_ROUNDING = 1e-12

#: Options of :func:`evaluate` without a meaning in a race, which returns no result to keep items
#: of.
_OTHER_OPTIONS = {"keep_items", "margin"}

#: What a race passes on, beside its own arguments.
_OPTIONS = {
    name
    for name, parameter in inspect.signature(evaluate).parameters.items()
    if parameter.kind is parameter.KEYWORD_ONLY
} - _OTHER_OPTIONS


def race(
    recommenders: Mapping[str, RecommenderLike],
    data: RankingTask | Data | HeteroData | EdgesLike,
    metric: str | Metric,
    *,
    equivalence: float | Margin,
    **options: Any,
) -> Race:
    r"""Finds the best of several recommenders, with as few users as it takes to be sure.

    All of them rank the same users, in a random order that is drawn beforehand. A recommender is
    dropped as soon as another one is better with certainty, and the race ends when every two that
    are left are told apart or are equivalent. With many recommenders this is successive halving
    with a proof: with a probability of `level`, the best is never dropped and no verdict is wrong.

    Differences between users cancel out, so a race takes far fewer users than to know each mean.
    How many it takes depends on how much two recommenders differ from user to user, and hardly on
    how many users there are. All recommenders are prepared at once, and need memory for their
    tables at the same time.

    Args:
        recommenders (dict): Two recommenders or more, by name, each in any form that :func:`rank`
            takes.
        data (RankingTask, Data, HeteroData or torch.Tensor): What to evaluate on, see
            :func:`evaluate`.
        metric (str or Metric): The metric, a mean over users of bounded values.
        equivalence (float or Margin): The smallest difference that matters, in units of the
            metric. A :class:`Margin` of this size also has the level of confidence of all verdicts
            together, the largest number of users, and the seed of their order.
        **options: Other options of :func:`evaluate`, such as `num_users` and `convention`: all but
            `keep_items` and `margin`.

    Returns:
        The verdict on every pair. It prints as a table with the users and the seconds that each
        recommender took, and :func:`plot.race` draws it.

    Raises:
        TypeError: If `recommenders` does not hold recommenders by name, or an argument has a wrong
            type or is unknown.
        ValueError: If there are fewer than two recommenders, `equivalence` is not a positive
            number, or there can be no `margin` for the metric, see :func:`evaluate`. An error about
            one of the recommenders starts with its name.

    Sources: Waudby-Smith and Ramdas, "Estimating means of bounded random variables by betting"
    (2024); Maron and Moore, "Hoeffding races" (1994).

    Example:
        >>> import torch
        >>> from pyg_recmetrics import RankingTask, race
        >>> truth = torch.stack([torch.arange(9000), torch.arange(9000) % 7])
        >>> task = RankingTask(truth, num_users=9000, num_items=7)
        >>> popular = torch.arange(7.0)
        >>> often = torch.eye(7)[truth[1]] * (torch.arange(9000) % 3 > 0).unsqueeze(1) + popular / 9
        >>> result = race({"popular": popular, "often": often}, task, "mrr", equivalence=0.01)
        >>> result.winner, result.pair("often", "popular").verdict
        ('often', 'better')
    """
    if unknown := [name for name in options if name not in _OPTIONS]:
        raise TypeError(f"race() got an unexpected keyword argument '{unknown[0]}'")
    named = by_name(recommenders, object, "recommender", "recommenders")
    if len(named) < 2:
        raise ValueError(f"'recommenders' needs to hold two or more (got {list(named)})")
    if not isinstance(equivalence, Margin):
        if check_finite_number(equivalence, "equivalence") <= 0:
            raise ValueError(f"'equivalence' needs to be a positive number (got {equivalence:g})")
        equivalence = Margin(equivalence)
    given = (options.pop(name, None) for name in ("num_users", "num_items"))
    name, first = next(iter(named.items()))
    with _naming(name):
        num_users, num_items = complete_counts(first, data, *given)
    evaluator = Evaluator(
        data,
        metric,
        margin=equivalence,
        num_users=num_users,
        num_items=num_items,
        **options,
    )
    if len(evaluator.metrics) != 1:
        raise ValueError(
            f"'metric' needs to be one metric (got {list(map(str, evaluator.metrics))})"
        )
    with ExitStack() as modes:
        for recommender in named.values():
            modes.enter_context(evaluation_mode(recommender))
        processes.check_same(recommenders=tuple(named), equivalence=equivalence)
        return _Racing(evaluator, named).run()


@contextmanager
def _naming(name: str) -> Iterator[None]:
    """Says in an error which recommender it is about, and leaves its type as it is."""
    try:
        yield
    except Exception as error:
        if error.args and isinstance(error.args[0], str):
            error.args = (f"{name}: {error.args[0]}", *error.args[1:])
        raise


class _Runner:
    """A recommender in a race, with its values so far in the order of users."""

    def __init__(self, name: str, recommender: RecommenderLike, evaluator: Evaluator) -> None:
        self.name, self._evaluator = name, evaluator
        start = time.perf_counter()
        with _naming(name):
            self._ranking: OpenRanking = evaluator._open(recommender)
        self.seconds = time.perf_counter() - start
        self.values = torch.zeros(0, dtype=torch.double, device=evaluator.task.device)
        self.num_users = 0
        self.worse_than: str | None = None

    def rank(self, frame: Frame, last: int) -> None:
        """Ranks users up to a place in the order, and measures them."""
        users = frame.order.with_truth[self.num_users : last]
        start = time.perf_counter()
        in_order = users.sort().values
        with _naming(self.name):
            self._ranking.rank(in_order)
            ranked = self._evaluator._with_ties(self._ranking.to_ranked_edges(in_order))
            self.values = torch.cat([self.values, self._measure(ranked)[users]])
        self.num_users = last
        self.seconds += time.perf_counter() - start

    def _measure(self, ranked: RankedEdges) -> Tensor:
        evaluator = self._evaluator
        knows_ties = ranked.num_tied is not None
        convention = evaluator._convention
        (metric,) = convention.resolve_all(evaluator.metrics, knows_ties=knows_ties).values()
        return measure(metric, ranked.with_catalogue(evaluator._catalogue), convention.population)

    def warn(self) -> None:
        """Warns of what is odd about its ranking."""
        self._ranking.warn()


class _Racing:
    """A race as it goes on.

    Args:
        evaluator (Evaluator): What is evaluated, and by which margin.
        recommenders (mapping): The recommenders by name.
    """

    def __init__(self, evaluator: Evaluator, recommenders: Mapping[str, RecommenderLike]) -> None:
        self.evaluator = evaluator
        (self.metric,) = evaluator.metrics
        # There are both, since the smallest difference that matters is a margin.
        self.frame, margin = cast("Frame", evaluator._frame), cast("Margin", evaluator._margin)
        self.level = margin.level
        (self.equivalence,) = margin.sizes.values()
        (resolved,) = evaluator._resolved
        self.is_counted = self.frame.counted(
            resolved, evaluator._convention.population, evaluator._catalogue
        )
        num_counted = int(self.is_counted.sum())
        if num_counted == 0:
            raise ValueError(f"'metric' needs users for whom '{self.metric}' is defined (got none)")
        self.share, self.shift = self.frame.weight(num_counted)
        self.num_users = self.frame.num_in_mean(num_counted)
        self.sign = 1 if is_higher_better(str(self.metric)) else -1
        self.runners = [_Runner(name, each, evaluator) for name, each in recommenders.items()]
        pairs = list(combinations(self.runners, 2))
        low, high = resolved.definition.range
        self.rounding = _ROUNDING * (high - low)
        self.sequences = {
            (a.name, b.name): ConfidenceSequence(
                num_counted,
                (1 - self.level) / len(pairs),
                bounds=(low - high, high - low),
                stakes=_STAKES,
                prior_variance=_PRIOR_VARIANCE,
            )
            for a, b in pairs
        }
        self.known = {
            names: RacedPair(*names, "undecided", 0.0, low - high, high - low, 0)
            for names in self.sequences
        }

    def run(self) -> Race:
        """Ranks users until it is decided, or until there are no more."""
        looks: list[list[RacedPair]] = []
        for first, last in self._batches():
            live = [runner for runner in self.runners if runner.worse_than is None]
            for runner in live:
                runner.rank(self.frame, last)
            looks.append([self._look(a, b, first, last) for a, b in self._open_pairs()])
            for pair in looks[-1]:
                self._drop(pair)
            if self._is_decided():
                break
        for runner in self.runners:
            runner.warn()
        return Race(
            self.metric,
            self.known.values(),
            [self._entrant(runner) for runner in self.runners],
            looks,
            equivalence=self.equivalence,
            level=self.level,
            num_users=self.num_users,
            nouns=USERS if self.evaluator.task.query is None else QUERIES,
        )

    def _batches(self) -> Iterator[tuple[int, int]]:
        first, last = 0, min(_FIRST_LOOK, self.frame.most)
        while first < last:
            yield first, last
            first, last = last, min(int(last * _GROWTH), self.frame.most)

    def _open_pairs(self) -> Iterator[tuple[_Runner, _Runner]]:
        """Yields the pairs that are still to be decided."""
        for a, b in combinations(self.runners, 2):
            is_live = a.worse_than is None and b.worse_than is None
            if is_live and self.known[a.name, b.name].verdict == "undecided":
                yield a, b

    def _look(self, a: _Runner, b: _Runner, first: int, last: int) -> RacedPair:
        """Returns what is known of two recommenders after another batch."""
        names = a.name, b.name
        values, is_counted = (a.values - b.values)[first:last], self.is_counted[first:last]
        sequence = self.sequences[names]
        try:
            if not torch.equal(~values.isnan(), is_counted):
                raise ValueError("it is not known before the ranking for whom it is defined")
            sequence.add(values[is_counted], self.equivalence / self.share)
        except ValueError as error:
            raise ValueError(f"'metric' needs bounded values, as {self.metric}: {error}") from None
        if sequence.num_known == 0:
            return self.known[names]
        low, high = (self.share * end for end in sequence.interval())
        verdict = self._verdict(low, high)
        self.known[names] = RacedPair(
            *names, verdict, self.share * sequence.mean, low, high, a.num_users
        )
        return self.known[names]

    def _verdict(self, low: float, high: float) -> RaceVerdict:
        if low > self.rounding or high < -self.rounding:
            return "better" if (low > 0) == (self.sign > 0) else "worse"
        furthest = max(-low, high)
        if furthest < self.equivalence or furthest <= self.rounding:
            return "equivalent"
        return "undecided"

    def _drop(self, pair: RacedPair) -> None:
        """Drops the one of a pair that has lost."""
        loser = {"better": pair.b, "worse": pair.a}.get(pair.verdict)
        for runner in self.runners:
            if runner.name == loser and runner.worse_than is None:
                runner.worse_than = pair.a if loser == pair.b else pair.b

    def _is_decided(self) -> bool:
        # All processes have the same values. Should they round differently, one goes on for all.
        return not any(processes.collect(any(self._open_pairs())))

    def _entrant(self, runner: _Runner) -> Entrant:
        mean = self.share * float(runner.values.nanmean()) + self.shift
        return Entrant(runner.name, mean, runner.num_users, runner.seconds, runner.worse_than)
