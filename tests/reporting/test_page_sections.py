"""The sections of a report, each by itself."""

import re
from unittest.mock import patch

import pytest
import torch

from pyg_recmetrics import Benchmark, RankingTask, Runs, compare, evaluate, plot, transforms
from pyg_recmetrics.reporting.page import SECTIONS, Remarks, _by_popularity, page_on, read_contents
from tests.reporting.conftest import contents_of

DRAWINGS = "pyg_recmetrics.reporting.page.drawings"


def remarks_of(results, split=None, comparison=None):
    """All claims and warnings of a page."""
    with patch.dict(SECTIONS, clear=True), patch(DRAWINGS, return_value=[]):  # which take time
        parts = page_on(*read_contents(results, split, comparison)).sections[0][1]
    return [x for x in parts if isinstance(x, Remarks)]


def remarks(results, kind, split=None, comparison=None):
    """The sentence, the warnings or what is good."""
    found = remarks_of(results, split, comparison)
    return [text for x in found if x.kind == kind for text in x.texts]


def test_what_is_left_out_says_what_it_needs(needs, task, runs, popular, monkeypatch):
    plain = evaluate(torch.rand(task.num_items), task, ["ndcg@10", "recall@10"])
    unseen = RankingTask(torch.tensor([[0, 1, 2], [2, 0, 1]]), num_users=3, num_items=4)
    unseen = evaluate(torch.rand(3, 4), unseen, "recall@2", keep_items=True)
    full = evaluate(torch.rand(120, 60), task, "roc_auc")
    of_lists = evaluate(torch.rand(120, 60), task, "coverage@5", keep_items=True)
    seen = "give 'seen' edges to the 'RankingTask'"
    for section, results, reason in (
        ("Long tail", plain, "keep_items=True"),
        ("Users", unseen, seen),
        ("Long tail", unseen, seen),
        ("Curves", full, "a metric with a cut-off is needed, such as 'ndcg@20'"),
        ("Users", of_lists, "no metric of single users in common"),
        ("Comparison", plain, "two recommenders or more are needed"),
        ("Split", plain, "pass 'split=(train, val, test)'"),
    ):
        assert all(reason in text for text in needs(section, results) or [""]), section
    for section in ("Means", "Long tail"):
        assert needs(section, of_lists) == []


def test_the_page_says_first_what_is_best(runs, popular, split, task):
    results = {"Random": runs, "Popular": popular}
    (claim,) = remarks(results, "claims")
    assert claim.startswith("As trained here, Popular is best: ndcg@10 ")
    options = {"equivalence": 0.9, "deterministic": "Popular"}
    (claim,) = remarks(results, "claims", comparison=compare(results, **options))
    assert claim.startswith("Popular is as good as Random: ndcg@10 ")
    popularity = task.seen[1].bincount(minlength=60) + torch.rand(60) / 9
    of_rank = {
        x: evaluate(sign * popularity, task, "mean_rank") for x, sign in (("c", -1), ("d", 1))
    }
    (claim,) = remarks(of_rank, "claims")
    assert claim.startswith("As trained here, d is best: mean_rank ")
    assert claim.endswith(" below c.")


@pytest.mark.filterwarnings("ignore:.*the order of ties")
def test_ties_that_move_a_mean_stand_beside_a_claim():
    """The first of two equal scores is relevant."""
    truth = torch.stack([torch.arange(400), torch.zeros(400).long()])
    task = RankingTask(truth, num_users=400, num_items=4)
    good = torch.tensor([1.0, 0.0, 0.0, 0.0]).repeat(400, 1)
    good[::2] = good[::2].flip(1)
    tied = torch.tensor([1.0, 1.0, 0.0, 0.0])
    of_scores = {"a": tied, "b": torch.tensor([0.0, 1.0, 0.5, 0.0]), "c": good}
    results = {name: evaluate(x.expand(400, 4), task, "recall@1") for name, x in of_scores.items()}
    comparison = compare(results)
    span = rf"recall@1 (of a )?is {results['a'].tie_range('recall@1')}"
    title = plot.differences(comparison).figure.get_suptitle().replace("\n", " ")
    said = [comparison.claims()[0], remarks(results, "claims")[0], str(comparison), title]
    for text in (*said, str(Benchmark(results, proposed="a"))):
        assert re.search(span, text)
        assert "depending on the order of ties" in text
    assert "ties" not in comparison.claims()[2]


@pytest.mark.filterwarnings("ignore:.* gives too few items")
@pytest.mark.parametrize("names", [("a", "full"), ("full", "a")])
def test_warnings_name_whom_they_mean(task, names):
    """Short lists of one, ties of another, in any order of names."""
    lists = torch.rand(task.num_users, task.num_items).argsort()[:, :20]
    lists[:, 4:] = -1
    results = {
        "a": evaluate(lists, task, "ndcg@10"),
        "full": evaluate(torch.rand(task.num_items), task, "ndcg@10"),
    }
    found = remarks({name: results[name] for name in names}, "warnings")
    about_lists = [text for text in found if "fewer than 10 items" in text]
    assert [text.split(":")[0] for text in about_lists] == ["a"]
    assert f"One run of {', '.join(names)}: another seed may give other numbers." in found
    both = {name: evaluate(lists, task, "ndcg@10") for name in names}
    (about_both,) = (text for text in remarks(both, "warnings") if "ewer than 10 items" in text)
    assert about_both.startswith("Fewer than 10 items")


@pytest.mark.usefixtures("expect_ties")
def test_warnings_say_what_makes_numbers_doubtful(runs, popular, task):
    results = {"Random": runs, "Popular": popular}
    one_run = "One run of Popular: another seed may give other numbers."
    assert one_run in remarks(results, "warnings")
    comparison = compare(results, deterministic="Popular")
    assert not any("seed" in x for x in remarks(results, "warnings", comparison=comparison))
    constant = evaluate(torch.ones(task.num_items), task, "ndcg@10")
    said = f"ndcg@10 is {constant.tie_range('ndcg@10')} depending on the order of ties: "
    assert any(x.startswith(said) for x in remarks(constant, "warnings"))
    of_both = remarks({"a": runs[0], "b": constant}, "warnings")
    assert any(x.startswith(f"b: {said}") for x in of_both)
    tuned = {"a": runs[0].with_trials(9), "b": popular.with_trials(1)}
    said = "Unequal budgets favour a: 9 trials of tuning, and as few as 1 for others."
    assert said in remarks(tuned, "warnings")


def test_a_split_leaks_or_it_does_not(popular, split):
    good = ["The split has none of the leaks that were looked for."]
    assert remarks(popular, "good", split) == good
    leaking = transforms.check_split(split[2], split[2], split[2])
    assert leaking.has_leaks
    said = {f"{finding}." for finding in leaking.findings()}
    assert said
    assert said <= set(remarks(popular, "warnings", leaking))
    assert not remarks(popular, "good", leaking)


def test_test_edges_to_new_items_are_counted(task):
    of_item = torch.bincount(task.truth[1], minlength=task.num_items)
    item = int((of_item == 2).nonzero()[0])
    seen = task.seen[:, task.seen[1] != item]
    cold = RankingTask(task.truth, seen=seen, num_users=120, num_items=60)
    result = evaluate(torch.rand(60), cold, "ndcg@10")
    said = "2 of 222 test edges have items that no edge before them has."
    assert said in remarks(result, "warnings")


def test_items_by_popularity_hold_all_test_edges_in_thirds(runs, popular, task):
    results = {"Random": Runs(runs), "Popular": popular}
    (grid,) = _by_popularity(contents_of(results))
    seen_by = torch.bincount(task.seen[1], minlength=60)
    names, *columns = zip(*grid.table.rows, strict=True)
    assert names == ("Random", "Popular")
    num_edges = 0
    for head, cells in zip(grid.table.head[1:], columns, strict=True):
        low, *_, high = map(int, head.removeprefix("seen by ").split(" to ") * 2)
        num_edges += (size := int(((seen_by >= low) & (seen_by <= high))[task.truth[1]].sum()))
        assert 0.2 < size / task.truth.size(1) < 0.5
        for cell, each in zip(cells, results.values(), strict=True):
            hits = []
            for run in each.runs:
                of_item = seen_by[run.ranked.edge_label_index[1]]
                hits.append(run.ranked.rank[(of_item >= low) & (of_item <= high)] <= 10)
            assert cell == f"{torch.stack(hits).double().mean():.4f}"
    assert num_edges == task.truth.size(1)
