"""Race: which of several recommenders is better, as far as the users ranked so far tell."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from pyg_recmetrics.checks import check_boolean
from pyg_recmetrics.frozen import Frozen
from pyg_recmetrics.metrics import Metric
from pyg_recmetrics.results.counts import USERS, Nouns
from pyg_recmetrics.results.notes import notes_on_race
from pyg_recmetrics.results.verdicts import RacedPair, swapped
from pyg_recmetrics.tables import Best, Rows, Table, to_data_frame

if TYPE_CHECKING:
    import pandas as pd


class Entrant(NamedTuple):
    """The outcome of one recommender in a race.

    Attributes:
        name: Its name.
        mean: The mean of the metric over the users that it ranked.
        num_users: How many these are.
        seconds: How long it took to rank them.
        worse_than: A recommender that certainly beats it, if there is one.

    Example:
        >>> import torch
        >>> from pyg_recmetrics import RankingTask, race
        >>> users = torch.arange(2_000)
        >>> task = RankingTask(torch.stack([users, users % 4]), num_users=2_000, num_items=4)
        >>> good = torch.nn.functional.one_hot(users % 4).float()
        >>> bad = torch.tensor([4.0, 3.0, 2.0, 1.0])
        >>> raced = race({"good": good, "bad": bad}, task, "mrr", equivalence=0.01)
        >>> [entrant.name for entrant in raced.entrants]
        ['good', 'bad']
    """

    name: str
    mean: float
    num_users: int
    seconds: float
    worse_than: str | None


class Race(Frozen, Rows[RacedPair]):
    r"""A race of recommenders: a :class:`RacedPair` for each two of them.

    :func:`~pyg_recmetrics.race` returns it. All bounds and verdicts hold together, with the level
    of the race, whenever it stopped. They are about the mean over all users of the task.

    Attributes:
        metric (Metric): The metric.
        entrants (tuple of Entrant): The outcome of each recommender.
        equivalence (float): The smallest difference that matters.
        level (float): The level of confidence.
        num_users (int): How many users the means are over, whether ranked or not.
        nouns (Nouns): What the users are called, such as `"queries"`.
        looks (tuple): What was known of the pairs that were undecided at each look, one sequence of
            pairs after the other.

    Example:
        >>> import torch
        >>> from pyg_recmetrics import RankingTask, race
        >>> users = torch.arange(2_000)
        >>> task = RankingTask(torch.stack([users, users % 4]), num_users=2_000, num_items=4)
        >>> good = torch.nn.functional.one_hot(users % 4).float()
        >>> bad = torch.tensor([4.0, 3.0, 2.0, 1.0])
        >>> raced = race({"good": good, "bad": bad}, task, "mrr", equivalence=0.01)
        >>> raced.winner, raced.best, len(raced)
        ('good', ('good',), 1)
    """

    def __init__(
        self,
        metric: Metric,
        pairs: Iterable[RacedPair],
        entrants: Iterable[Entrant],
        looks: Iterable[Sequence[RacedPair]],
        *,
        equivalence: float,
        level: float,
        num_users: int,
        nouns: Nouns = USERS,
    ) -> None:
        self._rows = tuple(pairs)
        self.metric, self.entrants = metric, tuple(entrants)
        self.looks = tuple(map(tuple, looks))
        self.equivalence, self.level, self.num_users = equivalence, level, num_users
        self.nouns = nouns
        self._freeze()

    @property
    def best(self) -> tuple[str, ...]:
        """The names of all than whom nobody is known to be better; the best is one of them."""
        return tuple(each.name for each in self.entrants if each.worse_than is None)

    @property
    def winner(self) -> str | None:
        """The name of the one that is better than all others; `None` if that is not known."""
        return self.best[0] if len(self.best) == 1 else None

    def pair(self, a: str, b: str) -> RacedPair:
        """Returns what is known of two recommenders, the difference as `a` minus `b`.

        Raises:
            ValueError: If there are no such two.

        Example:
            >>> import torch
            >>> from pyg_recmetrics import RankingTask, race
            >>> users = torch.arange(2_000)
            >>> task = RankingTask(torch.stack([users, users % 4]), num_users=2_000, num_items=4)
            >>> good = torch.nn.functional.one_hot(users % 4).float()
            >>> bad = torch.tensor([4.0, 3.0, 2.0, 1.0])
            >>> raced = race({"good": good, "bad": bad}, task, "mrr", equivalence=0.01)
            >>> pair = raced.pair("good", "bad")
            >>> pair.low > 0
            True
        """
        for pair in self:
            if (pair.a, pair.b) == (a, b):
                return pair
            if (pair.b, pair.a) == (a, b):
                return swapped(pair)
        names = [each.name for each in self.entrants]
        raise ValueError(f"'a' and 'b' need to name two of {names} (got {a!r} and {b!r})")

    def to_pandas(self, *, pairs: bool = False) -> "pd.DataFrame":
        """Returns a data frame with a row for every recommender.

        Args:
            pairs (bool, optional): Whether to return a row for every pair instead.
                (default: `False`)

        Raises:
            ImportError: If pandas is not installed.
            TypeError: If `pairs` is not a boolean.

        Example:
            >>> import torch
            >>> from pyg_recmetrics import RankingTask, race
            >>> users = torch.arange(2_000)
            >>> task = RankingTask(torch.stack([users, users % 4]), num_users=2_000, num_items=4)
            >>> good = torch.nn.functional.one_hot(users % 4).float()
            >>> bad = torch.tensor([4.0, 3.0, 2.0, 1.0])
            >>> raced = race({"good": good, "bad": bad}, task, "mrr", equivalence=0.01)
            >>> raced.to_pandas().columns.tolist()
            ['name', 'mean', 'num_users', 'seconds', 'worse_than']
        """
        if check_boolean(pairs, "pairs"):
            return to_data_frame(self, RacedPair._fields)
        return to_data_frame(self.entrants, Entrant._fields)

    def table(self) -> Table:
        """Returns the printed table."""
        return Table(
            ["recommender", str(self.metric), self.nouns.users, "seconds", "verdict"],
            [_row(self, each) for each in self.entrants],
            notes_on_race(self, self.num_users, self.nouns, self.level, self.equivalence),
        )

    def __repr__(self) -> str:
        best = ", ".join(self.best)
        return f"{type(self).__name__}({len(self.entrants)} recommenders, best: {best})"


def _row(race: Race, each: Entrant) -> list[str]:
    mean = f"{each.mean:.4f}"
    shown = Best(mean) if each.worse_than is None else mean
    return [each.name, shown, f"{each.num_users:,}", f"{each.seconds:.2f}", _outcome(race, each)]


def _outcome(race: Race, each: Entrant) -> str:
    if each.worse_than is not None:
        return f"worse than {each.worse_than}"
    verdicts = {race.pair(each.name, other).verdict for other in race.best if other != each.name}
    if not verdicts:
        return "best"
    return "equivalent to the best" if verdicts == {"equivalent"} else "may be the best"
