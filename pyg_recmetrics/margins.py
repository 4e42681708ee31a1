"""Ranking users in random order until questions about means are answered, as margins and races do.

A mean is a question about one recommender, and a difference is one about two.
"""

import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import cast

import torch
from torch import Tensor
from torch_geometric.index import index2ptr

from pyg_recmetrics import processes
from pyg_recmetrics.checks import (
    check_level,
    check_natural_number,
    check_number,
    check_positive_integer,
)
from pyg_recmetrics.conventions import Convention
from pyg_recmetrics.frozen import FrozenDict, settle
from pyg_recmetrics.metrics import Metric, parse
from pyg_recmetrics.metrics.empty_target_action import (
    EmptyTargetAction,
    check_num_without_truth,
    num_filled,
    weight_of_truth,
)
from pyg_recmetrics.ranked_edges import RankedEdges
from pyg_recmetrics.ranking.ranking import OpenRanking
from pyg_recmetrics.results.estimates import Interval
from pyg_recmetrics.results.sampling import Sampling, Stopped
from pyg_recmetrics.sequential import (
    FEW_USERS,
    FIRST_BATCH,
    ConfidenceSequence,
    Forecast,
    UserOrder,
    num_to_rank,
)
from pyg_recmetrics.task import Catalogue, RankingTask

#: What ranks a sample of users, in errors of both.
SAMPLES = "a margin or a race"


@dataclass(frozen=True)
class Margin:
    """How exactly means are to be known: users are ranked in random order until they are.

    Args:
        size (float or dict): The margin of every mean, or those of some metrics, as in
            `{"ndcg@20": 0.002}`.
        level (float, optional): The level of confidence with which all means are known to their
            margins together. (default: `0.95`)
        max_users (int, optional): How many users to rank at most. (default: `None`)
        seed (int, optional): The seed of the order of users. (default: `0`)

    Raises:
        TypeError: If `size` is neither a number nor a mapping.
        ValueError: If a margin is not positive, a metric is named twice or does not exist, `level`
            is not between 0 and 1, `max_users` is not a positive integer, or `seed` is negative.

    Example:
        >>> import torch
        >>> from pyg_recmetrics import Margin, RankingTask, evaluate
        >>> users = torch.arange(20_000)
        >>> task = RankingTask(torch.stack([users, users % 4]), num_users=20_000, num_items=4)
        >>> margin = Margin(0.05, level=0.99, max_users=10_000)
        >>> result = evaluate(torch.tensor([4.0, 3.0, 2.0, 1.0]), task, "recall@1", margin=margin)
        >>> result.sampling.level, result.sampling.stopped
        (0.99, 'margin')
    """

    size: float | Mapping[str, float]
    level: float = 0.95
    max_users: int | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        size: float | Mapping[str, float]
        if isinstance(self.size, Mapping):
            size = FrozenDict({str(parse(name)): _size(x) for name, x in self.size.items()})
            if not 0 < len(size) == len(self.size):
                raise ValueError(f"'margin' needs to name each metric once (got {list(self.size)})")
        else:
            size = _size(self.size)
        if self.max_users is not None:
            settle(self, max_users=check_positive_integer(self.max_users, "max_users"))
        level, seed = check_level(self.level), check_natural_number(self.seed, "seed")
        settle(self, size=size, level=level, seed=seed)

    @property
    def sizes(self) -> Mapping[str, float]:
        """The margin of each metric, if there is one for each."""
        return cast("Mapping[str, float]", self.size)


def _size(margin: object) -> float:
    size = check_number(margin, "margin", "a mapping of metrics to numbers")
    if size <= 0:
        raise ValueError(f"'margin' needs to be a positive number (got {margin!r})")
    return size


def read_margin(margin: float | Mapping[str, float] | Margin, metrics: Iterable[Metric]) -> Margin:
    """Returns a margin with a size for each metric that has one.

    Raises:
        TypeError: If it is neither a margin, a number nor a mapping.
        ValueError: If it names a metric that is not among the given ones.
    """
    read = margin if isinstance(margin, Margin) else Margin(margin)
    names = [str(metric) for metric in metrics]
    if not isinstance(read.size, Mapping):
        return replace(read, size=dict.fromkeys(names, read.size))
    if unknown := sorted(read.size.keys() - set(names)):
        raise ValueError(
            f"a margin needs to name metrics that are evaluated, of {names} (got {unknown})"
        )
    return read


def check_can_sample(
    margins: Margin, definitions: Mapping[str, Metric], task: RankingTask, convention: Convention
) -> None:
    """Raises if a sample of users does not tell the means of a metric, and says why.

    Args:
        margins (Margin): The margins.
        definitions (mapping): What is computed under the name of each metric.
        task (RankingTask): The task.
        convention (Convention): Who is evaluated, and how ties are ranked.
    """
    for name, metric in definitions.items():
        if reason := _why_not(metric, needs_bounds=name in margins.sizes):
            raise ValueError(f"{SAMPLES} needs means of bounded values (got '{name}', {reason})")
    if task.person is not None:
        raise ValueError(
            f"{SAMPLES} needs users who are drawn one by one (got a task with the persons of its "
            "rows, who have several each)"
        )
    if not convention.population.constant_scores:
        raise ValueError(
            f"{SAMPLES} needs to know before the ranking who is evaluated (got a population with "
            "'constant_scores=False', which scores decide)"
        )


def _why_not(metric: Metric, *, needs_bounds: bool) -> str | None:
    """Returns why a sample tells no mean of a metric, or no bounds on it; `None` if it does."""
    arguments, limits = metric.all_arguments, metric.definition.range
    reasons = {
        "which has one value for all users together": metric.is_aggregate,
        "which is a ratio of two sums over users": metric.is_pooled,
        "which is a mean over those who turn out to have a list, with or without truth": (
            not metric.needs_truth
        ),
        "which is a mean over those who turn out to have a hit": arguments.get("users") == "hit",
        "whose values have no upper bound": needs_bounds and torch.inf in map(abs, limits),
    }
    return next((reason for reason, is_so in reasons.items() if is_so), None)


class Frame:
    """The users of a task in random order, and who of them counts in the mean of each metric.

    This does not depend on the recommender, and is made once for all epochs.

    Args:
        task (RankingTask): The task.
        metrics (tuple of Metric): The metrics.
        margins (Margin): The margins.
        convention (Convention): How metrics are defined.
        catalogue (Catalogue): What is known about items.
        action (str): What users without ground truth count as.
    """

    def __init__(
        self,
        task: RankingTask,
        metrics: tuple[Metric, ...],
        margins: Margin,
        convention: Convention,
        catalogue: Catalogue,
        action: EmptyTargetAction,
    ) -> None:
        check_can_sample(margins, convention.resolve_all(metrics), task, convention)
        self.task, self.metrics, self.margins, self.convention = task, metrics, margins, convention
        self.catalogue, self.action = catalogue, action
        self.order = UserOrder(task.users, task.degree[task.users] > 0, margins.seed)
        self.num_users = self.order.with_truth.numel()
        self.num_without_truth = self.order.without_truth.numel()
        check_num_without_truth(self.num_without_truth, action)
        self.most = min(self.num_users, margins.max_users or self.num_users)
        self._counted: dict[Metric, Tensor] = {}

    def counted(self, metric: Metric) -> Tensor:
        """Returns whether a metric is defined for each user, in their order: `[num_users]`.

        This is known before anything is ranked, from a ranking that could not be better.
        """
        if metric not in self._counted:
            self._counted[metric] = self._find_counted(metric)
        return self._counted[metric]

    def num_in_mean(self, metric: Metric) -> int:
        """Returns how many of all users the mean of a metric is over."""
        return int(self.counted(metric).sum()) + num_filled(self.num_without_truth, self.action)

    def scale_and_shift(self, metric: Metric) -> tuple[float, float]:
        """Returns the part of users with truth in the mean of a metric, and what the others add."""
        return weight_of_truth(self.num_in_mean(metric), self.num_without_truth, self.action)

    def measure(self, metric: Metric, ranked: RankedEdges) -> Tensor:
        """Returns the value of every user, `[task.num_users]`; `NaN` where it is undefined."""
        is_defined = self.convention.population.is_defined(metric, ranked)
        return metric(ranked).masked_fill(~is_defined, torch.nan)

    def _find_counted(self, metric: Metric) -> Tensor:
        if "items" in metric.needs:
            return torch.ones_like(self.order.with_truth, dtype=torch.bool)
        user = self.task.truth[0]
        ptr = index2ptr(user, self.task.num_users)
        # The edges of a task are sorted by user.
        above = torch.arange(user.numel(), device=user.device) - ptr[user]
        perfect = RankedEdges(
            self.task.truth,
            above + 1,
            ptr,
            weight=self.task.weight,
            num_candidates=self.task.num_candidates,
            catalogue=self.catalogue,
            num_above=above,
            num_tied=torch.zeros_like(above),
        )
        return ~self.measure(metric, perfect)[self.order.with_truth].isnan()


class Runner:
    """A recommender that ranks the first users of a random order, and more of them if need be.

    Args:
        frame (Frame): The users.
        prepare (callable): Prepares the recommender to rank.
        with_ties (callable): Returns a ranking in which equal scores are ranked as they should be.
        name (str): What an error calls the recommender; empty if there is only one.

    Attributes:
        definitions (dict): What is computed under the name of each metric.
        values (dict): The values of the users so far, in their order, of each metric with a margin.
        num_ranked (int): How many users these are.
        seconds (float): How long it has worked.
        is_out (bool): Whether it ranks no more users.
    """

    def __init__(
        self,
        frame: Frame,
        prepare: Callable[[], OpenRanking],
        with_ties: Callable[[RankedEdges], RankedEdges],
        name: str,
    ) -> None:
        self.frame, self.name, self._with_ties = frame, name, with_ties
        self.num_ranked, self.seconds, self.is_out = 0, 0.0, False
        with self._at_work():
            self._ranking = prepare()
        knows_ties = self._ranking.recommender.has_scores
        self.definitions = frame.convention.resolve_all(frame.metrics, knows_ties=knows_ties)
        none = torch.zeros(0, dtype=torch.double, device=frame.task.device)
        self.values = dict.fromkeys(frame.margins.sizes, none)

    def rank(self, num_users: int) -> None:
        """Ranks users until there are so many, and measures them."""
        users = self.frame.order.with_truth[self.num_ranked : num_users]
        sorted_users = users.sort().values
        with self._at_work():
            self._ranking.rank(sorted_users)
            with processes.fail_together():
                ranked = self._with_ties(self._ranking.to_ranked_edges(sorted_users))
                ranked = ranked.with_catalogue(self.frame.catalogue)
                for name, values in self.values.items():
                    self.values[name] = torch.cat([values, self._measure(name, ranked, users)])
        self.num_ranked = num_users

    def _measure(self, name: str, ranked: RankedEdges, users: Tensor) -> Tensor:
        """Returns the values of the users who come next in the order."""
        metric, first = self.definitions[name], self.num_ranked
        values = self.frame.measure(metric, ranked)[users]
        is_odd = values.isnan() == self.frame.counted(metric)[first : first + users.numel()]
        if bool(is_odd.any()):
            raise ValueError(
                f"{SAMPLES} needs to know before the ranking for whom '{name}' is defined (got "
                f"scores or lists that decide it for user {int(users[is_odd][0])})"
            )
        return values

    def mean(self, name: str) -> float:
        """Returns the mean over all users, as far as those so far tell it."""
        scale, shift = self.frame.scale_and_shift(self.definitions[name])
        return scale * float(self.values[name].nanmean()) + shift

    def to_ranked_edges(self) -> RankedEdges:
        """Returns the ranking of the users so far, and of as many without truth as they stand for.

        This is the end. Those without truth have lists, if lists are kept.
        """
        users = self.frame.order.sample(self.num_ranked)
        self._ranking.rank(users[self.frame.task.degree[users] == 0])
        if self.num_ranked == self.frame.num_users:
            return self._with_ties(self._ranking.to_ranked_edges())
        self.warn()
        return self._with_ties(self._ranking.to_ranked_edges(users))

    def warn(self) -> None:
        """Warns of what is odd about the ranking."""
        self._ranking.warn()

    @contextmanager
    def _at_work(self) -> Iterator[None]:
        start = time.perf_counter()
        with naming(self.name):
            yield
        self.seconds += time.perf_counter() - start


@contextmanager
def naming(name: str) -> Iterator[None]:
    """Says in an error which recommender it is about, and leaves its type as it is."""
    try:
        yield
    except Exception as error:
        if name and error.args and isinstance(error.args[0], str):
            error.args = (f"{name}: {error.args[0]}", *error.args[1:])
        raise


class OpenQuestion:
    """What the mean of a metric is for a recommender, or how far two recommenders are apart in it.

    Args:
        name (str): The name of the metric.
        runners (tuple of Runner): The recommender, or the two.
        num_questions (int): How many questions are to be answered correctly together.

    Attributes:
        limits (tuple): What the answer is between at any rate.
        is_open (bool): Whether it is still to be answered.
    """

    def __init__(self, name: str, runners: tuple[Runner, ...], num_questions: int) -> None:
        frame, metric = runners[0].frame, runners[0].definitions[name]
        self.name, self.runners, self.is_open = name, runners, True
        self._is_counted = frame.counted(metric)
        num_counted = int(self._is_counted.sum())
        if num_counted == 0:
            raise ValueError(f"{SAMPLES} needs users for whom '{name}' is defined (got none)")
        self._rate = num_counted / frame.num_users
        self._scale, self._shift = frame.scale_and_shift(metric)
        self.margin = frame.margins.sizes[name]
        alpha = (1 - frame.margins.level) / num_questions
        low, high = self.limits = metric.definition.range
        if len(runners) == 2:
            self.limits, self._shift = (low - high, high - low), 0.0
            self._sequence = ConfidenceSequence.of_differences(num_counted, alpha, self.limits)
        else:
            self._sequence = ConfidenceSequence(num_counted, alpha, self.limits)
        self._num_added = 0

    def add(self) -> None:
        """Adds the values of the users who have been ranked since."""
        first = self._num_added
        one, *others = (runner.values[self.name][first:] for runner in self.runners)
        values = one - others[0] if others else one
        is_counted = self._is_counted[first : first + values.numel()]
        try:
            self._sequence.add(values[is_counted], self.margin / self._scale)
        except ValueError as error:
            raise ValueError(f"{SAMPLES} needs bounded values of '{self.name}': {error}") from None
        self._num_added += values.numel()

    @property
    def has_values(self) -> bool:
        """Whether the metric is defined for any of the users so far."""
        return self._sequence.num_known > 0

    @property
    def answer(self) -> float:
        """The mean or difference over all users, as far as those so far tell it."""
        return self._scale * self._sequence.mean + self._shift

    @property
    def bounds(self) -> Interval:
        """The bounds on the mean or difference over all users."""
        low, high = self._sequence.interval()
        return Interval(self._scale * low + self._shift, self._scale * high + self._shift)

    @property
    def is_known(self) -> bool:
        """Whether the answer is known to the margin."""
        return self.has_values and self._scale * self._sequence.reach() <= self.margin

    @property
    def num_needed(self) -> float:
        """How many users the margin is expected to take."""
        return self._sequence.num_needed(self.margin / self._scale) / self._rate


def ask(questions: Sequence[OpenQuestion], num_next: Callable[[int], int]) -> int:
    """Ranks users in random order, and returns how many it took to answer questions about them.

    Args:
        questions (sequence of OpenQuestion): The questions.
        num_next (callable): Takes how many users have been ranked, and returns how many are to be
            ranked after the next batch; as many if it is enough. It may close questions and take
            out recommenders.
    """
    runners = list(dict.fromkeys(runner for each in questions for runner in each.runners))
    num_ranked = 0
    # All processes have the same values. Should they round differently, one goes on for all.
    while (number := max(processes.collect(num_next(num_ranked)))) > num_ranked:
        for runner in runners:
            if not runner.is_out:
                runner.rank(number)
        with processes.fail_together():
            for question in questions:
                if question.is_open:
                    question.add()
        num_ranked = number
    return num_ranked


def sample(runner: Runner, num_first: int) -> Sampling:
    """Ranks users until the means are known to their margins, and returns what is known of them.

    Args:
        runner (Runner): What ranks.
        num_first (int): How many users to rank first, as many as it took in an earlier epoch; zero
            if there was none.
    """
    frame, margins = runner.frame, runner.frame.margins
    questions = [OpenQuestion(name, (runner,), len(margins.sizes)) for name in margins.sizes]
    forecasts: list[Forecast] = []

    def num_next(num_ranked: int) -> int:
        if num_ranked == 0:
            first = frame.num_users if frame.num_users <= FEW_USERS else FIRST_BATCH
            return min(num_first or first, frame.most)
        if all(each.is_known for each in questions):
            return num_ranked
        needed = max(each.num_needed for each in questions)
        forecasts.append(Forecast(num_ranked, math.ceil(needed)))
        return min(num_to_rank(num_ranked, needed, frame.num_users), frame.most)

    num_ranked = ask(questions, num_next)
    is_known = all(each.is_known for each in questions)
    stopped: Stopped = "margin" if is_known else "max_users"
    return Sampling(
        num_users=frame.num_users,
        num_ranked=num_ranked,
        num_without_truth=frame.num_without_truth,
        num_counted={
            name: frame.num_in_mean(metric) for name, metric in runner.definitions.items()
        },
        margins=margins.sizes,
        bounds={each.name: each.bounds for each in questions},
        level=margins.level,
        seed=margins.seed,
        stopped="all" if num_ranked == frame.num_users else stopped,
        forecasts=tuple(forecasts),
    )
