"""compare(), against scipy and plain loops over users."""

import math
from itertools import combinations

import numpy as np
import pytest
import torch
from scipy import stats

from pyg_recmetrics import (
    Benchmark,
    EvaluationResult,
    Margin,
    RankedEdges,
    RankingTask,
    compare,
    evaluate,
    metrics,
    plot,
)
from pyg_recmetrics.results.comparison import RecommenderPair
from pyg_recmetrics.results.runs import recommenders_by_name
from pyg_recmetrics.results.statistics import holm
from pyg_recmetrics.results.verdicts import Equivalence
from pyg_recmetrics.tables import format_p
from tests.support.cases.random_tasks import random_scores, random_task

METRICS = ["recall@3", "ndcg@3", "r_precision"]


def make_task(**options):
    options = {"num_users": 80, "num_items": 15, **options}
    return random_task(truth_share=0.15, seen_share=0.2, **options)


def scores_of(task, skill, seed):
    return random_scores(task, seed, skill)


@pytest.fixture(scope="module")
def task():
    return make_task()


@pytest.fixture(scope="module")
def results(task):
    return {
        name: evaluate(scores_of(task, skill, seed), task, METRICS)
        for seed, (name, skill) in enumerate({"good": 0.5, "fair": 0.25, "none": 0.0}.items())
    }


class TestNumbers:
    def test_they_are_those_of_scipy_and_of_loops(self, results):
        frame = compare(results, level=0.9).to_pandas()
        pairs = list(combinations(results, 2))
        keys = [(metric, a, b) for metric in METRICS for a, b in pairs]
        assert list(zip(frame.metric, frame.a, frame.b, strict=True)) == keys
        for row in frame.itertuples():
            a, b = (results[name].per_user[row.metric].tolist() for name in (row.a, row.b))
            pairs = [(x, y) for x, y in zip(a, b, strict=True) if x == x and y == y]
            x, y = np.array(pairs).T
            t_test = stats.ttest_rel(x, y)
            assert row.p_value == pytest.approx(t_test.pvalue, abs=1e-12)
            assert row.difference == pytest.approx(results[row.a][row.metric] - y.mean())
            assert (row.low, row.high) == pytest.approx(tuple(t_test.confidence_interval(0.9)))
            assert (row.mean_a, row.mean_b) == pytest.approx((x.mean(), y.mean()))
            assert row.lift == pytest.approx(100 * (x.mean() - y.mean()) / y.mean())
            assert row.wins == sum(x > y for x, y in pairs)
            assert row.ties == sum(x == y for x, y in pairs)
            assert row.losses == sum(x < y for x, y in pairs)
        assert frame.p_adjusted.tolist() == holm(frame.p_value.tolist())

    def test_users_for_whom_either_is_undefined_are_left_out(self, results):
        name = "r_precision(users=hit)"
        (row,) = compare({"a": results["good"], "b": results["none"]}, metrics=name)
        good, none = (results[which].values_of(name)[0] for which in ("good", "none"))
        both = ~(good.isnan() | none.isnan())
        assert row.wins + row.ties + row.losses == int(both.sum()) < int((~good.isnan()).sum())
        assert row.difference == pytest.approx(float((good - none)[both].mean()))

    def test_less_may_be_better(self, task):
        good, none = (
            evaluate(scores_of(task, skill, 0), task, "mean_rank") for skill in (0.5, 0.0)
        )
        (row,) = compare({"a": good, "b": none})
        assert row.difference < 0
        assert row.wins > row.losses
        assert row.verdict == "better"

    def test_a_value_for_all_users_together_is_shown_without_a_test(self, task):
        result = evaluate(scores_of(task, 0.5, 0), task, ["coverage@3", "ndcg@3"])
        of_all, of_users = str(result).splitlines()[2:4]
        assert "±" in of_users
        assert "±" not in of_all
        for ask, metric in (
            (result.confidence_interval, "coverage@3"),
            (result.values_of, "coverage@2"),
        ):
            with pytest.raises(ValueError, match=rf"value for every user \(got '{metric}', which"):
                ask(metric)
        (everybody,) = result.by_degree(1).values()
        assert list(everybody) == list(result.per_user) == ["ndcg@3"]
        comparison = compare({"a": result, "b": result})
        assert math.isnan(comparison[0].p_value)
        assert (comparison[0].difference, comparison[0].wins) == (0, None)
        assert (comparison[1].p_value, comparison[1].wins, comparison[1].losses) == (1, 0, 0)
        assert "a single test" in str(comparison)
        assert "other runs" not in str(comparison)
        untested = str(compare({"a": result, "b": result}, metrics="coverage@3"))
        assert "an interval and a test need values of two" in untested
        assert "p:" not in untested


class TestNames:
    def test_against_a_baseline(self, results):
        comparison = compare(results, baseline="fair", metrics="recall@3")
        assert [(row.a, row.b) for row in comparison] == [("good", "fair"), ("none", "fair")]
        with pytest.raises(ValueError, match=r"'baseline' needs to be one of \['good', 'fair'"):
            compare(results, baseline="best")

    def test_only_metrics_that_all_have(self, task, results):
        ranked_well = evaluate(scores_of(task, 0.5, 0), task, ["mrr@3", "ndcg@3"])
        (row,) = compare({"a": ranked_well, "b": results["fair"]})
        assert row.metric == "ndcg@3"
        of_map = evaluate(scores_of(task, 0.5, 0), task, ["map@3"])
        with pytest.raises(ValueError, match="metrics in common"):
            compare({"a": ranked_well, "b": of_map})
        assert len(compare({"a": ranked_well, "b": of_map}, metrics=["recall@3"])) == 1


class TestSameTask:
    def test_two_thresholds_may_select_the_same_truth(self, task):
        weight = 3 + torch.arange(task.truth.size(1)) % 2
        results = {
            name: evaluate(
                scores_of(task, 0.5, 0),
                make_task(truth=task.truth, seen=task.seen, weight=weight, threshold=threshold),
                METRICS,
            )
            for name, threshold in (("two", 2), ("three", 3), ("four", 4))
        }
        for row in compare({name: results[name] for name in ("two", "three")}):
            assert row.difference == 0
        with pytest.raises(ValueError, match="'two' and 'four', which differ in truth, weight"):
            compare({name: results[name] for name in ("two", "four")})

    def test_lists_alone_are_compared_by_their_truth(self):
        truth = torch.tensor([[0, 0, 1, 2], [1, 3, 0, 2]])
        lists_a = torch.tensor([[1, 3], [1, 0], [2, 0]])
        lists_b = torch.tensor([[3, 2], [0, 1], [2, 1]])
        results = [
            EvaluationResult(RankedEdges.from_topk(lists, edges), ["recall@1", "mrr@2"])
            for lists, edges in (
                (lists_a, truth),
                (lists_b, truth.flip(1)),
                (lists_b, truth[:, 1:]),
            )
        ]
        row, _ = compare({"a": results[0], "b": results[1]})
        assert (row.wins, row.ties, row.losses) == (0, 2, 1)
        with pytest.raises(ValueError, match="differ in truth"):
            compare({"a": results[0], "b": results[2]})


class TestTable:
    def test_it_fits_a_hundred_columns(self, results):
        names = ["LightGCN", "Matrix factorisation", "Most popular"]
        renamed = dict(zip(names, results.values(), strict=True))
        renamed["LightGCN"] = [results["good"], results["fair"]]
        comparison = compare(renamed, deterministic=["Most popular"], equivalence="2%")
        assert max(map(len, str(comparison).splitlines())) <= 100

    def test_each_recommender_has_a_row_in_a_metric(self, results):
        """Differences are from the best of all, or from the baseline."""
        for baseline in (None, "none"):
            comparison = compare(results, baseline=baseline)
            rows = [row for row in comparison.table().rows if len(row) > 1]
            keys = list(zip(np.repeat(METRICS, 3), rows, strict=True))
            assert len({(metric, row[0]) for metric, row in keys}) == 9
            for metric, row in keys:
                name, mean, difference, _, p, _, verdict, _ = row
                assert mean == f"{results[name][metric]:.4f}"
                reference = baseline or max(results, key=lambda x: results[x][metric])
                assert (verdict == "reference") == (name == reference)
                if name != reference:
                    found = comparison.select(metric, name)
                    (found,) = [x for x in found if x.b == reference]
                    assert difference.startswith(f"{found.difference:+.4f}")
                    assert (p, verdict) == (format_p(found.p_adjusted), found.verdict)
        every = [row for row in compare(results).table(all_pairs=True).rows if len(row) > 1]
        assert sum(row[0].startswith("- ") for row in every) == len(compare(results))


class TestWhatResultsKnow:
    """What a result says of itself below its table, all tables of several say."""

    @pytest.mark.filterwarnings("ignore::UserWarning")
    def test_of_the_task(self, task):
        part = "relevant items are message-passing edges: a leak"
        changed = make_task(truth=task.truth, seen=task.truth, exclude_seen=False)
        found = {x: evaluate(scores_of(changed, x, 0), changed, METRICS) for x in (0.1, 0.4, 0.9)}
        for tabular in (compare(found), compare(found).select(name=0.4), Benchmark(found)):
            (note,) = [note for note in tabular.table().notes if part in note]
            assert note in found[0.1].cautions()
        pictures = plot.metric_at_k, plot.precision_recall_curve, plot.means
        for figure, _ in (*(draw(found) for draw in pictures), plot.differences(compare(found))):
            title = figure.get_suptitle() or figure.axes[0].get_title()
            assert note.partition(": ")[0] in title.replace("\n", " ")

    @pytest.mark.filterwarnings("ignore::UserWarning")
    def test_of_one_recommender(self, task):
        ids = {"user_ids": range(80), "item_ids": range(15)}
        task = make_task(truth=task.truth, seen=task.seen, **ids)
        results = {x: evaluate(scores_of(task, x, 0), task, METRICS) for x in (0.1, 0.4)}
        truth = torch.zeros(80, 15)
        truth[tuple(task.truth)] = 1.0
        lists = {int(user): [int(row.argmax())] for user, row in enumerate(truth)}
        others = {
            "tied": (evaluate(torch.ones(15), task, METRICS), "depending on the order of ties"),
            "short": (evaluate(lists, task, METRICS), "as their lists are"),
        }
        for name, (result, said) in others.items():
            metrics = "ndcg@3"
            given = {**results, name: result}
            for tabular in (compare(given, metrics), Benchmark(given, metrics)):
                notes = [note for note in tabular.table().notes if said in note]
                assert len(notes) == 1, (name, said, tabular.table().notes)
                assert notes[0].startswith(f"{name}: ")


def test_what_has_no_seed_or_several_runs_has_full_stars(task, results):
    """What has one run may be better only because of its seed."""
    runs = [evaluate(scores_of(task, 0.4, seed), task, METRICS) for seed in range(3, 7)]
    given = {"runs": runs, "fair": results["fair"], "none": results["none"]}
    comparison = compare(given, metrics="ndcg@3", deterministic="none")
    stars = {(row.a, row.b): comparison.star(row) for row in comparison}
    assert stars["runs", "none"] == "*"
    assert stars["fair", "none"] == "(*)"
    assert "other seeds of fair are not covered" in str(comparison)
    for wrong in (["x"], 3):
        with pytest.raises((TypeError, ValueError), match="'deterministic' needs to"):
            compare(given, deterministic=wrong)


class TestSelect:
    def test_a_recommender_is_the_first_of_its_pairs_in_the_order_of_means(self, task):
        results = {
            name: evaluate(scores_of(task, skill, 9), task, ["recall@3", "mean_rank"])
            for name, skill in {"b": 0.2, "a": 0.5, "d": 0.0, "c": 0.3}.items()
        }
        comparison = compare(results, equivalence=0.2)
        found = comparison.select(name="c")
        assert [(row.a, row.b) for row in found] == [("c", "a"), ("c", "b"), ("c", "d")] * 2
        known = {(row.metric, row.a, row.b): row for row in comparison}
        fresh = {
            (row.metric, row.a, row.b): row
            for row in compare({"c": results["c"], **results}, equivalence=0.2)
        }
        for row in found:
            of_pair = fresh[row.metric, row.a, row.b]
            assert row._replace(p_adjusted=0, verdict=None) == pytest.approx(
                of_pair._replace(p_adjusted=0, verdict=None), nan_ok=True
            )
            same = known.get((row.metric, row.a, row.b)) or known[row.metric, row.b, row.a]
            assert row.p_adjusted == same.p_adjusted
            turned = {"better": "worse", "worse": "better"} if same.a != row.a else {}
            assert row.verdict == turned.get(same.verdict, same.verdict)
        again = found.select(name="c").select(name="a").select(name="c")
        assert list(again) == [row for row in found if row.b == "a"]

    def test_what_was_not_compared_is_named(self, results):
        comparison = compare(results)
        with pytest.raises(ValueError, match=r"'metrics' needs to be one of .* \(got 'mrr'\)"):
            comparison.select(["ndcg@3", "mrr"])
        with pytest.raises(ValueError, match=r"'name' needs to be one of \['good', .*'best'\)"):
            comparison.select(name="best")
        selected = compare(results, baseline="none").select(name="good")
        with pytest.raises(ValueError, match="'metrics' and 'name' need to leave a difference"):
            selected.select(name="fair")

    def test_names_may_be_numbers(self, results):
        numbered = dict(enumerate(results.values(), start=1))
        comparison = compare(numbered, baseline=1)
        assert [(row.a, row.b) for row in comparison[:2]] == [("2", "1"), ("3", "1")]
        assert {row.a for row in comparison.select(name=3)} == {"3"}
        assert compare(numbered, deterministic=[1, 2, 3]).protocol.uncovered == []


class TestVerdicts:
    def test_they_follow_from_the_tests(self, results):
        comparison = compare(results)
        for row in comparison:
            assert comparison.is_significant(row) == (row.p_adjusted <= 0.05)
            wanted = "inconclusive"
            if comparison.is_significant(row):
                wanted = "better" if row.difference > 0 else "worse"
            assert row.verdict == wanted
        num_significant = sum(map(comparison.is_significant, comparison))
        assert 0 < num_significant < 9
        assert repr(comparison) == f"Comparison(9 differences, {num_significant} significant)"

    def test_equivalence_is_two_one_sided_tests(self, results):
        verdicts = []
        for bound in (0.01, 0.05, 0.1, 0.2, 0.5, 0.9):
            comparison = compare(
                {"a": results["fair"], "b": results["none"]}, metrics="ndcg@3", equivalence=bound
            )
            (row,) = comparison
            a, b = (results[name].per_user["ndcg@3"] for name in ("fair", "none"))
            d = (a - b)[~(a - b).isnan()].numpy()
            p = max(
                stats.ttest_1samp(d, -bound, alternative="greater").pvalue,
                stats.ttest_1samp(d, bound, alternative="less").pvalue,
            )
            assert row.p_equivalence == pytest.approx(p)
            assert (row.verdict == "equivalent") == (p <= 0.05)
            verdicts.append(row.verdict)
        assert verdicts[0] != "equivalent" == verdicts[-1]

    def test_a_share_is_one_of_the_mean_of_b(self, task, results):
        alike = evaluate(scores_of(task, 0.25, 9), task, METRICS)
        pair = {"a": results["fair"], "b": alike}
        (row,) = compare(pair, metrics="ndcg@3")
        for share in (5, 20, 50, 80, 99):
            of_b = compare(pair, metrics="ndcg@3", equivalence=f"{share}%")
            absolute = compare(pair, metrics="ndcg@3", equivalence=share / 100 * row.mean_b)
            assert of_b[0].verdict == absolute[0].verdict
            assert of_b.bound(of_b.select(name="b")[0]) == absolute.bound(absolute[0])
        assert of_b[0].verdict == "equivalent"
        for wrong in ("2", "0%", "%", 0, math.inf, True, Margin(0.1), 2, 1, "100%", "250%"):
            with pytest.raises((TypeError, ValueError), match="'equivalence' needs to be"):
                compare(pair, equivalence=wrong)


def test_claims_and_tables_say_what_was_chosen_and_what_was_sampled(task):
    candidates = torch.cat([task.truth, torch.stack([torch.arange(task.num_users)] * 2)], dim=1)
    sampled = RankingTask(
        task.truth,
        num_users=task.num_users,
        num_items=task.num_items,
        candidates=candidates.remainder(torch.tensor([[task.num_users], [task.num_items]])),
    )
    for of_task in (task, sampled):
        results = {
            name: evaluate(scores_of(of_task, skill, seed=0), of_task, ["ndcg@3", "mrr"])
            for name, skill in (("a", 0.3), ("b", 0.2))
        }
        chosen = compare(results | {"c": results["b"]}, "mrr")
        assert "3 tests (1 of 2 metrics x 3 pairs) by Holm's method" in str(chosen)
        assert "b and c have the same values" in str(chosen)
        assert "a and" not in str(chosen)
        is_said = [
            claim.startswith("Among the candidates of each user") for claim in chosen.claims()
        ]
        assert is_said == [of_task is sampled] * 3


def test_a_remark_names_a_metric_once_whatever_the_number_of_pairs(task):
    name = "recall(average=micro)@3"
    found = {x: evaluate(scores_of(task, 0.1 * x, x), task, name) for x in range(3)}
    (note,) = {x for x in compare(found).table().notes if "denominator" in x}
    assert note.count(name) == 1


def pair_of_values(first, second):
    """Two recommenders with one run each, by the values of users."""
    both = [np.array(x)[:, None] for x in (first, second)]
    return RecommenderPair(metrics.parse("ndcg@3"), ("a", "b"), both, None, (None, None))


def test_equal_runs_are_one_run(results):
    good, fair = results["good"], results["fair"]
    one = compare({"a": good, "b": fair})
    with pytest.warns(UserWarning, match="does the training set a seed"):
        several = compare({"a": [good] * 3, "b": [fair] * 2})
    assert repr(one[0]) == repr(several[0])
    assert several.star(several[0]) == one.star(one[0])
    assert "3 runs of a are the same ranking: does the training set a seed" in str(several)


class TestNoDifference:
    def test_what_is_the_same_is_equivalent_within_any_bound(self):
        """A share of a mean of zero is zero."""
        task = random_task(30, 20, truth_share=0.1, seen_share=0.0)
        scores = torch.zeros(30, 20)
        scores[tuple(task.truth)] = -1.0 - torch.rand(task.truth.size(1))
        last = evaluate(scores, task, "ndcg@3")
        first = evaluate(-scores, task, "ndcg@3")
        assert last["ndcg@3"] == 0
        for bound in ("2%", 0.01, 1e-300):
            (row,) = compare({"a": last, "b": last}, equivalence=bound)
            assert row.verdict == "equivalent"
        (row,) = compare({"a": first, "b": last}, equivalence="2%")
        assert row.verdict == "better"
        (claim,) = compare({"a": last, "b": last}, equivalence="2%").claims()
        claimed = (
            "a is as good as b in ndcg@3 (within ± 0, p < 0.0001; difference +0.0000, p = 1.00)"
        )
        assert claim == f"As trained here, {claimed}."

    def test_what_differs_is_not_equivalent_within_nothing(self):
        pair = pair_of_values([0.1, 0.3, -0.1, -0.3], [0.0] * 4)
        assert pair.difference.value == 0
        assert pair.p_of_equivalence(Equivalence(1e-300, False)) == pytest.approx(0.5)

    def test_rounding_is_no_difference(self):
        pair = pair_of_values([0.1, 0.2, 0.0], [0.0, 0.0, 0.3])
        assert pair.difference.mean.value != 0
        row = pair.row(0.05)
        assert (row.difference, row.lift) == (0, 0)
        assert row.low == -row.high
        assert row.p_value == 1


class TestLift:
    def test_its_interval_is_that_of_the_logarithm(self, results):
        """The delta method, with each user's share of both means."""
        (row,) = compare({x: results[x] for x in ("good", "fair")}, "ndcg@3", level=0.9)
        both = (results[x].per_user["ndcg@3"].numpy() for x in ("good", "fair"))
        x, y = (values[~np.isnan(values)] for values in both)
        assert row.lift == pytest.approx(100 * (x.mean() / y.mean() - 1))
        error = stats.sem(x / x.mean() - y / y.mean())
        margin = stats.t.ppf(0.95, len(x) - 1) * error
        ratio = x.mean() / y.mean()
        assert row.lift_low == pytest.approx(100 * (ratio * math.exp(-margin) - 1))
        assert row.lift_high == pytest.approx(100 * (ratio * math.exp(margin) - 1))

    def test_nothing_has_no_lift(self, task):
        scores = torch.zeros(task.num_users, task.num_items)
        scores[tuple(task.truth)] = -1.0
        nothing = evaluate(scores, task, "ndcg@1")
        assert nothing["ndcg@1"] == 0
        (row,) = compare({"a": nothing, "b": nothing})
        assert all(map(math.isnan, (row.lift, row.lift_low, row.lift_high)))
        assert (row.difference, row.verdict) == (0, "inconclusive")


def test_equal_means_of_other_users_are_no_equal_results(task):
    """Users swap their scores, truth and seen items, so that means stay and pairs change."""
    truth, seen = (torch.stack([79 - user, item]) for user, item in (task.truth, task.seen))
    flipped, scores = make_task(truth=truth, seen=seen), [random_scores(task, x) for x in (0, 5)]
    straight, mixed = (
        {name: evaluate(x, of_one, METRICS) for name, x in zip("ab", given, strict=True)}
        for of_one, given in ((task, scores), (flipped, [x.flip(0) for x in scores]))
    )
    assert mixed["b"]["ndcg@3"] == pytest.approx(straight["b"]["ndcg@3"])
    with pytest.raises(ValueError, match="which differs in a, b"):
        compare(straight).check_results(recommenders_by_name(mixed))


def test_means_in_the_table_are_those_of_the_users_who_are_compared():
    generator = torch.Generator().manual_seed(0)
    users = torch.arange(6000)
    task = RankingTask(torch.stack([users, users % 20]), num_users=6000, num_items=20)
    scores = torch.rand(3, 6000, 20, generator=generator)
    results = {
        name: evaluate(of_one, task, "mrr", margin=margin)
        for name, of_one, margin in zip("abc", scores, (0.01, 0.05, 0.02), strict=True)
    }
    for names in ("ab", "ac", "abc"):
        found = compare({name: results[name] for name in names})
        values = torch.cat([results[name].values_of("mrr") for name in names])
        common = values[:, ~values.isnan().any(dim=0)].mean(dim=1).tolist()
        for table in (str(found), str(found.table(all_pairs=True))):
            assert {f"{mean:.4f}" for mean in common} <= {*table.split()}
            assert "mean: over the users that all recommenders in a metric have" in table
    full = {name: evaluate(of_one, task, "mrr") for name, of_one in zip("ab", scores, strict=False)}
    assert "mean: over the users" not in str(compare(full))
