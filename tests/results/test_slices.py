"""The search for slices against plain loops, and how often what it finds is true."""

import itertools
import math

import numpy as np
import pytest
import torch

from pyg_recmetrics.results.features import make_feature
from pyg_recmetrics.results.slices import (
    Question,
    Search,
    Values,
    find_slices,
    measure,
    meets,
    random_half,
)
from tests.support.cases.drawn_results import normal, skewed

stats = pytest.importorskip("scipy.stats")

MIN_ROWS = 8


def ask(sign=-1, *, is_difference=False, min_rows=MIN_ROWS, seed=0, max_depth=2, level=0.95):
    return Question("ndcg@20", sign, is_difference, "users", level, max_depth, min_rows, seed)


def values_of(*runs, person=None):
    num_rows = runs[0].size(-1)
    return Values(runs, person, torch.arange(num_rows), num_rows)


class NaiveSearch:
    """All slices, one after the other.

    Each column is a list of a few numbers or names. A condition is a range of numbers, or a name.
    """

    def __init__(self, columns, is_searched, is_measured, max_depth):
        self.columns, self.searched = columns, is_searched.nonzero().flatten().tolist()
        self.halves = [self.searched, is_measured.nonzero().flatten().tolist()]
        self.alone = [
            (name, condition)
            for name, column in columns.items()
            for condition in self.conditions(sorted(set(column)))
        ]
        self.candidates = [[one] for one in self.alone if self.is_allowed([one])]
        if max_depth > 1:
            pairs = itertools.combinations(self.alone, 2)
            self.candidates += [
                [*pair] for pair in pairs if pair[0][0] != pair[1][0] and self.is_allowed(pair)
            ]

    @staticmethod
    def conditions(values):
        if isinstance(values[0], str):
            return [(value, value) for value in values]
        ranges = itertools.combinations_with_replacement(values, 2)
        return [ends for ends in ranges if ends != (values[0], values[-1])]

    def holds(self, rule, row):
        return all(low <= self.columns[name][row] <= high for name, (low, high) in rule)

    def is_allowed(self, rule):
        for half in self.halves:
            inside = sum(self.holds(rule, row) for row in half)
            if inside < MIN_ROWS:
                return False
            for left_out in range(len(rule)):
                rest = [x for place, x in enumerate(rule) if place != left_out]
                if sum(self.holds(rest, row) for row in half) - inside < MIN_ROWS:
                    return False
        return True

    def score(self, rule, values, sign):
        n = len(values)
        mean = sum(values) / n
        deviation = math.sqrt(sum((x - mean) ** 2 for x in values) / n)
        own = [x for row, x in zip(self.searched, values, strict=True) if self.holds(rule, row)]
        error = deviation * math.sqrt(len(own) * (1 - len(own) / n))
        z = sum(x - mean for x in own) / error
        z = z * sign if sign else abs(z)
        # Of a slice and all others, which are as far from the mean, the smaller one is taken.
        score = z**2 - 2 * math.log(len(self.alone)) * len(rule) - 1e-6 * len(own) / n
        return score if z >= 2 else -math.inf

    def repeats(self, rule, other):
        rows = [{row for row in self.searched if self.holds(each, row)} for each in (rule, other)]
        common, of_any = len(rows[0] & rows[1]), len(rows[0] | rows[1])
        if {name for name, _ in rule} == {name for name, _ in other}:
            return common > 0
        return common > of_any / 2

    def find(self, values, sign, most=5):
        values = [values[row] for row in self.searched]
        found, candidates = [], self.candidates
        while candidates and len(found) < most:
            scores = [self.score(rule, values, sign) for rule in candidates]
            if max(scores) == -math.inf:
                break
            best = candidates[scores.index(max(scores))]
            found.append(best)
            candidates = [rule for rule in candidates if not self.repeats(rule, best)]
            is_in = [self.holds(best, row) for row in self.searched]
            inside = [x for x, own in zip(values, is_in, strict=True) if own]
            outside = [x for x, own in zip(values, is_in, strict=True) if not own]
            shift = sum(outside) / len(outside) - sum(inside) / len(inside)
            values = [x + shift * own for x, own in zip(values, is_in, strict=True)]
        return found

    def rows(self, rule):
        return [row for row in range(len(self.columns["x"])) if self.holds(rule, row)]


@pytest.mark.parametrize("sign", [-1, 0, 1])
@pytest.mark.parametrize("max_depth", [1, 2])
@pytest.mark.parametrize("seed", range(3))
def test_the_search_finds_what_a_loop_does(seed, max_depth, sign):
    generator = torch.Generator().manual_seed(seed)
    x, y, name = (torch.randint(4, (140,), generator=generator) for _ in range(3))
    columns = {"x": x.tolist(), "y": y.tolist(), "name": ["abcd"[each] for each in name]}
    values = torch.randn(140, generator=generator, dtype=torch.double)
    values[(x > 1) & (y == 0)] += 2 * (sign or 1)
    is_searched = random_half(None, 140, seed)
    naive = NaiveSearch(columns, is_searched, ~is_searched, max_depth)
    features = [make_feature(key, np.array(column)) for key, column in columns.items()]
    search = Search(features, is_searched, ~is_searched, MIN_ROWS, max_depth)
    assert search.num_candidates == len(naive.candidates)
    found = [meets(rule).nonzero().flatten().tolist() for rule in search.find(values, sign)]
    wanted = naive.find(values.tolist(), sign)
    assert wanted
    assert found == [naive.rows(rule) for rule in wanted]


def jackknife(own, rest):
    """The standard error of the mean of a slice minus that of all."""
    without = [
        float(own_left.mean() - torch.cat([own_left, rest_left]).mean())
        for own_left, rest_left in [
            *((torch.cat([own[:i], own[i + 1 :]]), rest) for i in range(len(own))),
            *((own, torch.cat([rest[:i], rest[i + 1 :]])) for i in range(len(rest))),
        ]
    ]
    center = sum(without) / len(without)
    share = (len(without) - 1) / len(without)
    return math.sqrt(share * sum((x - center) ** 2 for x in without))


class TestMeasuring:
    @pytest.fixture
    def drawn(self):
        generator = torch.Generator().manual_seed(3)
        group = torch.randint(3, (400,), generator=generator)
        values = normal(3, 400, generator=generator) - 2.0 * (group == 0)
        return group, values

    def test_numbers_are_those_of_the_other_half(self, drawn):
        group, values = drawn
        found = find_slices(values_of(values[:1]), [make_feature("x", group.numpy())], ask())
        (only,) = found
        is_measured = ~random_half(None, 400, 0)
        own = values[0, is_measured & (group == 0)]
        rest = values[0, is_measured & (group != 0)]
        everyone = values[0, is_measured]
        assert only.conditions == "x = 0"
        assert (only.num_rows, only.share) == (int((group == 0).sum()), only.num_rows / 400)
        assert only.mean == pytest.approx(float(own.mean()))
        assert found.mean == pytest.approx(float(everyone.mean()))
        assert only.difference == pytest.approx(float(own.mean() - everyone.mean()))
        assert only.effect == only.difference * only.share
        # With two intervals for each of the slices that were measured
        tail = 0.05 / (2 * 2 * found.num_tested)
        quantile = stats.t.isf(tail, len(own) - 1)
        margin = quantile * float(own.std()) / math.sqrt(len(own))
        assert only.mean_high - only.mean == pytest.approx(margin)
        assert only.high - only.difference == pytest.approx(
            quantile * jackknife(own, rest), rel=0.02
        )
        assert torch.equal(found.mask(0), group == 0)

    def test_of_two_recommenders_it_is_the_difference(self, drawn):
        group, values = drawn
        features = [make_feature("x", group.numpy())]
        both = find_slices(values_of(values[:1], values[1:2]), features, ask(0, is_difference=True))
        assert not both
        better = values[1:2] + 1.0 * (group == 2)
        (only,) = find_slices(values_of(values[:1], better), features, ask(0, is_difference=True))
        (alone,) = find_slices(values_of(values[:1] - better), features, ask(0))
        assert only[:-1] == pytest.approx(alone[:-1])
        assert only.conditions == "x = 2"
        assert math.isnan(only.zeros)

    def test_runs_of_equal_values_are_one(self, drawn):
        group, values = drawn
        features = [make_feature("x", group.numpy())]
        several = find_slices(values_of(values[:1].expand(3, -1)), features, ask())
        (one,), (same,) = find_slices(values_of(values[:1]), features, ask()), several
        assert same == pytest.approx(one)

    def test_intervals_allow_for_other_runs(self, drawn):
        group, values = drawn
        features = [make_feature("x", group.numpy())]
        # Each run treats another group badly.
        runs = torch.stack([values[0] - 1.0 * (group == run % 2) for run in range(4)])
        (one,) = find_slices(values_of(values[:1]), features, ask())
        for several in (
            find_slices(values_of(runs), features, ask()),
            find_slices(values_of(runs, 0 * runs[:1]), features, ask()),
        ):
            assert all(row.high - row.low > 2 * (one.high - one.low) for row in several)

    def test_high_values_are_bad_for_some_metrics(self, drawn):
        group, values = drawn
        features = [make_feature("x", group.numpy())]
        assert not [
            row for row in find_slices(values_of(values[:1]), features, ask(1)) if row.high < 0
        ]
        (only,) = find_slices(values_of(-values[:1]), features, ask(1))
        assert only.conditions == "x = 0"
        assert only.low > 0

    def test_the_largest_effect_comes_first(self):
        generator = torch.Generator().manual_seed(0)
        group = torch.randint(10, (4000,), generator=generator)
        values = normal(1, 4000, generator=generator) - 3.0 * (group == 0) - 1.5 * (group > 5)
        names = np.array([f"g{int(x)}" if x < 6 else "large" for x in group])
        found = find_slices(values_of(values), [make_feature("x", names)], ask())
        assert [row.conditions for row in found] == ["x = large", "x = g0"]
        assert found[0].difference > found[1].difference

    def test_nothing_varies(self):
        group = torch.arange(100) % 2
        features = [make_feature("x", group.numpy())]
        found = find_slices(values_of(torch.full((1, 100), 0.3).double()), features, ask())
        assert (len(found), found.num_tested, found.num_candidates) == (0, 0, 2)

    def test_few_rows_have_no_slices(self):
        for num_rows in (0, 1, 20):
            column = np.arange(num_rows)
            found = find_slices(
                values_of(torch.rand(1, num_rows).double()), [make_feature("x", column)], ask()
            )
            assert (len(found), found.num_candidates) == (0, 0)
            assert "no group of users that is known has 8 of them" in str(found)
        assert not find_slices(values_of(torch.rand(1, 100).double()), [], ask())


class TestHalves:
    def test_a_person_is_in_one_of_them(self):
        person = torch.arange(200) // 4
        half = random_half(person, 200, 0)
        assert torch.equal(half.view(50, 4).all(dim=1), half.view(50, 4).any(dim=1))
        assert int(half.sum()) == 100

    def test_they_follow_from_the_seed(self):
        halves = [random_half(None, 101, seed) for seed in (0, 0, 1)]
        assert torch.equal(halves[0], halves[1])
        assert not torch.equal(halves[0], halves[2])
        assert [int(half.sum()) for half in halves] == [50] * 3


def test_tables_and_frames():
    pd = pytest.importorskip("pandas")
    group = torch.arange(400) % 4
    values = normal(1, 400, generator=torch.Generator().manual_seed(0)) - 2.0 * (group == 0)
    found = find_slices(values_of(values), [make_feature("x", group.numpy())], ask(), ("a note",))
    assert repr(found) == "Slices(1 slices of ndcg@20)"
    head, _, row, *notes = str(found).splitlines()
    assert head.split() == ["slice", "users", "share", "ndcg@20", "difference", "effect"]
    assert row.startswith("x = 0    100  25.0%  ")
    assert notes[-1] == "a note"
    assert "on 200 users, measured on 200 others (seed 0)" in notes[-2]
    frame = found.to_pandas()
    assert isinstance(frame, pd.DataFrame)
    assert frame.effect.tolist() == [found[0].effect]


class Draws:
    """Draws of users whose values depend on two features in one slice, or on nothing.

    Args:
        law (callable): The law of the values.
        effect (float): By how much those in the slice are smaller.
        num_draws (int): How many draws.
        num_users (int): How many users each has.
    """

    def __init__(self, law, effect, num_draws, num_users):
        self.num_draws, self.num_users, self.effect = num_draws, num_users, effect
        generator = torch.Generator().manual_seed(7)
        shape = (num_draws, num_users)
        self.x, self.y = (torch.randn(*shape, generator=generator).numpy() for _ in range(2))
        label = torch.randint(6, shape, generator=generator)
        self.label = np.array([*"abcdef"])[label]
        self.is_planted = torch.from_numpy((self.x < -0.2) & (self.y > 0.2))
        self.values = 0.2 + 0.18 * law(*shape, generator=generator) - effect * self.is_planted

    def of(self, draw):
        columns = {"x": self.x[draw], "y": self.y[draw], "label": self.label[draw]}
        features = [make_feature(name, column) for name, column in columns.items()]
        return values_of(self.values[draw : draw + 1]), features

    def truth(self, draw, is_in, is_all):
        """By how much the mean of some users is smaller than that of all, but for chance."""
        shift = -self.effect * self.is_planted[draw].double()
        return float(shift[is_in & is_all].mean() - shift[is_all].mean())

    def measured(self, is_honest):
        """For each draw, the slices that were found and their rows, and whether all intervals hold.

        What is not honest looks for slices on the same users on which it measures them.
        """
        for draw in range(self.num_draws):
            values, features = self.of(draw)
            everyone = torch.ones(self.num_users, dtype=torch.bool)
            half = random_half(None, self.num_users, draw)
            searched, measured = (half, ~half) if is_honest else (everyone, everyone)
            rules = Search(features, searched, measured, 50, 2).find(values.mean, -1)
            question = ask(min_rows=50)
            found = list(measure(rules, values, measured, question))
            # The intervals of all that was measured, whether it is shown or not
            level = 1 - 0.05 / max(1, 2 * len(rules))
            ends = [
                (values.contrast(rows & measured, measured).interval(level), rows)
                for rows in map(meets, rules)
            ]
            yield (
                draw,
                found,
                all(low <= self.truth(draw, rows, measured) <= high for (low, high), rows in ends),
            )


def least(share, number):
    """The smallest share of so many draws that a true share of this size may have."""
    return share - 3 * math.sqrt(share * (1 - share) / number)


@pytest.mark.slow
@pytest.mark.parametrize("law", [normal, skewed])
def test_nothing_is_found_where_nothing_is(law):
    draws = Draws(law, 0.0, 80, 800)
    honest, other = (
        [(bool(found), held) for _, found, held in draws.measured(is_honest)]
        for is_honest in (True, False)
    )
    num_found = sum(found for found, _ in honest)
    assert 1 - num_found / 80 >= least(0.95, 80)
    assert sum(held for _, held in honest) / 80 >= least(0.95, 80)
    # Without the two halves, most draws show a slice that is no worse than all.
    assert sum(found for found, _ in other) / 80 > 0.4
    assert sum(held for _, held in other) / 80 < 0.6


@pytest.mark.slow
def test_a_planted_slice_is_found_and_its_interval_holds():
    draws = Draws(skewed, 0.15, 80, 1600)
    num_found, rates = 0, []
    for is_honest in (True, False):
        held = []
        for draw, found, holds in draws.measured(is_honest):
            held.append(holds)
            planted = draws.is_planted[draw]
            overlaps = [float((m & planted).sum() / (m | planted).sum()) for _, m in found]
            num_found += is_honest and max(overlaps, default=0) > 0.5
        rates.append(sum(held) / len(held))
    assert num_found / 80 > 0.8
    assert rates[0] >= least(0.95, 80)
    assert rates[1] < 0.8
