"""Random tasks and scores, the same for the same seed."""

import torch

from pyg_recmetrics import RankingTask


def random_task(num_users, num_items, *, truth_share, seen_share, seed=0, **options):
    """A task in which these shares of all pairs are truth and seen, and no pair is both.

    Options are arguments of the task, which come before what is drawn.
    """
    draw = torch.rand(num_users, num_items, generator=torch.Generator().manual_seed(seed))
    drawn = {
        "truth": (draw < truth_share).nonzero().t(),
        "seen": (draw > 1 - seen_share).nonzero().t(),
    }
    return RankingTask(**{"num_users": num_users, "num_items": num_items, **drawn, **options})


def random_scores(task, seed, skill=0.0):
    """Random scores, to which `skill` is added where an item is relevant."""
    generator = torch.Generator().manual_seed(seed)
    scores = torch.rand(task.num_users, task.num_items, generator=generator)
    scores[tuple(task.truth.cpu())] += skill
    return scores
