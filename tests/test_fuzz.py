"""Random rankings against the oracle, and defects that this comparison has to find."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from pyg_recmetrics.kernels.exact import scores
from pyg_recmetrics.kernels.exact.ranks import Ranks
from pyg_recmetrics.kernels.fast import rounded_items, searching
from pyg_recmetrics.kernels.fast.rounded_items import RoundedItems
from pyg_recmetrics.kernels.fast.searching import FastProducts, Search
from pyg_recmetrics.ranked_edges import (
    RankedEdges,
    ties,
)
from pyg_recmetrics.ranking import recommenders
from pyg_recmetrics.ranking import recommenders as ranked_embeddings
from pyg_recmetrics.ranking.schedule import Schedule
from pyg_recmetrics.task import edges
from tests.support.references import oracle
from tests.support.tools import fuzz

#: Within how many cases each defect has to be found.
MAX_CASES = 2500

#: Cases that reach every line of the package which any case from 5000 to 5149 reaches.
REACHING_ALL_LINES = [
    *(5003, 5022, 5023, 5024, 5025, 5032, 5041, 5048, 5059, 5064, 5072, 5076, 5077, 5083, 5093),
    *(5099, 5109, 5129, 5130, 5142, 5148),
]


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


def higher_id_first(top_k):
    def reversed_top_k(values, k, scratch):
        found = top_k(values.flip(1), k, scratch)
        last = values.size(1) - 1
        column = torch.where(found.column < 0, -1, last - found.column)
        return found._replace(column=column)

    return reversed_top_k


DEFECTS = {
    "of equal scores, the higher id ranks first": wrapped(recommenders, "top_k", higher_id_first),
    "shared candidates are forgotten by what rounds items": wrapped(
        RoundedItems,
        "__init__",
        lambda init: lambda self, factors, _, dtype: init(self, factors, None, dtype),
    ),
    "the bound of items is zero": wrapped(
        rounded_items.ErrorBound, "of", lambda of: lambda *items: 0 * of(*items)
    ),
    "norms are too small": wrapped(
        FastProducts,
        "num_within_reach",
        lambda num_within: lambda self, score: num_within(self, 1.2 * score),
    ),
    "close scores are not settled": wrapped(
        Search, "_sort_exactly", lambda settle: lambda self, *found: None
    ),
    "negative numbers are in the order of their bits": wrapped(
        searching, "put_in_order_", lambda _: lambda bits: bits
    ),
    "a score that is not finite is not noted": wrapped(
        recommenders.ScoreMask, "note_ends", lambda note: lambda self, lowest, highest: None
    ),
    "a bias counts twice": wrapped(
        ranked_embeddings,
        "with_column",
        lambda with_column: lambda user, ones: with_column(user, 2 * ones),
    ),
    "a user's own depth is forgotten": wrapped(
        Ranks,
        "forget_beyond",
        lambda forget: lambda self, depth: forget(self, depth.sort().values[:1].expand_as(depth)),
    ),
    "all users are evaluated": lambda patch: patch.setattr(
        RankedEdges, "_is_evaluated", property(lambda self: self.degree >= 0)
    ),
    "random places may lie behind all ties": wrapped(
        ties, "_random_shift", lambda shift: lambda *args: shift(*args) + 1
    ),
    "shared candidates are forgotten": lambda patch: patch.setattr(Schedule, "is_excluded", None),
    "scores are rounded to single precision": wrapped(
        recommenders.FunctionRecommender,
        "given",
        lambda given: lambda *users: (given(*users)[0].float(), given(*users)[1]),
    ),
    "inner products are computed in single precision": lambda patch: patch.setattr(
        ranked_embeddings,
        "inner_product_matrix",
        lambda user, item, _: user.float() @ item.embedding.float().t(),
    ),
    "close inner products are added up in double precision": wrapped(
        scores, "_rounded_sums", lambda _: lambda terms: terms.sum(dim=1).float()
    ),
    "a threshold has to be exceeded": wrapped(
        edges,
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
