"""Files of runs and qrels: what is written can be read back."""

import pytest
import torch
from cases import cases, ranks
from hypothesis import HealthCheck, given, settings

from pyg_recmetrics import RankedEdges, RankingTask, evaluate, metrics, rank

pytestmark = pytest.mark.usefixtures("expect_lost_truth")


@pytest.fixture
def write(tmp_path):
    def write(run, qrels="u 0 a 1\n"):
        (tmp_path / "run").write_text(run)
        (tmp_path / "qrels").write_text(qrels)
        return tmp_path / "run", tmp_path / "qrels"

    return write


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(case=cases())
def test_what_is_written_can_be_read_back(case, tmp_path):
    ranked = rank(case.score_matrix, case.task(), k=5, keep_items=True)
    ranked.to_trec(tmp_path / "run", tmp_path / "qrels")
    again = RankedEdges.from_trec(tmp_path / "run", tmp_path / "qrels")
    shallow = RankedEdges.from_topk(ranked.items, ranked.edge_index, ranked.weight)
    named = {
        (int(again.user_ids[user]), int(again.item_ids[item])): rank_of_edge
        for (user, item), rank_of_edge in ranks(again).items()
    }
    assert named == ranks(shallow)
    rows = [int(user) for user in again.user_ids]
    for metric in (metrics.ndcg, metrics.map, metrics.recall):
        assert metric(again, k=3).tolist() == pytest.approx(
            metric(shallow, k=3)[rows].tolist(), nan_ok=True
        )


def test_items_are_ordered_by_score_and_then_by_line(write):
    ranked = RankedEdges.from_trec(
        *write(
            "u Q0 a 1 0.5 t\nu Q0 b 9 2e0 t\nu Q0 c 3 0.5 t\n\n",
            "u 0 a 1\nu 0 b 1\nu 0 c 1\nu 0 d 1\nu 0 e 0\nu 0 f -1\n",
        )
    )
    found = {ranked.item_ids[item]: found_at for (_, item), found_at in ranks(ranked).items()}
    assert found == {"b": 1, "a": 2, "c": 3, "d": float("inf")}
    assert ranked.weight is None


def test_relevance_is_weight(write):
    ranked = RankedEdges.from_trec(*write("u Q0 a 1 1 t\n", "u 0 a 3\nu 0 b 1\n"))
    assert ranked.weight.tolist() == [3, 1]


def test_users_of_either_file_are_numbered_by_value(write):
    ranked = RankedEdges.from_trec(*write("10 Q0 7 1 1 t\n9 Q0 7 1 1 t\n", "10 0 7 1\n200 0 7 1\n"))
    assert ranked.user_ids == ("9", "10", "200")
    assert metrics.recall(ranked, k=1).tolist() == pytest.approx([float("nan"), 1, 0], nan_ok=True)


def test_mixed_ids_are_numbered_by_the_alphabet_and_kept(write, tmp_path):
    ranked = RankedEdges.from_trec(*write("x Q0 i9 1 1 t\n7 Q0 i10 1 1 t\n", "x 0 i9 1\n"))
    assert (ranked.user_ids, ranked.item_ids) == (("7", "x"), ("i10", "i9"))
    ranked.to_trec(tmp_path / "run2", tmp_path / "qrels2")
    assert (tmp_path / "run2").read_text() == (
        "7 Q0 i10 1 1 pyg_recmetrics\nx Q0 i9 1 1 pyg_recmetrics\n"
    )
    assert (tmp_path / "qrels2").read_text() == "x 0 i9 1\n"


@pytest.mark.parametrize(
    ("run", "qrels", "message"),
    [
        ("u Q0 a 1 1 t\nu Q0 b 2 t\n", "", r"run, line 2 needs to be 'user Q0 item .*'u Q0 b 2 t'"),
        ("u Q0 a 1 x t\n", "", r"run, line 1 needs a finite number as 'score' \(got 'x'\)"),
        ("u Q0 a 1 nan t\n", "", r"run, line 1 needs a finite number as 'score' \(got 'nan'\)"),
        ("u Q0 a 1 1 t\nu Q0 a 2 0 t\n", "", r"run, line 2 repeats item 'a' of user 'u'"),
        ("", "u 0 a 1\n\nu a 1\n", r"qrels, line 3 needs to be 'user 0 item relevance'"),
        ("", "u 0 a yes\n", r"qrels, line 1 needs a finite number as 'relevance' \(got 'yes'\)"),
        ("", "u 0 a 1\nu 0 a 1\n", r"qrels, line 2 repeats item 'a'"),
        ("", "", "need to hold lines"),
    ],
)
def test_malformed_lines_are_named(write, run, qrels, message):
    with pytest.raises(ValueError, match=message):
        RankedEdges.from_trec(*write(run, qrels))


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="run"):
        RankedEdges.from_trec(tmp_path / "run", tmp_path / "qrels")


def test_what_cannot_be_exported_is_named(tmp_path):
    task = RankingTask(torch.tensor([[0], [1]]), num_users=1, num_items=2)
    with pytest.raises(ValueError, match="'keep_items=True'"):
        evaluate(torch.rand(2), task).to_trec(tmp_path / "run", tmp_path / "qrels")
    lists, weight = torch.tensor([[1]]), torch.tensor([0.5])
    with pytest.raises(ValueError, match="'weight' needs to hold whole numbers"):
        RankedEdges.from_topk(lists, task.truth, weight).to_trec(
            tmp_path / "run", tmp_path / "qrels"
        )
