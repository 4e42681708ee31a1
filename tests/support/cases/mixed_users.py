"""A task of five users, who differ in their numbers of candidates and relevant items.

User 0 has two relevant items and three candidates. User 1 has a single candidate, which is
relevant. Users 2 to 4 have seen nothing, so that all four items are their candidates; user 4 has no
truth.
"""

import torch

from pyg_recmetrics import RankingTask

TRUTH = torch.tensor([[0, 0, 1, 2, 3], [2, 3, 0, 1, 1]])
SEEN = torch.tensor([[0, 1, 1, 1], [0, 1, 2, 3]])


def task_of_mixed_users():
    return RankingTask(TRUTH, num_users=5, num_items=4, seen=SEEN)
