"""The paragraph that says what was measured."""

import re
import warnings

import pandas as pd
import pytest
import torch
from hypothesis import given, strategies as st

from pyg_recmetrics import (
    Benchmark,
    EvaluationResult,
    Evaluator,
    PairScorer,
    RankedEdges,
    RankingTask,
    Runs,
    compare,
    datasets,
    evaluate,
    rank,
    transforms,
)
from pyg_recmetrics.ranked_edges import select_users
from pyg_recmetrics.results.notes import claims_on_best, once
from pyg_recmetrics.results.verdicts import PairedDifference
from tests.support.cases.mixed_users import TRUTH, task_of_mixed_users
from tests.support.cases.strategies import cases

pytestmark = pytest.mark.filterwarnings("ignore:.*may be too narrow")


def test_the_recipe_says_all_that_a_reader_needs():
    result = evaluate(
        torch.rand(4), task_of_mixed_users(), ["ndcg@2", "map@2"], convention="recometrics"
    )
    recipe = " ".join(result.recipe().split())
    for statement in (
        "ndcg@2 (linear gain, discount 1 / log2(rank + 1), ideal of the best min(k, R) ",
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
    few = RankingTask(TRUTH, num_users=5, num_items=4, users=TRUTH[0])
    chosen = f"among the {few.users.numel()} of 5 that were chosen."
    assert chosen in " ".join(evaluate(torch.rand(4), few, "mrr@2").recipe().split())
    task = RankingTask(TRUTH, num_users=5, num_items=4, candidates=torch.arange(4))
    assert "4 of 4 items, by" in evaluate(torch.rand(4), task, "mrr@2").recipe()
    task = RankingTask(TRUTH, num_users=5, num_items=4, candidates=TRUTH)
    result = evaluate(torch.rand(4), task, "mrr@2")
    recipe = " ".join(result.recipe().split())
    assert "each user's own candidates, with 0 other items beside truth" in recipe
    assert "[chosen how, or drawn with which seed?]" in recipe
    task = RankingTask(TRUTH, num_users=5, num_items=4)
    runs = Runs([evaluate(torch.arange(4.0).roll(n), task, "mrr@2") for n in range(3)])
    result = evaluate(torch.rand(4), task, "mrr@2")
    assert "Runs: 3 [which differ in what" in " ".join(runs.recipe().split())
    of_table = " ".join(Benchmark({"x": runs, "y": result}).recipe().split())
    for part in ("Metrics: ", "x: Runs: 3 ", "Tests: t-test of paired users with"):
        assert of_table.count(part) == 1


def test_the_recipe_of_a_benchmark_is_about_its_metrics_and_says_nothing_twice():
    task = RankingTask(TRUTH, num_users=5, num_items=4)
    scores = {"x": torch.arange(4.0), "y": torch.rand(5, 4)}
    asked = ["mrr@2", "coverage@2", "recall@1"]
    results = {name: evaluate(each, task, asked) for name, each in scores.items()}
    results["x"] = results["x"].with_trials(3)
    recipe = Benchmark({"A": results, "B": results}, "mrr@2").recipe()
    assert "recall" not in recipe
    assert "coverage" not in recipe
    begins = re.findall(r"^(\w+): ", recipe, re.MULTILINE)
    assert begins == ["Metrics", "Population", "x", "y", "x", "Tests"]
    assert "\nx: Ranking: all 4 items, by one score per item; " in recipe
    assert "\ny: Ranking: all 4 items, by a matrix of scores; " in recipe
    assert "\nx: Training: tuned in 3 trials.\n" in recipe
    whole = " ".join(results["x"].recipe().split())
    assert "recall@1 (divided by R" in whole
    assert "and for coverage@2 all 5 users with a list. Ranking: all 4 items" in whole


def queries():
    generator = torch.Generator().manual_seed(0)
    source, relation = (torch.randint(6, (80,), generator=generator) for _ in range(2))
    item = torch.randint(9, (80,), generator=generator)
    task = RankingTask.from_queries((source, relation), item, num_items=9)
    return task, torch.rand(task.num_users, 9, generator=generator)


def test_queries_are_called_so():
    task, scores = queries()
    result = evaluate(scores, task, "recall@2")
    assert result.nouns == ("queries", "queries", "queries", "queries")
    assert "interval of the mean over queries\n" in str(result)
    assert "queries evaluated" in str(result)
    assert "relevant items of a query" in " ".join(result.recipe().split())
    assert str(result.by(task.query[:, 0])).splitlines()[0].split() == [
        *("group", "queries", "recall@2"),
    ]
    other = evaluate(scores.flip(1), task, "recall@2")
    assert "for other queries" in " ".join(compare({"a": result, "b": other}).table().notes)
    assert "for other queries and other runs" in str(Runs([result, other]))
    assert "users" not in str(result) + result.recipe().replace("averaged over users", "")


def test_edges_of_queries_are_called_so():
    task, scores = queries()
    result = evaluate(scores, task, "mrr", per="edge")
    assert result.nouns == ("queries", "edges", "edges", "queries")
    note = f"over edges, for other queries ({task.num_users} behind all rows)"
    assert note in str(result)
    assert "there are few queries (" in str(result)
    recipe = " ".join(result.recipe().split())
    assert "where R is one" in recipe
    assert "number of relevant items" not in recipe
    assert "each edge is ranked without the other relevant items of its query" in recipe
    frame = result.to_pandas(per_user=True)
    assert list(frame.columns) == ["user", "query_0", "query_1", "item", "mrr"]
    user, item = task.truth
    assert frame["query_1"].tolist() == task.query[user, 1].tolist()
    assert frame["item"].tolist() == item.tolist()


@pytest.mark.usefixtures("expect_lost_truth", "expect_ties")
@pytest.mark.filterwarnings("ignore:.*scores that fall")
@given(case=cases(), k=st.integers(1, 10), data=st.data())
def test_counts_are_those_of_a_loop(case, k, data):
    is_evaluated = data.draw(
        st.lists(st.booleans(), min_size=case.num_users, max_size=case.num_users)
    )
    users = [user for user in range(case.num_users) if is_evaluated[user]]
    with_truth = [user for user in users if case.truths[user]]
    ranked = rank(case.score_matrix, case.task(), k=k, keep_items=True)
    ranked = select_users(ranked, torch.tensor(is_evaluated))
    counts = EvaluationResult(ranked, f"recall@{k}", num_left_out=7).user_counts
    assert counts.num_evaluated == len(with_truth)
    assert counts.num_without_truth == len(users) - len(with_truth)
    assert counts.num_left_out == 7
    few = [user for user in with_truth if len(case.rankings[user]) < k]
    assert counts.num_with_few_candidates == len(few)
    assert counts.num_with_list == sum(bool(case.rankings[user]) for user in users)
    assert EvaluationResult(ranked, "r_precision").user_counts.num_with_few_candidates == 0


def test_what_is_not_known_is_not_counted():
    truth = torch.tensor([[0, 0, 1], [1, 2, 2]])
    task = RankingTask(truth, num_users=3, num_items=3)
    ranked = RankedEdges.from_topk(torch.tensor([[2, 0, 1], [1, 0, 2], [0, 1, 2]]), truth)
    assert EvaluationResult(ranked, "recall@3").user_counts.num_with_few_candidates is None
    without_lists = rank(torch.arange(3.0), task, k=3)
    assert EvaluationResult(without_lists, "recall@3").user_counts.num_with_list is None


def test_what_is_unusual_is_said_wherever_numbers_are_shown():
    interactions = datasets.synthetic_interactions(num_users=1000, num_items=400)
    data = transforms.PerUserSplit(num_test=0.2)(interactions)[2]
    task, scores = RankingTask.from_data(data), torch.rand(400)
    truth, seen, options = task.truth, task.seen, {"num_users": 1000, "num_items": 400}
    leaked = f"{len(truth[0, ::2]):,} of {len(truth[0]):,} relevant items are message-passing edges"
    leaky = torch.cat([seen, truth[:, ::2]], dim=1)
    of_truth = torch.rand(1000, 400) / 2
    of_truth[tuple(truth)] += 1
    for recommender, evaluated, line in (
        (scores, task, None),
        (scores, RankingTask(truth, seen=seen, exclude_seen=False, **options), None),
        (scores, RankingTask(truth, seen=leaky, exclude_seen=False, **options), leaked),
        (
            scores,
            RankingTask(truth, seen=seen[:, seen[0] >= 300], **options),
            "300 of 1,000 users have no training edges",
        ),
        (of_truth, task, "ndcg@20 above 0.99: the recommender may know"),
        (
            scores,
            transforms.SampledCandidates(num_negatives=99)(data),
            "ranked among 99 other items .* all 400",
        ),
    ):
        result = evaluate(recommender, evaluated, ["ndcg@20", "recall@20"])
        assert len(result.cautions()) == (line is not None)
        for text in (str(result), result.recipe(), *result.cautions()):
            if line is None:
                assert "Caution" not in text
            else:
                assert re.search(line, " ".join(text.split()))


LEVEL = re.compile("([0-9,]+) of [0-9,]+ relevant items are in the top ([0-9,]*[0-9])[^:]* and ")


def asked(recommender, task, metric="recall@20"):
    """How many hits a result asks about, and in the top of how many; `None` if it does not."""
    result = evaluate(recommender, task, metric)
    found = [LEVEL.search(caution) for caution in result.cautions()]
    assert any(found) == bool(LEVEL.search(" ".join(str(result).split())))
    return next(((int(x[1].replace(",", "")), int(x[2])) for x in found if x), None)


@pytest.fixture(scope="module")
def world_of_ids():
    """A task whose ids are sorted, embeddings in its order, and where `pd.factorize` has them."""
    data = datasets.synthetic_interactions(num_users=1000, num_items=500)
    task = RankingTask.from_data(transforms.PerUserSplit(num_test=0.2)(data)[2])
    known = torch.zeros(1000, 500)
    known[tuple(task.seen)] = 1
    _, _, item = torch.svd_lowrank(known, q=16, niter=4)
    shuffled = task.seen[:, torch.randperm(task.seen.size(1))]
    codes = []
    for row, size in zip(shuffled, (1000, 500), strict=True):
        first = torch.from_numpy(pd.factorize(row.numpy())[1])
        rest = torch.arange(size)
        codes.append(torch.cat([first, rest[~torch.isin(rest, first)]]))
    return task, (known @ item, item), codes


SCORES_OF_OWN = {
    "embeddings": lambda user, item: (user, item),
    "with biases": lambda user, item: (user, item, torch.zeros(len(item))),
    "matrix": lambda user, item: user @ item.t(),
    "function": lambda user, item: lambda users: user[users] @ item.t(),
    "pairs": lambda user, item: PairScorer(lambda u, i: (user[u] * item[i]).sum(dim=1)),
}


@pytest.mark.parametrize("metric", ["recall@20", "roc_auc"])
@pytest.mark.parametrize("door", SCORES_OF_OWN)
def test_ids_in_another_order_are_asked_about(world_of_ids, door, metric):
    task, (user, item), (user_code, item_code) = world_of_ids
    form = SCORES_OF_OWN[door]
    assert asked(form(user, item), task, metric) is None
    for wrong in ((user[user_code], item[item_code]), (user, item[item_code]), (user, -item)):
        hits, k = asked(form(*wrong), task, metric)
        found = rank(wrong, task, k=k)
        own = found.degree[found.edge_label_index[0]] if metric == "recall@20" else 0
        depth = torch.as_tensor(own).clamp(min=k)
        assert hits == int((found.rank <= depth).sum())
        assert hits < 2 * float((depth / task.num_items).expand_as(found.rank).sum())


def test_what_learned_something_or_has_no_scores_of_its_own_is_not_asked_about(world_of_ids):
    task, (user, item), (_, item_code) = world_of_ids
    known = torch.zeros(1000, 500)
    known[tuple(task.seen)] = 1
    popularity, wrong = known.sum(dim=0), (user, item[item_code])
    options = {"num_users": 1000, "num_items": 500}
    unknown = RankingTask(task.truth, seen=task.seen[:, :99], **options)
    kept = RankingTask(task.truth, seen=task.seen, exclude_seen=False, **options)
    few = RankingTask(task.truth[:, :50], seen=task.seen, **options)
    for recommender, of_task in (
        ((known, known.t() @ known), task),
        (popularity, task),
        (lambda users: popularity.expand(len(users), -1), task),
        (torch.rand(500), task),
        ((wrong[0] @ wrong[1].t()).topk(100).indices, task),
        *((wrong, other) for other in (unknown, kept, few)),
    ):
        assert asked(recommender, of_task) is None


def test_random_scores_are_asked_about_once_in_a_result_and_never_while_training(world_of_ids):
    task, _, _ = world_of_ids
    evaluator = Evaluator(task, "recall@20")
    results = [evaluator(torch.rand(1000, 500)) for _ in range(100)]  # a warning is an error here
    num_lines = [sum(map(bool, map(LEVEL.search, x.cautions()))) for x in results]
    assert max(num_lines) == 1
    assert sum(num_lines) > 85  # within two standard errors


def test_a_question_of_several_runs_is_asked_once_and_ends_as_one(world_of_ids):
    task, (user, item), _ = world_of_ids
    runs = [evaluate((user, -item * (item > x)), task, "recall@20") for x in (-9.0, 0.0)]
    assert len({tuple(run.cautions()) for run in runs}) == 2
    assert "higher scores better?" in " ".join(runs[0].recipe().split())
    assert "?." not in runs[0].recipe()
    notes = Benchmark({"a": runs, "b": evaluate((user, item), task, "recall@20")}).table().notes
    assert sum("would be by chance" in note for note in notes) == 1


def test_remarks_of_runs_on_one_metric_are_one():
    metrics = "recall@5", "recall@10", "rbp(p=0.5)@5", "rbp(p=0.8)@5"
    undefined = [f"{metric} is undefined for 3 of 9 users" for metric in metrics]
    assert once(2 * undefined) == undefined
    other = undefined[1].replace("3", "4")
    assert once([*undefined[:2], other]) == [undefined[0], f"in one of 2 such runs, {undefined[1]}"]


def test_every_table_says_that_candidates_were_sampled(world_of_ids):
    task, (user, item), _ = world_of_ids
    own = torch.arange(1000)
    candidates = torch.stack([own.repeat(9), torch.randint(500, (9000,))])
    options = {"num_users": 1000, "num_items": 500, "seen": task.seen}
    sampled = RankingTask(task.truth, candidates=torch.cat([task.truth, candidates], 1), **options)
    a, b = (evaluate(x, sampled, "recall@2") for x in ((user, item), torch.rand(1000, 500)))
    tables = Runs([a, b]), a.by(own % 2), a.by_degree(2), compare({"a": a, "b": b})
    for table in (a, *tables, Benchmark({"a": a, "b": b})):
        assert "not comparable with a full ranking" in " ".join(str(table).split())


def difference(b, verdict, mean_b):
    """The difference of the best, whose mean is .3, from another."""
    gap, ends = 0.3 - mean_b, {}
    if verdict is not None:
        lift = 100 * gap / mean_b
        ends = {"lift": lift, "lift_low": lift - 2, "lift_high": lift + 2, "p_adjusted": 0.25}
        ends |= {"low": gap - 0.05, "high": gap + 0.05}
    means = {"mean_a": 0.3, "mean_b": mean_b}
    return PairedDifference("ndcg@20", "best", b, gap, verdict=verdict, **means, **ends)


def test_the_best_is_beside_all_others():
    rows = [
        difference("x", "better", 0.25),
        difference("y", "inconclusive", 0.24),
        difference("z", "better", 0.2),
        difference("w", None, 0.1),
        difference("v", "better", 0.05),
    ]
    (_, beaten, open_), about = zip(*claims_on_best(rows), strict=True)
    assert beaten == "best is also better than z (+50.0%) and v (6.0 x)"
    assert open_ == "whether best is better than y and w is open"
    assert [[row.b for row in of_one] for of_one in about] == [["x"], ["z", "v"], []]
    assert list(claims_on_best(rows[1:]))[1][0].startswith("best is better than z")


def test_metrics_of_the_catalogue_say_that_other_items_are_left_out():
    test = pd.DataFrame({"user_id": [1, 2, 3], "item_id": [1, 2, 3]})
    lists = {1: [1, 98, 99], 2: [98, 2, 3], 3: [1, 97, 96]}
    said = "coverage@3 leaves out items that the task does not have, 5 of 9"
    for known, metric in [(None, "coverage@3"), (None, "entropy@3"), ([*range(100)], "coverage@3")]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            task = RankingTask.from_frames(test=test, items=known)
            result = evaluate(lists, task, metric)
        is_said = known is None and metric == "coverage@3"
        for text in (str(result), result.recipe(), " ".join(result.cautions())):
            assert (said in " ".join(text.split())) == is_said


def test_edges_alone_leave_nothing_out_and_the_table_says_so(tmp_path):
    truth, scores = torch.tensor([[0, 1], [2, 0]]), torch.tensor([[0.1, 0.3, 0.2], [0.2, 0.1, 0.3]])
    alone = evaluate(scores, truth, "mrr", num_users=2)
    alone.save(tmp_path / "result.npz")
    edges = torch.tensor([[0, 1], [3, 4]])
    for result, is_said in (
        (alone, True),
        (EvaluationResult.load(tmp_path / "result.npz"), True),
        (evaluate(scores, truth, "mrr", num_users=2, edge_index=edges), False),
        (evaluate(scores, truth, "mrr", num_users=2, exclude_seen=False), False),
        (evaluate(scores, RankingTask(truth, num_users=2, num_items=3), "mrr"), False),
    ):
        assert ("no seen items are left out" in str(result)) == is_said
