"""Results of users, runs and persons that are drawn from known laws, again and again.

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

#: How many rows a person has on average, and the share of their variance that comes from persons.
ROWS_OF_PERSON, SHARE_OF_PERSONS = 6.7, 0.5

#: The share of users who have a hit, and the power of a uniform number that a hit falls short of
#: one by.
_SHARE_OF_HITS, _POWER = 0.2, 0.25


_numbers = count()


class DrawnResult(EvaluationResult):
    """A result whose users have drawn values: row `i` of them is `recall@i`, counted from one."""

    def __init__(self, values, person=None):
        num_users = values.shape[1]
        # Each has a ranking of its own, as runs with equal rankings are one.
        self._number = next(_numbers)
        self._drawn_values = values
        generator = torch.Generator().manual_seed(self._number)
        lists = torch.rand(num_users, 2, generator=generator).argsort()
        truth = torch.stack([torch.arange(num_users), torch.zeros(num_users, dtype=torch.long)])
        ranked = RankedEdges.from_topk(lists, truth)
        super().__init__(ranked if person is None else ranked.with_person(person), "recall@1")

    def _contributions(self, metric):
        return self._drawn_values[parse(metric).k - 1]


def names_of(num_draws):
    """The metrics that hold the draws of results."""
    return [f"recall@{draw}" for draw in range(1, num_draws + 1)]


def runs_of(values):
    """The results of runs, given values of shape `[num_runs, num_draws, num_users]`."""
    return [DrawnResult(of_run) for of_run in values]


def normal(*shape, generator):
    return torch.randn(*shape, generator=generator, dtype=torch.double)


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
    of_runs = runs * normal(num_runs, num_draws, 1, generator=generator)
    rest = SD_OF_REST * normal(num_runs, num_draws, num_users, generator=generator)
    return users * skewed(num_draws, num_users, generator=generator) + of_runs + rest


def draw_persons(law, num_draws, num_persons, *, generator):
    """Values of rows, `[num_draws, num_rows]`, and the person of each: `[num_rows]`.

    Most persons have a few rows, and some have many.
    """
    num_rows = torch.empty(num_persons).geometric_(1 / ROWS_OF_PERSON, generator=generator)
    person = torch.arange(num_persons).repeat_interleave(num_rows.long())
    of_persons, of_rows = (
        law(num_draws, n, generator=generator) for n in (num_persons, len(person))
    )
    values = math.sqrt(SHARE_OF_PERSONS) * of_persons[:, person]
    return values + math.sqrt(1 - SHARE_OF_PERSONS) * of_rows, person
