"""The paragraph that says what was measured."""

import math
import re

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from pyg_recmetrics import (
    EvaluationResult,
    RankedEdges,
    RankingTask,
    Runs,
    compare,
    datasets,
    evaluate,
    plot,
    rank,
    report,
    transforms,
)
from pyg_recmetrics.ranked_edges import select_users
from pyg_recmetrics.results.counts import UserCounts
from pyg_recmetrics.results.notes import claims_on_best
from pyg_recmetrics.results.verdicts import PairedDifference
from tests.support.cases.mixed_users import TRUTH, task_of_mixed_users
from tests.support.cases.strategies import cases


def test_a_definition_is_said_once_for_all_cut_offs():
    names = ["precision@1", "mrr@2", "mrr", "r_precision", "precision@3", "precision@2", "mrr@4"]
    others = ["precision(normalizer=length)@3", "recall@2"]
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


def queries(of_persons=False):
    generator = torch.Generator().manual_seed(0)
    source, relation = (torch.randint(6, (80,), generator=generator) for _ in range(2))
    item = torch.randint(9, (80,), generator=generator)
    person = source if of_persons else None
    task = RankingTask.from_queries((source, relation), item, num_items=9, person=person)
    return task, torch.rand(task.num_users, 9, generator=generator)


@pytest.mark.filterwarnings("ignore:.*may be too narrow")
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
    assert "for other queries" in str(compare({"a": result, "b": other}))
    assert "for other queries and other runs" in str(Runs([result, other]))
    assert "users" not in str(result) + result.recipe().replace("averaged over users", "")


@pytest.mark.filterwarnings("ignore:.*may be too narrow")
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


@pytest.mark.filterwarnings("ignore:.*may be too narrow")
@pytest.mark.parametrize(
    ("options", "means", "drawn"),
    [
        ({}, "queries", "queries"),
        ({"per": "edge"}, "edges", "queries"),
    ],
)
def test_comparisons_and_runs_say_what_they_are_over(options, means, drawn):
    task, scores = queries()
    a, b = (evaluate(each, task, "mrr", **options) for each in (scores, scores.flip(1)))
    comparison = compare({"a": a, "b": b})
    assert f"mean difference over {means} ± " in str(comparison)
    table = str(Runs([a, b]).table())
    assert f"se {drawn}" in table
    assert "users" not in table


@pytest.mark.filterwarnings("ignore:.*may be too narrow")
def test_few_edges_that_differ_are_called_so():
    task, scores = queries()
    a = evaluate(scores, task, "mrr", per="edge")
    # The first query is ranked the other way round.
    b = evaluate(torch.cat([-scores[:1], scores[1:]]), task, "mrr", per="edge")
    assert "few edges differ in mrr" in " ".join(str(compare({"a": a, "b": b})).split())


@pytest.mark.filterwarnings("ignore:.*may be too narrow")
def test_persons_behind_queries_are_called_so():
    task, scores = queries(of_persons=True)
    result = evaluate(scores, task, "mrr", per="edge")
    assert result.nouns == ("queries", "edges", "edges", "persons")
    averaged = evaluate(scores, task, "mrr", per="person")
    assert averaged.nouns.means == "persons"
    assert "interval of the mean over persons" in str(averaged)
    assert "means are over 6 persons, each with the mean of its queries" in " ".join(
        averaged.recipe().split()
    )


@pytest.mark.filterwarnings("ignore:.*may be too narrow")
def test_pictures_name_what_they_count():
    task, scores = queries(of_persons=True)
    for options, noun, pronoun in (
        ({}, "queries", "that"),
        ({"per": "edge"}, "edges", "that"),
        ({"per": "person"}, "persons", "who"),
    ):
        result = evaluate(scores, task, "recall@2", **options)
        counted = f"{int((~result.values_of('recall@2')[0].isnan()).sum())} {noun}"
        _, axes = plot.distribution(result, "recall@2")
        assert axes.get_ylabel() == f"share of {noun} {pronoun} reach it"
        for figure, _ in (plot.distribution(result, "recall@2"), plot.means(result)):
            assert any(
                counted in text.get_text()
                for text in figure.findobj(lambda artist: hasattr(artist, "get_text"))
            )


LISTS = torch.tensor([[2, 0, 1], [1, 0, 2], [0, 1, 2]])
TRUTH_OF_USER_COUNTS = torch.tensor([[0, 0, 1], [1, 2, 2]])


@pytest.fixture
def ranked():
    return RankedEdges.from_topk(LISTS, TRUTH_OF_USER_COUNTS)


class TestResult:
    def test_users_are_counted(self, ranked):
        result = EvaluationResult(ranked, ["recall@1"])
        assert (result.user_counts.num_evaluated, result.user_counts.num_without_truth) == (2, 1)
        assert result.user_counts.num_with_few_candidates is None
        task = RankingTask(
            TRUTH_OF_USER_COUNTS, num_users=3, num_items=3, users=torch.tensor([0, 1])
        )
        result = EvaluationResult(ranked, ["recall@1"], task=task)
        assert (result.user_counts.num_evaluated, result.user_counts.num_without_truth) == (2, 0)


@pytest.mark.usefixtures("expect_lost_truth")
@given(case=cases(), max_k=st.none() | st.integers(1, 10), data=st.data())
def test_counts_are_those_of_a_loop(case, max_k, data):
    is_evaluated = data.draw(
        st.lists(st.booleans(), min_size=case.num_users, max_size=case.num_users)
    )
    users = [user for user in range(case.num_users) if is_evaluated[user]]
    with_truth = [user for user in users if case.truths[user]]
    ranked = rank(case.score_matrix, case.task(), k=3, keep_items=True)
    ranked = select_users(ranked, torch.tensor(is_evaluated))
    counts = UserCounts.of(ranked, max_k, 7, "skip")
    assert counts.num_evaluated == len(with_truth)
    assert counts.num_without_truth == len(users) - len(with_truth)
    assert counts.num_left_out == 7
    few = [user for user in with_truth if len(case.rankings[user]) < (max_k or 0)]
    assert counts.num_with_few_candidates == len(few)
    assert counts.num_with_list == sum(bool(case.rankings[user]) for user in users)


def test_what_is_not_known_is_not_counted(ranked):
    task = RankingTask(TRUTH_OF_USER_COUNTS, num_users=3, num_items=3)
    counts = UserCounts.of(ranked, 3, 0, "skip")
    assert counts.num_with_few_candidates is None
    without_lists = rank(torch.zeros(3), task, k=3)
    assert UserCounts.of(without_lists, 3, 0, "skip").num_with_list is None


def test_users_without_truth_are_an_error_only_if_they_are_evaluated(ranked):
    with pytest.raises(ValueError, match=r"'error' \(got 1 without\)"):
        UserCounts.of(select_users(ranked, torch.tensor([True, False, True])), 3, 0, "error")
    counts = UserCounts.of(select_users(ranked, torch.tensor([True, True, False])), 3, 1, "error")
    assert (counts.num_evaluated, counts.num_without_truth) == (2, 0)


@pytest.fixture(scope="module")
def data():
    interactions = datasets.synthetic_interactions(num_users=1000, num_items=400)
    return transforms.PerUserSplit(num_test=0.2)(interactions)[2]


class TestProtocol:
    """What is unusual about an evaluation is said wherever its numbers are shown."""

    def check(self, scores, task, line, folder):
        result = evaluate(scores, task, ["ndcg@20", "recall@20"])
        page = report({"a": result}, folder / "page.html").read_text()
        shown = [str(result), result.recipe(), *result.cautions(), page]
        assert len(result.cautions()) == (line is not None)
        for text in shown:
            if line is None:
                assert "Caution" not in text
            else:
                assert re.search(line, " ".join(text.split()))

    def test_an_ordinary_evaluation_has_nothing_unusual(self, data, tmp_path):
        self.check(torch.rand(400), data, None, tmp_path)

    def test_sampled_candidates(self, data, tmp_path):
        sampled = transforms.SampledCandidates(num_negatives=99)(data)
        self.check(torch.rand(400), sampled, "ranked among 99 other items .* all 400", tmp_path)

    def test_truth_among_message_passing_edges(self, data, tmp_path):
        task = RankingTask.from_data(data)
        options = {"num_users": 1000, "num_items": 400, "exclude_seen": False}
        seen = torch.cat([task.seen, task.truth[:, ::2]], dim=1)
        number = f"{len(range(0, task.truth.size(1), 2)):,} of {task.truth.size(1):,} relevant"
        leaky = RankingTask(task.truth, seen=seen, **options)
        self.check(torch.rand(400), leaky, f"{number} items are message-passing edges", tmp_path)
        sound = RankingTask(task.truth, seen=task.seen, **options)
        self.check(torch.rand(400), sound, None, tmp_path)

    def test_users_without_training_edges(self, data, tmp_path):
        task = RankingTask.from_data(data)
        task = RankingTask(
            task.truth, num_users=1000, num_items=400, seen=task.seen[:, task.seen[0] >= 300]
        )
        self.check(torch.rand(400), task, "300 of 1,000 users have no training edges", tmp_path)

    def test_a_recommender_that_is_the_truth(self, data, tmp_path):
        task = RankingTask.from_data(data)
        scores = torch.rand(1000, 400) / 2
        scores[tuple(task.truth)] += 1
        self.check(scores, task, "ndcg@20 above 0.99: the recommender may know", tmp_path)


def difference(b, verdict, mean_b, metric="ndcg@20"):
    """The difference of the best, whose mean is .3, from another."""
    gap, ends = 0.3 - mean_b, {}
    if verdict is not None:
        lift = 100 * gap / mean_b
        ends = {"lift": lift, "lift_low": lift - 2, "lift_high": lift + 2, "p_adjusted": 0.25}
        ends |= {"low": gap - 0.05, "high": gap + 0.05}
    means = {"mean_a": 0.3, "mean_b": mean_b}
    return PairedDifference(metric, "best", b, gap, verdict=verdict, **means, **ends)


@pytest.mark.parametrize(
    ("first", "claim"),
    [
        (difference("x", "better", 0.2), "best is best: ndcg@20 0.3, 50.0% (48.0 to 52.0) above x"),
        (
            difference("x", "better", 0.4, "mean_rank"),
            "best is best: mean_rank 0.3, 25.0% (23.0 to 27.0) below x",
        ),
        (difference("x", "better", 0.05), "best is best: ndcg@20 0.3, 6.0 x that of x"),
        (
            difference("x", "better", 0.2)._replace(lift_low=math.nan),
            "best is best: ndcg@20 0.3, 0.1 (0.05 to 0.15) above x",
        ),
        (
            difference("x", "equivalent", 0.25),
            "best is as good as x: ndcg@20 0.3 and 0.25 (+18.0% to +22.0%)",
        ),
        (
            difference("x", "inconclusive", 0.25),
            "it is open whether best or x is best: ndcg@20 0.3 and 0.25 (+18.0% to +22.0%, "
            "p = 0.25)",
        ),
        (
            difference("x", None, 0.25),
            "best has the best mean: ndcg@20 0.3 and 0.25 of x, which were not tested",
        ),
    ],
)
def test_the_first_sentence_is_on_the_best_and_the_next(first, claim):
    assert list(claims_on_best([first])) == [claim]


def test_the_best_is_beside_all_others():
    rows = [
        difference("x", "better", 0.25),
        difference("y", "inconclusive", 0.24),
        difference("z", "better", 0.2),
        difference("w", None, 0.1),
        difference("v", "better", 0.05),
    ]
    _, beaten, open_ = claims_on_best(rows)
    assert beaten == "best is also better than z (+50.0%) and v (6.0 x)"
    assert open_ == "whether best is better than y and w is open"
    assert list(claims_on_best(rows[1:]))[1].startswith("best is better than z")
