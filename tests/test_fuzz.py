"""Random rankings against the oracle, and defects that this comparison has to find."""

import math
from dataclasses import replace
from unittest import mock

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from pyg_recmetrics.kernels.entries import Entries
from pyg_recmetrics.kernels.exact import scores
from pyg_recmetrics.kernels.exact.ranks import Ranks
from pyg_recmetrics.kernels.exact.scores import ItemFactors
from pyg_recmetrics.kernels.fast import rounded_items, searching
from pyg_recmetrics.kernels.fast.bounded_counting import BoundedCount
from pyg_recmetrics.kernels.fast.rounded_items import RoundedItems
from pyg_recmetrics.kernels.fast.searching import FastProducts, GivenScores, Search
from pyg_recmetrics.ranked_edges import (
    RankedEdges,
    ranked_edges,
    ties,
)
from pyg_recmetrics.ranking import adapt, algorithms, recommenders
from pyg_recmetrics.ranking import recommenders as ranked_embeddings
from pyg_recmetrics.ranking.recommenders import EmbeddingRecommender
from pyg_recmetrics.ranking.schedule import Chunk, Schedule
from pyg_recmetrics.task import edges, preparation
from tests.support.references import oracle
from tests.support.tools import fuzz

#: Within how many cases each defect has to be found.
MAX_CASES = 2500

#: Cases that reach every line of the package which any case from 5000 to 5149 reaches.
REACHING_ALL_LINES = [
    *(5003, 5022, 5023, 5024, 5025, 5032, 5041, 5048, 5059, 5064, 5072, 5076, 5077, 5083, 5093),
    *(5099, 5109, 5129, 5130, 5142, 5148),
]


@settings(max_examples=100)
@given(seed=st.integers(0, 2**32 - 1))
def test_any_case_is_as_the_oracle_says(seed):
    fuzz.run(seed)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, 2000, 200))
def test_two_thousand_cases_are_as_the_oracle_says(first):
    failures = [failure for failure in map(failure_of, range(first, first + 200)) if failure]
    assert not failures, "\n".join(failures)


@pytest.mark.parametrize(
    "seeds",
    [REACHING_ALL_LINES, pytest.param(range(5000, 5150), marks=pytest.mark.slow)],
    ids=["reaching all lines", "all"],
)
def test_cases_on_any_device_are_as_the_oracle_says(seeds, device):
    failures = [failure_of(seed, device) for seed in seeds]
    assert not any(failures), "\n".join(filter(None, failures))


def failure_of(seed, device="cpu"):
    """What is wrong with the case of a seed, or `None`."""
    try:
        fuzz.run(seed, device)
    except fuzz.FuzzError as error:
        return str(error)


@given(
    number=st.floats(
        width=64, allow_nan=False, allow_infinity=False, min_value=-(2.0**126), max_value=2.0**126
    )
    | st.integers(-(2**60), 2**60).map(lambda whole: math.ldexp(whole, -200))
    | st.integers(-(2**25), 2**25).map(lambda whole: math.ldexp(whole, -60))
)
def test_the_oracle_rounds_as_processors_do(number):
    whole, below = number.as_integer_ratio()
    rounded = oracle.rounded_to_single(whole, 1 - below.bit_length())
    assert rounded == torch.tensor(number, dtype=torch.double).float().item()


def wrapped(owner, name, wrap):
    """A defect: what replaces a function, given the function."""
    return lambda patch: patch.setattr(owner, name, wrap(getattr(owner, name)))


def without_seen(chunk):
    nothing = chunk.seen.row[:0]
    return replace(chunk, seen=replace(chunk.seen, index=nothing, row=nothing, item=nothing))


def with_other(name, change):
    """A method that finds an attribute of its object changed."""

    def wrap(method):
        def changed(self, *args):
            with mock.patch.object(self, name, change(getattr(self, name))):
                return method(self, *args)

        return changed

    return wrap


def next_value(values):
    """The next larger numbers."""
    if values.dtype == torch.int16:
        return values + 1
    return values.nextafter(torch.tensor(torch.inf, dtype=values.dtype))


def without_edges(edges):
    return Entries(edges.row[:0], edges.column[:0], edges.ptr.numel() - 1)


def higher_id_first(top_k):
    def reversed_top_k(values, k, scratch):
        found = top_k(values.flip(1), k, scratch)
        last = values.size(1) - 1
        column = torch.where(found.column < 0, -1, last - found.column)
        return found._replace(column=column)

    return reversed_top_k


DEFECTS = {
    "many items above count as one more": wrapped(
        BoundedCount,
        "_ranks_among",
        lambda ranks_among: (
            lambda self, close, user, item, score, above: ranks_among(
                self, close, user, item, score, above + (above > 3)
            )
        ),
    ),
    "of equal scores, the higher id ranks first": wrapped(recommenders, "top_k", higher_id_first),
    "seen items are ranked": wrapped(
        Chunk,
        "adjacency",
        lambda adjacency: lambda self, *part: adjacency(without_seen(self), *part),
    ),
    **{
        f"seen items are ranked by {how.__name__}": wrapped(
            how, "rank", lambda rank: lambda self, chunk: rank(self, without_seen(chunk))
        )
        for how in (
            algorithms.SearchProducts,
            algorithms.SearchGivenScores,
            algorithms.CountByBound,
        )
    },
    **{
        f"users left unsettled by {how.__name__} are taken for settled": wrapped(
            how,
            "rank",
            lambda rank: lambda self, chunk: rank(self, chunk)._replace(is_unsettled=None),
        )
        for how in (
            algorithms.SearchProducts,
            algorithms.SearchGivenScores,
            algorithms.CountByBound,
        )
    },
    "shared candidates are forgotten by what rounds items": wrapped(
        RoundedItems,
        "__init__",
        lambda init: lambda self, factors, _, dtype: init(self, factors, None, dtype),
    ),
    "shared candidates are forgotten by what searches given scores": wrapped(
        GivenScores,
        "__init__",
        lambda init: lambda self, matrix, row, _: init(self, matrix, row, None),
    ),
    "the bound of items is zero": wrapped(
        rounded_items.ErrorBound, "of", lambda of: lambda *items: 0 * of(*items)
    ),
    "norms are too small": wrapped(
        FastProducts,
        "num_within_reach",
        lambda num_within: lambda self, score: num_within(self, 1.2 * score),
    ),
    "the sieve takes all users for settled": wrapped(
        Search,
        "_sieve",
        lambda sieve: (
            lambda self: (
                sieve(self),
                self.reach.masked_fill_(self.reach > -torch.inf, torch.inf),
            )
        ),
    ),
    "the sieve counts seen items": wrapped(Search, "_sieve", with_other("masked", without_edges)),
    "what is relevant is found twice": wrapped(
        Search, "_items_within_reach", with_other("relevant", without_edges)
    ),
    "one position too few is within reach": wrapped(
        Search, "_raise_reach", with_other("depth", lambda depth: (depth - 1).clamp(min=1))
    ),
    "what has the lowest score that matters is not found": wrapped(
        Search,
        "_find_places",
        lambda take: (
            lambda self, rows, blocks, maxima, threshold: take(
                self, rows, blocks, maxima, next_value(threshold)
            )
        ),
    ),
    "close scores are not settled": wrapped(
        Search, "_sort_exactly", lambda settle: lambda self, *found: None
    ),
    "the last columns are forgotten": wrapped(
        Search,
        "_items_within_reach",
        lambda find: (
            lambda self, rows, width: find(self, rows, width.clamp(max=searching.MAX_COLUMNS))
        ),
    ),
    "columns behind the last item are items": wrapped(
        searching, "nothing_of", lambda nothing: lambda dtype: 0
    ),
    "negative numbers are in the order of their bits": wrapped(
        searching, "put_in_order_", lambda _: lambda bits: bits
    ),
    "numbers are not rounded to a neighbour": wrapped(
        FastProducts,
        "to_score",
        lambda to_score: lambda self, value: 1.1 * to_score(self, value),
    ),
    "a score that is not finite is not noted": wrapped(
        recommenders.ScoreMask, "note_highest", lambda note: lambda self, highest: None
    ),
    "a user is searched as deep as all others": wrapped(
        Search,
        "__init__",
        lambda init: (
            lambda self, scores, depth, *others: init(
                self, scores, torch.full_like(depth, depth.min()), *others
            )
        ),
    ),
    "a bias counts twice": wrapped(
        ranked_embeddings,
        "with_column",
        lambda with_column: lambda user, ones: with_column(user, 2 * ones),
    ),
    "items are read in single precision": wrapped(
        ItemFactors, "double", lambda _: lambda self, index: self.single(index).double()
    ),
    "repeated truth has its smallest weight": wrapped(
        edges, "scatter", lambda scatter: lambda *a, **b: scatter(*a, **b | {"reduce": "min"})
    ),
    "a user's own depth is forgotten": wrapped(
        Ranks,
        "forget_beyond",
        lambda forget: lambda self, depth: forget(self, depth.sort().values[:1].expand_as(depth)),
    ),
    "all users are evaluated": lambda patch: patch.setattr(
        RankedEdges, "_is_evaluated", property(lambda self: self.degree >= 0)
    ),
    "ties do not look at weights": wrapped(
        ranked_edges,
        "break_ties",
        lambda break_ties: lambda edges, weight, *others: break_ties(edges, None, *others),
    ),
    "half ranks are rounded": wrapped(
        ranked_edges, "break_ties", lambda break_ties: lambda *args: break_ties(*args).floor()
    ),
    "random places may lie behind all ties": wrapped(
        ties, "_random_shift", lambda shift: lambda *args: shift(*args) + 1
    ),
    "shared candidates are forgotten": wrapped(
        Schedule,
        "chunks",
        lambda chunks: lambda *args: (replace(chunk, is_excluded=None) for chunk in chunks(*args)),
    ),
    "the last tile is forgotten": wrapped(
        EmbeddingRecommender,
        "_masked_tiles",
        lambda tiles: (
            lambda self, *chunk: (
                (first, scores)
                for first, scores in tiles(self, *chunk)
                if first == 0 or first + self.items_at_once < self.items.num_items
            )
        ),
    ),
    "scores are rounded to single precision": wrapped(
        recommenders.FunctionRecommender,
        "given",
        lambda given: lambda *users: (given(*users)[0].float(), given(*users)[1]),
    ),
    "scores of items are rounded to single precision": wrapped(
        adapt,
        "as_tensor",
        lambda read: (
            lambda given, name: (
                read(given, name).float() if read(given, name).dim() == 1 else read(given, name)
            )
        ),
    ),
    "inner products are computed in single precision": lambda patch: patch.setattr(
        ranked_embeddings,
        "inner_product_matrix",
        lambda user, item, _: user.float() @ item.embedding.float().t(),
    ),
    "inner products are rounded twice": wrapped(
        scores, "_relative_error", lambda _: lambda dim: 0.0
    ),
    "close inner products are added up in double precision": wrapped(
        scores, "_rounded_sums", lambda _: lambda terms: terms.sum(dim=1).float()
    ),
    "a threshold has to be exceeded": wrapped(
        preparation,
        "coalesce_truth",
        lambda coalesce: (
            lambda *truth: coalesce(*truth[:3], truth[3] and math.nextafter(truth[3], math.inf))
        ),
    ),
    "masked truth is ranked": wrapped(
        recommenders.ScoreMask, "apply", lambda apply: lambda self, ranks: None
    ),
    "masked items are candidates": wrapped(
        recommenders.ScoreMask, "note", lambda note: lambda self, chunk, num_candidates, own: None
    ),
    "pairs leave out the last candidate": wrapped(
        recommenders.PairRecommender,
        "_pairs",
        lambda pairs_of: (
            lambda self, chunk: [ids[: max(1, len(ids) - 1)] for ids in pairs_of(self, chunk)]
        ),
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", DEFECTS)
def test_a_planted_defect_is_found(name, monkeypatch):
    DEFECTS[name](monkeypatch)
    failures = (failure_of(seed) for seed in range(MAX_CASES))
    # A defect that crashes is found by everybody.
    crashes = ("TypeError", "AttributeError")
    assert any(failure and not any(name in failure for name in crashes) for failure in failures)
