"""What is known about a metric: its name, its parameters, what it needs, and what its docs say."""

import inspect
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property
from itertools import chain
from typing import Annotated, Any, Literal, NamedTuple, TypeAlias

import torch
from torch import Tensor

from pyg_recmetrics.checks import (
    check_boolean,
    check_choice,
    check_finite_number,
    check_ids,
    check_positive_integer,
)
from pyg_recmetrics.frozen import FrozenDict
from pyg_recmetrics.ranked_edges import RankedEdges
from pyg_recmetrics.task.catalogue import check_has

#: What a parameter of a metric is given: a word, a number, or whether something holds.
Value: TypeAlias = str | int | float | bool


class HalfOpen(NamedTuple):
    """The numbers in `(low, high]`, where a plain pair stands for those between its two."""

    low: float
    high: float


#: Longer numbers are no integers: Python reads none of more than 4,300 digits.
MAX_DIGITS = 1000

#: How the mean over users weighs them, see :func:`precision`.
Average: TypeAlias = Annotated[
    Literal["macro", "micro"],
    {"macro": "averaged over users", "micro": "sum over users divided by sum over users"},
]
#: The parameter of metrics that are means over relevant items, see :func:`recall`.
Propensity: TypeAlias = Annotated[
    Literal["none", "given", "popularity"],
    {
        "none": "",
        "given": "an estimate of the mean over all relevant items, observed or not, from those "
        "observed, self-normalised by the inverse of propensities as given",
        "popularity": "an estimate of the mean over all relevant items, observed or not, from "
        "those observed, self-normalised by the inverse of propensities proportional to "
        "(n + 1)^((gamma + 1) / 2) with gamma {gamma} for an item that n users have seen, and "
        "one for the most popular item",
    },
    {"given": "propensity", "popularity": "popularity"},
]
#: The exponent in its model of popularity, which its words state. No data set has an exponent near
#: ten, up to which double precision holds the propensities of all items.
Gamma: TypeAlias = Annotated[float, "", (0, 10)]
#: The smallest propensity that counts as it is.
Clip: TypeAlias = Annotated[
    float, "propensities below {0} raised to {0}", HalfOpen(0, 1), "propensity"
]


@dataclass(frozen=True)
class Parameter(ABC):
    """A parameter of a metric besides `k`. Its subclasses are the kinds that there are.

    Attributes:
        name (str): Its name.
        default (str, int, float, bool or None): Its default; `None` for a number that need not be
            given.
        refines (str): The parameter without which it means nothing; empty if there is none.
    """

    name: str
    default: Value | None
    refines: str = field(default="", kw_only=True)

    @property
    def values(self) -> tuple[Value, ...]:
        """All values that it takes, its first choice first; empty for numbers."""
        return ()

    @abstractmethod
    def check(self, value: object) -> Value | None:
        """Returns `value` as it is printed and passed on.

        Raises:
            TypeError: If a boolean is needed, and `value` is none.
            ValueError: If the parameter does not take `value`.
        """

    def read(self, text: str) -> Value:
        """Reads a value from its spelling; a text that is none stays as it is."""
        return text

    @abstractmethod
    def describe(self, value: Value) -> str:
        """Says in words what a value means; empty if there is nothing to say.

        The name of a parameter in braces stands for the value of that parameter.
        """

    def needs(self, value: Value | None) -> tuple[str, ...]:
        """Returns what a value needs besides ranks, see :class:`Definition`."""
        return ()


@dataclass(frozen=True)
class Choice(Parameter):
    """A parameter that takes one of some words.

    Attributes:
        meaning (mapping): The words, and what each says in a sentence.
        needed (mapping): What some of the words need besides ranks.
    """

    meaning: FrozenDict[str, str]
    needed: FrozenDict[str, str] = field(default_factory=FrozenDict)

    @property
    def values(self) -> tuple[Value, ...]:
        """The words."""
        return tuple(self.meaning)

    def check(self, value: object) -> Value:
        """Returns `value` if it is one of the words."""
        return check_choice(value, self.name, list(self.meaning))

    def read(self, text: str) -> Value:
        """Reads a word, in upper or lower case."""
        by_folded = {folded(word): word for word in self.meaning}
        return text if text in self.meaning else by_folded.get(folded(text), text)

    def describe(self, value: Value) -> str:
        """Says what a word means."""
        return self.meaning[str(value)]

    def needs(self, value: Value | None) -> tuple[str, ...]:
        """Returns what a word needs, if it needs anything."""
        return (self.needed[str(value)],) if value in self.needed else ()


@dataclass(frozen=True)
class CutOff(Parameter):
    """A positive integer that says how deep to look."""

    def check(self, value: object) -> Value | None:
        """Returns `value` if it is a positive integer, or `None` if that is the default."""
        if value is None and self.default is None:
            return None
        return check_positive_integer(value, self.name)

    def read(self, text: str) -> Value:
        """Reads an integer."""
        return _read_integer(text)

    def describe(self, value: Value) -> str:
        """Says the name and the number."""
        return f"{self.name} {value}"


@dataclass(frozen=True)
class Integer(Parameter):
    """A positive integer that is not a cut-off.

    Attributes:
        sentence (str): What it says in a sentence, with `{}` for the number.
        allowed (range): The numbers that it takes.
    """

    sentence: str
    allowed: range = range(1, 2**53)

    def check(self, value: object) -> Value:
        """Returns `value` if it is one of the allowed numbers."""
        number = check_positive_integer(value, self.name)
        if number not in self.allowed:
            first, last = self.allowed[0], self.allowed[-1]
            raise ValueError(
                f"'{self.name}' needs to be an integer from {first} to {last} (got {number})"
            )
        return number

    def read(self, text: str) -> Value:
        """Reads an integer."""
        return _read_integer(text)

    def describe(self, value: Value) -> str:
        """Says the sentence with the number."""
        return self.sentence.format(value)


@dataclass(frozen=True)
class Real(Parameter):
    """A real number in an interval.

    Attributes:
        sentence (str): What it says in a sentence, with `{}` for the number.
        interval (tuple): The numbers that it lies between, or :class:`HalfOpen`.
    """

    sentence: str
    interval: tuple[float, float] = (0, 1)

    def check(self, value: object) -> Value | None:
        """Returns `value` if it lies in the interval, or `None` if that is the default."""
        if value is None and self.default is None:
            return None
        number = check_finite_number(value, self.name)
        low, high = self.interval
        has_end = isinstance(self.interval, HalfOpen)
        if not (low < number < high or (has_end and number == high)):
            interval = f"({low:g}, {high:g}{']' if has_end else ')'}"
            raise ValueError(f"'{self.name}' needs to be in {interval} (got {value!r})")
        return number

    def read(self, text: str) -> Value:
        """Reads a decimal number."""
        try:
            return float(text)
        except ValueError:
            return text

    def describe(self, value: Value) -> str:
        """Says the sentence with the number."""
        return self.sentence.format(value)


@dataclass(frozen=True)
class Flag(Parameter):
    """A boolean.

    Attributes:
        sentence (str): What it says in a sentence if it is true; if not, it says nothing.
    """

    sentence: str

    @property
    def values(self) -> tuple[Value, ...]:
        """Both values, the default first."""
        return (self.default is True, self.default is not True)

    def check(self, value: object) -> Value:
        """Returns `value` if it is a boolean."""
        return check_boolean(value, self.name)

    def read(self, text: str) -> Value:
        """Reads `true` or `false`, in upper or lower case."""
        return {"true": True, "false": False}.get(folded(text), text)

    def describe(self, value: Value) -> str:
        """Says the sentence if the value is true."""
        return self.sentence if value else ""


def folded(name: str) -> str:
    """Returns a name as names are compared: in lower case, and with `_` for `-`."""
    return name.lower().replace("-", "_")


def _read_integer(text: str) -> Value:
    return int(text) if text.isdecimal() and len(text) <= MAX_DIGITS else text


@dataclass(frozen=True)
class Docstring:
    """The parts of a metric's docstring.

    Attributes:
        about (str): What comes before the arguments: summary, formula and explanation.
        arguments (mapping): The lines that explain each argument, by its name.
        source (str): Where the definition comes from; empty if the docstring does not say.
    """

    about: str
    arguments: FrozenDict[str, str]
    source: str

    @classmethod
    def of(cls, function: Callable[..., Any]) -> "Docstring":
        """Reads the docstring of a function in Google style."""
        text = inspect.getdoc(function) or ""
        about, _, rest = text.partition("\nArgs:\n")
        # The explanation of an argument goes on as long as lines are indented further.
        explained = re.split(r"\n(?= {4}\S)", rest.partition("\n\n")[0])
        source = re.search(r"^Source: .*?(?=\n\n|\Z)", text, flags=re.MULTILINE | re.DOTALL)
        return cls(
            about.rstrip(),
            FrozenDict({argument.split(maxsplit=1)[0]: argument for argument in explained if rest}),
            source[0] if source else "",
        )

    @property
    def summary(self) -> str:
        """The first line."""
        return self.about.split("\n")[0]

    @property
    def formula(self) -> str:
        """The right-hand side of the formula, as LaTeX; empty if there is none."""
        math = self.about.partition(".. math::")[2].lstrip("\n").partition("\n\n")[0]
        lines = (line.strip() for line in math.split("\n"))
        return " ".join(lines).partition("=")[2].strip()


@dataclass(frozen=True, kw_only=True)
class Description:
    """What the author of a metric says about it, see :func:`register` and :class:`Definition`.

    Raises:
        ValueError: If an alias is not a name in lower case, or the bounds are not in ascending
            order.
        TypeError: If an attribute has a wrong type.
    """

    bounds: tuple[float, float]
    needs_all_ranks: bool = False
    higher_is_better: bool
    needs_truth: bool
    needs: tuple[str, ...]
    depends_on_order: bool
    depends_on_weight: bool = False
    needs_candidates: bool = False
    aliases: tuple[str, ...]

    def __post_init__(self) -> None:
        # A decorator without brackets is given the function as its first argument.
        if not _is_pair_of_numbers(self.bounds):
            raise TypeError(
                f"'bounds' needs to be a pair of numbers, as in 'register(bounds=(0.0, 1.0))' "
                f"(got {self.bounds!r})"
            )
        if not self.bounds[0] <= self.bounds[1]:
            raise ValueError(f"'bounds' needs to be in ascending order (got {self.bounds!r})")
        for each in fields(Description):
            if each.type is bool:
                check_boolean(getattr(self, each.name), each.name)
        for name in ("needs", "aliases"):
            _check_strings(getattr(self, name), name)
        for alias in self.aliases:
            if not alias.isidentifier() or alias != folded(alias):
                raise ValueError(
                    f"'aliases' needs to hold names in lower case, with '_' for '-' (got {alias!r})"
                )


@dataclass(frozen=True, kw_only=True)
class Definition(Description):
    """What is known about a metric: what its author says, and what its signature says.

    Attributes:
        name (str): The name of its function.
        function (callable): `f(ranked, ...) -> [num_users]` with all checks.
        has_cut_off (bool): Whether it can be measured at k.
        needs_cut_off (bool): Whether the cut-off is required.
        parameters (mapping): Its other parameters, by name.
        bounds (tuple): The smallest and the largest value that it can have by default.
        needs_all_ranks (bool): Whether it needs the rank of every item, however deep.
        higher_is_better (bool): Whether higher values are better.
        needs_truth (bool): Whether it is undefined for users without truth.
        needs (tuple): What it needs besides ranks, whatever its arguments: `"items"` for the lists,
            or what a :class:`~pyg_recmetrics.Catalogue` holds. The name of a parameter in braces
            stands for the value of that parameter. Some values need more.
        depends_on_order (bool): Whether it depends on the order within the top k.
        depends_on_weight (bool): Whether it tells relevant items of different weight apart,
            whatever its arguments.
        needs_candidates (bool): Whether it needs the number of candidates, which lists alone do not
            tell.
        aliases (tuple): Other names under which it is known, in lower case.

    Example:
        >>> from pyg_recmetrics import metrics
        >>> definition = metrics.definition("ndcg")
        >>> definition.bounds, definition.higher_is_better, list(definition.parameters)
        ((0.0, 1.0), True, ['gain', 'discount', 'ideal', 'ideal_k'])
    """

    name: str
    function: Callable[..., Tensor]
    has_cut_off: bool
    needs_cut_off: bool
    parameters: FrozenDict[str, Parameter]

    @property
    def docstring(self) -> Docstring:
        """The parts of its docstring."""
        return Docstring.of(self.function)

    @cached_property
    def may_need(self) -> tuple[str, ...]:
        """Inputs besides ranks that only some argument values require."""
        values = (
            (parameter, value)
            for parameter in self.parameters.values()
            for value in parameter.values
        )
        return tuple(chain.from_iterable(parameter.needs(value) for parameter, value in values))

    def needs_with(self, arguments: Mapping[str, Any]) -> tuple[str, ...]:
        """Returns what it needs besides ranks, given the values of its parameters."""
        always = (need.format_map(arguments) for need in self.needs)
        chosen = (parameter.needs(arguments[name]) for name, parameter in self.parameters.items())
        return (*always, *chain.from_iterable(chosen))

    def check(self, ranked: object, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Returns the arguments of a call as the function takes them.

        Args:
            ranked (RankedEdges): The ranking.
            arguments (mapping): The values of `k` and of all other parameters, by name.

        Raises:
            TypeError: If `ranked` is not `RankedEdges`, or an argument has a wrong type.
            ValueError: If an argument is not valid, or the ranking does not hold what the metric
                needs.
        """
        ranked = check_ranked(ranked)
        if self.needs_all_ranks:
            _check_all_ranks(ranked)
        checked = dict(arguments)
        if self.has_cut_off:
            checked["k"] = self._check_cut_off(ranked, arguments["k"])
        if self.needs_candidates and ranked.num_candidates is None:
            raise ValueError("'ranked' needs to know the number of candidates (got only lists)")
        for name, parameter in self.parameters.items():
            if arguments[name] is not parameter.default:
                checked[name] = parameter.check(arguments[name])
        self.check_together(checked)
        for need in self.needs_with(checked) if self.needs or self.may_need else ():
            if need != "items":  # which are checked where they are read
                check_has(ranked.catalogue, need, self.name)
            if need == "seen":
                # The history and the lists need to have the same users.
                seen = ranked.required_catalogue.interactions
                check_ids(seen[0], "seen", "user", ranked.num_users)
        return checked

    def check_together(self, arguments: Mapping[str, Value | None]) -> None:
        """Raises if a parameter is given, and the one that it refines has its default."""
        for name, parameter in self.parameters.items():
            if not parameter.refines or arguments.get(name) is None:
                continue
            default = self.parameters[parameter.refines].default
            if arguments.get(parameter.refines, default) == default:
                raise ValueError(
                    f"'{name}' needs a '{parameter.refines}' to go with it (got {default!r} with "
                    f"{name}={arguments[name]})"
                )

    def mask(self, value: Tensor, ranked: RankedEdges) -> Tensor:
        """Returns the values of users, `NaN` where the metric needs truth and there is none."""
        truth = ranked.by_user
        if not self.needs_truth or truth.num_with_truth == truth.num_users:
            return value
        return value.masked_fill(truth.has_none, torch.nan)

    def _check_cut_off(self, ranked: RankedEdges, k: object) -> int | None:
        checked = check_positive_integer(k, "k") if self.needs_cut_off or k is not None else None
        depth = ranked.depth
        if depth is not None and checked is None:
            raise ValueError(
                f"'k' needs to be given, or everything ranked with 'rank(..., full=True)' (got a "
                f"ranking down to {depth})"
            )
        if depth is not None and checked is not None and checked > depth:
            raise ValueError(
                f"'k' needs to be at most {depth}, the depth down to which was ranked "
                f"(got {checked})"
            )
        return checked


@dataclass(frozen=True, kw_only=True)
class AggregateDefinition(Definition):
    """What is known about a metric that has one value for all users together.

    Attributes:
        state (callable): `state(ranked, k)` with all checks: a tensor that adds up over users. The
            sum of the states of some users and of all others is the state of all.
        compute (callable): `compute(state)`, a tensor with one number.

    If it needs the lists and nothing else, the state is a vector whose length depends on the item
    ids. To add up two states, the shorter one is filled up with zeros.

    Example:
        >>> import torch
        >>> from pyg_recmetrics import RankedEdges, metrics
        >>> coverage = metrics.definition("coverage")
        >>> coverage.needs_cut_off, coverage.needs_truth
        (True, False)
    """

    state: Callable[[RankedEdges, int], Tensor]
    compute: Callable[[Tensor], Tensor]

    @property
    def needs_lists_only(self) -> bool:
        """Whether it needs nothing but lists, so not the number of items either."""
        return self.needs == ("items",)


def check_ranked(ranked: object) -> RankedEdges:
    """Returns `ranked` if it is `RankedEdges`."""
    if not isinstance(ranked, RankedEdges):
        hint = "; rank pairs by 'RankedEdges.from_pairs(preds, target, indexes)'"
        got = f"(got {type(ranked).__name__}){hint if isinstance(ranked, Tensor) else ''}"
        raise TypeError(f"'ranked' needs to be 'RankedEdges' {got}")
    return ranked


def _check_all_ranks(ranked: RankedEdges) -> None:
    if ranked.is_candidate is not None and not bool(ranked.is_candidate.all()):
        num_missing = int((~ranked.is_candidate).sum())
        raise ValueError(
            f"'ranked' needs to hold the rank of every edge, and truth that is no candidate has "
            f"none: take it out of the task with missing='drop' (got {num_missing} such edges)"
        )
    num_unknown = int((~ranked.is_hit(None)).sum())
    if num_unknown or ranked.num_candidates is None:
        raise ValueError(
            f"'ranked' needs to hold the rank of every edge among all candidates: rank with "
            f"'full=True', by scores that are finite for relevant items (got "
            f"{f'{num_unknown} edges without a rank' if num_unknown else 'only lists'})"
        )


def _is_pair_of_numbers(value: Any) -> bool:
    is_pair = isinstance(value, tuple) and len(value) == 2
    return is_pair and all(isinstance(part, int | float) for part in value)


def _check_strings(value: object, name: str) -> None:
    if not isinstance(value, tuple) or not all(isinstance(part, str) for part in value):
        raise TypeError(f"'{name}' needs to be a tuple of strings (got {value!r})")
