"""Comparisons on several data sets, against those on each and plain loops."""

import math

import pytest
import torch

from pyg_recmetrics import Benchmark, compare, evaluate
from pyg_recmetrics.results.estimates import holm
from pyg_recmetrics.tables import Faint
from tests.support.cases.drawn_results import DrawnResult
from tests.support.cases.random_tasks import random_scores, random_task
from tests.support.cases.small_benchmark import DETERMINISTIC

pytest.importorskip("scipy")


@pytest.fixture(scope="module")
def comparison(benchmark):
    return benchmark.compare("ndcg@3", deterministic=DETERMINISTIC)


def drawn(differences, num_users=200, seed=0):
    """A benchmark of two recommenders that differ by so much on each data set, on average."""
    generator = torch.Generator().manual_seed(seed)
    results = {}
    for data_set, difference in differences.items():
        noise = torch.randn(2, 1, num_users, generator=generator, dtype=torch.double)
        noise -= noise.mean(dim=2, keepdim=True)
        results[data_set] = {
            "a": DrawnResult(0.5 + 0.05 * noise[0] + difference),
            "b": DrawnResult(0.5 + 0.05 * noise[1]),
        }
    return Benchmark(results)


class TestTests:
    def test_differences_are_those_of_each_data_set_and_corrections_those_of_all(
        self, benchmark, comparison
    ):
        rows = [row for found in comparison.values() for row in found]
        singles = [
            row
            for results in benchmark.values()
            for row in compare(results, metrics="ndcg@3", deterministic=DETERMINISTIC)
        ]
        assert len(rows) == len(singles) == 3 + 3 + 1
        corrected = holm([row.p_value for row in singles])
        for row, single, p in zip(rows, singles, corrected, strict=True):
            assert row._replace(p_adjusted=0, verdict=None) == single._replace(
                p_adjusted=0, verdict=None
            )
            assert row.p_adjusted == pytest.approx(p, abs=1e-15)
            is_better = "better" if row.difference > 0 else "worse"
            assert row.verdict == (is_better if p <= 0.05 else "inconclusive")
        assert {row.verdict for row in rows} == {"better", "inconclusive"}

    def test_equivalence_is_corrected_with_all_others(self):
        # The differences are zero, with a standard error of .005.
        benchmark = drawn({"A": 0.0, "B": 0.0})

        def verdicts(equivalence):
            found = benchmark.compare("recall@1", equivalence=equivalence)
            return [row.verdict for each in found.values() for row in each]

        alone = compare(benchmark["A"], metrics="recall@1", equivalence=0.009)
        assert [row.verdict for row in alone] == ["equivalent"]
        assert verdicts(0.009) == ["inconclusive"] * 2
        assert verdicts(0.012) == ["equivalent"] * 2
        cells = benchmark.compare("recall@1", equivalence=0.012).table().rows[0][1:]
        assert [cell[-1] for cell in cells] == ["=", "="]

    def test_a_baseline_is_the_second_of_each_pair(self, benchmark):
        found = benchmark.compare("ndcg@3", baseline="Fair")
        assert found.pairs == [("Good", "Fair"), ("None", "Fair")]
        assert list(found) == ["Small", "Wide"]
        assert found.left_out == ("Long",)
        assert found.table().notes[-1] == "left out, without two to compare: Long"

    def test_a_data_frame_has_a_row_for_each_pair_on_each_data_set(self, comparison):
        frame = comparison.to_pandas()
        assert list(frame.columns[:4]) == ["data_set", "metric", "a", "b"]
        assert frame.data_set.tolist() == ["Small"] * 3 + ["Wide"] * 3 + ["Long"]


class TestWords:
    def test_claims_say_on_which(self):
        def claims(differences, **options):
            return drawn(differences).compare("recall@1", **options).claims()

        fixed = {"deterministic": ["a", "b"]}
        assert claims({"A": 0.03, "B": 0.0, "C": -0.03, "D": 0.03}, **fixed) == (
            "a is better than b in recall@1 on A and D, and worse on C.",
        )
        as_trained = "As trained here, a is better than b in recall@1 on A."
        assert claims({"A": 0.03, "B": 0.0}) == (as_trained,)
        same = "a is better than b in recall@1 on A and B."
        assert claims({"A": 0.03, "B": 0.03}, **fixed) == (same,)
        worse = "a is worse than b in recall@1 on A and B and C."
        assert claims({"A": -0.03, "B": -0.03, "C": -0.04}, **fixed) == (worse,)
        undecided = "a and b are undecided in recall@1 on A and B."
        assert claims({"A": 0.0, "B": 0.0}) == (undecided,)
        assert claims({"A": 0.03, "B": 0.0, "C": 0.0}, equivalence=0.02) == (
            "As trained here, a is better than b in recall@1 on A, and as good on B and C.",
        )
        as_good = "As trained here, a is as good as b in recall@1 on A and B."
        assert claims({"A": 0.0, "B": 0.0}, equivalence=0.02) == (as_good,)

    def test_lower_is_better_where_it_is(self):
        results = {}
        for seed, data_set in enumerate(("A", "B")):
            task = random_task(100, 30, truth_share=0.1, seen_share=0.1, seed=seed)
            good, bad = random_scores(task, 0), random_scores(task, 1)
            good[tuple(task.truth)] += 0.5
            results[data_set] = {
                name: evaluate(scores, task, "mean_rank")
                for name, scores in {"good": good, "bad": bad}.items()
            }
        found = Benchmark(results).compare("mean_rank", deterministic=["good", "bad"])
        assert found["A"][0].difference < 0
        assert found.claims() == ("good is better than bad in mean_rank on A and B.",)

    def test_the_table_marks_what_is_significant(self, comparison):
        table = comparison.table()
        assert table.head == ("ndcg@3, a - b", "Small", "Wide", "Long")
        by_pair = {row[0]: row for row in table.rows}
        assert by_pair["Good - Fair"][-1] == "-"
        for data_set, cell in zip(comparison, by_pair["Good - None"][1:], strict=True):
            (row,) = (x for x in comparison[data_set] if (x.a, x.b) == ("Good", "None"))
            assert cell.startswith(f"{row.difference:+.4f} ± ")
            assert isinstance(cell, Faint) is not cell.endswith("*")
        assert set(comparison.claims()) <= set(table.notes)


class TestSelecting:
    def test_the_pairs_of_one_keep_their_corrections(self, comparison):
        found = comparison.select("Fair")
        assert found.pairs == [("Good", "Fair"), ("Fair", "None")]
        assert list(found) == ["Small", "Wide"]
        assert found.left_out == ("Long",)
        rows = [row for each in found.values() for row in each]
        assert set(rows) <= {row for each in comparison.values() for row in each}
        with pytest.raises(ValueError, match="'name' needs to be one of"):
            comparison.select("x")

    def test_a_comparison_knows_its_results(self, benchmark, comparison):
        comparison.check_results(benchmark)
        other = {**benchmark, "Small": benchmark["Wide"]}
        with pytest.raises(ValueError, match=r"^Small: 'comparison' needs to be of the results"):
            comparison.check_results(other)
        with pytest.raises(ValueError, match=r"needs to be of \['Small', 'Wide'\] \(got 'Long'\)"):
            comparison.check_results({name: benchmark[name] for name in ("Small", "Wide")})


class TestErrors:
    @pytest.mark.parametrize(
        ("options", "error", "message"),
        [
            ({"baseline": "x"}, ValueError, "'baseline' needs to be one of"),
            ({"deterministic": 3}, TypeError, "'deterministic' needs to hold names"),
            ({"deterministic": ["x"]}, ValueError, "'deterministic' needs to be one of"),
            ({"level": 3}, ValueError, "'level' needs to be"),
            ({"equivalence": -1}, ValueError, "'equivalence' needs to be"),
        ],
    )
    def test_what_is_wrong_is_named(self, benchmark, options, error, message):
        with pytest.raises(error, match=message):
            benchmark.compare("ndcg@3", **options)

    def test_two_are_needed_somewhere(self, benchmark):
        alone = {name: {"None": benchmark[name]["None"]} for name in benchmark}
        with pytest.raises(ValueError, match="a data set with two recommenders to compare"):
            Benchmark(alone).compare("ndcg@3")

    def test_a_metric_of_all_users_has_no_test(self, benchmark):
        found = benchmark.compare("coverage@3")
        assert all(math.isnan(row.p_value) for each in found.values() for row in each)
        assert "were not tested in coverage@3." in found.claims()[0]
