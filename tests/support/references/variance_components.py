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
    """The parts of the variance of a mean or a difference, each with its degrees of freedom."""
    num_users = recommenders[0].shape[1]
    several = [values for values in recommenders if len(values) > 1]
    means_of_users = [values.mean(axis=0) for values in recommenders]
    between = means_of_users[0] - means_of_users[1] if len(recommenders) > 1 else means_of_users[0]
    total = between.var(ddof=1) / num_users
    rests = [_square_of_rest(values) / values.size for values in several]
    # The rest cannot make users differ by more than they do.
    share = min(1, total / sum(rests)) if sum(rests) else 0
    parts = [(max(0, total - sum(rests)), num_users - 1)]
    for values, rest in zip(several, rests, strict=True):
        num_runs = len(values)
        of_runs = values.mean(axis=1).var(ddof=1) / num_runs
        parts += [(share * rest, num_users - 1), (max(0, of_runs - rest), num_runs - 1)]
    return parts


def _square_of_rest(values):
    """The mean square of what neither the user nor the run explains."""
    num_runs, num_users = values.shape
    rest = values - values.mean(axis=0) - values.mean(axis=1, keepdims=True) + values.mean()
    return (rest**2).sum() / (num_runs - 1) / (num_users - 1)


def satterthwaite(parts, level=0.95):
    """Half the width of the interval with Satterthwaite's degrees of freedom."""
    variance = sum(part for part, _ in parts)
    if variance == 0:
        return 0.0
    freedom = variance**2 / sum(part**2 / freedom for part, freedom in parts)
    return stats.t.isf((1 - level) / 2, freedom) * math.sqrt(variance)


def cochran(parts, level=0.95):
    """Half the width of the interval with Cochran's quantile: the mean of those of the parts."""
    variance = sum(part for part, _ in parts)
    if variance == 0:
        return 0.0
    tail = (1 - level) / 2
    quantiles = sum(part * stats.t.isf(tail, freedom) for part, freedom in parts)
    return quantiles / variance * math.sqrt(variance)


def margin(*recommenders):
    """Half the width of the interval of a difference: careful where little is known of runs."""
    parts = components(*recommenders)
    several = [len(values) for values in recommenders if len(values) > 1]
    of_runs = [part for part, _ in parts[2::2]]
    is_lopsided = max(of_runs, default=0) > 0.8 * sum(of_runs)
    if len(several) < 2 or min(several) == 2 or is_lopsided:
        return cochran(parts)
    return satterthwaite(parts)


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


def over_runs(values, level=0.95):
    """Half the width of the t-interval of the means of runs, as if they were all there is."""
    means = values.mean(axis=1)
    return stats.t.isf((1 - level) / 2, len(means) - 1) * stats.sem(means)
