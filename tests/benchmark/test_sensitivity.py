"""Orders under other protocols, against evaluations anew."""

import pytest
import torch

from pyg_recmetrics import Benchmark, EvaluationResult, RankedEdges, evaluate
from pyg_recmetrics.conventions import CONVENTIONS
from pyg_recmetrics.tables import Best, Faint
from tests.support.cases.random_tasks import random_scores, random_task

NAMES = ["x", "y", "z", "w"]


@pytest.fixture(scope="module")
def tasks():
    return {
        data_set: random_task(40, 12, truth_share=0.2, seen_share=0.2, seed=seed)
        for seed, data_set in enumerate(("A", "B", "C"))
    }


@pytest.fixture(scope="module")
def recommenders(tasks):
    """Scores that are alike, many of which are equal."""
    return {
        data_set: {name: (3 * random_scores(task, i)).round() for i, name in enumerate(NAMES)}
        for data_set, task in tasks.items()
    }


def run(tasks, recommenders, metric, **options):
    return Benchmark(
        {
            data_set: {
                name: evaluate(scores, task, metric, **options)
                for name, scores in recommenders[data_set].items()
            }
            for data_set, task in tasks.items()
        }
    )


@pytest.fixture(scope="module")
def benchmark(tasks, recommenders):
    with pytest.warns(UserWarning, match="depending on the order of ties"):
        return run(tasks, recommenders, ["map@5", "roc_auc"])


def order(results, metric):
    return tuple(sorted(results, key=lambda name: -results[name][metric]))


def is_above(results, metric, a, b):
    return results[a][metric] > results[b][metric]


@pytest.mark.filterwarnings("ignore:.*depending on the order of ties")
class TestOrders:
    def test_conventions_are_those_of_an_evaluation_anew(self, tasks, recommenders, benchmark):
        found = {(row.protocol, row.data_set): row for row in benchmark.sensitivity("map@5")}
        names = {row.protocol for row in found.values() if row.kind == "convention"}
        assert {"trec_eval", "recbole", "lenskit", "recometrics"} <= names
        assert names < set(CONVENTIONS) - {"standard"}
        swapped = 0
        for name in names - {"recometrics"}:  # whose ties are random
            anew = run(tasks, recommenders, "map@5", convention=name)
            for data_set, results in anew.items():
                self.check(found[name, data_set], results, "map@5", benchmark[data_set])
                swapped += len(found[name, data_set].swapped)
        assert swapped > 0

    def check(self, row, results, metric, usual):
        assert row.order == order(results, metric)
        pairs = {frozenset(pair) for pair in row.swapped}
        for i, a in enumerate(NAMES):
            for b in NAMES[:i]:
                changes = is_above(results, metric, a, b) != is_above(usual, "map@5", a, b)
                assert (frozenset((a, b)) in pairs) == changes
        for better, worse in row.swapped:
            assert is_above(results, metric, better, worse)

    def test_ties_are_too(self, tasks, recommenders, benchmark):
        found = {(row.protocol, row.data_set): row for row in benchmark.sensitivity("map@5")}
        for ties in ("best", "mean", "worst"):
            for data_set, results in run(tasks, recommenders, "map@5", ties=ties).items():
                self.check(found[ties, data_set], results, "map@5", benchmark[data_set])

    def test_cut_offs_are_too(self, tasks, recommenders, benchmark):
        found = benchmark.sensitivity("map@5", conventions=[], cut_offs=[1, 3, 12], ties=[])
        by_key = {(row.protocol, row.data_set): row for row in found}
        assert len(found) == len(by_key) == 9
        for k in (1, 3, 12):
            for data_set, results in run(tasks, recommenders, f"map@{k}").items():
                self.check(by_key[f"@{k}", data_set], results, f"map@{k}", benchmark[data_set])

    def test_a_population_is_that_of_the_convention(self, tasks, recommenders, benchmark):
        recometrics = CONVENTIONS["recometrics"]
        found = benchmark.sensitivity("map@5", conventions=[recometrics], cut_offs=[], ties=[])
        # Random ties are the same where as many ranks are known.
        metrics = ["map@5", "roc_auc"]
        anew = run(tasks, recommenders, metrics, convention="recometrics")
        for row in found:
            assert row.order == order(anew[row.data_set], "map@5")

    def test_runs_are_averaged(self, tasks, recommenders):
        results = run(tasks, recommenders, "map@5")
        runs = {
            data_set: {"xy": [of_one["x"], of_one["y"]], "z": of_one["z"]}
            for data_set, of_one in results.items()
        }
        found = Benchmark(runs).sensitivity("map@5", conventions=["recbole"], cut_offs=[3], ties=[])
        cut = run(tasks, recommenders, "map@3")
        for row in found:
            if row.protocol == "@3":
                means = cut[row.data_set]
                xy = (means["x"]["map@3"] + means["y"]["map@3"]) / 2
                assert (row.order[0] == "xy") == (xy > means["z"]["map@3"])


class TestTable:
    def test_it_shows_who_changes_places(self, benchmark):
        found = benchmark.sensitivity("map@5")
        table = found.table()
        assert table.head == ("order by map@5", "A", "B", "C")
        headings = [row[0] for row in table.rows if len(row) == 1]
        assert headings == ["convention", "cut-off", "ties"]
        cells = {
            (row[0], data_set): cell
            for row in table.rows
            if len(row) > 1
            for data_set, cell in zip(found.data_sets, row[1:], strict=True)
        }
        for row in found:
            cell = cells[row.protocol, row.data_set]
            if not row.swapped:
                assert cell == "same"
                assert isinstance(cell, Faint)
            elif len(row.swapped) <= 2:
                assert cell == ", ".join(f"{a} > {b}" for a, b in row.swapped)
                assert isinstance(cell, Best)
            else:
                assert cell == f"{len(row.swapped)} of 6 pairs change"
        assert table.notes[0] == found.claim()
        assert f"changes in {len(found.changes)} of {len(found)} cases" in found.claim()

    def test_an_order_that_holds_is_said_to_hold(self, tasks):
        perfect = {
            data_set: {
                "good": evaluate(_truth_of(task), task, "ndcg@3"),
                "bad": evaluate(-_truth_of(task), task, "ndcg@3"),
            }
            for data_set, task in tasks.items()
        }
        found = Benchmark(perfect).sensitivity()
        assert found.changes == ()
        assert found.claim() == "No other protocol changes the order by ndcg@3."
        rows = dict.fromkeys(row.protocol for row in found if not row.order)
        assert list(rows) == ["@5", "@10", "@20", "@50", "@100"]
        table = found.table()
        assert not any(row[0] in rows for row in table.rows)
        assert table.notes[-1].endswith("@5, @10, @20, @50, @100")
        frame = found.to_pandas()
        assert list(frame.columns) == ["kind", "protocol", "data_set", "order", "swapped"]

    def test_lists_know_no_ties_and_no_population(self):
        truth = torch.tensor([[0, 1], [2, 0]])
        lists = torch.tensor([[2, 0], [1, 3]]), torch.tensor([[0, 1], [1, 3]])
        of_one = {
            name: EvaluationResult(RankedEdges.from_topk(x, truth), "recall@2")
            for name, x in zip("ab", lists, strict=True)
        }
        found = Benchmark({"A": of_one, "B": of_one}).sensitivity()
        assert found.changes == ()
        assert {row.order for row in found if row.kind == "ties"} == {("a", "b")}

    def test_what_was_not_measured_is_not_said_to_hold(self, tasks):
        results = {"good": evaluate(_truth_of(tasks["A"]), tasks["A"], "ndcg@3")}
        benchmark = Benchmark({"A": results, "B": results})
        for cut_offs in ([], [500]):
            found = benchmark.sensitivity(conventions=[], cut_offs=cut_offs, ties=[])
            assert found.claim() == "The order by ndcg@3 was measured under no other protocol."


class TestErrors:
    def test_a_metric_that_results_lack_is_named_with_its_data_set(self, tasks):
        results = {"good": evaluate(_truth_of(tasks["A"]), tasks["A"], "ndcg@3")}
        with pytest.raises(ValueError, match=r"^A: 'k' needs to be at most 3"):
            Benchmark({"A": results, "B": results}).sensitivity("ndcg@50", cut_offs=[2])

    def test_what_is_wrong_is_named(self, benchmark):
        with pytest.raises(ValueError, match="'convention' needs to be"):
            benchmark.sensitivity("map@5", conventions=["x"])
        with pytest.raises(ValueError, match="'cut_offs' needs to be a positive integer"):
            benchmark.sensitivity("map@5", cut_offs=[0])
        with pytest.raises(ValueError, match="'cut_offs' needs a metric that has one"):
            benchmark.sensitivity("roc_auc", cut_offs=[3])
        with pytest.raises(ValueError, match="'ties' needs to be one of"):
            benchmark.sensitivity("map@5", ties=["x"])


def _truth_of(task):
    scores = torch.zeros(task.num_users, task.num_items)
    scores[tuple(task.truth)] = 1.0
    return scores + torch.linspace(0, 0.5, task.num_items)
