"""Random worlds through every door, and defects that this comparison has to find."""

import pytest
import torch

from pyg_recmetrics.metrics import accuracy, full_ranking
from pyg_recmetrics.modules.ranking_metric import StreamingMetric
from pyg_recmetrics.ranked_edges import RankedEdges, candidates_of, sources
from pyg_recmetrics.ranking import recommenders
from pyg_recmetrics.results import result
from pyg_recmetrics.task import queries, task
from tests.support.tools import doors

#: Within how many calls of a door each defect has to be found.
MAX_CALLS = 400


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("door", doors.DOORS)
def test_every_door_leads_to_the_same_numbers(door, tmp_path):
    assert sum(doors.check(seed, tmp_path, door) for seed in range(40)) > 3


@pytest.mark.slow
@pytest.mark.parametrize("first", range(1000, 21_000, 2000))
def test_thousands_of_worlds(first, tmp_path):
    for seed in range(first, first + 2000):
        doors.check(seed, tmp_path)


DEFECTS = {
    "classes forget all but the last users": (
        *("list_classes", StreamingMetric, "merge"),
        lambda merge: lambda self, name, value: self.set(name, value),
    ),
    "known answers are ranked": (
        *("score_triples", task, "contains"),
        lambda contains: lambda *given: torch.ones_like(contains(*given)),
    ),
    "edges of other relations hold no truth": (
        *("score_relations", task, "find_leaks"),
        lambda _: lambda *given: {},
    ),
    "candidates of queries are those of all": (
        *("score_queries", queries.Queries, "candidates"),
        lambda candidates: lambda self, given: None,
    ),
    "a list begins at place two": (
        *("list_topk", RankedEdges, "hits"),
        lambda hits: lambda self, k: hits(self, k - 1),
    ),
    "repeated items stay in lists": (
        *("list_matrix", recommenders, "without_repeats"),
        lambda _: lambda lists: lists,
    ),
    "ties of pairs are those of their neighbours": (
        *("score_pairs_of_others", sources, "ranks_within_rows"),
        lambda ranks: (
            lambda *pairs: ranks(*pairs)._replace(num_tied=ranks(*pairs).num_tied.roll(1))
        ),
    ),
    "users without truth do not count": (
        *("score_margin", result, "fill_without_truth"),
        lambda fill: lambda value, degree, _: fill(value, degree, "skip"),
    ),
    "the NDCG ignores weights": (
        *("score_array", accuracy, "_relative_gain"),
        lambda gain: lambda ranked, _, *available: gain(ranked, "binary", *available),
    ),
    "relevant items count as irrelevant": (
        *("score_embeddings", full_ranking, "count_irrelevant"),
        lambda count: candidates_of,
    ),
}


@pytest.mark.slow
@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("name", DEFECTS)
def test_a_planted_defect_is_found(name, monkeypatch, tmp_path):
    door, owner, function, wrap = DEFECTS[name]
    monkeypatch.setattr(owner, function, wrap(getattr(owner, function)))
    with pytest.raises(doors.DoorError, match="instead of"):
        any(doors.check(seed, tmp_path, door) and False for seed in range(MAX_CALLS))
