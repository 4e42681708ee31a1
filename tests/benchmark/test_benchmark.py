"""Benchmark: what it takes, holds, tests and saves."""

import math
import statistics
from itertools import combinations, product

import pytest
import torch

from pyg_recmetrics import Benchmark, EvaluationResult, RankingTask, Runs, compare, evaluate
from pyg_recmetrics.benchmark import by_data_set, with_best
from pyg_recmetrics.results.notes import notes_of_all
from pyg_recmetrics.results.statistics import holm
from pyg_recmetrics.tables import Best
from tests.support.cases.small_benchmark import DETERMINISTIC, METRICS, SHAPES, all_results
from tests.support.cases.small_task import BAD_SCORES, GOOD_SCORES, TASK

GOOD, BAD = (evaluate(scores, TASK, ["mrr", "recall@2"]) for scores in (GOOD_SCORES, BAD_SCORES))


class TestMapping:
    def test_it_maps_data_sets_to_results_by_name(self, benchmark):
        assert list(benchmark) == list(SHAPES)
        assert isinstance(benchmark["Small"]["Good"], Runs)
        assert isinstance(benchmark["Small"]["None"], EvaluationResult)
        assert benchmark.recommenders == ("Good", "Fair", "None")
        assert repr(benchmark) == "Benchmark(Small, Wide, Long; Good, Fair, None)"

    def test_one_data_set_alone_has_no_name(self):
        found = Benchmark({"x": GOOD, "y": [BAD]}, "mrr")
        assert repr(found) == "Benchmark(x, y)"
        assert found.table().head == ("recommender", "mrr")

    def test_metrics_are_those_that_all_have_or_others_that_can_be_measured(self):
        other = evaluate(GOOD_SCORES, TASK, ["recall@2", "ndcg@2"])
        results = {"A": {"x": GOOD}, "B": {"x": other}}
        assert list(map(str, Benchmark(results).metrics)) == ["recall@2"]
        assert Benchmark(results, "ndcg@2").to_pandas().value.notna().all()
        with pytest.raises(ValueError, match="'metrics' needs to be given"):
            Benchmark({"A": {"x": GOOD}, "B": {"x": evaluate(GOOD_SCORES, TASK, "ndcg@2")}})
        with pytest.raises(ValueError, match=r"^A, x: 'k' needs to be at most"):
            Benchmark(results, "ndcg@4").table()


def pairs_of(metric, of_one, proposed):
    """The pairs that are tested, those that are shown first, by a loop."""
    order = sorted(of_one, key=lambda name: of_one[name].estimate_of(metric).value, reverse=True)
    if proposed is None:
        return [order[:2], *[x for x in combinations(order, 2) if list(x) != order[:2]]], 1
    found = [name for name in order if name in proposed]
    others = [name for name in order if name not in proposed]
    pairs = [(name, other) for other in others for name in found]
    return pairs, len(found)


class TestDaggers:
    """Each is a comparison with the best of the others, and one correction covers all pairs."""

    @pytest.mark.parametrize("proposed", [None, ["Good"], ["Good", "Fair"], ["None"]])
    @pytest.mark.parametrize("deterministic", [(), DETERMINISTIC])
    def test_they_are_those_of_comparisons(self, benchmark, proposed, deterministic):
        found = Benchmark(benchmark, proposed=proposed, deterministic=deterministic)
        tested = []
        for metric, data_set in product(METRICS, SHAPES):
            of_one = benchmark[data_set]
            known = [x for x in deterministic if x in of_one]
            pairs, num_shown = pairs_of(metric, of_one, proposed)
            for number, (name, other) in enumerate(pairs):
                every = compare(dict(of_one), metric, baseline=other, deterministic=known)
                single = every.select(name=name)
                tested.append((data_set, name, single, single[0].p_value, number < num_shown))
        adjusted = holm([p for *_, p, _ in tested])
        cells = cells_of(found)
        of_row = {(x.data_set, x.recommender, x.metric): x for x in found.to_pandas().itertuples()}
        signs = set()
        for (data_set, name, single, _, is_shown), p in zip(tested, adjusted, strict=True):
            if not is_shown:
                continue
            (row,) = single
            sign = ""
            if p <= 0.05:
                sign = "†" if row.difference > 0 else "‡"
                sign = f" {sign}" if single.covers_training(row) else f" ({sign})"
            cell = cells.pop((data_set, name, row.metric))
            assert cell.removesuffix(sign)[-1] not in "†‡)" or "(." in cell
            assert cell.endswith(sign)
            p_of_row = of_row[data_set, name, row.metric].p_adjusted
            assert p_of_row == pytest.approx(p, nan_ok=True)
            signs.add(sign.strip(" ()"))
        assert not any(mark in cell for cell in cells.values() for mark in "†‡")
        notes = " ".join(found.table().notes)
        assert [mark in notes for mark in "†‡"] == [mark in signs for mark in "†‡"]
        assert signs - {""} == ({"‡"} if proposed == ["None"] else {"†"})

    def test_the_best_baseline_is_said_of_each_data_set(self, benchmark):
        notes = Benchmark(benchmark, "ndcg@3", proposed="Good").table().notes
        assert "Small, Wide: best baseline: Fair" in notes
        assert "Long: best baseline: None" in notes
        assert not any("best baseline" in note for note in Benchmark(benchmark).table().notes)

    def test_there_are_none_without_another(self):
        found = Benchmark({"A": {"x": GOOD}, "B": {"x": GOOD}})
        assert (found.comparisons, found.table().notes) == ({}, ("users: 2 on A, 2 on B",))
        every = Benchmark({"x": GOOD, "y": BAD}, proposed=["x", "y"])
        assert (every.comparisons, every.table().notes) == ({}, ("users: 2",))


def cells_of(benchmark):
    """Each cell by its data set, recommender and metric."""
    table = benchmark.table()
    keys = [(data_set, str(metric)) for data_set in benchmark for metric in benchmark.metrics]
    return {
        (data_set, name, metric): cell
        for name, *cells in table.rows
        for (data_set, metric), cell in zip(keys, cells, strict=True)
    }


class TestMeans:
    def test_every_mean_is_that_of_its_result_with_its_interval(self, benchmark):
        found, cells = Benchmark(benchmark, level=0.9), cells_of(benchmark)
        frame = found.to_pandas()
        assert len(frame) == 8 * len(METRICS)
        for row in frame.itertuples():
            result = benchmark[row.data_set][row.recommender]
            values = [run[row.metric] for run in result.runs]
            interval = math.nan, math.nan
            if len(values) > 1:
                interval = result.mean(row.metric, 0.9)[1:3]
            elif row.metric in result.per_user:
                interval = result.confidence_interval(row.metric, 0.9)
            mean = statistics.mean(values)
            deviation = statistics.stdev(values) if len(values) > 1 else math.nan
            expected = mean, *interval, deviation
            got = row.value, row.low, row.high, row.deviation
            assert got == pytest.approx(expected, nan_ok=True)
            assert row.num_runs == len(values)
            cell = cells[row.data_set, row.recommender, row.metric]
            spread = "" if len(values) == 1 else f" ({deviation:.4f})".replace("0.", ".")
            assert cell.split(" †")[0].split(" (†)")[0] == f"{mean:.4f}{spread}"
        assert cells["Long", "Fair", "ndcg@3"] == "-"

    def test_the_best_of_each_column_is_bold_equal_ones_together(self, benchmark):
        bold = {
            key for key, x in cells_of(Benchmark(benchmark, "ndcg@3")).items() if type(x) is Best
        }
        assert bold == {(data_set, "Good", "ndcg@3") for data_set in SHAPES}
        metrics = ["mrr", "mean_rank"]  # of which the latter is lower for the better
        good, bad = (evaluate(scores, TASK, metrics) for scores in (GOOD_SCORES, BAD_SCORES))
        found = Benchmark({"A": {"x": good, "y": good, "z": bad}, "B": {"x": good}})
        bold = {key[:2] for key, cell in cells_of(found).items() if type(cell) is Best}
        assert bold == {("A", "x"), ("A", "y")}

    def test_latex_underlines_the_second_best_of_more_than_two(self):
        results = {"x": GOOD, "y": BAD, "z": GOOD}
        row = Benchmark(results, "mrr").to_latex().split("\ny & ")[1]
        assert row.startswith(rf"\underline{{{BAD['mrr']:.4f}")
        assert "underline" not in Benchmark({"x": GOOD, "y": BAD}).to_latex()


class TestErrors:
    def test_what_is_wrong_is_named_with_its_data_set(self):
        other = evaluate(torch.rand(3), RankingTask([[0], [1]], num_users=1, num_items=3), "mrr")
        for results, error, message in (
            (GOOD, TypeError, "'results' needs to be results by name"),
            ({"A": 3, "B": {"x": GOOD}}, TypeError, r"needs to hold results by name \(got int"),
            ({"A": {"x": GOOD}, "B": {"x": 3}}, TypeError, "^B: 'results' needs to hold"),
            ({"A": {}, "B": {"x": GOOD}}, ValueError, "^A: 'results' needs to hold at least one"),
            ({"A": {"x": GOOD, "y": other}, "B": {"x": GOOD}}, ValueError, "^A: .* the same task"),
        ):
            with pytest.raises(error, match=message):
                Benchmark(results)
        for argument in ("proposed", "deterministic", "level"):
            with pytest.raises(ValueError, match=f"'{argument}' needs to be"):
                Benchmark({"x": GOOD}, **{argument: "z"})

    def test_all_data_sets_are_measured_alike(self):
        other = evaluate(GOOD_SCORES, TASK, ["mrr", "recall@2"], convention="rectools")
        with pytest.raises(ValueError, match=r"'A, x' and 'B, x', which differ in convention"):
            Benchmark({"A": {"x": GOOD}, "B": {"x": other}})
        with pytest.raises(ValueError, match=r"'x' and 'y', which differ in convention"):
            Benchmark({"x": GOOD, "y": other})


def test_notes_stand_once_and_name_their_data_sets():
    notes = {"A": ["all", "two"], "B": ["all", "one"], "C": ["all", "two"]}
    assert notes_of_all(notes) == ["all", "A, C: two", "B: one"]
    assert notes_of_all({"A": [], "B": []}) == []


def test_results_of_data_sets_are_told_from_those_of_one():
    of_all = all_results()
    assert list(by_data_set(of_all)) == list(of_all)
    assert by_data_set(of_all["Small"]) == {"": of_all["Small"]}
    result = of_all["Small"]["None"][0]
    for results in ({"a": result}, result, [result], {}):
        assert by_data_set(results) == {"": results}


@pytest.mark.parametrize(("metric", "wanted"), [("mrr", "xy"), ("mean_rank", "z")])
def test_the_best_are_those_whose_means_differ_by_rounding(metric, wanted):
    cells = {"x": (0.3, ".3"), "y": (0.1 + 0.2, ".3"), "z": (0.2, ".2"), "n": (math.nan, "-")}
    found = dict(zip("nxyzw", with_best(cells, "nxyzw", metric), strict=True))
    assert found == {name: text for name, (_, text) in cells.items()} | {"w": "-"}
    assert {name for name, cell in found.items() if isinstance(cell, Best)} == set(wanted)
