"""What is known about a metric: its name, its parameters, what it needs, and what its docs say."""

import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from torch import Tensor

from pyg_recmetrics.checks import check_choice, check_positive_integer
from pyg_recmetrics.frozen import FrozenDict
from pyg_recmetrics.ranked_edges import RankedEdges

#: What a parameter of a metric is given: one of its words, or a positive integer.
Value: TypeAlias = str | int


@dataclass(frozen=True)
class Parameter:
    """A parameter of a metric besides `k`.

    Attributes:
        name (str): Its name.
        default (str, int or None): Its default; `None` for an optional integer.
        choices (mapping): The words it takes, and what each says in a sentence; empty for an
            integer.
        percentage (str): What a percentage says in a sentence, with `{}` for the number; empty for
            other parameters. Other integers are cut-offs.
    """

    name: str
    default: Value | None
    choices: FrozenDict[str, str]
    percentage: str = ""

    @property
    def is_cut_off(self) -> bool:
        """Whether it says how deep to look."""
        return not self.choices and not self.percentage

    def check(self, value: Value | None) -> None:
        """Raises if `value` is not one of the words, not a positive integer, or not a percentage.

        `None` leaves an integer open.
        """
        if self.choices:
            check_choice(value, self.name, list(self.choices))
        elif value is not None:
            number = check_positive_integer(value, self.name)
            if self.percentage and number > 100:
                raise ValueError(f"'{self.name}' needs to be at most 100 percent (got {number})")

    def read(self, text: str) -> Value:
        """Reads a value from its spelling."""
        # Python reads no integers of more than 4,300 digits.
        is_integer = not self.choices and text.isdecimal() and len(text) <= 1000
        return int(text) if is_integer else text

    def words(self, value: Value) -> str:
        """Says in words what a value means."""
        if self.percentage:
            return self.percentage.format(value)
        return self.choices[str(value)] if self.choices else f"{self.name} {value}"


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


@dataclass(frozen=True)
class Definition:
    """What is known about a metric.

    Attributes:
        name (str): The name of its function.
        function (callable): `f(ranked, ...) -> [num_users]` with all checks.
        has_cut_off (bool): Whether it can be measured at k.
        needs_cut_off (bool): Whether the cut-off is required.
        parameters (mapping): Its other parameters, by name.
        needs_all_ranks (bool): Whether it needs the rank of every item, however deep.
        bounds (tuple): The smallest and the largest value that it can have by default.
        higher_is_better (bool): Whether higher values are better.
        needs_truth (bool): Whether it is undefined for users without truth.
        needs (tuple): What it needs besides ranks: `"items"` for the lists, or what a
            :class:`~pyg_recmetrics.Catalogue` holds. The name of a parameter in braces stands for
            the value of that parameter.
        looks_at_order (bool): Whether it depends on the order within the top k.
        looks_at_weight (bool): Whether it tells relevant items of different weight apart.
    """

    name: str
    function: Callable[..., Tensor]
    has_cut_off: bool
    needs_cut_off: bool
    parameters: FrozenDict[str, Parameter]
    needs_all_ranks: bool
    bounds: tuple[float, float]
    higher_is_better: bool
    needs_truth: bool
    needs: tuple[str, ...]
    looks_at_order: bool
    looks_at_weight: bool

    @property
    def docstring(self) -> Docstring:
        """The parts of its docstring."""
        return Docstring.of(self.function)

    def needs_with(self, arguments: Mapping[str, Any]) -> tuple[str, ...]:
        """Returns what it needs besides ranks, given the values of its parameters."""
        return tuple(need.format_map(arguments) for need in self.needs)


@dataclass(frozen=True)
class AggregateDefinition(Definition):
    """What is known about a metric that has one value for all users together.

    Attributes:
        state (callable): `state(ranked, k)` with all checks: a tensor that adds up over users. The
            sum of the states of some users and of all others is the state of all.
        compute (callable): `compute(state)`, a tensor with one number.
    """

    state: Callable[[RankedEdges, int], Tensor]
    compute: Callable[[Tensor], Tensor]
