"""Brute force: the range of a mean is that over all orders of up to six items of equal score."""

import itertools
import math
import random
from functools import lru_cache

import pytest
import torch

from pyg_recmetrics import (
    EvaluationResult,
    RankedEdges,
    RankingTask,
    conventions,
    evaluate,
    metrics,
)
from pyg_recmetrics.results.result import TieRange
from tests.support.tools.laws import with_arguments

OF_RANKS = [name for name in metrics.names() if not metrics.definition(name).needs]

TIES = ["index", "mean", "worst"]

pytestmark = pytest.mark.filterwarnings("ignore:.*depending on the order of ties")


def draw_query(seed):
    """Scores and grades of one user's items, with a run of two to six equal scores."""
    draw = random.Random(seed)
    above, tied, below = draw.randint(0, 2), draw.randint(2, 6), draw.randint(0, 2)
    scores = [9.0, 8.0][:above] + [5.0] * tied + [2.0, 1.0][:below]
    grades = draw.choice([[0, 1], [0, 1, 1, 3]])
    grade = [float(draw.choice(grades)) for _ in scores]
    grade[above + draw.randrange(tied)] = float(grades[-1])
    return scores, grade


def of_all_orders(scores, grade, spellings, convention):
    """The values of each metric in all orders of equal scores."""
    places = [place for place, score in enumerate(scores) if score == 5.0]
    rows = []
    for order in itertools.permutations(range(len(places))):
        row = [*scores]
        for place, shift in zip(places, order, strict=True):
            row[place] += shift / 100
        rows.append(row)
    preds = torch.tensor(rows, dtype=torch.double)
    indexes = torch.arange(len(rows)).unsqueeze(1).expand(preds.shape)
    target = torch.tensor(grade).expand(preds.shape)
    ranked = RankedEdges.from_pairs(preds.flatten(), target.flatten(), indexes.flatten())
    return EvaluationResult(ranked, spellings, convention=convention).per_user


@lru_cache
def spellings(convention):
    """All metrics of a convention, at several depths and with all arguments."""
    known = conventions.get(convention).metrics
    ranked = RankedEdges.from_pairs(torch.arange(9.0), torch.tensor([3.0] + [0.0] * 8))
    found = {}
    for name in OF_RANKS if known is None else known.keys() & {*OF_RANKS}:
        defined = metrics.definition(name)
        for k in (1, 3, *([] if defined.needs_cut_off else [None])):
            for metric in with_arguments(name, k):
                try:  # there is no such variant at this depth, or in this convention
                    EvaluationResult(ranked, metric, convention=convention)
                except ValueError:
                    continue
                found[metric] = None
    return [*found]


def is_unknown(metric, has_grades):
    """Whether a range would take all orders, as the documentation says."""
    given = metric.all_arguments
    is_graded = has_grades and given.get("gain") != "binary"
    is_of_top = metric.k is not None and given.get("ideal") == "retrieved"
    return given.get("users") == "hit" or (is_of_top and is_graded)


def check(seed, convention, is_quick=True):
    scores, grade = draw_query(seed)
    edges = torch.tensor([[0, item] for item, value in enumerate(grade) if value]).t()
    weight = torch.tensor([value for value in grade if value])
    graded = {"weight": weight} if 3.0 in grade else {}
    task = RankingTask(edges, num_users=1, num_items=len(scores), **graded)
    asked = spellings(convention)
    num_told = 0
    values = of_all_orders(scores, grade, asked, convention)
    for ties in TIES[seed % 3 :][:1] if is_quick else TIES:
        result = evaluate(torch.tensor([scores]), task, asked, convention=convention, ties=ties)
        for metric in asked:
            if result.num_tied and is_unknown(result.definitions[metric], bool(graded)):
                with pytest.raises(ValueError, match="'metric' needs"):
                    result.tie_range(metric)
                continue
            low, high = result.tie_range(metric)
            if math.isnan(result[metric]):
                assert math.isnan(low)
                continue
            wanted = values[metric].min().item(), values[metric].max().item()
            if result.definitions[metric].all_arguments.get("ties") == "half":
                wanted = result[metric], result[metric]  # in whatever order
            assert (low, high) == pytest.approx(wanted), f"{seed}, {metric}"
            assert low - 1e-12 <= result[metric] <= high + 1e-12, f"{seed}, {metric}"
            num_told += 1
    return num_told


@pytest.mark.parametrize("seed", range(3))
def test_a_range_is_that_over_all_orders(seed):
    assert check(seed, "standard") > 50


@pytest.mark.parametrize("convention", sorted({*conventions.CONVENTIONS} - {"standard"}))
@pytest.mark.filterwarnings("ignore:.constant_scores. of the population")
def test_a_range_is_that_over_all_orders_in_other_conventions(convention):
    assert sum(check(seed, convention) for seed in range(2)) > 0


@pytest.mark.slow
@pytest.mark.parametrize("convention", conventions.CONVENTIONS)
def test_many_ranges_are_those_over_all_orders(convention):
    for seed in range(10, 12):
        check(seed, convention, is_quick=False)


def test_ties_are_counted_among_the_edges_of_which_they_are_known():
    level = torch.arange(600.0).div(6, rounding_mode="floor")
    users = torch.arange(5).repeat_interleave(200)
    truth = torch.stack([users, torch.arange(1000) * 3 % 600])
    task = RankingTask(truth, num_users=5, num_items=600)
    whole = evaluate(level, task, "roc_auc")
    assert whole.num_tied == truth.size(1)
    assert f"{whole.num_tied:,} of 1,000 ground-truth edges have" in str(whole)
    few = evaluate(level, task, "recall@3")
    known = (few.ranked.num_above < 200).sum()
    assert 0 < few.num_tied == known < 1000
    assert f"{known} of {known} ground-truth edges that can be in the top 3 or R have" in str(few)


@pytest.mark.parametrize("width", [0.5, 1e-3, 1e-5, 1e-9, 1e-14])
def test_ends_that_differ_are_written_with_digits_that_differ(width):
    low, high = str(TieRange(0.25, 0.25 + width)).split(" to ")
    assert float(low) < float(high)
    assert str(TieRange(0.25, 0.25)) == ".2500 to .2500"
