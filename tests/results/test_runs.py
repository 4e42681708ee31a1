"""Runs of one recommender: means over users and runs, and comparisons of several runs."""

import math
from itertools import product

import numpy as np
import pytest
import torch
from scipy import stats

from pyg_recmetrics import (
    Benchmark,
    Catalogue,
    EvaluationResult,
    RankingTask,
    Runs,
    compare,
    evaluate,
    merge,
    plot,
    report,
)
from pyg_recmetrics.results.result import exposure_of
from pyg_recmetrics.results.runs import recommenders_by_name, share_of_differing
from tests.support.cases.random_tasks import random_scores, random_task
from tests.support.references.variance_components import (
    components,
    components_of_difference,
    margin_over_runs,
)

pytest.importorskip("matplotlib")


METRICS = ["recall@3", "ndcg@3", "coverage@1"]


def make_runs(task, skill, num_runs, seed=0):
    """Results of scores to which `skill` is added where an item is relevant."""
    first = 1 + 100 * seed
    seeds = range(first, first + num_runs)
    return [evaluate(random_scores(task, seed, skill), task, METRICS) for seed in seeds]


@pytest.fixture(scope="module")
def task():
    return random_task(80, 60, truth_share=0.05, seen_share=0.2)


@pytest.fixture(scope="module")
def results(task):
    return make_runs(task, 0.4, 4)


@pytest.fixture(scope="module")
def others(task):
    return make_runs(task, 0.2, 3, seed=1)


def counted(results, metric):
    values = np.array([result.per_user[metric].tolist() for result in results])
    return values[:, ~np.isnan(values).any(axis=0)]


class TestRuns:
    def test_means_and_errors_are_those_of_plain_numbers(self, results):
        runs = Runs(results)
        values = counted(results, "ndcg@3")
        mean = runs.mean("ndcg@3", level=0.9)
        assert mean.value == pytest.approx(values.mean())
        assert mean.value == pytest.approx(np.mean([result["ndcg@3"] for result in results]))
        assert mean.deviation == pytest.approx(np.std(values.mean(axis=1), ddof=1))
        _, ((of_runs, _),) = components(values)
        margin = margin_over_runs([(1, values)], 0.9)
        assert mean.user_error == pytest.approx(stats.sem(values.mean(axis=0)))
        assert mean.run_error == pytest.approx(math.sqrt(of_runs))
        ends = values.mean() - margin, values.mean() + margin
        assert (mean.low, mean.high) == pytest.approx(ends)

    def test_a_value_for_all_users_together_varies_by_runs(self, results):
        mean = Runs(results).mean("coverage@1")
        values = [result["coverage@1"] for result in results]
        wanted = stats.t.interval(0.95, 3, loc=np.mean(values), scale=stats.sem(values))
        assert (mean.low, mean.high) == pytest.approx(wanted)
        assert math.isnan(mean.user_error)
        assert mean.run_error == pytest.approx(stats.sem(values))

    def test_what_is_wrong_is_named(self, task, results):
        with pytest.raises(ValueError, match=r"'results' needs to hold at least two \(got 1\)"):
            Runs(results[:1])
        with pytest.raises(TypeError, match=r"'results' needs to hold 'EvaluationResult' \(got fl"):
            Runs([results[0], 0.5])
        other = make_runs(random_task(80, 60, truth_share=0.1, seen_share=0.2), 0.4, 1)
        with pytest.raises(ValueError, match="'run 1' and 'run 2', which differ in truth"):
            Runs([results[0], *other])
        without = evaluate(random_scores(task, 0), task, "mrr@2")
        with pytest.raises(ValueError, match="metrics in common"):
            Runs([results[0], without])

    def test_the_number_of_calls_is_said_once(self, results):
        best = [result._with(num_calls=4) for result in results[:2]]
        said = "the best of 4 calls on these users"
        assert str(Runs(best)).count(said) == 1
        assert f"run 2: {said}" in str(Runs([results[0], best[1]]))


class TestLists:
    def test_lists_of_runs_are_counted_by_their_mean(self, task, results):
        runs = [
            evaluate(random_scores(task, seed), task, "recall@3", keep_items=3) for seed in (1, 2)
        ]
        counts = [0] * 60
        for result in runs:
            for row in result.ranked.lists.to_matrix()[:, :2].tolist():
                for item in row:
                    counts[item] += 0.5 * (item >= 0)
        assert exposure_of(Runs(runs), 2).tolist() == counts
        with pytest.raises(ValueError, match="keep_items"):
            exposure_of(Runs(results), 4)

    @pytest.mark.usefixtures("expect_ties")
    def test_ties_are_counted_by_their_mean(self, task, results):
        coarse = [
            evaluate((random_scores(task, seed) * 6).round(), task, METRICS) for seed in (1, 2, 3)
        ]
        runs = [*coarse, results[0]]
        assert results[0].num_tied == 0
        assert Runs(runs).num_tied == sum(result.num_tied for result in coarse) / 4
        low, high = Runs(runs).tie_range("ndcg@3")
        assert low == pytest.approx(np.mean([x.tie_range("ndcg@3").low for x in runs]))
        assert high == pytest.approx(np.mean([x.tie_range("ndcg@3").high for x in runs]))
        assert low < high
        lists = random_scores(task, 1).argsort(descending=True)[:, :-1]
        assert Runs([*coarse, evaluate(lists, task, METRICS)]).num_tied is None


def test_runs_are_compared_by_their_means(results, others):
    (row,) = compare({"good": results, "fair": Runs(others)}, metrics="ndcg@3", level=0.9)
    first, second = (counted(runs, "ndcg@3") for runs in (results, others))
    difference = first.mean(axis=0) - second.mean(axis=0)
    assert row.difference == pytest.approx(difference.mean())
    assert row.user_error == pytest.approx(stats.sem(difference))
    _, of_runs, of_rest = components_of_difference(first, second)
    of_runs = sum(part for part, _ in of_runs)
    assert row.run_error == pytest.approx(math.sqrt(max(0, of_runs - of_rest)))
    pairs = [np.sign(x - y) for x, y in product(first, second)]
    for number, sign in ((row.wins, 1), (row.ties, 0), (row.losses, -1)):
        assert number == pytest.approx(np.mean([(signs == sign).sum() for signs in pairs]))


class TestNearCopies:
    """Runs of one seed may differ a little, as sums on a card do."""

    def test_they_are_named_and_carry_no_star(self, task):
        scores = [random_scores(task, seed) for seed in (1, 2)]
        scores[0][tuple(task.truth)] += 0.5

        def runs(of, noise):
            noises = [noise * random_scores(task, seed) for seed in (3, 4, 5)]
            return [evaluate(of + noise, task, METRICS) for noise in noises]

        near, far = runs(scores[0], 0.02), runs(scores[1], 1.0)
        assert share_of_differing(near) < 0.2 < share_of_differing(far)
        comparison = compare({"near": near, "far": far}, metrics="ndcg@3")
        assert comparison.protocol.near_copies == ("near",)
        assert comparison.star(comparison[0]) == "(*)"
        assert "the runs of near hardly differ" in str(comparison)
        comparison = compare({"near": near, "far": far}, "ndcg@3", deterministic="near")
        assert comparison.star(comparison[0]) == "*"

    def test_a_metric_of_some_results_is_named(self, task, results):
        without = evaluate(random_scores(task, 1), task, "recall@3")
        for pair in ([results[0], without], [without, results[0]]):
            with pytest.raises(ValueError, match=r"'metric' needs to be a metric of all results"):
                Runs(pair).mean("coverage@1")


TASK = RankingTask(torch.tensor([[0, 1], [2, 0]]), num_users=2, num_items=3)
RESULT = evaluate(torch.tensor([0.1, 0.3, 0.2]), TASK, "recall@2", keep_items=True)

OF_SEVERAL = [
    compare,
    plot.metric_at_k,
    plot.precision_recall_curve,
    lambda results: plot.metric_by_degree(results, "recall@2"),
    plot.long_tail,
    lambda results: report(results, "nowhere/report.html"),
]


@pytest.mark.parametrize("call", OF_SEVERAL)
@pytest.mark.parametrize(
    ("results", "error", "message"),
    [
        ({}, ValueError, "'results' needs to hold at least one 'EvaluationResult'.* \\(got none"),
        ({None: RESULT}, TypeError, "needs strings or numbers as names \\(got None\\)"),
        ({3: RESULT, "3": RESULT}, ValueError, "a name of its own for each \\(got \\[3, '3'\\]\\)"),
        ({"a": RESULT, "b": 0.5}, TypeError, "'results' needs to hold .* \\(got float as 'b'\\)"),
        (0.5, TypeError, "'results' needs to be .*results by name, as in .* \\(got float\\)"),
    ],
)
def test_errors_are_the_same_everywhere(call, results, error, message):
    with pytest.raises(error, match=message):
        call(results)


@pytest.mark.filterwarnings("ignore:.*does the training set a seed")
def test_a_recommender_has_one_run_or_several():
    found = recommenders_by_name({"one": RESULT, "list": [RESULT], "two": [RESULT, RESULT]})
    assert found["one"] is found["list"] is RESULT
    assert isinstance(found["two"], Runs)
    without_lists = evaluate(torch.tensor([0.1, 0.3, 0.2]), TASK, "recall@2")
    assert len(Runs([RESULT, without_lists]).runs) == 1
    assert recommenders_by_name(found["two"], or_one=True) == {"": found["two"]}
    assert recommenders_by_name(RESULT, or_one=True) == {"": RESULT}


class TestBudgets:
    """How recommenders were tuned, as results say it."""

    def test_what_a_result_says_reaches_every_table(self, task, results, others, tmp_path):
        given = {
            "one": results[0].with_trials(4017, seconds=61.5),
            "runs": Runs(others).with_trials(8, seconds=1072.5),
            "popular": evaluate(torch.arange(60.0), task, METRICS),
        }
        said = {"one": (4017, 61.5), "runs": (8, 1072.5), "popular": (0, math.nan)}
        said = {name: pytest.approx(budget, nan_ok=True) for name, budget in said.items()}
        given["one"].save(tmp_path / "one")
        given["one"] = EvaluationResult.load(tmp_path / "one")
        for name, result in given.items():
            assert (result.num_trials, result.seconds or math.nan) == said[name]
        benchmark = Benchmark({"A": given, "B": given})
        found = [compare(given), compare(given, baseline="popular").select("ndcg@3"), benchmark]
        for tabular in (*found, Benchmark(given)):
            for text in (str(tabular), tabular.to_markdown(), tabular.to_latex()):
                assert all(number in text for number in ("4,017", "61.5", "1,072.5"))
        for tabular in (given["one"], given["runs"]):
            assert f"tuned in {tabular.num_trials:,} trials" in str(tabular)
            assert f"took {tabular.seconds:,} s" in str(tabular)
        assert "tuned in 4,017 trials" in " ".join(given["one"].recipe().split())
        assert "tuned" not in str(given["popular"])
        for row in benchmark.to_pandas().itertuples():
            assert (row.num_trials, row.seconds) == said[row.recommender]
        for row in compare(given).to_pandas().itertuples():
            assert (row.num_trials_a, row.seconds_a) == said[row.a]
            assert (row.num_trials_b, row.seconds_b) == said[row.b]

    def test_tables_say_whom_budgets_favour_and_who_says_nothing(self, results):
        names = ["a", "b", "c"]
        for budgets in product([None, 0, 3, 8], repeat=3):
            pairs = dict(zip(names, zip(results, budgets, strict=False), strict=True))
            given = {x: r if n is None else r.with_trials(n) for x, (r, n) in pairs.items()}
            known = {x: n for x, (_, n) in pairs.items() if n}
            unknown = [x for x, (_, n) in pairs.items() if n is None]
            for made in (compare(given, "ndcg@3"), Benchmark(given, "ndcg@3", proposed=names)):
                table = made.table()
                notes = [note for note in table.notes if "tun" in note]
                assert any("trials" in name for name in table.head) == bool(known)
                assert not any("seconds" in name for name in table.head)
                expected = []
                if {*known.values()} == {3, 8}:
                    most = ", ".join(x for x, n in known.items() if n == 8)
                    expected.append(f"unequal budgets favour {most}: 8 trials")
                if known and unknown:
                    expected.append(f"it is not known how {', '.join(unknown)} w")
                assert len(notes) == len(expected)
                assert all(map(str.startswith, notes, expected))

    def test_the_largest_that_is_said_stands_for_runs_and_for_parts(self, task, results):
        first, second, third, _ = results
        runs = Runs([first, second.with_trials(5, 2.5), third.with_trials(4, 3)])
        assert (runs.num_trials, runs.seconds) == (5, 3)
        assert (Runs(results).num_trials, Runs(results).seconds) == (None, None)
        parts = [evaluate(torch.arange(60.0), task.part(n, 2), METRICS) for n in range(2)]
        assert (merge(parts).num_trials, merge(parts).seconds) == (0, None)
        merged = merge([parts[0], parts[1].with_trials(5, 2.5)])
        assert (merged.num_trials, merged.seconds) == (5, 2.5)

    def test_budgets_are_numbers_from_zero_on(self, results):
        assert results[0].with_trials(0, 0).num_trials == 0
        for wrong in ((-1,), (1.5,), (True,), (None,)):
            with pytest.raises(ValueError, match="'trials' needs to be a non-negative integer"):
                results[0].with_trials(*wrong)
        for seconds in (-1, math.nan, math.inf, "1"):
            with pytest.raises(ValueError, match="'seconds' needs to be a"):
                Runs(results).with_trials(8, seconds)


FACTS = {"truth": [[0, 1, 2], [2, 0, 1]], "num_users": 3, "num_items": 6, "seen": [[0, 1], [0, 1]]}
TIED_SCORES = torch.tensor([3.0, 2.0, 2.0, 1.0, 1.0, 0.0])
SIX_ITEMS = torch.arange(6)
SHORT_LISTS = TIED_SCORES.argsort(descending=True)[:-1].expand(3, -1)


def result_of(metrics="diversity@3", scores=TIED_SCORES, facts=(), **options):
    given = {"catalogue": Catalogue(6, item_category=SIX_ITEMS), "ties": "best"} | options
    return evaluate(scores, RankingTask(**FACTS | dict(facts)), metrics, keep_items=True, **given)


DIFFERING = [
    ({"ties": "worst"}, {}, "ties"),
    ({"ties": "random", "seed": 1}, {"ties": "random", "seed": 2}, "seed of ties"),
    ({"catalogue": Catalogue(6, item_category=SIX_ITEMS % 2)}, {}, "item_category of .*"),
    (
        {"metrics": "novelty@3", "catalogue": None},
        {"metrics": "novelty@3", "catalogue": Catalogue(6, seen=[[0, 1, 2], [3, 3, 4]])},
        "seen of the catalogue",
    ),
    ({"empty_target_action": "neg"}, {}, "empty_target_action"),
    ({"facts": {"truth": [[0, 1], [2, 0]]}}, {}, "truth"),
    ({"facts": {"seen": [[0], [0]]}}, {}, "seen"),
    ({"facts": {"users": [0, 1]}}, {}, "truth, users"),
    ({"facts": {"candidates": SIX_ITEMS}}, {}, "candidates"),
    ({"facts": {"weight": [1.0, 2.0, 3.0]}}, {}, "weight"),
    ({"facts": {"person": [0, 0, 1]}}, {}, "person"),
    ({"facts": {"exclude_seen": False}}, {}, "exclude_seen"),
    (
        {"metrics": "mrr", "catalogue": None},
        {"metrics": "mrr", "catalogue": None, "facts": {"num_items": 7}, "scores": torch.rand(7)},
        "num_items",
    ),
]


@pytest.mark.filterwarnings("ignore:.*depending on the order of ties")
@pytest.mark.filterwarnings("ignore:intervals may be too narrow")
class TestDifferences:
    @pytest.mark.parametrize(("one", "other", "field"), DIFFERING)
    def test_they_are_named(self, one, other, field, tmp_path):
        results = [result_of(**one), result_of(**other)]
        for number, result in enumerate(results):
            result.save(tmp_path / f"{number}.npz")
        loaded = [EvaluationResult.load(tmp_path / f"{number}.npz") for number in range(2)]
        for first, second in (results, loaded, (results[0], loaded[1])):
            both = {"a": first, "b": second}
            for use in (*OF_SEVERAL, plot.means, Benchmark, lambda both: Runs(both.values())):
                with pytest.raises(ValueError, match=rf"which differ in {field}\)"):
                    use(both)
        compare({"a": results[0], "b": loaded[0]})

    def test_facts_that_no_metric_looks_at_may_differ(self):
        one = result_of("recall@2")
        compare(
            {
                "a": one,
                "b": result_of("recall@2", catalogue=Catalogue(6, item_category=SIX_ITEMS % 2)),
            }
        )

    def test_lists_know_no_ties(self):
        one = result_of("recall@2")
        compare({"a": one, "b": result_of("recall@2", scores=SHORT_LISTS, ties=None)})


@pytest.mark.filterwarnings("ignore:.*a score of '-inf'", "ignore:.*does the training set a seed")
def test_runs_of_all_ranks_are_two_where_an_edge_is_never_retrieved():
    task = RankingTask(torch.tensor([[0, 0, 1, 2], [0, 1, 2, 3]]), num_users=3, num_items=6)
    runs = []
    for seed in range(2):
        scores = random_scores(task, seed)
        scores[0, 0] = -torch.inf
        runs.append(evaluate(scores, task, "mrr"))
    assert not torch.equal(runs[0].ranked.rank, runs[1].ranked.rank)
    assert len(Runs(runs).runs) == 2
    assert len(Runs([runs[0], runs[0].with_trials(2)]).runs) == 1
    assert 0 < share_of_differing(runs) <= 1
