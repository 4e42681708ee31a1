"""The Gowalla split of the LightGCN paper, with the embeddings of a trained LightGCN."""

import itertools
import json

import pytest
import torch

from pyg_recmetrics import RankingTask, rank


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
    num_users = len(user) // 10
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
    assert peak[1] < 150 * 2**20, peak
    # What is kept of each edge of the truth, such as its rank, may grow; all else is a chunk's.
    assert peak[2] - peak[1] < 300 * (num_edges[2] - num_edges[1]), peak
