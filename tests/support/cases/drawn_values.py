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
