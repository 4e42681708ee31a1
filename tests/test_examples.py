"""The examples run, and learn something."""

import runpy
import sys
from pathlib import Path

import pytest
import test_metrics
from tables import metric_table
from torch_geometric.datasets import AmazonBook, MovieLens100K

from pyg_recmetrics import RankingTask, metrics, modules
from pyg_recmetrics.metrics import registry

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"


def run(monkeypatch, name, *args):
    monkeypatch.setattr(sys, "argv", [name, *args])
    return runpy.run_path(str(EXAMPLES / name))["main"]()


def test_lightgcn_on_synthetic_data_beats_what_knows_no_user(monkeypatch, capsys):
    results = run(monkeypatch, "lightgcn.py")
    for metric in ("recall@20", "ndcg@20", "r_precision"):
        assert (
            results["LightGCN"][metric]
            > 1.2 * results["Most popular"][metric]
            > 1.2 * results["Random"][metric]
        )
    assert "users evaluated" in capsys.readouterr().out


def test_lightgcn_on_lastfm_reaches_what_is_known(monkeypatch, lastfm_folder):
    results = run(monkeypatch, "lightgcn.py", "--data", str(lastfm_folder))
    assert results["LightGCN"]["recall@20"] >= 0.25
    assert results["Most popular"]["recall@20"] == pytest.approx(0.037, abs=0.0005)


def test_hetero_link_split(monkeypatch):
    result = run(monkeypatch, "hetero_link_split.py")
    assert result["recall@20"] > 0.27  # recommending the most popular items reaches 0.268


@pytest.mark.usefixtures("expect_lost_truth")
def test_a_metric_of_ones_own_shows_up_everywhere(monkeypatch, capsys):
    monkeypatch.setattr(registry, "_DEFINITIONS", dict(registry._DEFINITIONS))
    module = run(monkeypatch, "custom_metric.py")
    monkeypatch.delitem(vars(modules), "AllFound")  # and made again when it is asked for
    assert "all_found  " in capsys.readouterr().out
    assert module.compute() == 1.0
    assert modules.AllFound(k=3).metric == metrics.parse("all_found@3")
    assert "| `all_found@k` |" in metric_table()
    # The laws are about whatever is registered.
    assert "all_found" in {metric.name for metric in test_metrics.spellings(3)}
    test_metrics.test_values_are_within_bounds_and_undefined_just_without_truth()
    test_metrics.test_renumbering_users_and_items_changes_nothing()
    test_metrics.test_the_order_and_repetition_of_edges_changes_nothing()
    test_metrics.test_both_halves_of_the_users_make_the_whole()


def test_report(monkeypatch, capsys, tmp_path):
    pytest.importorskip("scipy")
    pytest.importorskip("matplotlib")
    comparison = run(monkeypatch, "report.py", "--picture", str(tmp_path / "report.png"))
    assert (tmp_path / "report.png").stat().st_size > 20_000
    better = [row for row in comparison if row.a == "Graph filter"]
    assert all(comparison.is_significant(row) and row.difference > 0 for row in better)
    assert "training degree" in capsys.readouterr().out


@pytest.mark.filterwarnings("ignore:The given NumPy array is not writable")  # in PyG's reader
def test_pygs_movielens_can_be_evaluated(movielens_folder, tmp_path, monkeypatch):
    data = MovieLens100K(str(movielens_folder))[0]
    task = RankingTask.from_data(data)
    assert (task.num_users, task.num_items) == (5, 8)
    assert task.weight is not None
    monkeypatch.chdir(tmp_path)
    results = run(monkeypatch, "lightgcn.py", "--dataset", "MovieLens100K", "--epochs", "2")
    assert results["LightGCN"].num_evaluated == 5


def test_pygs_amazon_book_can_be_evaluated(tmp_path, monkeypatch):
    raw = tmp_path / "data" / "AmazonBook" / "raw"
    raw.mkdir(parents=True)
    for name, size in (("user_list.txt", 5), ("item_list.txt", 30)):
        (raw / name).write_text("org remap\n" + "".join(f"x{n} {n}\n" for n in range(size)))
    (raw / "train.txt").write_text("".join(f"{u} {u} {u + 6} {u + 12}\n" for u in range(5)))
    (raw / "test.txt").write_text("".join(f"{u} {u + 20} {u + 25}\n" for u in range(5)))
    data = AmazonBook(str(raw.parent))[0]
    assert RankingTask.from_data(data).degree.tolist() == [2] * 5
    monkeypatch.chdir(tmp_path)
    results = run(monkeypatch, "lightgcn.py", "--dataset", "AmazonBook", "--epochs", "2")
    assert results["LightGCN"].num_evaluated == 5
