"""Results that differ in anything that moves a number are not compared."""

import pytest
import torch

from pyg_recmetrics import Catalogue, EvaluationResult, RankingTask, Runs, compare, evaluate

TASK = RankingTask([[0, 1, 2], [2, 0, 1]], num_users=3, num_items=6, seen=[[0, 1], [0, 1]])
SCORES = torch.tensor([3.0, 2.0, 2.0, 1.0, 1.0, 0.0])
ITEMS = torch.arange(6)
LISTS = SCORES.argsort(descending=True)[:-1].expand(3, -1)


def result_of(metrics="diversity@3", scores=SCORES, **options):
    given = {"catalogue": Catalogue(6, item_category=ITEMS), "ties": "best"} | options
    return evaluate(scores, TASK, metrics, keep_items=True, **given)


DIFFERING = [
    ({"ties": "worst"}, {}, "ties"),
    ({"ties": "random", "seed": 1}, {"ties": "random", "seed": 2}, "seed of ties"),
    ({"catalogue": Catalogue(6, item_category=ITEMS % 2)}, {}, "item_category"),
    (
        {"metrics": "novelty@3", "catalogue": None},
        {
            "metrics": "novelty@3",
            "catalogue": Catalogue(6, seen=[[0, 1, 2], [3, 3, 4]]),
        },
        "seen",
    ),
    ({"empty_target_action": "neg"}, {}, "empty_target_action"),
]


@pytest.mark.filterwarnings("ignore:.*depending on the order of ties")
@pytest.mark.filterwarnings("ignore:all items have the same score")
class TestDifferences:
    @pytest.mark.parametrize(("one", "other", "field"), DIFFERING)
    def test_they_are_named(self, one, other, field, tmp_path):
        results = [result_of(**one), result_of(**other)]
        for number, result in enumerate(results):
            result.save(tmp_path / f"{number}.npz")
        loaded = [EvaluationResult.load(tmp_path / f"{number}.npz") for number in range(2)]
        for first, second in (results, loaded, (results[0], loaded[1])):
            for use in (
                lambda a, b: compare({"a": a, "b": b}),
                lambda a, b: Runs([a, b]),
            ):
                with pytest.raises(ValueError, match=rf"which differ in {field}\)"):
                    use(first, second)
        compare({"a": results[0], "b": loaded[0]})

    def test_facts_that_no_metric_looks_at_may_differ(self):
        one = result_of("recall@2")
        compare(
            {"a": one, "b": result_of("recall@2", catalogue=Catalogue(6, item_category=ITEMS % 2))}
        )

    def test_lists_know_no_ties(self):
        one = result_of("recall@2")
        compare({"a": one, "b": result_of("recall@2", scores=LISTS, ties=None)})
