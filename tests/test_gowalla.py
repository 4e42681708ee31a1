"""The Gowalla split of the LightGCN paper, with the embeddings of a trained LightGCN."""

import subprocess
import sys

import pytest
import torch

from pyg_recmetrics import RankingTask, evaluate


def precision_and_recall(user, item, train, test, k, batch_size):
    """What the evaluation loop of PyG's `examples/lightgcn.py` computes, in its own steps.

    For a batch of users: score all items, mask those of the training edges, take the top k, mark
    the test edges in a dense matrix, look up the recommended ones, and add up the precision and
    recall of the users that have test edges.
    """
    precision = recall = num_examples = 0
    for start in range(0, user.size(0), batch_size):
        scores = user[start : start + batch_size] @ item.t()
        truth = torch.zeros(scores.shape, dtype=torch.bool)
        for edges, kind in ((train, "train"), (test, "test")):
            batch = edges[:, (edges[0] >= start) & (edges[0] < start + batch_size)]
            if kind == "train":
                scores[batch[0] - start, batch[1]] = -torch.inf
            else:
                truth[batch[0] - start, batch[1]] = True
        num_relevant = truth.sum(dim=1)
        hits = truth.gather(1, scores.topk(k, dim=1).indices).sum(dim=1)
        precision += float((hits / k).sum())
        recall += float((hits / num_relevant.clamp(min=1e-6)).sum())
        num_examples += int((num_relevant > 0).sum())
    return precision / num_examples, recall / num_examples


def test_precision_and_recall_are_those_of_the_loop_in_pygs_example(gowalla):
    train, test, user, item = gowalla
    task = RankingTask(test, num_users=29858, num_items=40981, seen=train)
    result = evaluate((user, item), task, ["precision@20", "recall@20"])
    precision, recall = precision_and_recall(user, item, train, test, k=20, batch_size=1024)
    assert result["precision@20"] == pytest.approx(precision, abs=1e-6)
    assert result["recall@20"] == pytest.approx(recall, abs=1e-6)


PEAK = """
import sys, threading, psutil, torch, numpy as np
from pyg_recmetrics import RankingTask, rank
folder, copies, algorithm = sys.argv[1], int(sys.argv[2]), sys.argv[3]
graph, model = np.load(folder + "/graph.npz"), np.load(folder + "/lightgcn.npz")
shift = torch.tensor([[29858], [0]])
train, test = (
    torch.cat([torch.from_numpy(graph[name]).long() + copy * shift for copy in range(copies)], 1)
    for name in ("train", "test")
)
user = torch.from_numpy(model["user"]).float().repeat(copies, 1)
item = torch.from_numpy(model["item"]).float()
task = RankingTask(test, num_users=len(user), num_items=len(item), seen=train)
process, used, done = psutil.Process(), [], threading.Event()
before = process.memory_info().rss
def watch():
    while not done.wait(0.005):
        used.append(process.memory_info().rss - before)
watcher = threading.Thread(target=watch)
watcher.start()
rank((user, item), task, k=20, algorithm=algorithm)
done.set()
watcher.join()
print(max(used) / 2**20)
"""


@pytest.mark.parametrize("algorithm", ["dense", "bounded"])
def test_memory_is_bounded_whatever_the_number_of_users(gowalla_folder, algorithm):
    peak = {}
    for copies in (1, 2):
        command = [sys.executable, "-c", PEAK, str(gowalla_folder), str(copies), algorithm]
        peak[copies] = float(subprocess.check_output(command))
    assert 50 < peak[1] < 600, peak
    # What is kept of each edge of the truth, such as its rank, may grow; all else is a chunk's.
    megabytes_for_truth = 300 * 217_242 / 2**20
    assert peak[2] - peak[1] < megabytes_for_truth, peak
