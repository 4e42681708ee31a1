"""Ranks of recommenders on data sets, and their lift over a baseline."""

import math
from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean

#: Means of equal numbers differ by no more than this share of them.
_DIGITS = 12

#: The mean of each recommender on each data set.
Means = Mapping[str, Mapping[str, float]]


def ranks(means: Mapping[str, float], higher_is_better: bool) -> dict[str, float]:
    """Returns the rank of each recommender, one for the best. Equal means share a mean rank.

    Example:
        >>> ranks({"a": 0.1, "b": 0.3, "c": 0.1}, higher_is_better=True)
        {'a': 2.5, 'b': 1.0, 'c': 2.5}
    """
    sign = 1 if higher_is_better else -1
    values = {name: sign * float(f"{mean:.{_DIGITS}g}") for name, mean in means.items()}
    return {
        name: sum(other > value for other in values.values())
        + (1 + sum(other == value for other in values.values())) / 2
        for name, value in values.items()
    }


def complete_data_sets(means: Means, recommenders: Iterable[str]) -> list[str]:
    """Returns the data sets on which all recommenders have a mean."""
    names = set(recommenders)
    return [data_set for data_set, of_one in means.items() if names <= of_one.keys()]


def mean_ranks(
    means: Means, recommenders: Sequence[str], higher_is_better: bool
) -> dict[str, float]:
    """Returns the mean rank of each recommender over the data sets that have all of them.

    Ranks among different recommenders cannot be averaged. It is `NaN` if there is no such data set.
    """
    found = [
        ranks({name: means[data_set][name] for name in recommenders}, higher_is_better)
        for data_set in complete_data_sets(means, recommenders)
    ]
    return {
        name: fmean(each[name] for each in found) if found else math.nan for name in recommenders
    }


def lifts(means: Means, recommenders: Iterable[str], baseline: str) -> dict[str, float]:
    """Returns how much larger the mean of each recommender is than that of another, in per cent.

    This is the geometric mean of their ratio, over the data sets that have both. It is `NaN` if
    there is none, or a mean is not positive.
    """
    return {name: _lift(means, name, baseline) for name in recommenders}


def _lift(means: Means, name: str, baseline: str) -> float:
    pairs = [
        (of_one[name], of_one[baseline])
        for of_one in means.values()
        if {name, baseline} <= {*of_one}
    ]
    if not pairs or min(map(min, pairs)) <= 0:
        return math.nan
    return 100 * math.expm1(fmean(math.log(mean / other) for mean, other in pairs))
