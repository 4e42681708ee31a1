"""The examples run, and learn something."""

import logging

import laws
import pytest
from tables import metric_table
from torch_geometric.datasets import AmazonBook, MovieLens100K

from examples import run_example
from pyg_recmetrics import RankingTask, metrics, modules
from pyg_recmetrics.metrics import registry


def test_lightgcn_on_synthetic_data_beats_what_knows_no_user(monkeypatch, capsys):
    results = run_example(monkeypatch, "lightgcn.py")
    for metric in ("recall@20", "ndcg@20", "r_precision"):
        assert (
            results["LightGCN"][metric]
            > 1.2 * results["Most popular"][metric]
            > 1.2 * results["Random"][metric]
        )
    assert "users evaluated" in capsys.readouterr().out


def test_lightgcn_on_lastfm_reaches_what_is_known(monkeypatch, lastfm_folder):
    results = run_example(monkeypatch, "lightgcn.py", "--data", str(lastfm_folder))
    assert results["LightGCN"]["recall@20"] >= 0.25
    assert results["Most popular"]["recall@20"] == pytest.approx(0.037, abs=0.0005)


def test_hetero_link_split(monkeypatch):
    result = run_example(monkeypatch, "hetero_link_split.py")
    assert result["recall@20"] > 0.27  # recommending the most popular items reaches 0.268


@pytest.mark.usefixtures("expect_lost_truth")
def test_a_metric_of_ones_own_shows_up_everywhere(monkeypatch, capsys):
    monkeypatch.setattr(registry, "_DEFINITIONS", dict(registry._DEFINITIONS))
    module = run_example(monkeypatch, "custom_metric.py")
    assert "all_found  " in capsys.readouterr().out
    assert module.compute() == 1.0
    assert modules.AllFound(k=3).metric == metrics.parse("all_found@3")
    assert "| `all_found@k` |" in metric_table()
    # The laws are about whatever is registered.
    assert "all_found" in {metric.name for metric in laws.metrics_of_ranks(3)}
    laws.check_bounds()
    laws.check_renumbering()
    laws.check_order_and_repetition()
    laws.check_halves()


def test_report(monkeypatch, capsys, tmp_path):
    pytest.importorskip("scipy")
    pytest.importorskip("matplotlib")
    files = ["--report", str(tmp_path / "report.html"), "--picture", str(tmp_path / "report.png")]
    comparison = run_example(monkeypatch, "report.py", *files, "--epochs", "60")
    assert (tmp_path / "report.png").stat().st_size > 20_000
    page = (tmp_path / "report.html").read_text()
    assert page.count("<svg") == 6
    assert "Left out" not in page
    better = [row for row in comparison if (row.a, row.b) == ("LightGCN", "Most popular")]
    assert len(better) == 3
    assert all(comparison.is_significant(row) and row.difference > 0 for row in better)
    assert str(tmp_path / "report.html") in capsys.readouterr().out


def test_report_on_lastfm(monkeypatch, lastfm_folder, tmp_path):
    pytest.importorskip("scipy")
    pytest.importorskip("matplotlib")
    page = tmp_path / "report.html"
    arguments = ["--data", str(lastfm_folder), "--report", str(page)]
    comparison = run_example(monkeypatch, "report.py", *arguments)
    recalls = {(x.a, x.b): x.difference for x in comparison if x.metric == "recall@20"}
    assert recalls["LightGCN", "Most popular"] > 0.15
    assert recalls["Matrix factorisation", "Most popular"] > 0.1
    assert page.stat().st_size < 2_000_000


@pytest.mark.filterwarnings("ignore:The given NumPy array is not writable")  # in PyG's reader
@pytest.mark.usefixtures("expect_ties")
def test_pygs_movielens_can_be_evaluated(movielens_folder, tmp_path, monkeypatch):
    data = MovieLens100K(str(movielens_folder))[0]
    task = RankingTask.from_data(data)
    assert (task.num_users, task.num_items) == (5, 8)
    assert task.weight is not None
    monkeypatch.chdir(tmp_path)
    results = run_example(monkeypatch, "lightgcn.py", "--dataset", "MovieLens100K", "--epochs", "2")
    assert results["LightGCN"].num_evaluated == 5


@pytest.mark.usefixtures("expect_ties")
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
    results = run_example(monkeypatch, "lightgcn.py", "--dataset", "AmazonBook", "--epochs", "2")
    assert results["LightGCN"].num_evaluated == 5


def test_the_example_of_a_plain_loop_stops_and_goes_back_to_the_best(monkeypatch, capsys):
    evaluator, result = run_example(monkeypatch, "early_stopping.py")
    assert evaluator.should_stop
    assert len(evaluator.history) == evaluator.history.best_index + 6
    assert result["recall@20"] > 0.3
    assert " best\n" in capsys.readouterr().out


@pytest.mark.filterwarnings("ignore:.*isinstance.treespec, LeafSpec")  # in Lightning
@pytest.mark.filterwarnings("ignore:.*does not have many workers")
@pytest.mark.filterwarnings("ignore:.*The number of training batches")
def test_the_example(monkeypatch, capsys):
    pytest.importorskip("lightning.pytorch", reason="needs Lightning")
    logging.getLogger("lightning.pytorch").setLevel(logging.WARNING)
    evaluator, logged = run_example(monkeypatch, "lightning_module.py", "--epochs", "8")
    assert len(evaluator.history) == 8
    assert evaluator.best["recall@20"] > 0.28
    for ours, theirs in (("ndcg@20", "val_ndcg"), ("recall@20", "val_recall")):
        assert float(logged[theirs]) == pytest.approx(evaluator.history[-1][ours], abs=1e-6)
    assert "users evaluated" in capsys.readouterr().out
