"""The grammar in which metrics are spelled: `name(argument=value)@k`.

Other spellings are read as well: aliases of metrics, upper case, and `-` for `_`. All of them print
as the name of the metric.
"""

import re
from collections.abc import Iterable

from torch import Tensor

from pyg_recmetrics.metrics.definitions import MAX_DIGITS, Value, folded
from pyg_recmetrics.metrics.metric import Metric
from pyg_recmetrics.metrics.registry import definition

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
        >>> metrics.parse("hit_at_4"), metrics.parse("TAP@4")
        (hit_rate@4, map(normalizer=min)@4)
    """
    if isinstance(spelling, Metric):
        return spelling
    if not isinstance(spelling, str):
        raise TypeError(
            f"'metrics' needs to be a string or a list of strings (got {type(spelling).__name__})"
        )
    match = _SPELLING.fullmatch(_canonical(spelling.replace(" ", "")))
    if match is None:
        raise ValueError(
            f"'metrics' needs to spell 'name', 'name@k' with a positive integer k, or "
            f"'name(argument=value)@k' (got {spelling!r})"
        )
    parameters = definition(match["name"]).parameters
    by_folded = {folded(name): name for name in parameters}
    arguments: list[tuple[str, Value]] = []
    for part in filter(None, (match["arguments"] or "").split(",")):
        name, equals, text = part.partition("=")
        if not equals:
            raise ValueError(f"'metrics' needs arguments as 'name=value' (got {spelling!r})")
        if name not in parameters:
            name = by_folded.get(folded(name), name)
        arguments.append((name, parameters[name].read(text) if name in parameters else text))
    k = None if match["k"] is None else int(match["k"])
    return Metric(match["name"], k, tuple(arguments))


def _canonical(spelling: str) -> str:
    """Returns a spelling of recometrics, such as `p_at_4` or `TAP@4`, as one that is read."""
    spelling = re.sub(r"_at_(?=[0-9]+$)", "@", spelling)
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
    if isinstance(spellings, str | Metric):
        spellings = (spellings,)
    if not isinstance(spellings, Iterable) or isinstance(spellings, Tensor):
        raise TypeError(
            f"'metrics' needs to be a string or a list of strings (got {type(spellings).__name__})"
        )
    metrics = tuple(dict.fromkeys(parse(spelling) for spelling in spellings))
    if not metrics:
        raise ValueError("'metrics' needs to name at least one metric (got none)")
    return metrics
