"""Whether another recommender closes the gap between two groups, against plain formulas.

Gaps of a single recommender are tested where its groups are: see `test_item_groups.py`.
"""

import math

import pytest
import torch

from pyg_recmetrics import RankingTask, Runs, compare, evaluate
from tests.support.cases.drawn_results import draw_runs, runs_of
from tests.support.cases.random_tasks import random_scores, random_task

stats = pytest.importorskip("scipy.stats")

NUM_USERS, METRIC = 240, "ndcg@3"
GROUPS = ["new", "old", "old"] * (NUM_USERS // 3)


@pytest.fixture(scope="module")
def task():
    return random_task(NUM_USERS, 12, truth_share=0.2, seen_share=0.2)


@pytest.fixture(scope="module")
def runs(task):
    """Three runs that are good for old users alone, and three that are good for all."""

    def run(skill_of_new, seed):
        scores = random_scores(task, seed)
        user, item = task.truth
        scores[user, item] += torch.where(user % 3 == 0, skill_of_new, 0.8)
        return evaluate(scores, task, [METRIC, "recall@1"])

    return [[run(skill, seed) for seed in range(3)] for skill in (0.0, 0.6)]


def parts_of(result):
    values = result.contributions(METRIC)
    is_new = torch.tensor([group == "new" for group in GROUPS])
    return values, is_new & ~values.isnan(), ~is_new & ~values.isnan()


def test_the_gap_of_gaps_is_that_of_paired_differences(runs):
    first, second = runs[0][0], runs[1][0]
    closed = first.by(GROUPS).gaps(other=second.by(GROUPS))[0]
    (a, is_new, is_old), (b, *_) = parts_of(first), parts_of(second)
    gaps = [float(x[is_new].mean() - x[is_old].mean()) for x in (a, b)]
    assert (closed.metric, closed.a, closed.b) == (METRIC, "new", "old")
    assert (closed.gap, closed.gap_of_other) == pytest.approx(gaps)
    assert closed.closed == pytest.approx(abs(gaps[0]) - abs(gaps[1]))
    # What old users gain from the other recommender, and what new ones gain, are independent.
    gains = [(b - a)[is_in] for is_in in (is_new, is_old)]
    error = math.sqrt(sum(float(gain.var()) / len(gain) for gain in gains))
    quantile = stats.t.ppf(0.975, min(map(len, gains)) - 1)
    assert closed.high - closed.closed == pytest.approx(quantile * error)
    assert closed.verdict == "smaller"


def test_it_does_not_matter_which_group_is_ahead(runs):
    first, second = (of_one[0].by(GROUPS) for of_one in runs)
    (forward, _), (backward, _) = first.gaps("old", other=second), first.gaps("new", other=second)
    assert backward.gap == pytest.approx(-forward.gap)
    assert backward[5:] == pytest.approx(forward[5:])


def test_a_gap_may_get_larger_and_may_stay(runs):
    first, second = (of_one[0].by(GROUPS) for of_one in runs)
    larger, same = second.gaps(other=first)[0], first.gaps(other=first)[0]
    assert larger.verdict == "larger"
    assert larger.closed == pytest.approx(-first.gaps(other=second)[0].closed)
    assert (same.closed, same.low, same.high, same.verdict) == (0, 0, 0, "undecided")


def test_gaps_that_have_different_signs_are_compared_by_their_size(task):
    user = torch.arange(NUM_USERS)
    is_new = torch.tensor([group == "new" for group in GROUPS])

    def perfect_for(mask):
        scores = torch.zeros(NUM_USERS, 12)
        scores[tuple(task.truth)] = mask.float()[task.truth[0]]
        return evaluate(scores, task, METRIC, ties="worst").by(GROUPS)

    half = perfect_for(~is_new | (user % 2 == 0))
    mirrored = perfect_for(is_new)
    (gap,) = half.gaps(other=mirrored)
    assert gap.gap < 0 < gap.gap_of_other
    assert gap.closed == pytest.approx(abs(gap.gap) - abs(gap.gap_of_other))
    assert gap.verdict == "larger"


class TestRuns:
    def test_equal_runs_are_one(self, runs):
        one, other = (of_one[0].by(GROUPS) for of_one in runs)
        several = Runs([runs[0][0]] * 3).by(GROUPS)
        for found in (several.gaps(other=other), one.gaps(other=Runs([runs[1][0]] * 3).by(GROUPS))):
            wanted = one.gaps(other=other)
            for gap, single in zip(found, wanted, strict=True):
                assert gap[3:] == pytest.approx(single[3:])

    @pytest.mark.parametrize("num_runs", [(3, 2), (3, 1), (1, 3)])
    def test_the_gap_to_a_group_of_zeros_is_a_mean(self, num_runs):
        generator = torch.Generator().manual_seed(0)
        values = [
            mean + draw_runs(number, 1, 60, users=0.2, runs=0.1, generator=generator)
            for number, mean in zip(num_runs, (0.5, 0.3), strict=True)
        ]
        (wanted,) = compare(dict(zip("ab", map(runs_of, values), strict=True)))
        with_zeros = [torch.cat([x, torch.zeros_like(x)], dim=2) for x in values]
        first, second = (
            (Runs(results) if len(results) > 1 else results[0]).by(["new"] * 60 + ["old"] * 60)
            for results in map(runs_of, with_zeros)
        )
        (gap,) = first.gaps(other=second)
        assert gap.closed == pytest.approx(wanted.difference)
        assert (gap.low, gap.high) == pytest.approx((wanted.low, wanted.high))


def test_tables_and_frames(runs):
    pd = pytest.importorskip("pandas")
    first, second = (of_one[0].by(GROUPS) for of_one in runs)
    gaps = first.gaps(other=second)
    assert repr(gaps) == "ClosedGaps(2 gaps)"
    assert str(gaps).splitlines()[0].split() == [
        *["metric", "a", "b", "gap", "gap", "of", "other", "closed", "verdict"]
    ]
    frame = gaps.to_pandas()
    assert isinstance(frame, pd.DataFrame)
    assert frame.verdict.tolist() == [gap.verdict for gap in gaps]


def test_other_groups_are_refused(task, runs):
    found, other = (of_one[0].by(GROUPS) for of_one in runs)
    with pytest.raises(TypeError, match=r"'other' needs to be 'Cohorts' \(got EvaluationResult\)"):
        found.gaps(other=runs[1][0])
    for groups in ([*GROUPS[1:], "new"], ["young", *GROUPS[1:]]):
        with pytest.raises(ValueError, match="'other' needs to have the same groups"):
            found.gaps(other=runs[1][0].by(groups))
    with pytest.raises(ValueError, match="'other' needs to have the same groups"):
        found.gaps(other=runs[1][0].by_degree(2))
    unknown = evaluate(torch.rand(12), task, "mrr").by(GROUPS)
    with pytest.raises(ValueError, match=r"'other' needs to have one of the metrics \['ndcg@3'"):
        found.gaps(other=unknown)
    with pytest.raises(ValueError, match="'reference' needs to be one of"):
        found.gaps("young", other=other)


def test_other_users_are_refused():
    truth = torch.tensor([[0, 1, 2, 3], [0, 0, 1, 1]])

    def cohorts(person):
        task = RankingTask(truth, num_users=4, num_items=2, person=person)
        return evaluate(torch.tensor([1.0, 0.0]), task, "recall@1").by([0, 0, 1, 1])

    with pytest.raises(ValueError, match=r"of the same task .*'other', which differ in person"):
        cohorts(None).gaps(other=cohorts([0, 0, 1, 1]))


def test_users_of_another_task_are_no_pairs():
    def cohorts(item):
        task = RankingTask([[0, 1, 2, 3], [0, 0, 1, item]], num_users=4, num_items=2)
        return evaluate(torch.tensor([1.0, 0.0]), task, "recall@1").by([0, 0, 1, 1])

    with pytest.raises(ValueError, match=r"of the same task .*'other', which differ in truth"):
        cohorts(0).gaps(other=cohorts(1))
