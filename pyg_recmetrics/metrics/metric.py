"""Metric: the value that stands for a metric with its arguments, and how it is spelled."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from torch import Tensor

from pyg_recmetrics.checks import check_positive_integer
from pyg_recmetrics.metrics.registry import (
    MAX_DIGITS,
    PARSED,
    Definition,
    Value,
    check_ranked,
    check_spelling,
    definition,
    spelled,
)
from pyg_recmetrics.ranked_edges import RankedEdges
from pyg_recmetrics.task import Catalogue
from pyg_recmetrics.task.catalogue import check_has
from pyg_recmetrics.utils import set_attributes, written_as


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

    def __post_init__(self) -> None:
        defined = self.definition
        set_attributes(self, name=defined.name)
        if defined.needs_cut_off and self.k is None:
            raise ValueError(f"'{self.name}' needs a cut-off, as in '{self.name}@20' (got none)")
        if not defined.has_cut_off and self.k is not None:
            raise ValueError(f"'{self.name}' has no cut-off (got '@{self.k}')")
        if self.k is not None:
            set_attributes(self, k=check_positive_integer(self.k, "k"))
        given: dict[str, Value | None] = {}
        for name, value in _pairs(self.arguments):
            if name not in defined.parameters:
                allowed = list(defined.parameters) or "none"
                raise ValueError(f"'{self.name}' has the arguments {allowed} (got {name!r})")
            if name in given:
                raise ValueError(f"'{self.name}' needs each argument once (got {name!r} twice)")
            given[name] = defined.parameters[name].check(value)
        # `None` stands for a number that is not given.
        in_order = ((name, given.get(name)) for name in defined.parameters)
        set_attributes(self, arguments=tuple(pair for pair in in_order if pair[1] is not None))

    @cached_property
    def definition(self) -> Definition:
        """What is known about the metric, whatever its arguments."""
        return definition(self.name)

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
        others = [int(value) for name, value in self.arguments if name in defined.cut_offs]
        return max([self.k or 1, *others])

    @cached_property
    def needs(self) -> tuple[str, ...]:
        """What it needs besides ranks: lists (`"items"`), or what a catalogue holds.

        Example:
            >>> from pyg_recmetrics import metrics
            >>> metrics.parse("diversity(over=embedding)@10").needs
            ('items', 'item_embedding')
        """
        return self.definition.needs_with(self.all_arguments)

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
        values = self.all_arguments
        said = [
            parameter.describe(value)
            for name, parameter in self.definition.parameters.items()
            if (value := values[name]) is not None
        ]
        return ", ".join(filter(None, said))

    @cached_property
    def all_arguments(self) -> dict[str, Value | None]:
        """The values of all parameters, those that were not given included."""
        parameters = self.definition.parameters
        defaults = {name: parameter.default for name, parameter in parameters.items()}
        return defaults | dict(self.arguments)

    def __call__(self, ranked: RankedEdges) -> Tensor:
        """Returns the metric of every user, of shape `[num_users]`, `NaN` where it is undefined.

        If it has one value for all users together, returns a tensor with one number.
        """
        of_k = {"k": self.k} if self.definition.has_cut_off else {}
        return self.definition.measure(check_ranked(ranked), self.all_arguments | of_k)

    def __str__(self) -> str:
        return self.label if self.k is None else f"{self.label}@{self.k}"

    def __repr__(self) -> str:
        return str(self)


def _pairs(arguments: object) -> list[tuple[str, Value]]:
    """Returns the pairs of a name and a value in what was given as arguments."""
    items = arguments.items() if isinstance(arguments, Mapping) else arguments
    if not isinstance(items, Iterable) or isinstance(items, str | Tensor):
        raise TypeError(f"'arguments' needs to hold pairs (got {type(arguments).__name__})")
    pairs = list(items)
    for pair in pairs:
        if not isinstance(pair, tuple) or len(pair) != 2 or not isinstance(pair[0], str):
            raise TypeError(f"'arguments' needs to hold pairs of a name and a value (got {pair!r})")
    return pairs


# The grammar in which metrics are spelled: `name(argument=value)@k`.
#
# Other spellings are read as well: aliases of metrics, upper case, and `-` for `_`. All of them
# print as the name of the metric.

_SPELLING = re.compile(
    r"(?P<name>[\w-]+)(?:\((?P<arguments>[^()]*)\))?"
    rf"(?:@(?P<k>[1-9][0-9]{{0,{MAX_DIGITS - 1}}}))?",
    flags=re.ASCII,
)


def parse(spelling: str | Metric) -> Metric:
    """Reads `name@k` or `name(argument=value)@k`. This is the inverse of printing a `Metric`.

    Names may be aliases. Names and words may be in upper case, and have `-` for `_`.

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
    metric: Metric | None = PARSED.get(check_spelling(spelling))
    if metric is None:
        metric = _parse(spelling)
        if len(PARSED) >= _MAX_PARSED:
            PARSED.clear()
        PARSED[spelling] = metric
    return metric


#: So many spellings are kept with the metrics that they were read as.
_MAX_PARSED = 1024


def _parse(spelling: str) -> Metric:
    match = _SPELLING.fullmatch(_canonical(spelling))
    if match is None:
        several = written_as("as ['recall@5', 'ndcg@20']", "--metrics recall@5 ndcg@20")
        raise ValueError(
            f"'metrics' needs to spell 'name', 'name@k' or 'name(argument=value)@k', with a "
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
    """Reads several metrics, or a single one. Each is kept once, in the order given.

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
