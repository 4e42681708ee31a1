"""The first of each ranking, from scores that are as wrong as their bound allows."""

import math
from contextlib import contextmanager
from dataclasses import dataclass

import pytest
import torch
from hypothesis import given, settings, strategies as st

from pyg_recmetrics.kernels.devices import Scratch
from pyg_recmetrics.kernels.exact.scores import ItemFactors, scaled_by_row
from pyg_recmetrics.kernels.fast import searching
from pyg_recmetrics.kernels.fast.rounded_items import RoundedItems
from pyg_recmetrics.kernels.fast.searching import (
    FastProducts,
    FastScores,
    Search,
    in_order,
    rows_to_search,
)
from tests.support.cases.embeddings import KINDS
from tests.support.references import exact_scores, naive

#: Numbers of four binary digits, with zeros behind them.
FEW = {digits << zeros for digits in range(1, 16) for zeros in range(20)}


class WrongScores(FastScores):
    """Scores of which each is off by anything that the bound allows.

    Args:
        exact (torch.Tensor): The exact scores of all items, in double precision.
        item (torch.Tensor): The item of each column.
        errors (tuple): The largest errors of the values, and of the scores of some items.
        num_in_sieve (int): How many columns belong to the sieve.
        generator (torch.Generator): The source of the errors.
    """

    def __init__(self, exact, item, errors, num_in_sieve, generator):
        def wrong(error):
            noise = torch.rand(exact.shape, generator=generator, dtype=torch.double)
            return exact + error * noise.mul(2).sub(1).mul(3).clamp(-1, 1)

        self.exact, self.item, self.num_in_sieve = exact, item, num_in_sieve
        self.fast, self.of_some = (wrong(error) for error in errors)
        self.error, self.error_of_items = (
            torch.full(exact.shape[:1], error, dtype=torch.double) for error in errors
        )
        self.column = torch.full(exact.shape[1:], -1)
        self.column[item] = torch.arange(item.numel())

    def values(self, rows, start, end, scratch):
        values = torch.zeros(rows.numel(), end - start, dtype=torch.double)
        known = self.fast[rows][:, self.item[start:end]]
        values[:, : known.size(1)] = known
        return values

    def to_value(self, score):
        return score.clamp(min=torch.finfo(score.dtype).min)

    def to_score(self, value):
        return value.clone()

    def of_items(self, row, item):
        return self.of_some[row, item]

    def exactly(self, row, item):
        return self.exact[row, item]

    def num_within_reach(self, score):
        is_within = self.exact[:, self.item] >= score.unsqueeze(1)
        columns = torch.arange(1, self.item.numel() + 1)
        return (is_within * columns).amax(dim=1)


@dataclass
class Case:
    """What to search for.

    Attributes:
        exact: The exact scores of all pairs, of shape `[num_rows, num_items]`.
        item: The items that may be recommended, in any order.
        depth: How deep each row is ranked.
        is_relevant: Which pairs are to be ranked.
        is_masked: Which pairs must not be retrieved.
        makes_lists: Whether lists are wanted.
    """

    exact: torch.Tensor
    item: torch.Tensor
    depth: torch.Tensor
    is_relevant: torch.Tensor
    is_masked: torch.Tensor
    makes_lists: bool

    def search(self, scores, kind=Search):
        pairs = (flags.nonzero().unbind(dim=1) for flags in (self.is_relevant, self.is_masked))
        scratch = Scratch(torch.device("cpu"))
        return kind(scores, self.depth, *pairs, self.makes_lists, scratch).run()

    def ranking(self, row):
        """The items of a row, best first, by plain Python."""
        scores = self.exact[row].tolist()
        ranking = naive.ranking(scores, self.is_masked[row].nonzero(), self.item.tolist())
        return [item for item in ranking if scores[item] > -math.inf]


@st.composite
def draw_case(draw, generator):
    shape = (draw(st.integers(1, 5)), draw(st.integers(1, 300)))
    num_levels = draw(st.sampled_from([1, 4, 1000]))
    exact = torch.randint(-num_levels, num_levels, shape, generator=generator).double()
    missing, masked, relevant, allowed = (
        torch.rand(shape, generator=generator) < draw(st.sampled_from(shares))
        for shares in ([0, 0.1], [0, 0.1, 0.9], [0, 0.02, 0.3], [1, 0.5])
    )
    allowed[0, 0] = True
    item = allowed[0].nonzero().squeeze(1)
    max_depth = draw(st.sampled_from([3, 30]))
    return Case(
        exact=exact.masked_fill_(missing, -torch.inf),
        item=item[torch.randperm(item.numel(), generator=generator)],
        depth=torch.randint(1, max_depth, shape[:1], generator=generator),
        is_relevant=relevant & ~masked & allowed[0],
        is_masked=masked,
        makes_lists=draw(st.booleans()),
    )


@contextmanager
def small_blocks(data):
    """Few values fill many blocks, and few items leave a row unsettled."""
    block_size = data.draw(st.sampled_from([1, 2, 8, 32]))
    num_spare = data.draw(st.sampled_from([2, 20, 1000]))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(searching, "BLOCK_SIZE", block_size)
        num_blocks = data.draw(st.sampled_from([1, 7, 300]))
        patch.setattr(searching, "MAX_COLUMNS", block_size * num_blocks)
        patch.setattr(searching, "NUM_VALUES", data.draw(st.sampled_from([1, 200, 2**20])))
        patch.setattr(searching, "_max_found", lambda depth: depth + num_spare)
        yield num_spare


@settings(max_examples=80)
@given(data=st.data(), seed=st.integers(0, 2**30))
def test_the_first_of_each_ranking_is_that_of_plain_python(data, seed):
    generator = torch.Generator().manual_seed(seed)
    case = data.draw(draw_case(generator))
    errors = [data.draw(st.sampled_from([0.0, 0.3, 2.0])) for _ in range(2)]
    num_in_sieve = case.item.numel() // data.draw(st.sampled_from([1, 2, 16]))
    scores = WrongScores(case.exact, case.item, errors, num_in_sieve, generator)
    with small_blocks(data) as num_spare:
        found = case.search(scores)
    assert num_spare < 1000 or not found.is_unsettled.any()
    check_ranks(case, found)
    if case.makes_lists:
        check_lists(case, found)


def check_ranks(case, found):
    """Compares the ranks of all rows that are settled, as far as these are ranked."""
    pairs = case.is_relevant.nonzero().tolist()
    places = zip(*(values.tolist() for values in found.ranks), strict=True)
    for (row, item), place in zip(pairs, places, strict=True):
        own, depth = case.exact[row, item], case.depth[row]
        if found.is_unsettled[row] or own.isneginf():
            continue
        ranking = case.ranking(row)
        others = case.exact[row, ranking]
        num_above = int((others > own).sum())
        if num_above < depth:
            assert place == (ranking.index(item) + 1, num_above, int((others == own).sum()) - 1)
        else:
            assert place[0] > depth
            assert place[1] >= depth


def check_lists(case, found):
    for row, depth in enumerate(case.depth.tolist()):
        if not found.is_unsettled[row]:
            wanted = case.ranking(row)[:depth]
            listed = found.lists[row, :depth].tolist()
            assert listed == wanted + [-1] * (len(listed) - len(wanted))


def case_of(exact, depth, relevant, makes_lists=False):
    """A case in which each row has one relevant item."""
    is_relevant = torch.zeros_like(exact, dtype=torch.bool)
    is_relevant[torch.arange(len(relevant)), torch.tensor(relevant)] = True
    return Case(
        exact=exact,
        item=torch.arange(exact.size(1)),
        depth=torch.full(exact.shape[:1], depth),
        is_relevant=is_relevant,
        is_masked=torch.zeros_like(is_relevant),
        makes_lists=makes_lists,
    )


class CountingScores(WrongScores):
    """Notes which rows and columns it is asked for."""

    def __init__(self, *args):
        super().__init__(*args)
        self.asked, self.settled = [], []

    def exactly(self, row, item):
        self.settled += item.tolist()
        return super().exactly(row, item)

    def values(self, rows, start, end, *others):
        self.asked.append((rows.tolist(), start, end))
        return super().values(rows, start, end, *others)


def scores_of(case, error=0.0, num_in_sieve=0):
    generator = torch.Generator().manual_seed(0)
    return CountingScores(case.exact, case.item, (error, error), num_in_sieve, generator)


def rows_of_which_the_first_has(score, items):
    """Scores of two rows, of which the first has one score for some items, above all others."""
    exact = torch.arange(8192, 0, -1).double().repeat(2, 1)
    exact[0, items] = score
    return exact


#: Too many equal scores; and ten blocks, which are not too many to look at, but have 160 items.
CROWDED = [
    (rows_of_which_the_first_has(8192, torch.arange(4000)), 20, [17, 12]),
    (
        rows_of_which_the_first_has(9000, torch.arange(8192).view(16, -1)[:, :10].flatten()),
        3,
        [3, 1],
    ),
]


@pytest.mark.parametrize("makes_lists", [False, True])
@pytest.mark.parametrize(("exact", "depth", "relevant"), CROWDED)
def test_a_row_of_too_many_items_is_left_unsettled_and_others_stay_short(
    exact, depth, relevant, makes_lists
):
    case = case_of(exact, depth, relevant, makes_lists)
    found = case.search(scores_of(case))
    assert found.is_unsettled.tolist() == [True, False]
    check_ranks(case, found)
    assert found.lists.size(1) < 1000 if makes_lists else found.lists is None


@pytest.mark.parametrize("makes_lists", [False, True])
def test_only_what_is_close_to_another_item_is_asked_for_its_exact_score(makes_lists):
    # Of all scores down to the depth, those of the items 4 and 5 alone are equal.
    exact = torch.arange(8192, 0, -1).double().unsqueeze(0)
    exact[0, 5] = exact[0, 4]
    case = case_of(exact, 20, [5], makes_lists)
    scores = scores_of(case)
    check_ranks(case, case.search(scores))
    assert sorted(scores.settled) == [4, 5]


def test_what_the_sieve_settles_is_not_looked_at_again():
    # The first 512 columns are above all others. In the first row, nothing else is relevant; in
    # the second, only what is out of reach; the third ranks an item of the sieve, the last one.
    exact = torch.arange(8192, 0, -1).double().repeat(4, 1)
    case = case_of(exact, 5, [8000, 600, 2, 511])
    scores = scores_of(case, num_in_sieve=1024)
    found = case.search(scores)
    check_ranks(case, found)
    assert scores.asked == [([0, 1, 2, 3], 0, 512), ([2], 0, 16)]
    # In lists, everybody is looked at, as far as an item may be within reach.
    case.makes_lists = True
    scores = scores_of(case, num_in_sieve=1024)
    check_lists(case, case.search(scores))
    assert scores.asked == [([0, 1, 2, 3], 0, 512), ([0, 1, 2, 3], 0, 16)]


def test_a_deeper_ranking_has_fewer_rows_and_always_one():
    rows = [rows_to_search(depth) for depth in (1, 100, 10_000, 10**9)]
    assert rows == sorted(rows, reverse=True)
    assert rows[0] == searching.MAX_ROWS
    assert rows[-1] == 1


@given(
    widths=st.lists(st.integers(0, 60) | st.sampled_from([99, 100]), max_size=40),
    start=st.sampled_from([0, 20]),
    max_columns=st.sampled_from([50, 1000]),
)
def test_parts_of_rows(widths, start, max_columns):
    width = torch.tensor(sorted(widths, reverse=True), dtype=torch.long)
    left = [min(each - start, max_columns) for each in width.tolist() if each > start]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(searching, "BLOCK_SIZE", 1)
        patch.setattr(searching, "MAX_COLUMNS", max_columns)
        patch.setattr(searching, "NUM_VALUES", 150)
        parts = list(searching._parts_of_rows(100, width, start))
    assert [each for part, _ in parts for each in left[part]] == left
    for part, end in parts:
        of_part, num_columns = left[part], end - start
        assert of_part[0] <= num_columns <= min(9 / 8 * of_part[0], max_columns, 100 - start)
        assert num_columns in FEW or num_columns in (max_columns, 100 - start)
        num_rows = len(of_part)
        assert num_rows == 1 or num_rows * num_columns <= 150
        is_last = part.stop == len(left)
        assert is_last or num_rows in FEW
        # A part ends where it may not be larger.
        assert is_last or (num_rows + max(1, num_rows // 7)) * num_columns > 150


CPU = torch.device("cpu")
DTYPES = [torch.bfloat16, torch.float32]

PAIRS_OF_KINDS = [*((make, make) for make in KINDS.values()), *exact_scores.KINDS.values()]


def draw(users, items, dim, dtype):
    """The products of five users, and their exact scores of all items."""
    generator = torch.Generator().manual_seed(dim)
    user = scaled_by_row(users((5, dim), generator))
    factors = ItemFactors(items((50, dim), generator), None, CPU)
    exact = exact_scores.score_matrix(user, factors.double(slice(None)))
    return FastProducts(user, RoundedItems(factors, None, dtype)), exact.double()


def all_values(scores):
    """The values of all columns, in order."""
    return in_order(scores.values(torch.arange(scores.user.size(0)), 0, 64, Scratch(CPU)))


@given(
    makers=st.sampled_from(PAIRS_OF_KINDS),
    dtype=st.sampled_from(DTYPES),
    dim=st.sampled_from([1, 9]),
)
def test_no_score_is_further_from_the_exact_one_than_its_bound(makers, dtype, dim):
    scores, exact = draw(*makers, dim, dtype)
    of_columns, error = exact[:, scores.item], scores.error.unsqueeze(1)
    values = all_values(scores)[:, :50]
    low, high = of_columns - error, of_columns + error
    assert (values >= scores.to_value(low)).all()
    assert (values <= scores.to_value(high)).all()
    assert (scores.to_score(values) - error <= of_columns).all()

    rows = torch.tensor([3, 0])
    found = scores.of_items(*torch.cartesian_prod(rows, torch.arange(50)).t()).view(2, 50)
    error = (found.double() - exact[rows]).abs()
    assert (error <= scores.error_of_items[rows].unsqueeze(1)).all()
    assert (scores.error_of_items <= scores.error).all()

    for score in of_columns.t():
        for user, num_within in enumerate(scores.num_within_reach(score).tolist()):
            assert not (of_columns[user, num_within:] >= score[user]).any()


def test_items_of_small_norms_are_out_of_reach():
    item = torch.arange(1.0, 101).unsqueeze(1) * torch.tensor([[0.6, 0.8]])
    user = scaled_by_row(torch.tensor([[0.6, 0.8], [0.8, -0.6]]))
    scores = FastProducts(user, RoundedItems(ItemFactors(item, None, CPU), None, torch.float32))
    tenth = scores.exactly(torch.tensor([0, 0]), torch.tensor([90, 90])).double()
    assert scores.num_within_reach(tenth).tolist() == [10, 10]
    assert scores.num_within_reach(-tenth).tolist() == [100, 100]


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_value_stands_for_all_scores_that_are_rounded_to_it(dtype):
    scores, _ = draw(KINDS["random"], KINDS["random"], 8, dtype)
    generator = torch.Generator().manual_seed(1)
    score = torch.randn(5000, generator=generator, dtype=torch.double)
    score *= torch.randint(-80, 80, score.shape, generator=generator).double().exp2()
    score = torch.cat([score, torch.tensor([0.0, -0.0, 1.0, -1.0])]).sort().values
    value = scores.to_value(score)
    assert (value[1:] >= value[:-1]).all()
    assert (scores.to_score(value) <= score + 2.0**-24 * score.abs()).all()
    assert (scores.to_score(value) >= score - 2.0**-6 * score.abs()).all()
