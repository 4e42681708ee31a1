"""Where the intervals of a bootstrap end."""

import numpy as np
from scipy import stats


def bca_quantiles(total, num_rows, means, level):
    """The quantiles at which an interval of Efron (1987) ends, by leaving out one person at a time.

    Args:
        total: The sum of the values of each person.
        num_rows: How many rows each person has.
        means: The means of bootstrap samples.
        level: The level of confidence.
    """
    mean = total.sum() / num_rows.sum()
    below = np.mean([(m < mean) + (m == mean) / 2 for m in means])
    bias = stats.norm.ppf(below)
    without = np.array(
        [np.delete(total, i).sum() / np.delete(num_rows, i).sum() for i in range(len(total))]
    )
    deviation = without.mean() - without
    skewness = (deviation**3).sum() / (6 * (deviation**2).sum() ** 1.5)
    z = bias + stats.norm.ppf([(1 - level) / 2, (1 + level) / 2])
    return stats.norm.cdf(bias + z / (1 - skewness * z))
