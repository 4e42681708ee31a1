"""What a report says first."""

import pytest
import torch

from pyg_recmetrics import EvaluationResult, RankedEdges, compare, evaluate, transforms
from pyg_recmetrics.reporting.contents import Contents
from pyg_recmetrics.reporting.first_screen import first_screen
from pyg_recmetrics.reporting.parts import Drawing, Remarks


def remarks(results, kind, split=None, comparison=None):
    parts = first_screen(Contents.of(results, split, comparison))
    return [text for x in parts if isinstance(x, Remarks) and x.kind == kind for text in x.texts]


def test_claims_are_those_of_the_comparison(runs, popular):
    results = {"Random": runs, "Popular": popular}
    assert remarks(results, "claims") == list(compare(results).claims())
    options = {"equivalence": "50%", "deterministic": "Popular", "primary": "ndcg@10"}
    comparison = compare(results, **options)
    assert remarks(results, "claims", comparison=comparison) == list(comparison.claims())
    assert "ndcg@10" in comparison.claims()[0]
    assert "recall@10" not in comparison.claims()[0]


def test_a_comparison_of_other_results_is_named(runs, popular):
    comparison = compare({"Random": runs, "Popular": popular})
    with pytest.raises(ValueError, match=r"'comparison' needs to be of the results \['A', 'B'\]"):
        Contents.of({"A": runs, "B": popular}, None, comparison)
    with pytest.raises(ValueError, match="'comparison' needs to be of the results"):
        Contents.of({"Random": runs[0], "Popular": popular}, None, comparison)
    of_more = compare({"Random": runs, "Popular": popular, "One": runs[0]})
    with pytest.raises(ValueError, match="differs in 'One', of which it has 1 run and not no runs"):
        Contents.of({"Random": runs, "Popular": popular}, None, of_more)
    of_others = compare({"Random": runs, "Popular": runs[0]})
    with pytest.raises(ValueError, match=r"of these results .*in which mean_b of 'Random' and"):
        Contents.of({"Random": runs, "Popular": popular}, None, of_others)
    with pytest.raises(TypeError, match=r"'comparison' needs to be a 'Comparison' \(got dict\)"):
        Contents.of({"Random": runs, "Popular": popular}, None, {})


def test_warnings_say_what_makes_numbers_doubtful(runs, popular, task):
    results = {"Random": runs, "Popular": popular}
    assert "One run of Popular. Its other seeds may give other numbers." in remarks(
        results, "warnings"
    )
    comparison = compare(results, deterministic="Popular")
    assert not any("run" in x for x in remarks(results, "warnings", comparison=comparison))
    with pytest.warns(UserWarning, match="depending on the order of ties"):
        constant = evaluate(torch.ones(task.num_items), task, "ndcg@10")
    assert f"Up to {constant.num_tied:,} relevant items have the same score" in " ".join(
        remarks(constant, "warnings")
    )
    cold = set(task.truth[1].tolist()) - set(task.seen[1].tolist())
    num_cold = sum(item in cold for item in task.truth[1].tolist())
    said = [x for x in remarks(constant, "warnings") if "no training edge" in x]
    assert said == ([f"{num_cold} relevant items of users have no training edge."] if cold else [])


def test_short_lists_are_counted(task):
    has_truth = task.degree > 0
    lists = torch.full((task.num_users, 10), -1)
    lists[:, :4] = torch.arange(4)
    ranked = RankedEdges.from_topk(lists, task.truth)
    assert f"{int(has_truth.sum())} users have fewer than 10 recommended items." in remarks(
        EvaluationResult(ranked, "ndcg@10"), "warnings"
    )
    lists[:] = torch.arange(10)
    full = EvaluationResult(RankedEdges.from_topk(lists, task.truth), "ndcg@10")
    assert not any("recommended items" in text for text in remarks(full, "warnings"))


def test_a_split_leaks_or_it_does_not(popular, split):
    assert remarks(popular, "good", split) == ["The split has no leaks."]
    leaking = transforms.check_split(split[2], split[2], split[2])
    if leaking.has_leaks:
        assert "The split leaks: see its checks below." in remarks(popular, "warnings", leaking)
        assert not remarks(popular, "good", leaking)


def test_the_forest_has_a_title_for_each_mark(runs, popular):
    drawings = [
        x
        for x in first_screen(Contents.of({"Random": runs, "Popular": popular}, None))
        if isinstance(x, Drawing)
    ]
    assert [x.kind for x in drawings] == ["forest"] * 2
    for drawing in drawings:
        groups = [x for x in drawing.svg.iter("g") if x.get("data-recommender")]
        assert all(x.find("title") is not None for x in groups)
        # What has no metric is in the legend.
        assert sum(x.get("data-metric") is not None for x in groups) >= 3


def test_a_comparison_of_other_metrics_has_no_picture(runs, popular):
    results = {"Random": runs, "Popular": popular}
    comparison = compare(results, metrics="coverage@10")
    parts = list(first_screen(Contents.of(results, None, comparison)))
    assert [x.kind for x in parts if isinstance(x, Drawing)] == ["forest"]
    assert not remarks(results, "claims", comparison=comparison)


def test_a_baseline_is_kept(task):
    generator = torch.Generator().manual_seed(0)
    results = {
        f"r{i}": evaluate(
            torch.rand(task.num_users, task.num_items, generator=generator), task, ["ndcg@10"]
        )
        for i in range(9)
    }
    comparison = compare(results, baseline="r4")
    assert Contents.of(results, None, comparison).main_comparison is comparison


def caption_of_differences(results, comparison=None):
    parts = first_screen(Contents.of(results, None, comparison))
    *_, forest = [x for x in parts if isinstance(x, Drawing)]
    return forest.caption


def test_the_caption_says_who_is_compared(runs, popular, task):
    four = dict(zip("wxyz", [popular, *runs], strict=True))
    two = {name: four[name] for name in "wx"}
    assert "difference of every two recommenders, with its confi" in caption_of_differences(four)
    assert "difference of the two recommenders, with" in caption_of_differences(two)
    from_y = compare(four, baseline="y")
    assert "difference of y and each of the other recommenders, with" in (
        caption_of_differences(four, from_y)
    )
    assert "difference of w and y, with" in caption_of_differences(four, from_y.select(name="w"))
    together = compare(four, simultaneous=True)
    assert "with its simultaneous confidence" in caption_of_differences(four, together)
    five = {**four, "v": run_like(runs[0], task)}
    best = Contents.of(five).best
    assert f"difference of {best} and each of the other" in caption_of_differences(five)


def run_like(result, task):
    scores = torch.rand(task.num_users, task.num_items, generator=torch.Generator().manual_seed(9))
    return evaluate(scores, task, list(result))


def test_many_recommenders_are_shown_beside_the_best(task):
    generator = torch.Generator().manual_seed(0)
    scores = [torch.rand(task.num_users, task.num_items, generator=generator) for _ in range(5)]
    scores[3][tuple(task.truth)] += 1
    results = {f"r{i}": evaluate(x, task, ["ndcg@10"]) for i, x in enumerate(scores)}
    contents = Contents.of(results, None)
    assert (contents.num_pairs, contents.best) == (10, "r3")
    assert {frozenset((row.a, row.b)) for row in contents.main_comparison} == {
        frozenset((f"r{i}", "r3")) for i in range(5) if i != 3
    }
    assert contents.best_but("r3") == max(
        (name for name in results if name != "r3"), key=lambda name: results[name]["ndcg@10"]
    )
