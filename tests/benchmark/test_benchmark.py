"""Benchmark: what it takes, holds and saves."""

import pytest
import torch

from pyg_recmetrics import Benchmark, EvaluationResult, RankingTask, Runs, evaluate
from tests.support.cases.random_tasks import random_scores, random_task
from tests.support.cases.small_benchmark import METRICS, SHAPES, all_results
from tests.support.cases.small_task import BAD_SCORES, GOOD_SCORES, TASK
from tests.support.machines.missing_packages import hide_package

GOOD, BAD = (evaluate(scores, TASK, ["mrr", "recall@2"]) for scores in (GOOD_SCORES, BAD_SCORES))


class TestMapping:
    def test_it_maps_data_sets_to_results_by_name(self, benchmark):
        assert list(benchmark) == list(SHAPES)
        assert len(benchmark) == 3
        assert list(benchmark["Small"]) == ["Good", "Fair", "None"]
        assert isinstance(benchmark["Small"]["Good"], Runs)
        assert isinstance(benchmark["Small"]["None"], EvaluationResult)
        assert benchmark.recommenders == ("Good", "Fair", "None")
        assert list(map(str, benchmark.metrics)) == METRICS
        assert repr(benchmark) == "Benchmark(Small, Wide, Long; Good, Fair, None)"

    def test_sequences_are_runs(self, benchmark):
        assert str(Benchmark(all_results())) == str(benchmark)

    def test_every_data_set_lists_recommenders_in_one_order(self):
        found = Benchmark({"A": {"x": GOOD, "y": BAD}, "B": {"y": BAD, "z": GOOD, "x": GOOD}})
        assert found.recommenders == ("x", "y", "z")
        assert list(found["B"]) == ["x", "y", "z"]
        assert found.compare("mrr").pairs == [("x", "y"), ("x", "z"), ("y", "z")]

    def test_names_may_be_numbers(self):
        found = Benchmark({1: {64: GOOD, 128: BAD}, 2: {64: GOOD}})
        assert list(found) == ["1", "2"]
        assert found.compare("mrr", baseline=64).pairs == [("128", "64")]

    def test_it_cannot_be_changed(self, benchmark):
        with pytest.raises(AttributeError, match="cannot be set"):
            benchmark.metrics = ()

    def test_the_first_metric_that_all_have_is_taken(self):
        other = evaluate(GOOD_SCORES, TASK, ["recall@2", "ndcg@2"])
        found = Benchmark({"A": {"x": GOOD}, "B": {"x": other}})
        assert list(map(str, found.metrics)) == ["recall@2"]
        assert found.table().head[0] == "recall@2"
        # The other is measured where it was not asked for.
        assert found.to_pandas("ndcg@2").value.notna().all()
        none = Benchmark({"A": {"x": GOOD}, "B": {"x": evaluate(GOOD_SCORES, TASK, "ndcg@2")}})
        with pytest.raises(ValueError, match="'metric' needs to be given"):
            none.table()

    def test_what_all_tables_are_it_is_too(self, benchmark):
        assert str(benchmark) == str(benchmark.table())
        assert benchmark.to_latex() == benchmark.table().to_latex()
        assert benchmark.to_markdown() == benchmark.table("ndcg@3").to_markdown()


class TestErrors:
    def test_what_is_wrong_is_named_with_its_data_set(self):
        with pytest.raises(TypeError, match="'results' needs to be results by name"):
            Benchmark(3)
        with pytest.raises(TypeError, match=r"'results' needs to hold results by name \(got int"):
            Benchmark({"A": 3, "B": {"x": GOOD}})
        with pytest.raises(TypeError, match=r"^A: 'results' needs to be results by name"):
            Benchmark({"A": GOOD, "B": GOOD})
        with pytest.raises(TypeError, match=r"^B: 'results' needs to hold 'EvaluationResult' or"):
            Benchmark({"A": {"x": GOOD}, "B": {"x": 3}})
        with pytest.raises(ValueError, match=r"at least two data sets \(got \['A'\]\); 'compare'"):
            Benchmark({"A": {"x": GOOD}})
        with pytest.raises(ValueError, match=r"^A: 'results' needs to hold at least one"):
            Benchmark({"A": {}, "B": {"x": GOOD}})
        other = evaluate(torch.rand(3), RankingTask([[0], [1]], num_users=1, num_items=3), "mrr")
        with pytest.raises(ValueError, match=r"^A: 'results' needs to be of the same task"):
            Benchmark({"A": {"x": GOOD, "y": other}, "B": {"x": GOOD}})

    @pytest.mark.parametrize(
        ("options", "what"),
        [
            ({"convention": "rectools"}, "convention"),
            ({"empty_target_action": "neg"}, "empty_target_action"),
        ],
    )
    def test_all_data_sets_are_measured_alike(self, options, what):
        other = evaluate(GOOD_SCORES, TASK, ["mrr", "recall@2"], **options)
        with pytest.raises(ValueError, match=rf"'A, x' and 'B, x', which differ in {what}"):
            Benchmark({"A": {"x": GOOD}, "B": {"x": other}})

    def test_what_needs_scipy_says_so(self, benchmark, monkeypatch):
        hide_package(monkeypatch, "scipy")
        with pytest.raises(ImportError, match=r"pip install.*statistics"):
            benchmark.compare("ndcg@3")
        assert "Good" in str(Benchmark({"A": {"Good": GOOD}, "B": {"Good": GOOD}}))


class TestKinds:
    """Results that are no plain means over users."""

    def test_samples_are_said(self):
        truth = torch.stack([torch.arange(9000), torch.arange(9000) % 7])
        task = RankingTask(truth, num_users=9000, num_items=7)
        drawn = evaluate(torch.arange(7.0), task, "recall@2", margin=0.05)
        whole = evaluate(-torch.arange(7.0), task, "recall@2")
        found = Benchmark({"A": {"x": drawn, "y": whole}, "B": {"x": GOOD, "y": BAD}})
        note = f"A: of 9,000 users, a 'margin' drew {drawn.sampling.num_ranked:,} for x; those whom"
        for table in (found.table(), found.compare("recall@2").table()):
            assert any(text.startswith(note) for text in table.notes)
        (row, _) = (x for x in found.to_pandas().itertuples() if x.data_set == "A")
        assert row.num_users == drawn.sampling.num_ranked

    def test_persons_and_edges_are_drawn_as_everywhere(self):
        person = torch.arange(120) % 60
        task = random_task(120, 15, truth_share=0.2, seen_share=0.1, person=person)
        sets = {
            "persons": {"per": "user"},
            "edges": {"per": "edge"},
        }
        results = {
            data_set: {
                name: evaluate(random_scores(task, seed), task, "recall@3", **options)
                for seed, name in enumerate("xy")
            }
            for data_set, options in sets.items()
        }
        found = Benchmark(results)
        for data_set, of_one in found.compare("recall@3").items():
            assert of_one.protocol.nouns.drawn == "persons", data_set
        frame = found.to_pandas()
        for row in frame.itertuples():
            low, high = results[row.data_set][row.recommender].confidence_interval("recall@3")
            assert (row.low, row.high) == pytest.approx((low, high))


class TestFiles:
    def test_what_is_loaded_is_what_was_saved(self, benchmark, tmp_path):
        benchmark.save(tmp_path / "all.npz")
        found = Benchmark.load(tmp_path / "all.npz")
        assert list(found) == list(benchmark)
        assert found.recommenders == benchmark.recommenders
        assert str(found) == str(benchmark)
        assert str(found.compare("recall@3")) == str(benchmark.compare("recall@3"))
        for data_set, results in benchmark.items():
            for name, result in results.items():
                assert type(found[data_set][name]) is type(result)
                assert len(found[data_set][name].runs) == len(result.runs)

    def test_what_results_share_is_stored_once(self, benchmark, tmp_path):
        benchmark.save(tmp_path / "all.npz")
        every = [
            run
            for of_one in benchmark.values()
            for result in of_one.values()
            for run in result.runs
        ]
        for number, run in enumerate(every):
            run.save(tmp_path / f"run {number}.npz")
        sizes = [path.stat().st_size for path in tmp_path.glob("run *.npz")]
        assert len(sizes) == 16
        assert (tmp_path / "all.npz").stat().st_size < 0.75 * sum(sizes)

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
        with pytest.raises(FileNotFoundError):
            Benchmark.load(tmp_path / "none.npz")
