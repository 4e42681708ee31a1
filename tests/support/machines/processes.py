"""What one of several processes does in the tests of `test_distributed.py`, and what it sees.

python -m tests.support.machines.processes FOLDER
"""

import multiprocessing
import sys
import warnings
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist

from pyg_recmetrics import Catalogue, distributed, evaluate, modules
from tests.support.cases.random_tasks import random_task

NUM_USERS, NUM_ITEMS = 37, 50

#: How many processes evaluate together. Users do not divide by it.
SIZE = 3


def small_task(**options):
    return random_task(NUM_USERS, NUM_ITEMS, truth_share=0.1, seen_share=0.2, **options)


def scores():
    """Scores of which many are equal, and the same for all items for some users."""
    given = torch.randn(NUM_USERS, NUM_ITEMS, generator=torch.Generator().manual_seed(1)).round()
    given[::3] = 0
    return given


def results(call):
    """All that must be the same whatever the number of processes, by name.

    Args:
        call (callable): How a recommender is evaluated on a task.
    """
    given, task = scores(), small_task()
    some = torch.arange(5, 25)
    seen = {
        "scores": call(given, task, ["r_precision", "ndcg@5", "roc_auc", "coverage@5"]),
        "ties": call(given, task, "map@5", ties="mean", keep_items=3),
        "edges": call(given, task, ["hits@5", "mean_rank"], per="edge"),
        "lists": call(given.argsort(descending=True)[:, :-1], task, "recall@5"),
        "users": call(given, small_task(users=some), "mrr", convention="recometrics"),
        "persons": call(given, task.with_person(torch.arange(NUM_USERS) // 2), per="person"),
    }
    return {name: (str(result), dict(result.per_user)) for name, result in seen.items()}


def outcome(function):
    """The error that is raised, or else what is returned."""
    try:
        return function()
    except ValueError as error:
        return str(error)


def by_itself():
    """What one process evaluates while the others do something else."""
    if dist.get_rank() == 1:
        return dict(evaluate(scores(), small_task(), "map@5"))
    return None


def synchronised():
    """What metric classes say of all processes together."""
    me, first_items = dist.get_rank(), torch.zeros(2, 1, dtype=torch.long)
    recall = modules.Recall(k=1)  # which the last process has not updated
    if me < dist.get_world_size() - 1:
        recall.update(torch.arange(me + 1).unsqueeze(1), first_items)
    classes = (modules.Coverage, modules.Gini, modules.Entropy, modules.Personalization)
    of_lists = [cls(k=2, catalogue=Catalogue(NUM_ITEMS)) for cls in classes]
    for metric in of_lists:
        metric.update(lists_of(me), first_items)
    # One keeps few pairs, and one keeps all.
    curves = [modules.PrecisionRecallCurve(max_k=3), modules.PrecisionRecallCurve()]
    for metric in curves:
        metric.update(*pairs_of(me))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*was called before the ``update``")
        return {
            "synchronised": (recall.compute(), recall.state["count"]),
            "synchronised over all": [metric.compute() for metric in of_lists],
            "synchronised curves": [metric.compute() for metric in curves],
        }


def pairs_of(process):
    """Scored pairs of two queries, of which the second has more pairs in later processes."""
    target = torch.arange(4 + process) % 2
    return torch.arange(4.0 + process), target, torch.arange(4 + process).clamp(min=1, max=2)


def lists_of(process):
    return torch.arange(6).view(3, 2) * (process + 1)


def work(process, folder):
    """What one process does, and writes into the folder."""
    dist.init_process_group(
        "gloo",
        init_method=f"file://{folder / 'store'}",
        rank=process,
        world_size=SIZE,
        timeout=timedelta(seconds=30),
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of ties
        seen = {"results": results(distributed.evaluate), "alone": by_itself()}
    few = small_task(users=torch.tensor([5]))
    seen["few users"] = outcome(lambda: distributed.evaluate(scores(), few))
    seen["margin"] = outcome(lambda: distributed.evaluate(scores(), small_task(), margin=0.1))
    if modules.NDCG.__mro__[-2] is not torch.nn.Module:
        seen |= synchronised()
    torch.save(seen, folder / f"{process}.pt")
    dist.destroy_process_group()


def main():
    """Forks processes, which need not import torch again, and prints how those of a group end."""
    torch.set_num_threads(1)
    fork = multiprocessing.get_context("fork")
    folder = Path(sys.argv[1])
    group = [fork.Process(target=work, args=(process, folder)) for process in range(SIZE)]
    for process in group:
        process.start()
    for process in group:
        process.join()
        print(process.exitcode)


if __name__ == "__main__":
    main()
