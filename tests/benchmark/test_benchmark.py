"""Benchmark: what it takes, holds, tests and saves."""

import math
import statistics
from itertools import chain, product

import pytest
import torch

from pyg_recmetrics import Benchmark, EvaluationResult, RankingTask, Runs, compare, evaluate
from pyg_recmetrics.results.statistics import holm
from pyg_recmetrics.tables import Best
from tests.support.cases.small_benchmark import DETERMINISTIC, METRICS, SHAPES
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


def places(benchmark, metric, of_one, proposed):
    """The proposed recommenders, each with the best of the others, by a loop."""
    means = {name: result.estimate_of(metric).value for name, result in of_one.items()}
    order = sorted(means, key=means.get, reverse=True)
    for name in order[:1] if proposed is None else proposed:
        others = [x for x in order if x not in (order[:1] if proposed is None else proposed)]
        if name in order:
            yield name, others[0]


class TestDaggers:
    """Each is a comparison with the best of the others, and one correction covers all of them."""

    @pytest.mark.parametrize("proposed", [None, ["Good"], ["Good", "Fair"]])
    @pytest.mark.parametrize("deterministic", [(), DETERMINISTIC])
    def test_they_are_those_of_comparisons(self, benchmark, proposed, deterministic):
        found = Benchmark(benchmark, proposed=proposed, deterministic=deterministic)
        tested = []
        for metric, data_set in product(METRICS, SHAPES):
            of_one = benchmark[data_set]
            for name, other in places(benchmark, metric, of_one, proposed):
                known = [x for x in deterministic if x in of_one]
                every = compare(dict(of_one), metric, baseline=other, deterministic=known)
                single = every.select(name=name)
                tested.append((data_set, name, single, holm([single[0].p_value])[0]))
        adjusted = holm([p for *_, p in tested])
        cells = cells_of(found)
        of_row = {(x.data_set, x.recommender, x.metric): x for x in found.to_pandas().itertuples()}
        signs = set()
        for (data_set, name, single, _), p in zip(tested, adjusted, strict=True):
            (row,) = single
            sign = ""
            if p <= 0.05 and row.difference > 0:
                sign = " †" if single.covers_training(row) else " (†)"
            cell = cells.pop((data_set, name, row.metric))
            assert cell.removesuffix(sign)[-1] != "†"
            assert cell.endswith(sign)
            p_of_row = of_row[data_set, name, row.metric].p_adjusted
            assert p_of_row == pytest.approx(p, nan_ok=True)
            signs.add(sign)
        assert not any("†" in cell for cell in cells.values())
        assert "" in signs
        assert (" (†)" in signs) == (not deterministic) == ("(†): for" in str(found))
        assert (" †" in signs) == (bool(deterministic) or proposed != ["Good", "Fair"])

    def test_there_are_none_without_another(self):
        found = Benchmark({"A": {"x": GOOD}, "B": {"x": GOOD}})
        assert (found.comparisons, found.table().notes) == ({}, ("users: 2 on A, 2 on B",))
        every = Benchmark({"x": GOOD, "y": BAD}, proposed=["x", "y"])
        assert (every.comparisons, every.table().notes) == ({}, ("users: 2",))

    def test_worse_is_no_dagger(self, benchmark):
        found = Benchmark(benchmark, "ndcg@3", proposed="None")
        assert {row.verdict for each in found.comparisons.values() for row in each} >= {"worse"}
        assert not any("†" in cell for cell in cells_of(found).values())


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

    def test_notes_say_who_stands_behind_it(self, benchmark):
        notes = benchmark.table().notes
        assert notes[0] == "users: 114 on Small, 141 on Wide, 286 on Long"
        assert notes[1] == "in brackets: the standard deviation over runs, 3 of Good; 2 of Fair"
        few = Benchmark({"x": GOOD, "y": BAD}).table().notes
        assert any("there are few users (2)" in note for note in few)


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


class TestFiles:
    def test_what_is_loaded_is_what_was_saved(self, benchmark, tmp_path):
        asked = {"proposed": "Fair", "deterministic": DETERMINISTIC, "level": 0.9}
        for options in ({}, {"metrics": "recall@2", **asked}):
            saved = Benchmark(benchmark, **options)
            saved.save(tmp_path / "all.npz")
            found = Benchmark.load(tmp_path / "all.npz")
            assert (list(found), found.recommenders) == (list(benchmark), benchmark.recommenders)
            assert str(found) == str(saved)
        for data_set, results in benchmark.items():
            for name, result in results.items():
                assert type(found[data_set][name]) is type(result)
                assert len(found[data_set][name].runs) == len(result.runs)

    def test_what_results_share_is_stored_once(self, benchmark, tmp_path):
        benchmark.save(tmp_path / "all.npz")
        size_of_runs = 0
        for of_one in benchmark.values():
            for run in chain(*(result.runs for result in of_one.values())):
                run.save(tmp_path / "run.npz")
                size_of_runs += (tmp_path / "run.npz").stat().st_size
        assert (tmp_path / "all.npz").stat().st_size < 0.75 * size_of_runs

    def test_names_may_have_dots_and_any_letters(self, tmp_path):
        found = Benchmark({"A.b/c": {"x.y": GOOD}, "Ü & <b>": {"x.y": GOOD, "…": BAD}})
        found.save(tmp_path / "odd.npz")
        assert list(Benchmark.load(tmp_path / "odd.npz")) == ["A.b/c", "Ü & <b>"]

    @pytest.mark.filterwarnings("ignore:.*the seed set inside")
    def test_other_files_are_refused(self, benchmark, tmp_path):
        GOOD.save(tmp_path / "one.npz")
        Runs([GOOD, GOOD]).save(tmp_path / "runs.npz")
        benchmark.save(tmp_path / "all.npz")
        for name in ("one.npz", "runs.npz"):
            with pytest.raises(ValueError, match="'path' needs to be a saved result"):
                Benchmark.load(tmp_path / name)
        for kind in (EvaluationResult, Runs):
            with pytest.raises(ValueError, match="'path' needs to be a saved result"):
                kind.load(tmp_path / "all.npz")
