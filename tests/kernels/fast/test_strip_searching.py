"""A search in strips, from scores that are as wrong as their bound allows."""

from collections import Counter
from contextlib import contextmanager

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from pyg_recmetrics.kernels.fast import strip_searching
from pyg_recmetrics.kernels.fast.strip_searching import StripSearch
from tests.kernels.fast.test_searching import (
    WrongScores,
    case_of,
    check_lists,
    check_ranks,
    draw_case,
    scores_of,
    small_blocks,
)


@contextmanager
def small_strips(data):
    with small_blocks(data) as num_spare, pytest.MonkeyPatch.context() as patch:
        for name, sizes in (
            ("NUM_VALUES_OF_STRIP", [1, 200, 2**20]),
            ("NUM_COLUMNS_OF_STRIP", [1, 16, 100]),
            ("_GROWTH", [2, 4]),
        ):
            patch.setattr(strip_searching, name, data.draw(st.sampled_from(sizes)))
        yield num_spare


@settings(max_examples=300)
@given(data=st.data(), seed=st.integers(0, 2**30))
def test_the_first_of_each_ranking_is_that_of_plain_python(data, seed):
    generator = torch.Generator().manual_seed(seed)
    case = data.draw(draw_case(generator))
    errors = [data.draw(st.sampled_from([0.0, 0.3, 2.0])) for _ in range(2)]
    num_in_sieve = case.item.numel() // data.draw(st.sampled_from([1, 2, 8]))
    scores = WrongScores(case.exact, case.item, errors, num_in_sieve, -(10.0**9), generator)
    with small_strips(data) as num_spare:
        found = case.search(scores, StripSearch)
    assert num_spare < 1000 or not found.is_unsettled.any()
    check_ranks(case, found)
    if case.makes_lists:
        check_lists(case, found)


def descending(num_rows):
    return torch.arange(8192, 0, -1).double().repeat(num_rows, 1)


def times_asked(scores):
    """How often each row and each 512 columns were looked at."""
    return Counter(
        (row, strip)
        for rows, start, end in scores.asked
        for row in rows
        for strip in range(start // 512, end // 512)
    )


@pytest.mark.parametrize("makes_lists", [False, True])
def test_nothing_is_looked_at_twice(makes_lists):
    generator = torch.Generator().manual_seed(0)
    exact = torch.randn(3, 8192, generator=generator).double()
    best = exact.topk(3, dim=1).indices[:, 2].tolist()
    case = case_of(exact, 5, best, makes_lists)
    scores = scores_of(case, num_in_sieve=1024)
    found = case.search(scores, StripSearch)
    check_ranks(case, found)
    assert found.ranks.rank.tolist() == [3, 3, 3]
    assert set(times_asked(scores).values()) == {1}


def test_what_is_settled_is_not_looked_at_again():
    # All that matters is in the sieve, or out of reach.
    case = case_of(descending(3), 5, [8000, 600, 2])
    scores = scores_of(case, num_in_sieve=1024)
    check_ranks(case, case.search(scores, StripSearch))
    assert scores.asked == [([0, 1, 2], 0, 512)]
    # Of what was found, no more than the user is ranked deep is looked at closely.
    case.makes_lists = True
    scores = scores_of(case, num_in_sieve=1024)
    check_lists(case, case.search(scores, StripSearch))
    assert scores.asked == [([0, 1, 2], 0, 512)]
    assert len(scores.found) == 3 * 4 + 2  # the others are relevant, or out of reach


def test_what_was_found_and_what_is_relevant_tell_the_reach():
    # Each block of the sieve has four of the best items, so its maxima reach far too low.
    exact = descending(1)
    case = case_of(exact, 5, [2], makes_lists=True)
    search = StripSearch(scores_of(case, 0.25, 1024), case.depth, *pairs_of(case), True, None)
    found = search.run()
    check_lists(case, found)
    assert 8192 - 4 - 2 * 0.25 <= float(search.reach) <= 8192 - 4


def pairs_of(case):
    return (flags.nonzero().unbind(dim=1) for flags in (case.is_relevant, case.is_masked))


@pytest.mark.parametrize("makes_lists", [False, True])
def test_first_columns_with_the_lowest_scores_mislead_nobody(makes_lists):
    exact = descending(2).flip(1)
    exact[1] = exact[1].flip(0)
    case = case_of(exact, 5, [8190, 3], makes_lists)
    scores = scores_of(case, num_in_sieve=1024)
    found = case.search(scores, StripSearch)
    assert not found.is_unsettled.any()
    check_ranks(case, found)
    if makes_lists:
        check_lists(case, found)
    times = times_asked(scores)
    # A list of the first row is searched for again. A rank is known: few items are above it.
    assert max(times[1, strip] for strip in range(16)) == 1
    assert max(times[0, strip] for strip in range(16)) == (2 if makes_lists else 1)


@pytest.mark.parametrize("makes_lists", [False, True])
def test_a_row_of_too_many_equal_scores_is_left_unsettled(makes_lists):
    exact = descending(2)
    exact[0, :4000] = 8192
    case = case_of(exact, 20, [17, 12], makes_lists)
    found = case.search(scores_of(case, num_in_sieve=1024), StripSearch)
    assert found.is_unsettled.tolist() == [True, False]
    check_ranks(case, found)
    assert found.lists.size(1) < 200 if makes_lists else found.lists is None


def test_many_masked_items_are_not_too_many():
    case = case_of(descending(1), 5, [7])
    case.is_masked[0, 2048:2900] = True
    case.exact[0, 2048:2900] = 9000
    scores = scores_of(case, num_in_sieve=1024)
    found = case.search(scores, StripSearch)
    assert not found.is_unsettled.any()
    check_ranks(case, found)
    assert set(times_asked(scores).values()) == {1}


@pytest.mark.parametrize("makes_lists", [False, True])
def test_one_row_of_many_masked_items_does_not_make_others_long(makes_lists):
    exact = descending(2)
    exact[0, 1000:7000] = 9000
    case = case_of(exact, 5, [6999, 3], makes_lists)
    case.is_masked[0, 1000:4000] = True
    found = case.search(scores_of(case, num_in_sieve=1024), StripSearch)
    assert found.is_unsettled.tolist() == [True, False]
    check_ranks(case, found)
    assert found.lists.size(1) < 200 if makes_lists else found.lists is None


def test_few_rows_are_looked_at_as_far_as_needed():
    case = case_of(descending(1), 5, [2000], makes_lists=True)
    case.exact[0, 512:] = 0
    case.exact[0, 1300] = 9000
    scores = scores_of(case, num_in_sieve=1024)
    check_lists(case, case.search(scores, StripSearch))
    assert [end for _, _, end in scores.asked] == [512, 1536]
