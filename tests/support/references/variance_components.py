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


def components(values):
    """The parts of the variance of a mean, of users and of runs, each with its freedom."""
    num_runs, num_users = values.shape
    users = values.mean(axis=0).var(ddof=1) / num_users
    runs = values.mean(axis=1).var(ddof=1) / num_runs
    rest = _square_of_rest(values) / values.size
    return [(users, num_users - 1)], [(max(0, runs - rest), num_runs - 1)]


def components_of_difference(first, second):
    """The same of the difference of two recommenders alone, and what the rest adds to both."""
    num_users = first.shape[1]
    several = [values for values in (first, second) if len(values) > 1]
    users = (first.mean(axis=0) - second.mean(axis=0)).var(ddof=1) / num_users
    rest = sum(_square_of_rest(values) / values.size for values in several)
    own = [(x.mean(axis=1).var(ddof=1), len(x)) for x in several]
    if len({number for _, number in own}) > 1:  # none is below the pooled one
        most = sum(number - 1 for _, number in own)
        pooled = sum(x * (number - 1) for x, number in own) / most
        runs = [(max(x, pooled) / m, m - 1 if x >= pooled else most) for x, m in own]
    else:
        runs = [(x / m, m - 1) for x, m in own]
    return [(max(0, users - rest), num_users - 1)], runs, rest


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


def cochran(parts, level=0.95):
    """Half the width of the interval with Cochran's quantile: the mean of those of the parts."""
    variance = sum(part for part, _ in parts)
    if variance == 0:
        return 0.0
    tail = (1 - level) / 2
    quantiles = sum(part * stats.t.isf(tail, freedom) for part, freedom in parts)
    return quantiles / variance * math.sqrt(variance)


def margin(first, second):
    """Half the width of the interval of a difference, of which runs are one part."""
    users, runs, _ = components_of_difference(first, second)
    most = sum(len(values) - 1 for values in (first, second))
    return cochran(users + [(part, min(known, most)) for part, known in satterthwaite(runs)])


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


def error_over_persons(values, person):
    """The standard error of a mean by CR2, and its degrees of freedom of Bell and McCaffrey.

    All of it is written with matrices of all rows, as for any regression.
    """
    num_rows = len(person)
    hat = np.full((num_rows, num_rows), 1 / num_rows)
    residuals = np.eye(num_rows) - hat
    for each in np.unique(person):
        rows = person == each
        eigenvalues, vectors = np.linalg.eigh(np.eye(rows.sum()) - hat[np.ix_(rows, rows)])
        residuals[rows] = vectors @ np.diag(eigenvalues**-0.5) @ vectors.T @ residuals[rows]
    sums = np.equal.outer(np.unique(person), person) @ residuals / num_rows
    moments = sums @ sums.T
    freedom = moments.trace() ** 2 / (moments @ moments).trace()
    return np.linalg.norm(sums @ values), freedom
