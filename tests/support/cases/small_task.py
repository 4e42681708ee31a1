"""A task of three users, and scores of its four items that rank it well and badly."""

import torch

from pyg_recmetrics import RankingTask

TASK = RankingTask(torch.tensor([[0, 0, 1], [1, 2, 2]]), num_users=3, num_items=4)
GOOD_SCORES = torch.tensor([0.0, 0.2, 0.3, 0.1])
BAD_SCORES = torch.tensor([0.3, 0.2, 0.1, 0.4])
