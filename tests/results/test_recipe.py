"""The paragraph that says what was measured."""

import torch

from pyg_recmetrics import RankingTask, evaluate
from tests.support.cases.mixed_users import TRUTH, task_of_mixed_users


def test_a_definition_is_said_once_for_all_cut_offs():
    names = ["precision@1", "mrr@2", "mrr", "r_precision", "precision@3", "precision@2", "mrr@4"]
    others = ["precision(normalizer=length)@3", "recall@2", "recall(gamma=1.5)@2"]
    result = evaluate(torch.rand(4), task_of_mixed_users(), [*names, *others])
    recipe = " ".join(result.recipe().split())
    assert recipe.startswith(
        "Metrics: precision@1, @3 and @2 (divided by k, averaged over users); mrr@2 and @4; mrr; "
        "r_precision (averaged over all users); "
        "precision@3 (divided by the length of the list, averaged over users); "
        "recall@2 (divided by R, averaged over users), where R is "
    )


def test_the_recipe_says_all_that_a_reader_needs():
    result = evaluate(
        torch.rand(4), task_of_mixed_users(), ["ndcg@2", "map@2"], convention="recometrics"
    )
    recipe = " ".join(result.recipe().split())
    for statement in (
        "ndcg@2 (linear gain, discount 1 / log2(rank + 1), ideal over all relevant items)",
        "map@2 (divided by R)",
        "at least 2 candidates",
        "scores that are not all equal",
        "4 seen edges",
        "all 4 items",
        "equal scores rank in random order",
        "convention 'recometrics' (recometrics 0.1.6)",
    ):
        assert statement in recipe
    task = RankingTask(TRUTH, num_users=5, num_items=4, seen=TRUTH, exclude_seen=False)
    recipe = " ".join(evaluate(torch.rand(4), task, "mrr@2").recipe().split())
    assert "all 4 items, also those that the user has seen, by" in recipe
    task = RankingTask(TRUTH, num_users=5, num_items=4, candidates=torch.arange(4))
    assert "4 of 4 items, by" in evaluate(torch.rand(4), task, "mrr@2").recipe()
    task = RankingTask(TRUTH, num_users=5, num_items=4, candidates=TRUTH)
    assert "each user's own candidates" in evaluate(torch.rand(4), task, "mrr@2").recipe()
