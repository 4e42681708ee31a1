"""The registry of metrics, and the grammar in which they are spelled.

A metric is a function of :class:`~pyg_recmetrics.RankedEdges` that :func:`metric` registers under
its own name. Its signature and its docstring are its whole definition: the spelling
`name(argument=value)@k`, the checks, the evaluator and the tables all read them from there.
"""

import functools
import inspect
import itertools
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, Literal, ParamSpec, get_args, get_origin, get_type_hints

import torch
from torch import Tensor

from pyg_recmetrics.checks import check_positive_integer
from pyg_recmetrics.ranked_edges import RankedEdges

P = ParamSpec("P")


@dataclass(frozen=True)
class Definition:
    """What is known of a metric.

    Attributes:
        name: The name of its function.
        function: `f(ranked, ...) -> [num_users]` with all checks.
        has_cut_off: Whether it is a metric at k.
        parameters: Its other parameters with the values they can take, the default first.
        upper_bound: The value of the best possible ranking; the worst is zero.
    """

    name: str
    function: Callable[..., Tensor]
    has_cut_off: bool
    parameters: dict[str, tuple[str, ...]]
    upper_bound: float

    @property
    def summary(self) -> str:
        """The first line of its docstring."""
        return (inspect.getdoc(self.function) or "").split("\n")[0]

    @property
    def formula(self) -> str:
        """The right-hand side of the formula in its docstring, as LaTeX."""
        math = (inspect.getdoc(self.function) or "").partition(".. math::")[2].lstrip("\n")
        lines = itertools.takewhile(str.strip, math.split("\n"))
        return " ".join(line.strip() for line in lines).partition("=")[2].strip()


_DEFINITIONS: dict[str, Definition] = {}


def metric(
    upper_bound: float = 1.0,
) -> Callable[[Callable[P, Tensor]], Callable[P, Tensor]]:
    """Registers a function `f(ranked, [k,] **choices) -> [num_users]` as a metric.

    The function may rely on checked arguments, and need not care about users without truth: for
    them, every metric is undefined (`NaN`).
    """

    def register(function: Callable[P, Tensor]) -> Callable[P, Tensor]:
        signature = inspect.signature(function)
        choices = _choices(function, signature)

        @functools.wraps(function)
        def checked(*args: P.args, **kwargs: P.kwargs) -> Tensor:
            arguments = signature.bind(*args, **kwargs).arguments
            ranked = arguments["ranked"]
            _check_ranked(ranked)
            if "k" in arguments:
                _check_cut_off(arguments["k"], ranked)
            for name, value in arguments.items():
                if name in choices:
                    _check_choice(name, value, choices[name])
            value = function(*args, **kwargs)
            return value.masked_fill(ranked.degree == 0, torch.nan)

        name = function.__name__
        _DEFINITIONS[name] = Definition(
            name, checked, "k" in signature.parameters, choices, upper_bound
        )
        return checked

    return register


def names() -> list[str]:
    """Lists the names of all metrics.

    Example:
        >>> from pyg_recmetrics import metrics
        >>> "r_precision" in metrics.names()
        True
    """
    return list(_DEFINITIONS)


def definition(name: str) -> Definition:
    """Looks up a metric by its name.

    Raises:
        ValueError: If there is none of that name; the nearest names are given.
    """
    if name in _DEFINITIONS:
        return _DEFINITIONS[name]
    nearest = get_close_matches(name, _DEFINITIONS, n=3, cutoff=0.5) or names()
    raise ValueError(f"'metrics' needs to name known metrics, such as {nearest} (got {name!r})")


@dataclass(frozen=True)
class Metric:
    """A metric with its arguments, as a value: it is called, compared, hashed and printed.

    Args:
        name (str): Its name, one of :func:`names`.
        k (int, optional): Its cut-off, if it has one. (default: `None`)
        arguments (tuple, optional): Pairs of a parameter and its value. Those that have their
            default are left out. (default: `()`)

    Example:
        >>> from pyg_recmetrics import metrics
        >>> metrics.Metric("ndcg", k=10, arguments=(("gain", "exponential"),))
        ndcg(gain=exponential)@10
    """

    name: str
    k: int | None = None
    arguments: tuple[tuple[str, str], ...] = ()

    def __post_init__(self) -> None:
        known = definition(self.name)
        if known.has_cut_off and self.k is None:
            raise ValueError(f"'{self.name}' needs a cut-off, as in '{self.name}@20' (got none)")
        if not known.has_cut_off and self.k is not None:
            raise ValueError(f"'{self.name}' has no cut-off (got '@{self.k}')")
        if self.k is not None:
            check_positive_integer(self.k, "k")
        given = dict(self.arguments)
        for name, value in given.items():
            if name not in known.parameters:
                allowed = list(known.parameters) or "none"
                raise ValueError(f"'{self.name}' has the arguments {allowed} (got {name!r})")
            _check_choice(name, value, known.parameters[name])
        kept = tuple(
            (name, given[name])
            for name, values in known.parameters.items()
            if name in given and given[name] != values[0]
        )
        object.__setattr__(self, "arguments", kept)

    @property
    def label(self) -> str:
        """The metric without its cut-off, as a table has it in front of a row."""
        arguments = ",".join(f"{name}={value}" for name, value in self.arguments)
        return f"{self.name}({arguments})" if arguments else self.name

    def __call__(self, ranked: RankedEdges) -> Tensor:
        """Returns the metric of every user, of shape `[num_users]`, `NaN` where undefined."""
        arguments: dict[str, Any] = dict(self.arguments)
        if self.k is not None:
            arguments["k"] = self.k
        return definition(self.name).function(ranked, **arguments)

    def __str__(self) -> str:
        return self.label if self.k is None else f"{self.label}@{self.k}"

    def __repr__(self) -> str:
        return str(self)


_SPELLING = re.compile(
    r"(?P<name>\w+)(?:\((?P<arguments>[^()]*)\))?(?:@(?P<k>[1-9][0-9]*))?", flags=re.ASCII
)


def parse(spelling: str | Metric) -> Metric:
    """Reads `name@k` or `name(argument=value)@k`: the inverse of printing a :class:`Metric`.

    Raises:
        TypeError: If `spelling` is not a string.
        ValueError: If it is not spelled like a metric, or there is no such metric or argument.

    Example:
        >>> from pyg_recmetrics import metrics
        >>> metrics.parse("recall@20").k
        20
        >>> str(metrics.parse("ndcg(gain=exponential)@10"))
        'ndcg(gain=exponential)@10'
    """
    if isinstance(spelling, Metric):
        return spelling
    if not isinstance(spelling, str):
        raise TypeError(f"'metrics' needs to hold strings (got {type(spelling).__name__})")
    match = _SPELLING.fullmatch(spelling.replace(" ", ""))
    if match is None:
        raise ValueError(
            f"'metrics' needs to spell 'name', 'name@k' with a positive integer k, or "
            f"'name(argument=value)@k' (got {spelling!r})"
        )
    arguments = []
    for part in filter(None, (match["arguments"] or "").split(",")):
        name, equals, value = part.partition("=")
        if not equals:
            raise ValueError(f"'metrics' needs arguments as 'name=value' (got {spelling!r})")
        arguments.append((name, value))
    k = None if match["k"] is None else int(match["k"])
    return Metric(match["name"], k, tuple(arguments))


def parse_all(spellings: str | Metric | Iterable[str | Metric]) -> tuple[Metric, ...]:
    """Reads several metrics, or a single one, each once and in the order given.

    Raises:
        TypeError: If one of them is not a string.
        ValueError: If there is none, or one is not spelled like a metric.
    """
    if isinstance(spellings, str | Metric):
        spellings = (spellings,)
    metrics = tuple(dict.fromkeys(parse(spelling) for spelling in spellings))
    if not metrics:
        raise ValueError("'metrics' needs to name at least one metric (got none)")
    return metrics


def _choices(
    function: Callable[..., Tensor], signature: inspect.Signature
) -> dict[str, tuple[str, ...]]:
    choices = {}
    hints = get_type_hints(function)
    for name, parameter in signature.parameters.items():
        if name in ("ranked", "k"):
            continue
        if get_origin(hints[name]) is not Literal:
            raise TypeError(f"'{name}' of '{function.__name__}' needs to be annotated as a Literal")
        others = (value for value in get_args(hints[name]) if value != parameter.default)
        choices[name] = (parameter.default, *others)
    return choices


def _check_ranked(ranked: Any) -> None:
    if not isinstance(ranked, RankedEdges):
        raise TypeError(f"'ranked' needs to be 'RankedEdges' (got {type(ranked).__name__})")


def _check_cut_off(k: Any, ranked: RankedEdges) -> None:
    check_positive_integer(k, "k")
    if ranked.depth is not None and k > ranked.depth:
        raise ValueError(
            f"'k' needs to be at most {ranked.depth}, the depth down to which was ranked (got {k})"
        )


def _check_choice(name: str, value: Any, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise ValueError(f"'{name}' needs to be one of {list(choices)} (got {value!r})")
