"""The Gowalla split of the LightGCN paper, with the embeddings of a trained LightGCN.

These tests are of several modules together: the ranking at its full size, and metrics of it.
"""

import itertools
import json

import pytest
import torch

from pyg_recmetrics import RankingTask, evaluate, rank


def precision_and_recall(user, item, train, test, k, batch_size):
    """Follows the evaluation loop of PyG's `examples/lightgcn.py` step by step.

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


@pytest.mark.slow
def test_precision_and_recall_are_those_of_the_loop_in_pygs_example(gowalla):
    train, test, user, item = gowalla
    task = RankingTask(test, num_users=len(user), num_items=40981, seen=train)
    result = evaluate((user, item), task, ["precision@20", "recall@20"])
    precision, recall = precision_and_recall(user, item, train, test, k=20, batch_size=1024)
    assert result["precision@20"] == pytest.approx(precision, abs=1e-6)
    assert result["recall@20"] == pytest.approx(recall, abs=1e-6)


def peak_memory(function, trace_file):
    """How many bytes tensors held at the peak of a function, by PyTorch's profiler."""
    activities = [torch.profiler.ProfilerActivity.CPU]
    with torch.profiler.profile(activities=activities, profile_memory=True) as profile:
        function()
    profile.export_chrome_trace(str(trace_file))
    events = json.loads(trace_file.read_text())["traceEvents"]
    events = [event for event in events if event["name"] == "[memory]"]
    events.sort(key=lambda event: event["ts"])
    return max(itertools.accumulate(event["args"]["Bytes"] for event in events))


@pytest.mark.slow
@pytest.mark.parametrize("algorithm", ["dense", "count", "search"])
def test_memory_is_bounded_whatever_the_number_of_users(gowalla, algorithm, tmp_path):
    train, test, user, item = gowalla
    # Many more than a chunk has.
    num_users = len(user) // 4
    peak, num_edges = {}, {}
    for times in (1, 2):
        some = times * num_users
        truth, seen = (edges[:, edges[0] < some] for edges in (test, train))
        task = RankingTask(truth, num_users=some, num_items=len(item), seen=seen)
        embeddings = (user[:some], item)
        num_edges[times] = truth.size(1)
        peak[times] = peak_memory(
            lambda task=task, embeddings=embeddings: rank(
                embeddings, task, k=20, algorithm=algorithm
            ),
            tmp_path / "trace.json",
        )
    assert peak[1] < 600 * 2**20, peak
    # What is kept of each edge of the truth, such as its rank, may grow; all else is a chunk's.
    assert peak[2] - peak[1] < 300 * (num_edges[2] - num_edges[1]), peak
