"""The registry of metrics: what is known about each, how it is spelled, and who counts in its mean.

A metric is a function of :class:`~pyg_recmetrics.RankedEdges` that :func:`register` registers under
its own name. Its signature and its docstring are its whole definition: the spelling
`name(argument=value)@k`, the checks, the evaluator and the tables all read them from there. A
:class:`Metric` is the value that stands for a metric with its arguments.

Most metrics have a value for every user. Some, such as coverage, have one value for all users
together. :func:`register_aggregate` registers these, as a state that adds up over users and a
function that computes the metric from it.
"""

import inspect
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cached_property, lru_cache, partial, wraps
from types import NoneType
from typing import (
    Annotated,
    Any,
    Literal,
    ParamSpec,
    Protocol,
    TypeAlias,
    TypeVar,
    cast,
    get_args,
    get_origin,
    get_type_hints,
)

import torch
from torch import Tensor

from pyg_recmetrics.checks import (
    check_boolean,
    check_choice,
    check_fraction,
    check_ids,
    check_positive_integer,
    written,
)
from pyg_recmetrics.ranked_edges import (
    RankedEdges,
    candidates_of,
    catalogue_of,
    num_with_other_places,
)
from pyg_recmetrics.task import Catalogue
from pyg_recmetrics.task.task import check_has
from pyg_recmetrics.utils import counted, read_number, set_attributes, written_as

#: What a user without truth counts as in a mean, in torchmetrics' words.
EmptyTargetAction: TypeAlias = Literal["skip", "neg", "pos", "error"]

_VALUE_WITHOUT_TRUTH = {"skip": torch.nan, "neg": 0.0, "pos": 1.0, "error": torch.nan}


def check_empty_target_action(action: EmptyTargetAction) -> EmptyTargetAction:
    """Returns `action` if it is one."""
    return check_choice(action, "empty_target_action", get_args(EmptyTargetAction))


def check_num_without_truth(num_without_truth: int) -> None:
    """Raises if there are users without truth, as the action `"error"` does."""
    if num_without_truth:
        raise ValueError(
            f"'empty_target_action' needs every user to have ground truth if it is 'error' "
            f"(got {num_without_truth} without)"
        )


def num_filled(num_without_truth: int, action: EmptyTargetAction) -> int:
    """Returns how many users without truth count in a mean."""
    return num_without_truth if action in ("neg", "pos") else 0


def fill_without_truth(value: Tensor, degree: Tensor, action: EmptyTargetAction) -> Tensor:
    """Returns what every user counts as in a mean; `NaN` for users who are left out.

    Args:
        value (torch.Tensor): The value of every user, of shape `[num_users]` or
            `[num_users, num_cut_offs]`.
        degree (torch.Tensor): The number of relevant items of every user, of shape `[num_users]`.
        action (str): What users without truth count as.
    """
    has_no_truth = (degree == 0).view(-1, *(1 for _ in value.shape[1:]))
    return value.masked_fill(has_no_truth, _VALUE_WITHOUT_TRUTH[action])


#: By what share of it a value may be outside of the range of its metric, due to rounding.
_ROUNDING = 1e-6

#: What a parameter of a metric is given: a word, a number, or whether something holds.
Value: TypeAlias = str | int | float | bool


P = ParamSpec("P")
V = TypeVar("V")

#: How the mean over users weighs them, see :func:`precision`.
Average: TypeAlias = Annotated[
    Literal["macro", "micro"],
    {"macro": "averaged over users", "micro": "sum over users divided by sum over users"},
]


@dataclass(frozen=True)
class Parameter:
    """A parameter of a metric besides `k`: it takes some values, each with its words, or numbers.

    Attributes:
        name (str): Its name.
        default (str, int, float, bool or None): Its default; `None` for a number that need not be
            given.
        kind (type): What its values are: `str`, `bool`, `int` or `float`.
        words (mapping): What each value says in a sentence, the first choice first; empty for
            numbers.
        sentence (str): What a number says in a sentence, with `{}` for the number.
        allowed (range): The integers that it takes. Other numbers are between 0 and 1.
        is_cut_off (bool): Whether it says how deep to look.
    """

    name: str
    default: Value | None
    kind: type
    words: Mapping[Any, str] = field(default_factory=dict)
    sentence: str = ""
    allowed: range = range(1, 2**53)
    is_cut_off: bool = False

    def check(self, value: object) -> Value | None:
        """Returns `value` as it is printed and passed on. The default is not checked.

        Raises:
            TypeError: If a boolean is needed, and `value` is none.
            ValueError: If the parameter does not take `value`.
        """
        if value is self.default:
            return self.default
        if self.kind is str:
            return check_choice(cast("str", value), self.name, list(self.words))
        if self.kind is bool:
            return check_boolean(value, self.name)
        if self.kind is float:
            return check_fraction(value, self.name)
        number = check_positive_integer(value, self.name)
        if number not in self.allowed:
            raise ValueError(f"'{self.name}' needs to be in {self.allowed} (got {value!r})")
        return number

    def read(self, text: str) -> Value:
        """Reads a value from its spelling; a text that spells none stays as it is.

        Words, `true` and `false` may be in upper or lower case.
        """
        if self.words:
            return spelled(text, self.words)
        try:
            number: Value = read_number(text, self.kind)
        except ValueError:
            return text
        return number

    def describe(self, value: Value) -> str:
        """Returns in words what a value means; empty if there is nothing to say."""
        return self.words[value] if self.words else self.sentence.format(value)


def folded(name: str) -> str:
    """Returns a name as names are compared: in lower case, and with `_` for `-`."""
    return name.lower().replace("-", "_")


def spelled(text: str, known: Collection[V]) -> V | str:
    """Returns what a text spells, in any case and also without `_`; the text if it is unknown."""
    if text in known:
        return text
    by_name = {folded(str(each)): each for each in reversed([*known])}  # the first one wins
    # Other libraries leave `_` out, as in `HitRatio`.
    without = {name.replace("_", ""): each for name, each in by_name.items()}
    return by_name.get(folded(text), without.get(folded(text).replace("_", ""), text))


@dataclass(frozen=True, eq=False)
class Definition:
    """Definition of a metric: its function, its parameters and its properties.

    Attributes:
        name (str): The name of its function.
        function (callable): `f(ranked, ...) -> [num_users]` with all checks.
        formula (callable): The same without any.
        has_cut_off (bool): Whether it can be measured at k.
        needs_cut_off (bool): Whether the cut-off is required.
        parameters (mapping): Its other parameters, by name.
        range (tuple): The smallest and the largest value that it can have by default.
        needs_all_ranks (bool): Whether it needs the rank of every item, however deep.
        higher_is_better (bool): Whether higher values are better.
        needs_truth (bool): Whether it is undefined for users without truth.
        needs (tuple): What it needs besides ranks, whatever its arguments: `"items"` for the lists,
            or what a :class:`~pyg_recmetrics.Catalogue` holds. The name of a parameter in braces
            stands for the value of that parameter.
        depends_on_order (bool): Whether it depends on the order within the top k.
        depends_on_weight (bool): Whether it tells relevant items of different weight apart,
            whatever its arguments.
        needs_candidates (bool): Whether it needs the number of candidates, which lists alone do not
            tell.
        pools_edges (bool): Whether it is one number of all edges together where each row is an
            edge, as a median is no mean.
        aliases (tuple): Other names under which it is known, in lower case.
        state (callable): `state(ranked, k)`, a tensor that adds up over users, of a metric that has
            one value for all users together. The sum of the states of some users and of all others
            is the state of all. Other metrics have `None`.
        compute (callable): `compute(state)`, a tensor with that one value.

    Example:
        >>> from pyg_recmetrics import metrics
        >>> definition = metrics.definition("ndcg")
        >>> definition.range, definition.higher_is_better, list(definition.parameters)
        ((0.0, 1.0), True, ['gain', 'discount', 'ideal', 'ideal_k'])
    """

    name: str
    function: Callable[..., Tensor]
    formula: Callable[..., Tensor]
    has_cut_off: bool
    needs_cut_off: bool
    parameters: Mapping[str, Parameter]
    range: tuple[float, float]
    needs_all_ranks: bool
    higher_is_better: bool
    needs_truth: bool
    needs: tuple[str, ...]
    depends_on_order: bool
    depends_on_weight: bool
    needs_candidates: bool
    pools_edges: bool
    aliases: tuple[str, ...]
    state: Callable[[RankedEdges, int], Tensor] | None = None
    compute: Callable[[Tensor], Tensor] | None = None

    @property
    def about(self) -> str:
        """What its docstring says before the arguments: summary, formula and explanation."""
        return (inspect.getdoc(self.function) or "").partition("\n\nArgs:\n")[0]

    @property
    def summary(self) -> str:
        """The first line of its docstring."""
        return self.about.partition("\n")[0]


def check_ranked(ranked: object) -> RankedEdges:
    """Returns `ranked` if it is `RankedEdges`."""
    if not isinstance(ranked, RankedEdges):
        raise TypeError(
            f"'ranked' needs to be 'RankedEdges' (got {type(ranked).__name__}); write "
            f"rank(recommender, task), or RankedEdges.from_pairs(preds, target, indexes) for pairs"
        )
    return ranked


def _check_all_ranks(ranked: RankedEdges, name: str) -> None:
    num_others = num_with_other_places(ranked)
    num_unknown = int((~ranked.is_hit(None)).sum())
    if num_others:
        got = f"{counted(num_others, 'users')} whose lists have places that hold no candidate"
    elif num_unknown:
        got = f"{counted(num_unknown, 'edges')} without a rank"
    elif ranked.num_candidates is None:
        got = "only lists"
    else:
        return
    remedy = (
        "give each of them a score that is finite, and write RankingTask(..., missing='drop') "
        "where some are no candidates, and rank(..., full=True) in place of a depth"
    )
    if num_others or ranked.num_candidates is None or ranked.origin.listed is not None:
        remedy = "lists do not hold such ranks, so evaluate scores or embeddings"
    raise ValueError(
        f"'{name}' needs the rank of every relevant item among all candidates: {remedy} (got {got})"
    )


class AggregateMetric(Protocol):
    """A metric that has one value for all users together."""

    # Without a docstring, so that editors show that of the metric.
    def __call__(self, ranked: RankedEdges, k: int) -> Tensor: ...  # noqa: D102


_DEFINITIONS: dict[str, Definition] = {}


def register(
    range: tuple[float, float] = (0.0, 1.0),
    needs_all_ranks: bool = False,
    higher_is_better: bool = True,
    needs_truth: bool = True,
    needs: tuple[str, ...] = (),
    depends_on_order: bool = True,
    depends_on_weight: bool = False,
    needs_candidates: bool = False,
    pools_edges: bool = False,
    aliases: tuple[str, ...] = (),
) -> Callable[[Callable[P, Tensor]], Callable[P, Tensor]]:
    """Registers a function `f(ranked, [k,] **choices) -> [num_users]` as a metric.

    Its name, its arguments and its docstring define everything else: the spelling `name@k`, the
    checks, the class for mini-batches, and its row in the tables. `examples/custom_metric.py` is a
    complete program.

    The function may rely on checked arguments. It gets :class:`~pyg_recmetrics.RankedEdges`, whose
    `rank` holds the rank of each truth edge, and the largest integer for one beyond the depth of
    the ranking. Other metrics decide how deep that is, too, unless `needs_all_ranks=True`. `degree`
    is the number of relevant items of each user, `hits(k)` how many of them are in the top `k`,
    `is_hit(k)` which edges these are, and `sum(values)` adds up one value per edge for every user.
    It may return anything for users without truth: the decorator sets them to `NaN` if the metric
    needs truth. For others, it returns values of the range, on the device of `rank`.

    An argument besides `k` is spelled `name(argument=value)@k`. Its annotation says which values it
    takes, and how `recipe()` words them:

    - `Annotated[Literal["a", "b"], {"a": "this", "b": "that"}]`: a choice of words;
    - `Annotated[bool, "what true means"]`: a boolean; `recipe()` leaves out what is false;
    - `Annotated[float, "what {} means"]`: a number between zero and one, which need not be given
      if it may be `None`;
    - `Annotated[int, "what {} means"]`: a positive integer;
    - `Annotated[int, "what {} percent means", range(1, 101)]`: an integer in a range;
    - `int`, which may be `None`: one more cut-off, down to which users are ranked at least.

    Args:
        range (tuple, optional): The smallest and the largest value. (default: `(0.0, 1.0)`)
        needs_all_ranks (bool, optional): Whether the metric needs the rank of every item, however
            deep. (default: `False`)
        higher_is_better (bool, optional): Whether higher values are better.
            (default: `True`)
        needs_truth (bool, optional): Whether it is undefined for users without truth.
            (default: `True`)
        needs (tuple, optional): What it needs besides ranks, whatever its arguments: `"items"` for
            the lists, or what a :class:`~pyg_recmetrics.Catalogue` holds: `"popularity"`,
            `"seen"`, `"item_category"`, or `"item_embedding"`. (default: `()`)
        depends_on_order (bool, optional): Whether it depends on the order within the top k.
            (default: `True`)
        depends_on_weight (bool, optional): Whether it tells relevant items of different weight
            apart, which `weighted=True` always does. (default: `False`)
        needs_candidates (bool, optional): Whether it needs the number of candidates, which lists
            alone do not tell. (default: `False`)
        pools_edges (bool, optional): Whether it returns one number, in a tensor without dimensions,
            where each row is an edge (`ranked.origin.user_of_row` is known): a statistic of all
            edges that is no mean over rows. (default: `False`)
        aliases (tuple, optional): Other names under which the same formula is known, in lower case.
            (default: `()`)

    Returns:
        A decorator, which returns the function with checked arguments.

    Raises:
        ValueError: If the name of the function or an alias is that of another metric, an alias is
            no name in lower case, or the range is not in ascending order.
        TypeError: If a parameter besides `k` has no default, or is neither a cut-off nor has words
            that say what its values mean, the function takes no `ranked`, or an argument has a
            wrong type.

    Example:
        >>> from pyg_recmetrics import metrics
        >>> @metrics.register()  # doctest: +SKIP
        ... def all_found(ranked, k):
        ...     '''Whether all relevant items are in the top `k`.'''
        ...     return (ranked.hits(k) == ranked.degree).double()
    """
    properties = dict(locals())
    _check_properties(**properties)

    def decorate(formula: Callable[P, Tensor]) -> Callable[P, Tensor]:
        signature, hints = inspect.signature(formula), get_type_hints(formula, include_extras=True)
        name, known = formula.__name__, signature.parameters
        required = {each for each, of in known.items() if of.default is of.empty}
        by_place = [each for each, of in known.items() if of.kind is not of.KEYWORD_ONLY]

        @written("metrics.recall(rank(recommender, task), k=20)")
        @wraps(formula)
        def function(*args: P.args, **kwargs: P.kwargs) -> Tensor:
            given: dict[str, Any] = dict(zip(by_place, args, strict=False)) | kwargs
            if len(given) < len(args) + len(kwargs) or not required <= given.keys() <= known.keys():
                signature.bind(*args, **kwargs)  # which raises, and would slow down all other calls
            ranked, cut_off = given.pop("ranked"), given.pop("k", k and k.default)
            return Metric.of(defined, cut_off, given)(ranked)

        if next(iter(known), None) != "ranked":
            raise TypeError(f"'{name}' needs to take 'ranked' first (got {signature})")
        k = known.get("k")
        defined = Definition(
            **properties,
            name=name,
            function=function,
            formula=formula,
            has_cut_off=k is not None,
            needs_cut_off=k is not None and k.default is k.empty,
            parameters={
                each: _read_parameter(of, hints.get(each, of.empty), name)
                for each, of in known.items()
                if each not in ("ranked", "k")
            },
        )
        _add(defined)
        return function

    return decorate


def register_aggregate(
    state: Callable[[RankedEdges, int], Tensor],
    range: tuple[float, float] = (0.0, 1.0),
    higher_is_better: bool = True,
    needs: tuple[str, ...] = ("items", "num_items"),
    aliases: tuple[str, ...] = (),
) -> Callable[[Callable[[Tensor], Tensor]], AggregateMetric]:
    """Registers a function of a state that adds up over users as a metric `f(ranked, k)`.

    Args:
        state (callable): Makes the state of the users of a ranking: a tensor whose size does not
            depend on the users, nor on what they are recommended.
        range (tuple, optional): The smallest and the largest value. (default: `(0.0, 1.0)`)
        higher_is_better (bool, optional): Whether higher values are better.
            (default: `True`)
        needs (tuple, optional): What the state is made of, see :func:`register`.
            (default: `("items", "num_items")`)
        aliases (tuple, optional): Other names of the same formula, see :func:`register`.
            (default: `()`)

    Returns:
        A decorator, which takes a function of a sum of states, and returns `f(ranked, k)`.

    Raises:
        ValueError: If the name of the function or an alias is that of another metric, an alias is
            no name in lower case, or the range is not in ascending order.
        TypeError: If an argument has a wrong type.

    Example:
        >>> import torch
        >>> from pyg_recmetrics import metrics
        >>> def num_lists(ranked, k):  # adds up over users, and so over mini-batches
        ...     _, item = ranked.lists.edges(k)
        ...     return torch.bincount(item, minlength=ranked.catalogue.num_items).double()
        >>> @metrics.register_aggregate(state=num_lists)  # doctest: +SKIP
        ... def most_shown(num_lists):
        ...     '''The share of all recommendations that goes to a single item.'''
        ...     return num_lists.max() / num_lists.sum()
    """
    decorate = register(
        range=range,
        higher_is_better=higher_is_better,
        needs_truth=False,
        needs=needs,
        depends_on_order=False,
        aliases=aliases,
    )

    def decorate_aggregate(compute: Callable[[Tensor], Tensor]) -> AggregateMetric:
        # The docstring stands where the metric is computed, but describes how it is called.
        @wraps(compute, assigned=("__name__", "__qualname__", "__module__", "__doc__"))
        def function(ranked: RankedEdges, k: int) -> Tensor:
            return compute(state(ranked, k))

        del function.__wrapped__
        checked = decorate(function)
        set_attributes(_DEFINITIONS[compute.__name__], state=state, compute=compute)
        return checked

    return decorate_aggregate


def names() -> list[str]:
    """Returns the names of all metrics.

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
    """Returns the definition of a metric by its name.

    An alias of a metric is its name, too. Upper and lower case make no difference, and neither do
    `-` and `_`, unless two metrics differ in nothing else.

    Raises:
        TypeError: If `name` is not a string.
        ValueError: If there is no metric of that name; the error lists similar names.

    Example:
        >>> from pyg_recmetrics import metrics
        >>> metrics.definition("recall").summary
        'The fraction of the relevant items that is in the top `k`.'
        >>> metrics.definition("R-Precision").name, metrics.definition("HR").name
        ('r_precision', 'hit_rate')
    """
    _check_spelling(name)
    if name in _DEFINITIONS:
        return _DEFINITIONS[name]
    known = aliases() | {each: each for each in _DEFINITIONS}
    found = known.get(spelled(name, known))
    if found is None:
        close = get_close_matches(folded(name), known)
        similar = list(dict.fromkeys(known[each] for each in close)) or names()
        own = "metrics.names() lists all, and one of your own needs to be registered first"
        lists = written_as(own, "docs/metrics.md lists all")
        raise ValueError(
            f"'metrics' needs to name known metrics, such as {similar} (got {name!r}); "
            f"{lists}; they are of rankings, not of ratings or classes. A cut-off follows '@', as "
            f"in 'recall@20'"
        )
    return _DEFINITIONS[found]


def _check_spelling(value: object, argument: str = "metrics") -> str:
    """Returns `value` if it is a string, as all spellings of metrics are."""
    if isinstance(value, str):
        return value
    got = type(value).__name__
    if argument != "metrics":
        raise TypeError(f"'{argument}' needs to be a string, such as 'recall@20' (got {got})")
    raise TypeError(
        f"'metrics' needs to be a string or a list of strings (got {got}); write "
        f"evaluate(recommender, data, metrics) or Evaluator(data, metrics) in this order, with "
        f"metrics such as 'recall@20'; those of your own go by name, too"
    )


def _add(defined: Definition) -> None:
    """Registers a metric. Running the notebook cell that defines it again replaces it."""
    names = (defined.name, *defined.aliases)
    for owner in _DEFINITIONS.values():
        taken = [name for name in names if name in (owner.name, *owner.aliases)]
        if taken and _place(owner) != _place(defined):
            raise ValueError(
                f"names of metrics need to be new (got '{taken[0]}', which means '{owner.name}', "
                f"a metric of '{owner.function.__module__}')"
            )
    _DEFINITIONS[defined.name] = defined
    _parse.cache_clear()


def _place(defined: Definition) -> tuple[str, str]:
    return defined.function.__module__, defined.function.__qualname__


def _check_properties(range: Any, needs: object, aliases: Any, **booleans: object) -> None:
    """Raises if what its author says of a metric is not of the right type."""
    if callable(range):  # the function itself
        raise TypeError("'register' needs parentheses (got none); write @metrics.register()")
    if not range[0] <= range[1]:
        raise ValueError(f"'range' needs to be in ascending order (got {range!r})")
    for name, value in (("needs", needs), ("aliases", aliases)):
        if not isinstance(value, tuple) or not all(isinstance(part, str) for part in value):
            raise TypeError(f"'{name}' needs to be a tuple of strings (got {value!r})")
    for name, value in booleans.items():
        check_boolean(value, name)
    for alias in aliases:
        if not alias.isidentifier() or alias != folded(alias):
            raise ValueError(
                f"'aliases' needs to hold names in lower case, with '_' for '-' (got {alias!r})"
            )


def _read_parameter(parameter: inspect.Parameter, hint: Any, metric_name: str) -> Parameter:
    """Reads what a parameter takes, and what its values mean, from its annotation."""
    name = parameter.name
    if parameter.default is parameter.empty:
        raise TypeError(f"'{name}' of '{metric_name}' needs a default, for when it is left out")
    match get_args(hint):
        case [given, none] if none is NoneType:
            hint = given
    kind, *meaning = get_args(hint) if get_origin(hint) is Annotated else (hint,)
    choices, make = get_args(kind), partial(Parameter, name, parameter.default)
    match meaning:
        case [] if kind is int:
            return make(int, sentence=f"{name} {{}}", is_cut_off=True)
        case [dict() as words] if choices and words.keys() >= set(choices):
            return make(str, {choice: words[choice] for choice in choices})
        case [str() as sentence] if kind is bool:
            return make(bool, {False: "", True: sentence})
        case [str() as sentence] if kind in (int, float):
            return make(kind, sentence=sentence)
        case [str() as sentence, range() as allowed] if kind is int:
            return make(int, sentence=sentence, allowed=allowed)
    got = "no annotation" if hint is parameter.empty else hint
    raise TypeError(
        f"'{name}' of '{metric_name}' needs words, as in Annotated[float, 'a decay of {{}}'] for a "
        f"number, Annotated[bool, 'words'], or Annotated[Literal['a'], {{'a': 'words'}}] for every "
        f"choice, or to be an integer (got {got})"
    )


@dataclass(frozen=True)
class Metric:
    """A metric with its arguments, as a value that can be called, compared, hashed and printed.

    Args:
        name (str): Its name, one of :func:`names`, or another spelling of it that
            :func:`definition` reads.
        k (int, optional): Its cut-off, if it has one. (default: `None`)
        arguments (tuple, optional): Pairs of a parameter and its value. Parameters that are left
            out have their default. (default: `()`)

    Raises:
        TypeError: If `name` is not a string, or `arguments` does not hold pairs.
        ValueError: If there is no such metric or argument, an argument is given twice, or the
            cut-off is missing, not needed, or not a positive integer.

    Example:
        >>> from pyg_recmetrics import metrics
        >>> metrics.Metric("ndcg", k=10, arguments=(("gain", "exponential"),))
        ndcg(gain=exponential)@10
        >>> metrics.Metric("HR", k=10)
        hit_rate@10
    """

    name: str
    k: int | None = None
    arguments: tuple[tuple[str, Value], ...] = ()

    @classmethod
    def of(cls, defined: Definition, k: int | None, given: Mapping[str, Any]) -> "Metric":
        """Makes a metric of a definition, also of one that another has replaced since."""
        metric = cls.__new__(cls)
        metric._settle(defined, k, given)
        return metric

    def __post_init__(self) -> None:
        try:
            given = dict(self.arguments)
        except (TypeError, ValueError) as error:
            raise TypeError(
                f"'arguments' needs to hold pairs of a name and a value (got {self.arguments!r})"
            ) from error
        if len(given) < len(self.arguments):
            raise ValueError(f"'{self.name}' needs each argument once (got {self.arguments})")
        self._settle(definition(self.name), self.k, given)

    def _settle(self, defined: Definition, k: int | None, given: Mapping[str, Any]) -> None:
        """Sets all attributes, once arguments and cut-off are checked."""
        name, parameters = defined.name, defined.parameters
        if k is None and defined.needs_cut_off:
            raise ValueError(
                f"'{name}' needs a cut-off, as in '{name}@20': 'k' needs to be a positive integer "
                f"(got None)"
            )
        if k is not None and not defined.has_cut_off:
            raise ValueError(f"'{name}' has no cut-off (got '@{k}')")
        checked = {}
        for each, value in given.items():
            if each not in parameters:
                allowed = list(parameters) or "none"
                raise ValueError(f"'{name}' has the arguments {allowed} (got {each!r})")
            checked[each] = parameters[each].check(value)
        # In the order of the parameters. `None` stands for a number that is not given.
        names = [each for each in parameters if checked.get(each) is not None]
        arguments = tuple((each, checked[each]) for each in names)
        k = None if k is None else check_positive_integer(k, "k")
        set_attributes(self, definition=defined, name=name, k=k, arguments=arguments)

    @cached_property
    def definition(self) -> Definition:
        """What is known about the metric, whatever its arguments."""
        return definition(self.name)

    def __deepcopy__(self, memo: object) -> "Metric":
        return self  # It cannot be changed, and keeps its definition.

    def __reduce__(self) -> tuple[type["Metric"], tuple[Any, ...]]:
        return type(self), (self.name, self.k, self.arguments)  # without what is known

    @cached_property
    def label(self) -> str:
        """The metric without its cut-off, as in the first column of a table."""
        arguments = ",".join(f"{name}={value}" for name, value in self.arguments)
        return f"{self.name}({arguments})" if arguments else self.name

    @cached_property
    def depth(self) -> int | None:
        """How deep users must be ranked for it; `None` if everything must be ranked.

        R-precision only needs each user's own depth, which is always ranked.
        """
        defined = self.definition
        if defined.needs_all_ranks or (self.k is None and defined.has_cut_off):
            return None
        return self._deepest[0]

    @property
    def _deepest(self) -> tuple[int, str]:
        """The largest of all cut-offs and its name; one if there is none."""
        given, parameters = self.all_arguments, self.definition.parameters
        cut_offs = [name for name, each in parameters.items() if each.is_cut_off]
        return max([(self.k or 1, "k"), *((int(given[name] or 1), name) for name in cut_offs)])

    @cached_property
    def needs(self) -> tuple[str, ...]:
        """What it needs besides ranks: lists (`"items"`), or what a catalogue holds.

        Example:
            >>> from pyg_recmetrics import metrics
            >>> metrics.parse("diversity(over=embedding)@10").needs
            ('items', 'item_embedding')
        """
        return tuple(need.format_map(self.all_arguments) for need in self.definition.needs)

    @property
    def needs_truth(self) -> bool:
        """Whether it is undefined for users without truth."""
        return self.definition.needs_truth

    @property
    def depends_on_weight(self) -> bool:
        """Whether it tells relevant items of different weight apart.

        Example:
            >>> from pyg_recmetrics import metrics
            >>> spellings = ["recall@20", "recall(weighted=True)@20"]
            >>> [metrics.parse(spelling).depends_on_weight for spelling in spellings]
            [False, True]
        """
        return self.definition.depends_on_weight or self.all_arguments.get("weighted") is True

    @property
    def is_pooled(self) -> bool:
        """Whether the value of a user depends on all others, as that of a micro average does.

        Example:
            >>> from pyg_recmetrics import metrics
            >>> spellings = ["recall@20", "recall(average=micro)@20", "roc_auc(average=candidates)"]
            >>> [metrics.parse(spelling).is_pooled for spelling in spellings]
            [False, True, True]
        """
        return self.all_arguments.get("average", "macro") != "macro"

    @property
    def depth_of_hits(self) -> int | None:
        """The k at which hits are counted that it is relative to; `None` if to nothing of the kind.

        A further hit can lower it, so that the best order of equal scores may not be the highest.

        Example:
            >>> from pyg_recmetrics import metrics
            >>> spellings = ["map@9", "map(normalizer=hits)@9", "ndcg(ideal=retrieved)@7"]
            >>> [metrics.parse(spelling).depth_of_hits for spelling in spellings]
            [None, 9, 7]
        """
        given = self.all_arguments
        if given.get("normalizer") == "hits" or given.get("ideal") == "retrieved":
            return self.k and int(given.get("ideal_k") or self.k)
        return None

    @property
    def is_aggregate(self) -> bool:
        """Whether it has one value for all users together, instead of one for each."""
        return self.definition.state is not None

    def check_catalogue(self, catalogue: Catalogue | None) -> None:
        """Checks that a catalogue holds what the metric needs.

        Raises:
            ValueError: If something is missing; the error says how to give it.
        """
        for name in self.needs:
            if name != "items":
                check_has(catalogue, name, str(self))

    def describe(self) -> str:
        """Returns the metric and the variant of its definition, in words.

        Example:
            >>> from pyg_recmetrics import metrics
            >>> metrics.parse("map(normalizer=hits)@20").describe()
            'map@20 (divided by the number of hits)'
        """
        head = self.name if self.k is None else f"{self.name}@{self.k}"
        return f"{head} ({self.variant})" if self.variant else head

    @property
    def variant(self) -> str:
        """The variant of its definition, in words; empty if there is only one.

        Example:
            >>> from pyg_recmetrics import metrics
            >>> metrics.parse("map(normalizer=hits)@20").variant
            'divided by the number of hits'
        """
        parameters = self.definition.parameters
        said = [
            parameters[name].describe(value)
            for name, value in self.all_arguments.items()
            if value is not None
        ]
        return ", ".join(filter(None, said))

    @property
    def all_arguments(self) -> dict[str, Value | None]:
        """The values of all parameters, those that were not given included."""
        parameters = self.definition.parameters
        return {name: each.default for name, each in parameters.items()} | dict(self.arguments)

    @cached_property
    def _given(self) -> dict[str, Value | None]:
        """All arguments of its function besides the ranking."""
        cut_off = {"k": self.k} if self.definition.has_cut_off else {}
        return cut_off | self.all_arguments

    def __call__(self, ranked: RankedEdges) -> Tensor:
        """Returns the metric of every user, of shape `[num_users]`, `NaN` where it is undefined.

        If it has one value for all users together, returns a tensor with one number.

        Raises:
            TypeError: If `ranked` is not `RankedEdges`.
            ValueError: If the ranking does not hold what the metric needs.
        """
        self.check_holds(check_ranked(ranked))
        defined, truth = self.definition, ranked._grouped
        value = defined.formula(ranked, **self._given)
        if not defined.function.__module__.startswith("pyg_recmetrics."):
            self._check_value(value, ranked)
        if not value.dim() or not defined.needs_truth or truth.num_with_truth == truth.num_users:
            return value
        return value.masked_fill(truth.has_none, torch.nan)

    def check_holds(self, ranked: RankedEdges) -> None:
        """Raises if a ranking does not hold what the metric needs."""
        defined = self.definition
        if defined.needs_all_ranks:
            _check_all_ranks(ranked, self.name)
        if defined.needs_candidates:
            candidates_of(ranked)
        if defined.has_cut_off and ranked.depth is not None:
            self._check_depth(ranked, ranked.depth)
        self.check_catalogue(ranked.catalogue)
        if "seen" in self.needs:
            # The history and the lists need to have the same users.
            seen = catalogue_of(ranked).interactions
            check_ids(seen[0], "seen", "user", ranked.num_users)

    def _check_depth(self, ranked: RankedEdges, depth: int) -> None:
        if self.k is None:
            raise ValueError(
                f"'k' needs to be given, as in '{self.name}@{depth}', or everything ranked with "
                f"'rank(..., full=True)' (got a ranking down to {depth})"
            )
        deepest, name = self._deepest
        if deepest <= depth:
            return
        # So many other relevant items of its user may come before an edge.
        user = ranked.origin.user_of_row
        needed = deepest + (0 if user is None else int(user.bincount().max()) - 1)
        again = written_as(f"rank(..., k={needed})", f"--metrics of 'evaluate' down to @{deepest}")
        raise ValueError(
            f"'{name}' needs to be at most {depth}, the depth of the ranking (got {deepest}); "
            f"write {again}"
        )

    def _check_value(self, value: Any, ranked: RankedEdges) -> None:
        """Raises if a formula of others returns something else than was declared."""
        defined = self.definition
        per_edge = ranked.origin.user_of_row is not None
        is_one = self.is_aggregate or (defined.pools_edges and per_edge)
        wanted = f"a tensor of shape {[] if is_one else [ranked.num_users]} on {ranked.rank.device}"
        got = type(value).__name__
        if isinstance(value, Tensor):
            got = f"a tensor of shape {[*value.shape]} on {value.device}"
        if got != wanted:
            raise ValueError(f"'{self.name}' needs to return {wanted} (got {got})")
        if value.dtype == torch.bool:
            raise ValueError(f"'{self.name}' needs to return numbers (got booleans); add .double()")
        if self.is_pooled:
            return  # the value of a user is then multiplied by its weight
        if not is_one:
            is_defined = ranked._is_evaluated
            if self.needs_truth:
                is_defined = is_defined & (ranked.degree > 0)
            value = value[is_defined]
        low, high = defined.range
        rounding = _ROUNDING * value.abs().clamp(min=1)
        outside = value[(value < low - rounding) | (value > high + rounding)]
        if outside.numel():
            raise ValueError(
                f"'range' of '{self.name}' needs to hold all of its values, and is from {low:g} to "
                f"{high:g} (got {float(outside[0]):g}); write "
                f"@metrics.register(range=(0, math.inf))"
            )

    def __str__(self) -> str:
        return self.label if self.k is None else f"{self.label}@{self.k}"

    __repr__ = __str__


# The grammar in which metrics are spelled: `name(argument=value)@k`.
#
# Other spellings are read as well: aliases of metrics, upper case, and `-` for `_`. All of them
# print as the name of the metric.

# Python reads no numbers of more than 4,300 digits.
_SPELLING = re.compile(
    r"(?P<name>[\w-]+)(?:\((?P<arguments>[^()]*)\))?"
    r"(?:@(?P<k>[1-9][0-9]{0,999}))?",
    flags=re.ASCII,
)


def parse(spelling: str | Metric, argument: str = "metrics") -> Metric:
    """Returns the metric that `name@k` or `name(argument=value)@k` spells, as it is printed.

    Names may be aliases. Names and words may be in upper case, and have `-` for `_`.

    Args:
        spelling (str or Metric): The spelling. A metric is returned as it is.
        argument (str, optional): What an error blames. (default: `"metrics"`)

    Raises:
        TypeError: If `spelling` is not a string.
        ValueError: If it is not spelled like a metric, or there is no such metric or argument.

    Example:
        >>> from pyg_recmetrics import metrics
        >>> metrics.parse("recall@20").k
        20
        >>> str(metrics.parse("ndcg(gain=exponential)@10"))
        'ndcg(gain=exponential)@10'
        >>> metrics.parse("NDCG@20"), metrics.parse("hr@10"), metrics.parse("R-Precision")
        (ndcg@20, hit_rate@10, r_precision)
        >>> metrics.parse("hit_at_4"), metrics.parse("Hit Rate@4"), metrics.parse("TAP@4")
        (hit_rate@4, hit_rate@4, map(normalizer=min)@4)
    """
    if isinstance(spelling, Metric):
        return spelling
    try:
        return _parse(_check_spelling(spelling, argument))
    except (TypeError, ValueError) as error:
        raise type(error)(str(error).replace("'metrics'", f"'{argument}'")) from None


@lru_cache(maxsize=1024)
def _parse(spelling: str) -> Metric:
    match = _SPELLING.fullmatch(_canonical(spelling))
    if match is None:
        several = written_as("as ['recall@5', 'ndcg@20']", "--metrics recall@5 ndcg@20")
        raise ValueError(
            f"'metrics' needs to be spelled 'name', 'name@k' or 'name(argument=value)@k', with a "
            f"positive integer k (got {spelling!r}); write several {several}"
        )
    parameters = definition(match["name"]).parameters
    arguments: list[tuple[str, Value]] = []
    for part in filter(None, (match["arguments"] or "").split(",")):
        name, equals, text = part.partition("=")
        if not equals:
            raise ValueError(f"'metrics' needs arguments as 'name=value' (got {spelling!r})")
        name = spelled(name, parameters)
        arguments.append((name, parameters[name].read(text) if name in parameters else text))
    k = None if match["k"] is None else int(match["k"])
    return Metric(match["name"], k, tuple(arguments))


def _canonical(spelling: str) -> str:
    """Returns a spelling such as `Hit Rate@4`, `p_at_4` or `TAP@4` as one that is read."""
    spelling = re.sub(r"(?<=[a-z]) +(?=[a-z])", "_", spelling, flags=re.IGNORECASE)
    spelling = re.sub(r"_at_(?=[0-9]+$)", "@", spelling.replace(" ", ""))
    return re.sub(r"^tap(?=@|$)", "map(normalizer=min)", spelling, flags=re.IGNORECASE)


def parse_all(spellings: str | Metric | Iterable[str | Metric]) -> tuple[Metric, ...]:
    """Returns the metrics that are spelled, or a single one: each once, in the order given.

    Raises:
        TypeError: If `spellings` is neither a string nor holds strings.
        ValueError: If there is none, or one is not spelled like a metric.

    Example:
        >>> from pyg_recmetrics import metrics
        >>> [str(metric) for metric in metrics.parse_all(["NDCG@20", "ndcg@20", "hr@10"])]
        ['ndcg@20', 'hit_rate@10']
    """
    is_one = isinstance(spellings, str | Metric | Tensor) or not isinstance(spellings, Iterable)
    given: Any = [spellings] if is_one else spellings
    metrics = tuple(dict.fromkeys(map(parse, given)))
    if not metrics:
        raise ValueError("'metrics' needs to name at least one metric (got none)")
    return metrics
