"""A long job: it evaluates one part after the other, and may be killed at any moment."""

import torch

from pyg_recmetrics import evaluate
from tests.support.cases.random_tasks import random_task

NUM_PARTS = 20

#: Means over users, and metrics of lists, which no mean over parts gives.
METRICS = ["r_precision", "ndcg@20", "roc_auc", "coverage@20", "gini@20"]


def problem():
    task = random_task(6000, 1500, truth_share=0.005, seen_share=0.01)
    generator = torch.Generator().manual_seed(1)
    user, item = (torch.randn(size, 16, generator=generator) for size in (6000, 1500))
    return (user, item), task


def part_file(folder, index):
    return folder / f"part-{index:02}.npz"


def job(folder, started):
    """Evaluates the parts whose files are not there yet."""
    torch.set_num_threads(1)
    model, task = problem()
    started.set()
    for index in range(NUM_PARTS):
        file = part_file(folder, index)
        if not file.exists():
            evaluate(model, task.part(index, NUM_PARTS), METRICS).save(file)
