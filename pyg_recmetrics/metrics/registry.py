"""The registry of metrics, and the grammar in which they are spelled.

A metric is a function of :class:`~pyg_recmetrics.RankedEdges` that :func:`metric` registers under
its own name. Its signature and its docstring are its whole definition: the spelling
`name(argument=value)@k`, the checks, the evaluator and the tables all read them from there.

Most metrics have a value for every user. Those of the catalogue as a whole, such as coverage, have
one for all users together, and are registered by :func:`aggregate_metric`: as a state that adds up
over users, and what is computed of it in the end.
"""

import functools
import inspect
import itertools
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Annotated, Any, ParamSpec, TypeAlias, get_args, get_origin, get_type_hints

import torch
from torch import Tensor

from pyg_recmetrics.catalogue import Catalogue, check_known
from pyg_recmetrics.checks import check_ids, check_positive_integer
from pyg_recmetrics.ranked_edges import RankedEdges

P = ParamSpec("P")

#: What a parameter of a metric is given: one of its words, or a positive integer.
Value: TypeAlias = str | int


@dataclass(frozen=True)
class Parameter:
    """A parameter of a metric besides `k`.

    Attributes:
        name: Its name.
        default: Its default; `None` if it is an integer that need not be given.
        choices: The words it takes, and what each says in a sentence; none for an integer.
        percentage: What it says in a sentence if it is a percentage; empty if it is not. Other
            integers are cut-offs.
    """

    name: str
    default: Value | None
    choices: dict[str, str]
    percentage: str = ""

    @property
    def is_cut_off(self) -> bool:
        """Whether it says how deep to look."""
        return not self.choices and not self.percentage

    def check(self, value: Value | None) -> None:
        """Raises if `value` is not one of the words, no positive integer, or no percentage."""
        if not self.choices and value is not None:
            number = check_positive_integer(value, self.name)
            if self.percentage and number > 100:
                raise ValueError(f"'{self.name}' needs to be at most 100 percent (got {number})")
        if self.choices and value not in self.choices:
            raise ValueError(
                f"'{self.name}' needs to be one of {list(self.choices)} (got {value!r})"
            )

    def read(self, text: str) -> Value:
        """Reads a value from its spelling."""
        return int(text) if not self.choices and text.isdecimal() else text

    def words(self, value: Value) -> str:
        """Says in words what a value means."""
        if self.percentage:
            return self.percentage.format(value)
        return self.choices[str(value)] if self.choices else f"{self.name} {value}"


@dataclass(frozen=True)
class Definition:
    """What is known of a metric.

    Attributes:
        name: The name of its function.
        function: `f(ranked, ...) -> [num_users]` with all checks.
        has_cut_off: Whether it can be measured at k.
        needs_cut_off: Whether it cannot be measured otherwise.
        parameters: Its other parameters.
        needs_all_ranks: Whether every item must be ranked for it, however deep.
        bounds: Between which values it is by default.
        higher_is_better: Whether a better recommender has more of it.
        needs_truth: Whether it is undefined for users without truth.
        needs: What it needs besides ranks: `"items"` for the lists, or what a
            :class:`~pyg_recmetrics.Catalogue` holds. Parameters in braces stand for their value.
    """

    name: str
    function: Callable[..., Tensor]
    has_cut_off: bool
    needs_cut_off: bool
    parameters: dict[str, Parameter]
    needs_all_ranks: bool
    bounds: tuple[float, float]
    higher_is_better: bool
    needs_truth: bool
    needs: tuple[str, ...]

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


@dataclass(frozen=True)
class AggregateDefinition(Definition):
    """What is known of a metric that has one value for all users together.

    Attributes:
        state: `state(ranked, k)` with all checks: a tensor that adds up over users. The sum of the
            states of some users and of all others is that of all.
        compute: `compute(state)`, a tensor with one number.
    """

    state: Callable[[RankedEdges, int], Tensor]
    compute: Callable[[Tensor], Tensor]


_DEFINITIONS: dict[str, Definition] = {}


def metric(
    bounds: tuple[float, float] = (0.0, 1.0),
    needs_all_ranks: bool = False,
    higher_is_better: bool = True,
    needs_truth: bool = True,
    needs: tuple[str, ...] = (),
) -> Callable[[Callable[P, Tensor]], Callable[P, Tensor]]:
    """Registers a function `f(ranked, [k,] **choices) -> [num_users]` as a metric.

    The function may rely on checked arguments, and need not care about users without truth: for
    them, every metric that needs truth is undefined (`NaN`).
    """

    def register(function: Callable[P, Tensor]) -> Callable[P, Tensor]:
        name = function.__name__
        signature = inspect.signature(function)
        parameters = _parameters(function, signature)

        @functools.wraps(function)
        def checked(*args: P.args, **kwargs: P.kwargs) -> Tensor:
            arguments = signature.bind(*args, **kwargs)
            arguments.apply_defaults()
            ranked = arguments.arguments["ranked"]
            _check_ranked(ranked)
            if needs_all_ranks:
                _check_all_ranks(ranked)
            if "k" in arguments.arguments:
                _check_cut_off(arguments.arguments["k"], ranked)
            for parameter in parameters.values():
                parameter.check(arguments.arguments[parameter.name])
            _check_needs(name, _filled(needs, arguments.arguments), ranked)
            value = function(*args, **kwargs)
            return value.masked_fill(ranked.degree == 0, torch.nan) if needs_truth else value

        k = signature.parameters.get("k")
        _DEFINITIONS[name] = Definition(
            name=name,
            function=checked,
            has_cut_off=k is not None,
            needs_cut_off=k is not None and k.default is inspect.Parameter.empty,
            parameters=parameters,
            needs_all_ranks=needs_all_ranks,
            bounds=bounds,
            higher_is_better=higher_is_better,
            needs_truth=needs_truth,
            needs=needs,
        )
        return checked

    return register


def aggregate_metric(
    state: Callable[[RankedEdges, int], Tensor],
    bounds: tuple[float, float] = (0.0, 1.0),
    higher_is_better: bool = True,
    needs: tuple[str, ...] = ("items", "num_items"),
) -> Callable[[Callable[[Tensor], Tensor]], Callable[[RankedEdges, int], Tensor]]:
    """Registers a function of a state that adds up over users as a metric `f(ranked, k)`.

    Args:
        state: Makes the state of the users of a ranking, a tensor of a size that does not depend
            on them.
        bounds: Between which values the metric is.
        higher_is_better: Whether a better recommender has more of it.
        needs: What the state is made of, see :class:`Definition`.
    """

    def register(compute: Callable[[Tensor], Tensor]) -> Callable[[RankedEdges, int], Tensor]:
        name = compute.__name__

        def checked_state(ranked: RankedEdges, k: int) -> Tensor:
            _check_ranked(ranked)
            _check_cut_off(k, ranked)
            _check_needs(name, needs, ranked)
            return state(ranked, k)

        def function(ranked: RankedEdges, k: int) -> Tensor:
            return compute(checked_state(ranked, k))

        # It is documented where it is computed, but called with what its state is made of.
        for attribute in ("__name__", "__qualname__", "__module__", "__doc__"):
            setattr(function, attribute, getattr(compute, attribute))
        _DEFINITIONS[name] = AggregateDefinition(
            name=name,
            function=function,
            has_cut_off=True,
            needs_cut_off=True,
            parameters={},
            needs_all_ranks=False,
            bounds=bounds,
            higher_is_better=higher_is_better,
            needs_truth=False,
            needs=needs,
            state=checked_state,
            compute=compute,
        )
        return function

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
        arguments (tuple, optional): Pairs of a parameter and its value, for those that differ
            from the default or shall be spelled out. (default: `()`)

    Example:
        >>> from pyg_recmetrics import metrics
        >>> metrics.Metric("ndcg", k=10, arguments=(("gain", "exponential"),))
        ndcg(gain=exponential)@10
    """

    name: str
    k: int | None = None
    arguments: tuple[tuple[str, Value], ...] = ()

    def __post_init__(self) -> None:
        known = definition(self.name)
        if known.needs_cut_off and self.k is None:
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
            known.parameters[name].check(value)
        in_order = tuple((name, given[name]) for name in known.parameters if name in given)
        object.__setattr__(self, "arguments", in_order)

    @property
    def label(self) -> str:
        """The metric without its cut-off, as a table has it in front of a row."""
        arguments = ",".join(f"{name}={value}" for name, value in self.arguments)
        return f"{self.name}({arguments})" if arguments else self.name

    @property
    def depth(self) -> int | None:
        """How deep must be ranked for it, `None` for everything.

        R-precision needs no more than each user's own depth, which is always ranked.
        """
        known = definition(self.name)
        if known.needs_all_ranks or (self.k is None and known.has_cut_off):
            return None
        cut_offs = [
            int(value) for name, value in self.arguments if known.parameters[name].is_cut_off
        ]
        return max([self.k or 1, *cut_offs])

    @property
    def needs(self) -> tuple[str, ...]:
        """What it needs besides ranks: lists (`"items"`), or what a catalogue holds.

        Example:
            >>> from pyg_recmetrics import metrics
            >>> metrics.parse("diversity(over=embedding)@10").needs
            ('items', 'item_embedding')
        """
        known = definition(self.name)
        defaults = {name: parameter.default for name, parameter in known.parameters.items()}
        return _filled(known.needs, defaults | dict(self.arguments))

    @property
    def needs_truth(self) -> bool:
        """Whether it is undefined for users without truth."""
        return definition(self.name).needs_truth

    @property
    def is_aggregate(self) -> bool:
        """Whether it has one value for all users together, instead of one for each."""
        return isinstance(definition(self.name), AggregateDefinition)

    def check_known(self, catalogue: Catalogue | None) -> None:
        """Raises if a catalogue lacks what the metric needs.

        Raises:
            ValueError: If so; it says how to give it.
        """
        for name in self.needs:
            if name != "items":
                check_known(catalogue, name, str(self))

    @property
    def words(self) -> str:
        """The metric with all that its definition leaves open, in words.

        Example:
            >>> from pyg_recmetrics import metrics
            >>> metrics.parse("map(normalizer=hits)@20").words
            'map@20 (divided by the number of hits)'
        """
        given = dict(self.arguments)
        said = [
            parameter.words(value)
            for parameter in definition(self.name).parameters.values()
            if (value := given.get(parameter.name, parameter.default)) is not None
        ]
        head = self.name if self.k is None else f"{self.name}@{self.k}"
        return f"{head} ({', '.join(said)})" if said else head

    def __call__(self, ranked: RankedEdges) -> Tensor:
        """Returns the metric of every user, of shape `[num_users]`, `NaN` where undefined.

        If it is one of all users together, a tensor with one number.
        """
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
    parameters = definition(match["name"]).parameters
    arguments: list[tuple[str, Value]] = []
    for part in filter(None, (match["arguments"] or "").split(",")):
        name, equals, text = part.partition("=")
        if not equals:
            raise ValueError(f"'metrics' needs arguments as 'name=value' (got {spelling!r})")
        arguments.append((name, parameters[name].read(text) if name in parameters else text))
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


def _parameters(
    function: Callable[..., Tensor], signature: inspect.Signature
) -> dict[str, Parameter]:
    """Reads the parameters from the annotations: a cut-off, a percentage, words with a meaning."""
    parameters = {}
    hints = get_type_hints(function, include_extras=True)
    for name, parameter in signature.parameters.items():
        if name in ("ranked", "k"):
            continue
        words, meaning = hints[name], ""
        if get_origin(hints[name]) is Annotated:
            words, meaning = get_args(hints[name])
        if isinstance(meaning, str):
            parameters[name] = Parameter(name, parameter.default, {}, percentage=meaning)
            continue
        if set(get_args(words)) != set(meaning):
            raise TypeError(f"'{name}' of '{function.__name__}' needs words for every choice")
        parameters[name] = Parameter(name, parameter.default, meaning)
    return parameters


def _filled(needs: tuple[str, ...], arguments: Mapping[str, Any]) -> tuple[str, ...]:
    """Puts the values of parameters in the place of their names in braces."""
    return tuple(need.format_map(arguments) for need in needs)


def _check_ranked(ranked: Any) -> None:
    if not isinstance(ranked, RankedEdges):
        raise TypeError(f"'ranked' needs to be 'RankedEdges' (got {type(ranked).__name__})")


def _check_all_ranks(ranked: RankedEdges) -> None:
    if ranked.num_candidates is None or not bool(ranked.is_hit(None).all()):
        raise ValueError(
            "'ranked' needs to hold the rank of every edge among all candidates: rank with "
            "'full=True' (got a ranking in which some are not known)"
        )


def _check_needs(name: str, needs: tuple[str, ...], ranked: RankedEdges) -> None:
    for need in needs:
        if need != "items":  # which are checked where they are read
            check_known(ranked.catalogue, need, name)
        if need == "seen":
            # What every user has seen goes beside what it is recommended.
            check_ids(ranked.known_catalogue.history[0], "seen", "user", ranked.num_users)


def _check_cut_off(k: Any, ranked: RankedEdges) -> None:
    if k is not None:
        check_positive_integer(k, "k")
    if ranked.depth is None:
        return
    if k is None:
        raise ValueError(
            f"'k' needs to be given, or everything ranked with 'rank(..., full=True)' (got a "
            f"ranking down to {ranked.depth})"
        )
    if k > ranked.depth:
        raise ValueError(
            f"'k' needs to be at most {ranked.depth}, the depth down to which was ranked (got {k})"
        )
