"""Intervals of means over users and runs, from the sums of squares of textbooks.

It shares no code with the package. What is compared is a list of recommenders, each with the values
of the users in its runs, an array of shape `[num_runs, num_users]`. A second one is subtracted.
Sources: Searle, Casella and McCulloch, "Variance components", 4 (1992); Satterthwaite, "An
approximate distribution of estimates of variance components" (1946); Cochran, "Approximate
significance levels of the Behrens-Fisher test" (1964).
"""

import math

import numpy as np
from scipy import stats


def components(*recommenders):
    """The parts of the variance of a mean or a difference, each with its degrees of freedom.

    Those of users come first, and then that of the runs of each recommender which has several.
    """
    num_users = recommenders[0].shape[1]
    several = [values for values in recommenders if len(values) > 1]
    means_of_users = [values.mean(axis=0) for values in recommenders]
    between = means_of_users[0] - means_of_users[1] if len(recommenders) > 1 else means_of_users[0]
    total = between.var(ddof=1) / num_users
    rests = [_square_of_rest(values) / values.size for values in several]
    # The rest cannot make users differ by more than they do.
    share = min(1, total / sum(rests)) if sum(rests) else 0
    parts = [(max(0, total - sum(rests)), num_users - 1)]
    parts += [(share * rest, num_users - 1) for rest in rests]
    of_runs = [values.mean(axis=1).var(ddof=1) / len(values) for values in several]
    above = [max(0, x - rest) for x, rest in zip(of_runs, rests, strict=True)]
    # Where one varies by less than the rest makes it vary, the other is taken to vary by less.
    kept = max(0, sum(of_runs) - sum(rests)) / sum(above) if sum(above) else 0
    runs = [(kept * x, len(values) - 1) for x, values in zip(above, several, strict=True)]
    return parts, runs


def _square_of_rest(values):
    """The mean square of what neither the user nor the run explains."""
    num_runs, num_users = values.shape
    rest = values - values.mean(axis=0) - values.mean(axis=1, keepdims=True) + values.mean()
    return (rest**2).sum() / (num_runs - 1) / (num_users - 1)


def satterthwaite(parts):
    """Several parts as one, which has Satterthwaite's degrees of freedom."""
    variance = sum(part for part, _ in parts)
    if variance == 0:
        return []
    return [(variance, variance**2 / sum(part**2 / freedom for part, freedom in parts))]


def cochran(parts, level=0.95, power=1):
    """Half the width of the interval with Cochran's quantile: the mean of those of the parts."""
    variance = sum(part for part, _ in parts)
    if variance == 0:
        return 0.0
    tail = (1 - level) / 2
    quantiles = sum(part * stats.t.isf(tail, freedom) ** power for part, freedom in parts)
    return (quantiles / variance) ** (1 / power) * math.sqrt(variance)


def margin(*recommenders):
    """Half the width of the interval: runs are one part, but for two of one beside more."""
    users, runs = components(*recommenders)
    of_two = [freedom == 1 for _, freedom in runs]
    if any(of_two) and not all(of_two):
        return cochran(users + runs, power=3)
    return cochran(users + satterthwaite(runs))


def margin_over_runs(groups, level=0.95):
    """Half the width of the interval of a weighted sum of means, with Cochran's quantile.

    Args:
        groups: A weight and the values of a group in each run, of shape `[num_runs, num_users]`,
            for each group of users. No user is in two of them.
        level: The level of confidence.
    """
    groups = [(weight, np.asarray(values)) for weight, values in groups]
    num_runs = len(groups[0][1])
    freedom = min(values.shape[1] for _, values in groups) - 1
    of_users = of_rest = of_run = 0
    for weight, values in groups:
        factor = weight**2 / values.shape[1]
        of_users += factor * values.mean(axis=0).var(ddof=1)
        of_rest += factor * _square_of_rest(values) / num_runs
        of_run += weight * values.mean(axis=1)
    of_runs = of_run.var(ddof=1) / num_runs
    share = min(1, of_users / of_rest) if of_rest else 0
    parts = [
        (max(0, of_users - of_rest), freedom),
        (share * of_rest, freedom),
        (max(0, of_runs - of_rest), num_runs - 1),
    ]
    return cochran(parts, level)
