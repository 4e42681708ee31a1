"""What makes intervals too narrow, in one line."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from pyg_recmetrics.results.inference import Sample
from pyg_recmetrics.results.nouns import USERS, Nouns

#: Below so many users, persons, and users with a value above zero, simulations find that 95%
#: intervals of means hold in less than 93% of cases. Those of differences hold no more often where
#: all who differ do so in the same direction.
FEW_USERS, FEW_PERSONS, FEW_HITS = 100, 50, 20


class Basis(NamedTuple):
    """What an interval rests on.

    Attributes:
        metric: The metric.
        num_drawn: How many users or persons were drawn.
        num_persons: How many persons of one size they are worth; `None` if every user is one.
        num_hits: How many users have another value than zero.
    """

    metric: str
    num_drawn: int
    num_persons: float | None
    num_hits: int

    @classmethod
    def of(cls, metric: str, sample: Sample) -> "Basis":
        """Counts what the values of users are."""
        num_persons = None if sample.person is None else sample.num_effective
        return cls(metric, sample.num_drawn, num_persons, sample.num_hits)

    def few_persons(self, persons: str) -> str | None:
        """Returns what to say if there are too few persons, who are called so."""
        if self.num_persons is None or self.num_persons >= FEW_PERSONS:
            return None
        worth = f"worth {self.num_persons:.0f} of one size"
        return f"there are few {persons} ({self.num_drawn}, {worth})"


def caution(samples: Mapping[str, Sample], nouns: Nouns = USERS) -> str | None:
    """Returns what makes the intervals of some means too narrow; `None` if nothing does.

    Args:
        samples (mapping): The values of the users who count, by metric.
        nouns (Nouns, optional): What these users are called. (default: users)
    """
    bases = [Basis.of(name, sample) for name, sample in samples.items()]
    rare = [basis.metric for basis in bases if basis.num_drawn > 1 and basis.num_hits < FEW_HITS]
    return _said(_reasons(bases, rare, "have more than zero", nouns.means, nouns.drawn))


def caution_on_differences(
    bases: Sequence[Basis], unit: str = "users", means: str = "users"
) -> str | None:
    """Returns what makes the intervals of some differences too narrow; `None` if nothing does.

    Args:
        bases (sequence of Basis): What the interval of each metric and pair rests on.
        unit (str, optional): What is drawn. (default: `"users"`)
        means (str, optional): What differences are means over. (default: `"users"`)
    """
    # Results that are the same differ in nothing, and not for few users.
    rare = [
        basis.metric for basis in bases if basis.num_drawn > 1 and 0 < basis.num_hits < FEW_HITS
    ]
    return _said(_reasons(bases, rare, "differ", means, unit))


def caution_on_persons(sample: Sample, persons: str = "persons") -> str | None:
    """Returns the same of persons with several rows; `None` if there are enough of them."""
    return _said(filter(None, [Basis.of("", sample).few_persons(persons)]))


def _said(reasons: Iterable[str]) -> str | None:
    text = ", and ".join(reasons)
    return f"intervals may be too narrow: {text}" if text else None


def _reasons(
    bases: Sequence[Basis], rare: Iterable[str], do: str, users: str, persons: str
) -> Iterator[str]:
    with_interval = [basis for basis in bases if basis.num_drawn > 1]
    if not with_interval:
        return
    fewest = min(with_interval, key=lambda basis: basis.num_persons or basis.num_drawn)
    if reason := fewest.few_persons(persons):
        yield reason
    elif fewest.num_drawn < FEW_USERS:
        yield f"there are few {users} ({fewest.num_drawn})"
        return
    if names := ", ".join(dict.fromkeys(rare)):
        yield f"few {users} {do} in {names}"
