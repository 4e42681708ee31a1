"""Results of users and runs that are drawn from known laws, again and again.

The deviations are about those of the NDCG at 20 on LastFM. Every mean that is looked for is zero.
"""

import math
from itertools import count

import torch

from pyg_recmetrics import EvaluationResult, RankedEdges
from pyg_recmetrics.metrics import parse

#: By how much values differ between users, for each user between two recommenders, and at random
#: between the runs of one.
SD_OF_USERS, SD_OF_INTERACTION, SD_OF_REST = 0.18, 0.11, 0.07

#: The share of users who have a hit, and the power of a uniform number that a hit falls short of
#: one by.
_SHARE_OF_HITS, _POWER = 0.2, 0.25


_numbers = count()


class DrawnResult(EvaluationResult):
    """A result whose users have drawn values: row `i` of them is `recall@i`, counted from one."""

    def __init__(self, values):
        num_users = values.shape[1]
        # Each has a ranking of its own, as runs with equal rankings are one.
        self._number = next(_numbers)
        self._drawn_values = values
        generator = torch.Generator().manual_seed(self._number)
        lists = torch.rand(num_users, 2, generator=generator).argsort()
        truth = torch.stack([torch.arange(num_users), torch.zeros(num_users, dtype=torch.long)])
        ranked = RankedEdges.from_topk(lists, truth)
        super().__init__(ranked, "recall@1")

    def _contributions(self, metric):
        return self._drawn_values[parse(metric).k - 1]


def names_of(num_draws):
    """The metrics that hold the draws of results."""
    return [f"recall@{draw}" for draw in range(1, num_draws + 1)]


def runs_of(values):
    """The results of runs, given values of shape `[num_runs, num_draws, num_users]`."""
    return [DrawnResult(of_run) for of_run in values]


def skewed(*shape, generator):
    """Numbers of mean zero and variance one. Four in five are equal, and the skewness is 3.3."""
    uniform = torch.rand(2, *shape, generator=generator, dtype=torch.double)
    values = torch.where(uniform[0] < _SHARE_OF_HITS, 1 - uniform[1] ** _POWER, 0.0)
    first, second = (_SHARE_OF_HITS * moment for moment in _moments_of_hits())
    return (values - first) / math.sqrt(second - first**2)


def _moments_of_hits():
    """The mean of one minus a power of a uniform number, and the mean of its square."""
    return 1 - 1 / (1 + _POWER), 1 - 2 / (1 + _POWER) + 1 / (1 + 2 * _POWER)


def draw_runs(num_runs, num_draws, num_users, *, users, runs, generator):
    """Values of users in runs, `[num_runs, num_draws, num_users]`.

    Each is the sum of an effect of the user, of deviation `users`; an effect of the run, of
    deviation `runs`; and a rest.
    """
    how = {"generator": generator, "dtype": torch.double}
    of_runs = runs * torch.randn(num_runs, num_draws, 1, **how)
    rest = SD_OF_REST * torch.randn(num_runs, num_draws, num_users, **how)
    return users * skewed(num_draws, num_users, generator=generator) + of_runs + rest
