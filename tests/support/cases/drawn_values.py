"""Values of users in several runs of recommenders of the same mean, many draws at once."""

import numpy as np
import torch

#: The shape and the scale of the effects of users; the scale of what each recommender adds to a
#: user; and the deviation of a single value.
SHAPE_OF_USERS, SCALE_OF_USERS, SCALE_OF_INTERACTION, SD_OF_REST = 0.7, 0.3, 0.08, 0.12

#: The mean of every recommender.
MEAN = SHAPE_OF_USERS * SCALE_OF_USERS


def draw_recommenders(num_runs, deviations, num_draws, num_users=300, seed=48):
    """Values of each recommender, `[num_draws, num_runs, num_users]`.

    Each is the sum of a skewed effect of the user, what the recommender adds to it, an effect of
    the run, of the deviation of the recommender, and a rest.
    """
    rng = np.random.default_rng(seed)
    of_users = rng.gamma(SHAPE_OF_USERS, SCALE_OF_USERS, (num_draws, 1, num_users))
    return [
        torch.from_numpy(
            of_users
            + rng.laplace(0, SCALE_OF_INTERACTION, (num_draws, 1, num_users))
            + rng.normal(0, deviation, (num_draws, number, 1))
            + rng.normal(0, SD_OF_REST, (num_draws, number, num_users))
        )
        for number, deviation in zip(num_runs, deviations, strict=True)
    ]


def draw_gains(share, slope, num_draws, num_users=1000, seed=48):
    """Values of two recommenders, `[num_draws, 1, num_users]`: `a` gains where `b` is low.

    The mean of `a` is larger by a share of that of `b`.
    """
    rng = np.random.default_rng(seed)
    b = rng.random((num_draws, 1, num_users)) ** 3
    a = b + share / 4 + slope * (1 / 4 - b) + rng.normal(0, 0.02, b.shape)
    return torch.from_numpy(a), torch.from_numpy(b)


def draw_linear(num_runs, deviations, rng, num_users=1000):
    """Values of each recommender in one draw, `[num_users, num_runs]`, as `draw_recommenders`."""
    drawn = draw_recommenders(num_runs, deviations, 1, num_users, rng)
    return [values[0].numpy().T for values in drawn]


def draw_recall(num_runs, deviations, rng, num_users=1000):
    """The recall of users in runs of recommenders: binomial, of numbers of items by Zipf's law."""
    num_items = np.minimum(rng.zipf(1.8, (num_users, 1)), 200)
    of_users = 0.1 + 0.8 * rng.beta(0.6, 2.4, (num_users, 1))
    values = []
    for number, deviation in zip(num_runs, deviations, strict=True):
        chance = of_users + rng.uniform(-0.08, 0.08, (num_users, 1))
        chance = chance + rng.normal(0, deviation, (1, number))
        values.append(rng.binomial(num_items, chance.clip(0, 1)) / num_items)
    return values
