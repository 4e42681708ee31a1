"""Corrections for several tests, against plain loops and simulations."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from pyg_recmetrics.results import multiple_tests
from pyg_recmetrics.results.multiple_tests import LargestOfAll, alpha_of, holm

stats = pytest.importorskip("scipy.stats")


def naive_holm(p_values):
    """Holm's method as in his paper, which says for a level which hypotheses are rejected."""

    def rejected(level):
        left = dict(enumerate(p_values))
        out = set()
        while left:
            hypothesis = min(left, key=left.get)
            if left[hypothesis] * len(left) > level:
                break
            out.add(hypothesis)
            del left[hypothesis]
        return out

    candidates = sorted({min(1.0, p * m) for p in p_values for m in range(1, len(p_values) + 1)})
    adjusted = []
    for hypothesis in range(len(p_values)):
        adjusted.append(next((lv for lv in candidates if hypothesis in rejected(lv)), 1.0))
    return adjusted


class TestHolm:
    @given(st.lists(st.floats(0, 1), min_size=1, max_size=7))
    def test_it_is_that_of_a_loop_over_the_levels(self, p_values):
        assert holm(p_values) == pytest.approx(naive_holm(p_values))

    def test_what_was_not_tested_does_not_count(self):
        assert holm([0.01, math.nan, 0.03]) == pytest.approx([0.02, math.nan, 0.03], nan_ok=True)
        assert holm([]) == []


class TestAlpha:
    @pytest.mark.parametrize("level", [0.5, 0.7, 0.8, 0.9, 0.95, 0.975, 0.99, 0.999])
    def test_what_is_equal_to_it_is_significant(self, level):
        thousandths = 1000 - round(1000 * level)
        assert thousandths / 1000 <= alpha_of(level) < (thousandths + 1e-3) / 1000
        # Corrections round once more.
        for num_tests in range(1, 20):
            assert thousandths / 1000 / num_tests * num_tests <= alpha_of(level)
        assert 6 * 0.05 > 0.3
        assert holm([0.05] * 6)[0] <= alpha_of(0.7)


def draw(num_users, num_tests, correlation, seed, difference=0.0):
    """Differences of users that are correlated between tests, some of them undefined."""
    generator = np.random.default_rng(seed)
    common = generator.standard_normal((num_users, 1))
    own = generator.standard_normal((num_users, num_tests))
    values = np.sqrt(correlation) * common + np.sqrt(1 - correlation) * own + difference
    values[generator.random(values.shape) < 0.1] = np.nan
    return values


def p_values(values):
    return [float(stats.ttest_1samp(x[~np.isnan(x)], 0).pvalue) for x in values.T]


class TestLargestOfAll:
    def test_it_is_a_loop_over_the_same_signs(self):
        values = draw(30, 3, 0.5, seed=0)
        found = LargestOfAll(torch.tensor(values), None, num_samples=40, seed=3)
        generator = torch.Generator().manual_seed(3)
        signs = 2 * torch.randint(2, (40, 30), generator=generator, dtype=torch.int8).numpy() - 1.0
        smallest = [min(p_values(values * sign[:, None])) for sign in signs]
        p = p_values(values)
        wanted = [(1 + sum(x <= y for x in smallest)) / 41 for y in p]
        assert found.adjust(p) == pytest.approx(wanted)
        assert found.adjust([math.nan, 0.0])[1] == pytest.approx(1 / 41)

    def test_rows_of_a_person_keep_one_sign(self):
        """Each row twice, as rows of one person, is as if each row stood once."""
        values = torch.tensor(draw(25, 2, 0.3, seed=1))
        once = LargestOfAll(values, None, num_samples=99, seed=0)
        person = torch.arange(25).repeat(2)
        twice = LargestOfAll(values.repeat(2, 1), person, num_samples=99, seed=0)
        assert once.adjust([0.01, 0.2, 0.7]) == twice.adjust([0.01, 0.2, 0.7])
        assert once.alpha_of_each(0.9) == pytest.approx(twice.alpha_of_each(0.9))

    def test_chunks_make_no_difference(self, monkeypatch):
        values = torch.tensor(draw(40, 3, 0.5, seed=2))
        whole = LargestOfAll(values, None, num_samples=64, seed=1).adjust([0.01, 0.1])
        monkeypatch.setattr(multiple_tests, "_NUM_SIGNS", 400)
        assert LargestOfAll(values, None, num_samples=64, seed=1).adjust([0.01, 0.1]) == whole

    @pytest.mark.parametrize("level", [0.5, 0.7, 0.8, 0.9, 0.95, 0.99])
    def test_intervals_agree_with_p_values(self, level):
        found = LargestOfAll(torch.tensor(draw(50, 4, 0.5, seed=3)), None, 999, seed=0)
        alpha_of_each = found.alpha_of_each(level)
        for p in [*np.geomspace(1e-4, 1, 200), *found._smallest.tolist()]:
            # There are 1,000 possible values, one of which is that of the level.
            is_significant = round(1000 * found.adjust([p])[0]) <= round(1000 * (1 - level))
            assert (found.adjust([p])[0] <= alpha_of(level)) == is_significant
            assert is_significant == (p < alpha_of_each)

    @pytest.mark.parametrize(
        "differences",
        [[0.1, 0.2, 0.4], [0.3, 0.3, 0.3], [0.7, 0.1 + 0.2, 0.3], [0.5, 0.5 + 1e-6, 0.5 - 2e-6]],
    )
    def test_signs_that_change_nothing_are_as_large_as_what_was_found(self, differences):
        """With three users, a quarter of all signs leave the t-statistic as it is."""
        found = LargestOfAll(torch.tensor(differences, dtype=torch.double)[:, None], None, 2000, 0)
        generator = torch.Generator().manual_seed(0)
        signs = torch.randint(2, (2000, 3), generator=generator, dtype=torch.int8)
        num_same = int(((signs == signs[:, :1]).all(dim=1)).sum())
        assert 400 < num_same < 600
        x = np.array(differences)
        with np.errstate(divide="ignore"):
            t = x.mean() / stats.sem(x) if np.ptp(x) > 1e-12 else np.inf
        p = 2 * stats.t.sf(t, 2)
        for rounded in (p, p * (1 + 1e-15), p * (1 - 1e-15)):
            assert found.adjust([rounded])[0] == (1 + num_same) / 2001

    def test_tests_that_are_one_need_no_correction_and_others_that_of_sidak(self):
        same = torch.tensor(draw(200, 1, 0.0, seed=4)).repeat(1, 5)
        assert LargestOfAll(same, None, 4000, 0).adjust([0.05])[0] == pytest.approx(0.05, abs=0.012)
        others = torch.tensor(draw(200, 5, 0.0, seed=5))
        sidak = 1 - 0.99**5
        assert LargestOfAll(others, None, 4000, 0).adjust([0.01])[0] == pytest.approx(
            sidak, abs=0.012
        )

    @pytest.mark.slow
    def test_the_chance_of_any_false_star_is_that_of_one_test(self):
        wrong = {"of all": 0, "Holm": 0}
        for seed in range(600):
            values = draw(60, 10, 0.8, seed)
            p = p_values(values)
            of_all = LargestOfAll(torch.tensor(values), None, 399, seed).adjust(p)
            wrong["of all"] += min(of_all) <= 0.05
            wrong["Holm"] += min(holm(p)) <= 0.05
        assert 0.03 <= wrong["of all"] / 600 <= 0.07
        assert wrong["Holm"] < wrong["of all"]
