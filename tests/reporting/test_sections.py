"""The sections of a report, each by itself."""

from unittest.mock import patch

import pytest
import torch

from pyg_recmetrics import (
    RankingTask,
    Runs,
    compare,
    evaluate,
    transforms,
)
from pyg_recmetrics.reporting.contents import read_contents
from pyg_recmetrics.reporting.parts import Grid, Remarks
from pyg_recmetrics.reporting.sections import SECTIONS, page_on
from pyg_recmetrics.results.result import exposure_of
from pyg_recmetrics.tables import format_interval

SECTIONS_OF_NUMBERS = ["Curves", "Users", "Long tail", "Ties"]


def remarks(results, kind, split=None, comparison=None):
    """The claims, the warnings or what is good at the top of a page."""
    with patch.dict(SECTIONS, clear=True):  # as pictures take time
        parts = page_on(*read_contents(results, split, comparison)).sections[0][1]
    return [text for x in parts if isinstance(x, Remarks) and x.kind == kind for text in x.texts]


def test_what_is_left_out_says_what_it_needs(needs, task, runs, popular, monkeypatch):
    plain = evaluate(torch.rand(task.num_items), task, ["ndcg@10", "recall@10"])
    unseen = RankingTask(torch.tensor([[0, 1, 2], [2, 0, 1]]), num_users=3, num_items=4)
    unseen = evaluate(torch.rand(3, 4), unseen, "recall@2", keep_items=True)
    full = evaluate(torch.rand(120, 60), task, "roc_auc")
    of_lists = evaluate(torch.rand(120, 60), task, "coverage@5", keep_items=True)
    lists = evaluate(torch.rand(120, 60).argsort(descending=True)[:, :55], task, "ndcg@10")
    seen = "give 'seen' edges to the 'RankingTask'"
    for section, results, reason in (
        ("Long tail", plain, "keep_items=True"),
        ("Users", unseen, seen),
        ("Long tail", unseen, seen),
        ("Curves", full, "a metric with a cut-off is needed, such as 'ndcg@20'"),
        ("Users", of_lists, "no metric of single users in common"),
        ("Comparison", plain, "two recommenders or more are needed"),
        ("Split", plain, "pass 'split=(train, val, test)'"),
        ("Ties", {"Random": [runs[0], lists]}, "scores are needed, and lists are all"),
    ):
        assert all(reason in text for text in needs(section, results) or [""]), section
    for section in ("Means", "Ties", "Long tail"):
        assert needs(section, of_lists) == []


@pytest.mark.usefixtures("expect_ties")
def test_only_metrics_that_ties_can_move_have_a_range(parts, task):
    result = evaluate(torch.zeros(60), task, ["recall@10", "novelty@10"], keep_items=True)
    (part,) = parts("Ties", result)
    assert part.table.head == ("recommender", "tied edges", "recall@10")


def test_groups_are_those_of_every_recommender(parts, runs, popular):
    results = {"Random": Runs(runs), "Popular": popular}
    table = parts("Users", results)[-1].table
    assert table.head == ("training degree", "users", "Random", "Popular")
    of_each = [result.by_degree() for result in results.values()]
    assert [row[0] for row in table.rows] == list(map(str, of_each[0]))
    for (_, num_users, *cells), *means in zip(
        table.rows, *(x.values() for x in of_each), strict=True
    ):
        assert cells == [format_interval(*mean["ndcg@10"][:3]) for mean in means]
        assert num_users == f"{means[0]['ndcg@10'].num_users:,}"


def test_items_are_listed_by_all_runs(parts, runs, popular, task):
    _, table = parts("Long tail", {"Random": runs, "Popular": popular})
    counts = [exposure_of(result, 10) for result in (Runs(runs), popular)]
    popularity = torch.bincount(task.seen[1], minlength=60)
    total = (counts[0] + counts[1]).tolist()
    order = sorted(range(60), key=lambda item: (-round(total[item], 6), item))
    assert [int(row[0]) for row in table.table.rows] == order[:10]
    for item, *shown in table.table.rows:
        assert shown == [f"{float(of[int(item)]):.0f}" for of in (popularity, *counts)]


@pytest.mark.usefixtures("expect_ties")
def test_ties_are_those_of_all_runs(parts, task, popular):
    generator = torch.Generator().manual_seed(0)
    scores = [torch.randint(9, (120, 60), generator=generator).float() for _ in range(3)]
    runs = Runs([evaluate(x, task, "ndcg@10") for x in scores])
    (table,) = parts("Ties", {"Random": runs, "Popular": popular})
    (_, num_tied, span), (_, none, _) = table.table.rows
    assert float(num_tied) == pytest.approx(runs.num_tied, abs=0.05)
    assert (none, span) == ("0", str(runs.tie_range("ndcg@10")))


@pytest.mark.filterwarnings("ignore:.*the seed set inside")
@pytest.mark.parametrize("section", SECTIONS_OF_NUMBERS)
def test_equal_runs_are_one_run(parts, section, runs, popular):
    def shown(results):
        for part in parts(section, results):
            yield part.table.rows if isinstance(part, Grid) else type(part)

    one = {"Random": runs[0], "Popular": popular}
    several = {"Random": [runs[0]] * 3, "Popular": [popular] * 2}
    assert list(shown(several)) == list(shown(one))


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
    low, high = constant.tie_range("ndcg@10")
    said = f"ndcg@10 is {low:.4f} to {high:.4f}, depending on the order of equal scores."
    assert said in remarks(constant, "warnings")
    assert f"b: {said}" in remarks({"a": runs[0], "b": constant}, "warnings")
    seen = task.seen[:, task.seen[1] > 9]
    cold = RankingTask(task.truth, seen=seen, num_users=120, num_items=60)
    num_cold = int((task.truth[1] <= 9).sum())
    said = f"The items of {num_cold} test edges have no training edges."
    assert said in remarks(evaluate(torch.rand(60), cold, "ndcg@10"), "warnings")
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
