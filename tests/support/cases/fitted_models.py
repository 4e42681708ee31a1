"""Interactions to fit models of other libraries to, and what these are compared with."""

import numpy as np
import torch

from pyg_recmetrics import RankingTask, evaluate, rank

NUM_USERS, NUM_ITEMS = 30, 40


def edges(seed=0):
    """Training and test edges, in which every user and every item comes in training."""
    generator = np.random.default_rng(seed)
    known = generator.random((NUM_USERS, NUM_ITEMS)) < 0.3
    known[np.arange(NUM_ITEMS) % NUM_USERS, np.arange(NUM_ITEMS)] = True
    is_test = ~known & (generator.random(known.shape) < 0.1)
    return np.stack(known.nonzero()), np.stack(is_test.nonzero())


def task_of_positions():
    train, test = edges()
    return RankingTask(
        torch.tensor(test), num_users=NUM_USERS, num_items=NUM_ITEMS, seen=torch.tensor(train)
    )


def task_of_ids(user_ids, item_ids):
    """The same, with original ids of the users and items at these positions."""
    train, test = edges()
    return RankingTask(
        torch.tensor(test),
        num_users=len(user_ids),
        num_items=len(item_ids),
        seen=torch.tensor(train),
        user_ids=tuple(user_ids),
        item_ids=tuple(item_ids),
    )


def ranked_lists(recommender, task, k):
    """The positions of the items that are recommended to every user."""
    return rank(recommender, task, k=k, keep_items=True).lists.to_matrix().tolist()


def lists_of_scores(scores, task, k):
    """The same by a loop that sorts the scores of a library, without what was seen."""
    seen = {(user, item) for user, item in task.seen.t().tolist()}
    lists = []
    for user in range(task.num_users):
        allowed = [item for item in range(task.num_items) if (user, item) not in seen]
        lists.append(sorted(allowed, key=lambda item, of=scores[user]: -of[item])[:k])
    return lists


def recipe_of(recommender, task):
    """The recipe of an evaluation, in one line."""
    return " ".join(str(evaluate(recommender, task, ["recall@5"]).recipe()).split())
