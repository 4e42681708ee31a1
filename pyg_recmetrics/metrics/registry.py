"""The registry of metrics.

A metric is a function of :class:`~pyg_recmetrics.RankedEdges` that :func:`register` registers under
its own name. Its signature and its docstring are its whole definition: the spelling
`name(argument=value)@k`, the checks, the evaluator and the tables all read them from there.

Most metrics have a value for every user. Some, such as coverage, have one value for all users
together. :func:`register_aggregate` registers these, as a state that adds up over users and a
function that computes the metric from it.
"""

import functools
import inspect
from collections.abc import Callable
from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path
from types import NoneType
from typing import Annotated, Any, ParamSpec, Protocol, get_args, get_origin, get_type_hints

from torch import Tensor

from pyg_recmetrics.frozen import FrozenDict
from pyg_recmetrics.metrics.definitions import (
    AggregateDefinition,
    Choice,
    CutOff,
    Definition,
    Description,
    Flag,
    Integer,
    Parameter,
    Real,
    check_ranked,
    folded,
)
from pyg_recmetrics.ranked_edges import RankedEdges

P = ParamSpec("P")


class AggregateMetric(Protocol):
    """A metric that has one value for all users together."""

    # Without a docstring, so that editors show that of the metric.
    def __call__(self, ranked: RankedEdges, k: int) -> Tensor: ...  # noqa: D102


_, *_called_with = inspect.signature(AggregateMetric.__call__).parameters.values()
_SIGNATURE_OF_AGGREGATES = inspect.Signature(_called_with)

_DEFINITIONS: dict[str, Definition] = {}


def register(
    bounds: tuple[float, float] = (0.0, 1.0),
    needs_all_ranks: bool = False,
    higher_is_better: bool = True,
    needs_truth: bool = True,
    needs: tuple[str, ...] = (),
    depends_on_order: bool = True,
    depends_on_weight: bool = False,
    needs_candidates: bool = False,
    aliases: tuple[str, ...] = (),
) -> Callable[[Callable[P, Tensor]], Callable[P, Tensor]]:
    """Registers a function `f(ranked, [k,] **choices) -> [num_users]` as a metric.

    The function may rely on checked arguments. It may return anything for users without truth:
    the decorator sets them to `NaN` if the metric needs truth.

    Args:
        bounds (tuple, optional): The smallest and the largest value. (default: `(0.0, 1.0)`)
        needs_all_ranks (bool, optional): Whether the metric needs the rank of every item, however
            deep. (default: `False`)
        higher_is_better (bool, optional): Whether higher values are better.
            (default: `True`)
        needs_truth (bool, optional): Whether it is undefined for users without truth.
            (default: `True`)
        needs (tuple, optional): What it needs besides ranks, whatever its arguments: `"items"` for
            the lists, or what a :class:`~pyg_recmetrics.Catalogue` holds. (default: `()`)
        depends_on_order (bool, optional): Whether it depends on the order within the top k.
            (default: `True`)
        depends_on_weight (bool, optional): Whether it tells relevant items of different weight
            apart, which `weighted=True` always does. (default: `False`)
        needs_candidates (bool, optional): Whether it needs the number of candidates, which lists
            alone do not tell. (default: `False`)
        aliases (tuple, optional): Other names under which the same formula is known, in lower case.
            (default: `()`)

    Raises:
        ValueError: If the name of the function or an alias is that of another metric, an alias is
            no name in lower case, or the bounds are not in ascending order.
        TypeError: If a parameter besides `k` is neither a cut-off, nor has words that say what its
            values mean, the function takes no `ranked`, or an argument has a wrong type.

    Example:
        >>> from pyg_recmetrics import metrics
        >>> @metrics.register()  # doctest: +SKIP
        ... def all_found(ranked, k):
        ...     '''Whether all relevant items are in the top `k`.'''
        ...     return (ranked.hits(k) == ranked.degree).double()
    """
    description = Description(
        bounds=bounds,
        needs_all_ranks=needs_all_ranks,
        higher_is_better=higher_is_better,
        needs_truth=needs_truth,
        needs=needs,
        depends_on_order=depends_on_order,
        depends_on_weight=depends_on_weight,
        needs_candidates=needs_candidates,
        aliases=aliases,
    )

    def decorate(function: Callable[P, Tensor]) -> Callable[P, Tensor]:
        signature = inspect.signature(function)
        unchecked = _define(function, signature, description)
        first, *others = signature.parameters.values()
        defaults = {each.name: each.default for each in others if each.default is not each.empty}
        names = {each.name for each in others if first.name == "ranked"}
        required = names - defaults.keys()

        @functools.wraps(function)
        def checked(*args: P.args, **kwargs: P.kwargs) -> Tensor:
            if len(args) == 1 and required <= kwargs.keys() <= names:
                # To bind arguments takes longer than a metric of few users.
                ranked = check_ranked(args[0])
                given = unchecked.check(ranked, {**defaults, **kwargs})
                return unchecked.mask(unchecked.function(ranked, **given), ranked)
            bound = signature.bind(*args, **kwargs)
            bound.apply_defaults()
            ranked = bound.arguments["ranked"]
            bound.arguments |= unchecked.check(ranked, bound.arguments)
            return unchecked.mask(unchecked.function(*bound.args, **bound.kwargs), ranked)

        _add(replace(unchecked, function=checked))
        return checked

    return decorate


def register_aggregate(
    state: Callable[[RankedEdges, int], Tensor],
    bounds: tuple[float, float] = (0.0, 1.0),
    higher_is_better: bool = True,
    needs: tuple[str, ...] = ("items", "num_items"),
    aliases: tuple[str, ...] = (),
) -> Callable[[Callable[[Tensor], Tensor]], AggregateMetric]:
    """Registers a function of a state that adds up over users as a metric `f(ranked, k)`.

    Args:
        state (callable): Makes the state of the users of a ranking: a tensor whose size does not
            depend on the users. If the metric needs the lists and nothing else, it is a vector with
            one element or more, whose length may depend on the item ids.
        bounds (tuple, optional): The smallest and the largest value. (default: `(0.0, 1.0)`)
        higher_is_better (bool, optional): Whether higher values are better.
            (default: `True`)
        needs (tuple, optional): What the state is made of, see :func:`register`.
            (default: `("items", "num_items")`)
        aliases (tuple, optional): Other names of the same formula, see :func:`register`.
            (default: `()`)

    Raises:
        ValueError: If the name of the function or an alias is that of another metric, an alias is
            no name in lower case, or the bounds are not in ascending order.
        TypeError: If an argument has a wrong type.

    Example:
        >>> import torch
        >>> from pyg_recmetrics import metrics
        >>> def num_lists(ranked, k):  # adds up over users, and so over mini-batches
        ...     return torch.bincount(ranked.recommended(k)[1]).double()
        >>> @metrics.register_aggregate(state=num_lists, needs=("items",))  # doctest: +SKIP
        ... def most_shown(num_lists):
        ...     '''The share of all recommendations that goes to a single item.'''
        ...     return num_lists.max() / num_lists.sum()
    """
    description = Description(
        bounds=bounds,
        higher_is_better=higher_is_better,
        needs_truth=False,
        needs=needs,
        depends_on_order=False,
        aliases=aliases,
    )

    def decorate(compute: Callable[[Tensor], Tensor]) -> AggregateMetric:
        unchecked = _define(compute, _SIGNATURE_OF_AGGREGATES, description)

        def checked_state(ranked: RankedEdges, k: int) -> Tensor:
            return state(ranked, unchecked.check(ranked, {"k": k})["k"])

        # The docstring stands where the metric is computed, but describes how it is called.
        @functools.wraps(compute, assigned=("__name__", "__qualname__", "__module__", "__doc__"))
        def function(ranked: RankedEdges, k: int) -> Tensor:
            return compute(checked_state(ranked, k))

        del function.__wrapped__
        fields = vars(unchecked) | {"function": function}
        _add(AggregateDefinition(**fields, state=checked_state, compute=compute))
        return function

    return decorate


def names() -> list[str]:
    """Lists the names of all metrics.

    Example:
        >>> from pyg_recmetrics import metrics
        >>> "r_precision" in metrics.names()
        True
    """
    return list(_DEFINITIONS)


def aliases() -> dict[str, str]:
    """Returns the other names of metrics, each with the name of its metric.

    Example:
        >>> from pyg_recmetrics import metrics
        >>> metrics.aliases()["hr"]
        'hit_rate'
    """
    return {alias: each.name for each in _DEFINITIONS.values() for alias in each.aliases}


def definition(name: str) -> Definition:
    """Looks up the definition of a metric by its name.

    An alias of a metric is its name, too. Upper and lower case make no difference, and neither do
    `-` and `_`, unless two metrics differ in nothing else.

    Raises:
        TypeError: If `name` is not a string.
        ValueError: If there is no metric of that name; the error lists similar names.

    Example:
        >>> from pyg_recmetrics import metrics
        >>> metrics.definition("recall").docstring.summary
        'The fraction of the relevant items that is in the top `k`.'
        >>> metrics.definition("R-Precision").name, metrics.definition("HR").name
        ('r_precision', 'hit_rate')
    """
    if not isinstance(name, str):
        raise TypeError(
            f"'metrics' needs to be a string or a list of strings (got {type(name).__name__})"
        )
    if name in _DEFINITIONS:
        return _DEFINITIONS[name]
    by_folded = {folded(each): each for each in reversed(_DEFINITIONS)}
    known = aliases().get(folded(name), by_folded.get(folded(name)))
    if known is None:
        similar = _similar_names(name) or names()
        raise ValueError(f"'metrics' needs to name known metrics, such as {similar} (got {name!r})")
    return _DEFINITIONS[known]


def _similar_names(name: str) -> list[str]:
    """Returns the names of up to three metrics that `name` may be meant for, the best first."""
    known = {**aliases(), **{each: each for each in _DEFINITIONS}}
    by_letters = {_letters(each): metric_name for each, metric_name in known.items()}
    similar = get_close_matches(_letters(name), by_letters, n=len(by_letters), cutoff=0.6)
    return list(dict.fromkeys(by_letters[letters] for letters in similar))[:3]


def _letters(name: str) -> str:
    return folded(name).replace("_", "")


def _add(defined: Definition) -> None:
    """Registers a metric. Running the notebook cell that defines it again replaces it."""
    replaced = _DEFINITIONS.get(defined.name)
    if replaced is not None and not _is_same_function(replaced.function, defined.function):
        raise ValueError(
            f"a metric named '{defined.name}' is already registered by "
            f"'{replaced.function.__module__}'"
        )
    others = [each for each in _DEFINITIONS.values() if each is not replaced]
    taken = {alias: each for each in others for alias in each.aliases}
    if defined.name in taken:
        raise ValueError(
            f"the name '{defined.name}' is already registered as an alias of "
            f"{_described(taken[defined.name])}"
        )
    taken |= {folded(each.name): each for each in others}
    for alias in defined.aliases:
        if alias in taken:
            raise ValueError(
                f"'aliases' needs names that are not taken (got '{alias}', which means "
                f"{_described(taken[alias])})"
            )
    _DEFINITIONS[defined.name] = defined


def _described(definition: Definition) -> str:
    return f"'{definition.name}', a metric of '{definition.function.__module__}'"


def _is_same_function(first: Callable[..., Any], second: Callable[..., Any]) -> bool:
    """Returns whether two functions come from the same lines of code.

    A cell of a notebook has another file each time it runs. A script has another module if it is
    also imported.
    """
    if first.__qualname__ != second.__qualname__:
        return False
    file, other_file = (inspect.unwrap(f).__code__.co_filename for f in (first, second))
    is_same_file = file == other_file and Path(file).is_file()
    return is_same_file or first.__module__ == second.__module__


def _define(
    function: Callable[..., Tensor], signature: inspect.Signature, description: Description
) -> Definition:
    """Reads what the signature of a metric says, besides what its author says."""
    if "ranked" not in signature.parameters:
        raise TypeError(f"'{function.__name__}' needs to take 'ranked' (got {signature})")
    hints = get_type_hints(function, include_extras=True)
    k = signature.parameters.get("k")
    parameters = {
        name: _parameter(name, parameter.default, hints[name], function.__name__)
        for name, parameter in signature.parameters.items()
        if name not in ("ranked", "k")
    }
    return Definition(
        **vars(description),
        name=function.__name__,
        function=function,
        has_cut_off=k is not None,
        needs_cut_off=k is not None and k.default is inspect.Parameter.empty,
        parameters=FrozenDict(parameters),
    )


def _parameter(name: str, default: Any, hint: Any, metric_name: str) -> Parameter:
    """Reads the kind of a parameter, and what its values mean, from its annotation."""
    kind, *meaning = _kind_and_meaning(hint)
    match meaning:
        case [] if kind in (int, int | None):
            return CutOff(name, default)
        case [dict() as words] if words and set(get_args(kind)) == set(words):
            return Choice(name, default, FrozenDict(words))
        case [dict() as words, dict() as needed] if words and set(get_args(kind)) == set(words):
            return Choice(name, default, FrozenDict(words), FrozenDict(needed))
        case [str() as sentence] if kind is bool:
            return Flag(name, default, sentence)
        case [str() as sentence] if kind is float:
            return Real(name, default, sentence)
        case [str() as sentence, tuple() as interval] if kind is float:
            return Real(name, default, sentence, interval)
        case [str() as sentence, tuple() as interval, str() as refined] if kind is float:
            return Real(name, default, sentence, interval, refines=refined)
        case [str() as sentence] if kind is int:
            return Integer(name, default, sentence)
        case [str() as sentence, range() as allowed] if kind is int:
            return Integer(name, default, sentence, allowed)
    raise TypeError(
        f"'{name}' of '{metric_name}' needs words for every choice, as in "
        f"Annotated[Literal['a'], {{'a': 'words'}}], or for a number or a boolean, as in "
        f"Annotated[float, 'words'], or to be an integer (got {hint})"
    )


def _kind_and_meaning(hint: Any) -> tuple[Any, ...]:
    """Returns the type in an annotation, and the words that come with it.

    A real number may be `None` by default.
    """
    match get_args(hint):
        case [number, none] if none is NoneType and get_args(number)[:1] == (float,):
            hint = number
    return get_args(hint) if get_origin(hint) is Annotated else (hint,)
