"""What the functions of this package take."""

from collections.abc import Iterable, Mapping
from itertools import chain
from typing import TypeAlias

from pyg_recmetrics.checks import check_positive_integer
from pyg_recmetrics.results import EvaluationResult, Runs
from pyg_recmetrics.results.runs import Runnable, runs_of

#: One recommender with one run or several, or several recommenders by name.
Recommenders: TypeAlias = Runnable | Mapping[str, Runnable]


def label(name: str) -> str:
    """Returns a name as matplotlib shows it: it hides what starts with `_`, and `$` starts math."""
    name = name.replace("$", r"\$")
    return f" {name}" if name.startswith("_") else name


def cut_offs_of(recommenders: Iterable[EvaluationResult | Runs], max_k: int | None) -> list[int]:
    """Returns the cut-offs up to `max_k`, or up to where all results know the lists."""
    if max_k is not None:
        return list(range(1, check_positive_integer(max_k, "max_k") + 1))
    results = chain.from_iterable(runs_of(recommender) for recommender in recommenders)
    depths = [result.ranked.depth or result.max_k for result in results]
    finite_depths = [depth for depth in depths if depth is not None]
    if len(finite_depths) < len(depths):
        raise ValueError("'max_k' needs to be given if all candidates were ranked (got None)")
    return list(range(1, min(finite_depths, default=0) + 1))


def noun_of(recommenders: Iterable[EvaluationResult | Runs]) -> str:
    """Returns what means are over, such as `"queries"`; `"users"` if recommenders differ in it."""
    nouns = {runs_of(recommender)[0].nouns.means for recommender in recommenders}
    return nouns.pop() if len(nouns) == 1 else "users"
