"""The other doors that a random case can come through, and that lead to the same ranking."""

import warnings

import pandas as pd
import pytest
import torch

from pyg_recmetrics import RankingTask, rank

#: What a task may be made of if it can be given as edges.
_OF_EDGES = {"truth", "num_users", "num_items", "seen", "exclude_seen"}


def check_doors(case, ranked):
    """Ranks a case through every other door that fits, and compares ranks and edges."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of lists that are missing, and of what looks like ids
        for door, recommender, data, options in _doors(case):
            again = rank(recommender, data, **{**case.needs, **case.options, **options})
            assert torch.equal(again.edge_label_index, ranked.edge_label_index), door
            assert torch.equal(again.rank, ranked.rank), door
        _check_integers(case)


def _doors(case):
    if _are_plain_lists(case):
        ids = {
            "user_ids": [f"user {user}" for user in range(case.task.num_users)],
            "item_ids": [f"item {item}" for item in range(case.task.num_items)],
        }
        task = RankingTask(**case.tensors, **ids)
        lists = {
            ids["user_ids"][user]: [ids["item_ids"][item] for item in own if item >= 0]
            for user, own in enumerate(case.lists)
        }
        rows = [(user, item, place) for user in lists for place, item in enumerate(lists[user], 1)]
        frame = pd.DataFrame(rows, columns=["user_id", "item_id", "rank"])
        yield "a dict of lists by id", lists, task, {}
        yield "a frame of ranks", frame[::-1], task, {}
        yield "a frame of scores", frame.assign(score=-frame.pop("rank")), task, {}
    if _is_of_edges(case):
        truth, num_users = case.tensors["truth"], case.task.num_users
        counts = {"num_users": num_users, "num_items": case.task.num_items}
        shift = truth.new_tensor([[0], [num_users]])
        lowest, highest = (int(bound) for bound in truth[1].aminmax())
        if not num_users <= lowest <= highest < case.task.num_items:
            yield "local edges", case.recommender, truth, counts
        if not num_users <= lowest + num_users <= highest + num_users < case.task.num_items:
            yield "edges of a graph", case.recommender, (truth + shift).flip([0]), counts


def _are_plain_lists(case):
    """Whether a case has a list for every user, without repeats and with padding at the end."""
    if case.lists is None or not isinstance(case.recommender, torch.Tensor):
        return False
    if {"user_ids", "item_ids"} & case.tensors.keys():
        return False
    items = [[item for item in own if item >= 0] for own in case.lists]
    return any(items) and all(
        own == [*kept, *[-1] * (len(own) - len(kept))] and len(set(kept)) == len(kept)
        for own, kept in zip(case.lists, items, strict=True)
    )


def _is_of_edges(case):
    """Whether a case has nothing but edges that nobody has seen, nor propagates over."""
    if case.needs:
        return False
    truth, given = case.tensors.get("truth"), case.tensors.keys()
    is_plain = isinstance(truth, torch.Tensor) and truth.dim() == 2 and truth.size(0) == 2
    return is_plain and truth.numel() > 0 and given <= _OF_EDGES and not len(case.task.seen)


def _check_integers(case):
    """Checks that scores which lost their decimal point are refused if they can be no lists."""
    scores = case.recommender
    if not isinstance(scores, torch.Tensor) or scores.dim() != 2 or case.scores is None:
        return
    counts = scores.double().nan_to_num(0, 0, 0).clamp(0, case.task.num_items - 1).long()
    if all(len(set(own)) == len(own) for own in counts.tolist()):
        return
    with pytest.raises(ValueError, match="no item comes twice, or floating-point"):
        rank(counts, RankingTask(**case.tensors))
