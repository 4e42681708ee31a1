"""The examples run, and learn something."""

import ast
import logging
import runpy

import pytest
from tables import metric_table
from torch_geometric.datasets import MovieLens100K

from pyg_recmetrics import RankingTask, evaluate, metrics, modules
from tests.support.tools import laws
from tests.support.tools.examples import EXAMPLES, run_example


def test_the_list_of_examples_has_the_first_line_of_each():
    names = {path.relative_to(EXAMPLES).as_posix(): path for path in EXAMPLES.rglob("*.py")}
    about = {name: ast.get_docstring(ast.parse(path.read_text())) for name, path in names.items()}
    rows = [f"| [{name}]({name}) | {text.splitlines()[0]} |" for name, text in about.items()]
    listed = [line for line in (EXAMPLES / "README.md").read_text().splitlines() if ".py](" in line]
    assert sorted(listed) == sorted(rows)


def test_lightgcn_on_synthetic_data_beats_what_knows_no_user(monkeypatch, capsys):
    results = run_example(monkeypatch, "lightgcn.py", "--epochs", "50")
    for metric in ("recall@20", "ndcg@20", "r_precision"):
        assert results["LightGCN"][metric] > 1.2 * results["Most popular"][metric]
        assert results["Linear filter"][metric] > 1.2 * results["Most popular"][metric]
    assert "best baseline: Linear filter" in capsys.readouterr().out


@pytest.mark.slow
def test_lightgcn_on_lastfm_reaches_what_is_known(monkeypatch, lastfm_folder):
    results = run_example(
        monkeypatch, "lightgcn.py", "--data", str(lastfm_folder), "--epochs", "60"
    )
    assert results["LightGCN"]["recall@20"] >= 0.25
    assert results["Most popular"]["recall@20"] == pytest.approx(0.037, abs=0.0005)


@pytest.mark.slow
def test_the_pairs_that_a_decoder_scores_are_ranked(monkeypatch):
    *_, result = run_example(monkeypatch, "hetero_link_split.py", "--epochs", "120")
    assert result["recall@20"] > 0.27  # recommending the most popular items reaches 0.268


@pytest.mark.slow
@pytest.mark.usefixtures("expect_lost_truth", "definitions")
def test_a_metric_of_ones_own_shows_up_everywhere(monkeypatch, capsys):
    module = run_example(monkeypatch, "custom_metric.py")
    assert "all_found  " in capsys.readouterr().out
    assert module.compute() == 1.0
    assert modules.AllFound(k=3).metric == metrics.parse("all_found@3")
    assert "| `all_found@k` |" in metric_table()
    # The laws are about whatever is registered.
    assert "all_found" in {metric.name for metric in laws.metrics_of_ranks(3)}
    laws.check_bounds()
    laws.check_renumbering()


def test_a_search_prunes_what_is_certainly_worse(monkeypatch, capsys):
    optuna = pytest.importorskip("optuna", reason="needs optuna, of the extra 'trackers'")
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    study = run_example(monkeypatch, "search.py", "--users", "3000", "--trials", "5")
    pruned = [trial for trial in study.trials if trial.state.name == "PRUNED"]
    assert pruned
    assert study.best_value > 0.2
    for trial in pruned:
        assert trial.user_attrs[f"bounds {trial.last_step}"][1] < study.best_value
    printed = capsys.readouterr().out
    assert f"{len(pruned)} were pruned" in printed
    assert "tuned in 5 trials" in printed


# Older versions of PyTorch warn of this once.
compressed_matrices = pytest.mark.filterwarnings("ignore:Sparse CS[RC] tensor support is in beta")


@pytest.mark.slow
@compressed_matrices
def test_benchmark_tunes_all_alike_and_says_so(monkeypatch, capsys, tmp_path):
    pytest.importorskip("matplotlib")
    page, picture = tmp_path / "benchmark.html", tmp_path / "benchmark.png"
    files = ["--report", str(page), "--picture", str(picture)]
    numbers = ["--trials", "2", "--seeds", "2", "--epochs", "30"]
    benchmark = run_example(monkeypatch, "benchmark.py", *files, *numbers)
    (results,) = benchmark.values()
    assert {"LightGCN", "BPR-MF", "EASE", "RP3beta", "Item kNN", "GF-CF"} < set(results)
    for name, result in results.items():
        assert result.num_trials == (0 if name == "Most popular" else 2)
        assert result.seconds >= 0
        assert len(result.runs) == (1 if name in benchmark.deterministic else 2)
        assert result.runs[0]["ndcg@20"] > 0.15  # a random order has 0.06
    assert picture.stat().st_size > 20_000
    assert "<svg" in page.read_text()
    assert "Left out" not in page.read_text()
    printed = capsys.readouterr().out
    assert str(benchmark) in printed
    assert ("iALS is left out" in printed) == ("iALS" not in results)
    assert str(page) in printed


def test_benchmark_refuses_numbers_that_are_too_small(monkeypatch, capsys):
    pytest.importorskip("matplotlib")
    for option, number in {"--trials": "0", "--seeds": "1", "--epochs": "5"}.items():
        with pytest.raises(SystemExit):
            run_example(monkeypatch, "benchmark.py", option, number)
        assert f"{option} needs to be at least" in capsys.readouterr().err


@pytest.fixture
def recommenders():
    """The functions of the example."""
    return runpy.run_path(str(EXAMPLES / "recommenders.py"))


@pytest.mark.slow
def test_gf_cf_has_the_published_row_of_gowalla(gowalla, recommenders):
    train, test, user, item = gowalla
    task = RankingTask(test, num_users=len(user), num_items=len(item), seen=train)
    (scores,) = recommenders["gf_cf"](task, num_factors=256, share=0.3)
    result = evaluate(scores, task, ["recall@20", "ndcg@20"])
    # Shen et al., "How powerful is graph convolution for recommendation?" (2021).
    assert round(result["recall@20"], 4) == 0.1849
    assert round(result["ndcg@20"], 4) == 0.1518


@pytest.fixture
def reproduce():
    """The functions of the example."""
    return runpy.run_path(str(EXAMPLES / "reproduce.py"))


@pytest.mark.slow
@compressed_matrices
def test_reproduce_trains_on_lastfm_and_says_that_nothing_is_published(
    monkeypatch, capsys, lastfm_folder
):
    arguments = ["--data", str(lastfm_folder), "--epochs", "5"]
    result = run_example(monkeypatch, "reproduce.py", *arguments)
    assert result["recall@20"] > 0.1  # the most popular items reach 0.037
    printed = capsys.readouterr().out
    assert "trained here for 5 epochs" in printed
    assert "No number is published" in printed
    assert result.recipe() in printed


@pytest.mark.slow
def test_reproduce_on_gowalla_is_near_the_paper(monkeypatch, capsys, gowalla_folder, reproduce):
    embeddings = gowalla_folder / "lightgcn.npz"
    arguments = ["--data", str(gowalla_folder), "--embeddings", str(embeddings)]
    result = run_example(monkeypatch, "reproduce.py", *arguments)
    printed = capsys.readouterr().out
    assert "NOT trained here" in printed
    # These embeddings were trained elsewhere, and are 2 to 4% below what is published. With another
    # ideal, the NDCG is half or twice as large. Small differences, such as that of a recall divided
    # by min(k, R), are within the tolerance: the tests of conventions are there to find them.
    (published,) = (x for size, x in reproduce["PUBLISHED"].items() if size[0] == 29_858)
    for source, values in published.items():
        for metric, theirs in values.items():
            assert f"{source:8}{metric:14}{result[metric]:.4f}" in printed
            assert result[metric] == pytest.approx(theirs, rel=0.05)
    ndcg = published["paper"]["ndcg@20"]
    for other in ("ndcg(ideal=k)@20", "ndcg(ideal=retrieved)@20"):
        assert not 0.6 < float(metrics.parse(other)(result.ranked).nanmean()) / ndcg < 1.6


@pytest.mark.filterwarnings("ignore:The given NumPy array is not writable")  # in PyG's reader
@pytest.mark.usefixtures("expect_ties")
@pytest.mark.filterwarnings("ignore:all .* ratings count as relevant")
def test_pygs_movielens_can_be_evaluated(movielens_folder, tmp_path, monkeypatch):
    data = MovieLens100K(str(movielens_folder))[0]
    task = RankingTask.from_data(data)
    assert (task.num_users, task.num_items) == (5, 30)
    assert task.weight is not None
    monkeypatch.chdir(tmp_path)
    results = run_example(monkeypatch, "lightgcn.py", "--dataset", "MovieLens100K", "--epochs", "2")
    assert results["LightGCN"].user_counts.num_evaluated == 5


def test_the_example_of_a_plain_loop_stops_and_goes_back_to_the_best(monkeypatch, capsys):
    evaluator, result = run_example(monkeypatch, "early_stopping.py")
    assert evaluator.should_stop
    assert len(evaluator.history) == evaluator.history.best_index + 6
    assert result["recall@20"] > 0.3
    assert " best\n" in capsys.readouterr().out


@pytest.mark.slow
def test_both_sides_of_each_triple_of_a_knowledge_graph_are_ranked(monkeypatch, capsys):
    _, parts, result = run_example(monkeypatch, "knowledge_graph.py")
    assert result["hit_rate@10"] > 0.3  # by chance, it would be 0.02
    assert " ± " in str(result)
    assert "By relation\ngroup" in capsys.readouterr().out
    assert result.user_counts.num_evaluated == 2 * parts[2].size(1)


@pytest.mark.slow
def test_temporal_links_are_ranked_among_few_items_and_all(monkeypatch, capsys):
    *_, some, every = run_example(monkeypatch, "temporal_links.py")
    assert some["mrr"] > 0.25  # by chance, it would be 0.05
    assert "Against 99 negatives" in capsys.readouterr().out
    assert some.user_counts.num_evaluated == every.user_counts.num_evaluated == 1200
    assert int(some.ranked.num_candidates.min()) < 100


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
