"""race(): ranks the same random users by several recommenders, and drops those that lose."""

import inspect
from collections.abc import Mapping
from contextlib import ExitStack
from itertools import combinations
from typing import Any

from torch_geometric.data import Data, HeteroData

from pyg_recmetrics import processes
from pyg_recmetrics.checks import check_number
from pyg_recmetrics.evaluation import Evaluator, evaluate
from pyg_recmetrics.inputs import EdgesLike
from pyg_recmetrics.margins import Margin, OpenQuestion, Runner, ask, naming
from pyg_recmetrics.metrics import Metric
from pyg_recmetrics.ranking import RecommenderLike
from pyg_recmetrics.ranking.adapt import complete_counts
from pyg_recmetrics.ranking.models import evaluation_mode
from pyg_recmetrics.results.comparison import is_higher_better
from pyg_recmetrics.results.counts import QUERIES, USERS
from pyg_recmetrics.results.race import Entrant, Race
from pyg_recmetrics.results.runs import by_name
from pyg_recmetrics.results.verdicts import RacedPair, RaceVerdict
from pyg_recmetrics.task import RankingTask

#: How many users are ranked before the first look, and by how much their number grows from one look
#: to the next.
_FIRST_LOOK, _GROWTH = 256, 1.25

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
        recommender took.

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
        if check_number(equivalence, "equivalence", "a 'Margin'") <= 0:
            raise ValueError(f"'equivalence' needs to be a positive number (got {equivalence:g})")
        equivalence = Margin(equivalence)
    given = (options.pop(name, None) for name in ("num_users", "num_items"))
    name, first = next(iter(named.items()))
    with naming(name):
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
        return _Racing([evaluator.runner(each, name) for name, each in named.items()]).run()


class _Racing:
    """A race as it goes on.

    Args:
        runners (list of Runner): The recommenders.
    """

    def __init__(self, runners: list[Runner]) -> None:
        (self.metric,) = runners[0].frame.metrics
        self.name, self.runners, self.frame = str(self.metric), runners, runners[0].frame
        pairs = list(combinations(runners, 2))
        self.questions = [OpenQuestion(self.name, pair, len(pairs)) for pair in pairs]
        self.is_higher_better = is_higher_better(self.name)
        self.known = {each: self._pair(each) for each in self.questions}
        self.looks: list[list[RacedPair]] = []
        self.worse_than: dict[str, str] = {}

    def run(self) -> Race:
        """Ranks users until it is decided, or until there are no more."""
        ask(self.questions, self._num_next)
        for runner in self.runners:
            runner.warn()
        return Race(
            self.metric,
            self.known.values(),
            [self._entrant(runner) for runner in self.runners],
            self.looks,
            equivalence=self.frame.margins.sizes[self.name],
            level=self.frame.margins.level,
            num_users=self.frame.num_in_mean(self.runners[0].definitions[self.name]),
            nouns=USERS if self.frame.task.query is None else QUERIES,
        )

    def _num_next(self, num_ranked: int) -> int:
        """Looks at what is known, and returns how many users are to be ranked next."""
        if num_ranked == 0:
            return min(_FIRST_LOOK, self.frame.most)
        looked_at = [each for each in self.questions if each.is_open]
        self.known |= {each: self._pair(each) for each in looked_at}
        self.looks.append([self.known[each] for each in looked_at])
        for question in looked_at:
            self._drop_loser(question)
        for question in looked_at:
            is_live = not any(runner.is_out for runner in question.runners)
            question.is_open = is_live and self.known[question].verdict == "undecided"
        if not any(question.is_open for question in looked_at):
            return num_ranked
        return min(int(num_ranked * _GROWTH), self.frame.most)

    def _pair(self, question: OpenQuestion) -> RacedPair:
        """Returns what is known of two recommenders."""
        a, b = question.runners
        if not question.has_values:
            return RacedPair(a.name, b.name, "undecided", 0.0, *question.limits, 0)
        bounds = question.bounds
        verdict = self._verdict(question, *bounds)
        return RacedPair(a.name, b.name, verdict, question.answer, *bounds, a.num_ranked)

    def _verdict(self, question: OpenQuestion, low: float, high: float) -> RaceVerdict:
        rounding = _ROUNDING * question.limits[1]
        if low > rounding or high < -rounding:
            return "better" if (low > 0) == self.is_higher_better else "worse"
        furthest = max(-low, high)
        if furthest < question.margin or furthest <= rounding:
            return "equivalent"
        return "undecided"

    def _drop_loser(self, question: OpenQuestion) -> None:
        a, b = question.runners
        verdict = self.known[question].verdict
        if verdict in ("better", "worse"):
            loser, other = (b, a) if verdict == "better" else (a, b)
            self.worse_than.setdefault(loser.name, other.name)
            loser.is_out = True

    def _entrant(self, each: Runner) -> Entrant:
        mean, worse_than = each.mean(self.name), self.worse_than.get(each.name)
        return Entrant(each.name, mean, each.num_ranked, each.seconds, worse_than)
