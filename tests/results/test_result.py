"""EvaluationResult: its mapping of means, its values per user, and how it prints."""

import copy
import math
import pickle
import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch

from pyg_recmetrics import (
    EvaluationResult,
    Evaluator,
    RankedEdges,
    RankingTask,
    conventions,
    evaluate,
    metrics,
    rank,
)
from tests.support.cases.random_tasks import random_scores, random_task
from tests.support.cases.small_task import GOOD_SCORES, TASK
from tests.support.tools.laws import values_of

LISTS = torch.tensor([[2, 0, 1], [1, 0, 2], [0, 1, 2]])
TRUTH = torch.tensor([[0, 0, 1], [1, 2, 2]])


@pytest.fixture
def ranked():
    return RankedEdges.from_topk(LISTS, TRUTH)


@pytest.fixture
def result(ranked):
    return EvaluationResult(ranked, ["recall@1", "recall@3", "r_precision", "mrr@3"])


def pickled(result):
    return pickle.loads(pickle.dumps(result))


class TestResult:
    def test_a_ranking_says_who_is_evaluated(self):
        task = RankingTask(TRUTH, num_users=3, num_items=4, users=torch.tensor([1, 2]))
        ranked = rank(LISTS, task, k=3)
        assert ranked.users.tolist() == [1, 2]
        for options in ({}, {"task": task}):
            result = EvaluationResult(ranked, "recall@3", empty_target_action="neg", **options)
            assert result["recall@3"] == 0.5  # one who finds everything, and one without truth
            counts = result.user_counts
            assert (counts.num_evaluated, counts.num_without_truth) == (1, 1)

    def test_no_frame_of_names(self, result):
        with pytest.raises(TypeError, match=r"'result\.to_pandas\(per_user=True\)'"):
            pd.DataFrame(result.per_user)
        for make in (pd.DataFrame, np.asarray, lambda result: pd.DataFrame({"a": result})):
            with pytest.raises(TypeError, match=r"or 'result\.to_pandas\(\)' for the means"):
                make(result)
        assert pd.Series(result).to_dict() == result.to_dict()
        assert pd.DataFrame([result, result])["mrr@3"].tolist() == [result["mrr@3"]] * 2

    @pytest.mark.parametrize("name", ["empty_target_action", "num_tied", "comment"])
    def test_nothing_in_it_can_be_set(self, result, name):
        with pytest.raises(AttributeError, match=f"'EvaluationResult.{name}' .* another one of"):
            setattr(result, name, None)

    @pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, pickled])
    def test_copies(self, result, copied):
        again = copied(result)
        assert again == result
        assert again.num_tied == result.num_tied
        assert again.tie_range("mrr@3") == result.tie_range("mrr@3")


def test_other_metrics_of_the_same_ranking():
    task = random_task(60, 12, truth_share=0.2, seen_share=0.2)
    scores = random_scores(task, 1)
    result = evaluate(scores, task, "ndcg@3", convention="implicit")
    for name in ("precision@2", "map@3"):
        wanted = evaluate(scores, task, name, convention="implicit")[name]
        assert float(result.values_of(name)[0].nanmean()) == pytest.approx(wanted, rel=1e-14)
    with pytest.raises(ValueError, match=r"at most 3, the depth"):
        result.values_of("precision@9")


#: Conventions with metrics that they offer at every k.
OFFERED = [
    (name, metric)
    for name, convention in conventions.CONVENTIONS.items()
    for metric in ("map", "ndcg", "recall", "precision", "mrr", "coverage")
    if metric in (convention.metrics or metrics.names())
]


@pytest.mark.parametrize(("convention", "metric"), OFFERED)
@pytest.mark.filterwarnings("ignore:.*depending on the order of ties")
def test_a_curve_keeps_the_convention(convention, metric):
    """Column `k - 1` is what the same convention has for each user at `k`."""
    task = random_task(30, 12, truth_share=0.3, seen_share=0.4)
    scores = random_scores(task, seed=3)
    every = [f"{metric}@{k}" for k in range(1, 13)]
    result = evaluate(scores, task, every, convention=convention)
    curve = result.curve(metric, max_k=12)
    for k, name in enumerate(every, start=1):
        value = result.per_user.get(name)
        wanted = torch.tensor(result[name]).double() if value is None else value
        torch.testing.assert_close(curve[..., k - 1], wanted, equal_nan=True)


class TestLookingUp:
    """Means, values per user and definitions are looked up by the same names."""

    @pytest.fixture
    def result(self):
        task = random_task(30, 9, truth_share=0.25, seen_share=0.25, seed=3)
        names = ["recall@3", "ndcg(gain=exponential)@3", "r_precision", "coverage@3"]
        return evaluate(random_scores(task, 1), task, names, convention="standard")

    @pytest.mark.parametrize("spelled", [" recall @ 3", metrics.parse("recall@3")])
    def test_any_spelling_will_do(self, result, spelled):
        for values in (result, result.per_user, result.definitions):
            assert spelled in values
            assert values[spelled] is values["recall@3"]
            assert values.get(spelled) is values["recall@3"]

    def test_what_cannot_be_a_metric_is_not_in_it(self, result):
        for values in (result, result.per_user, result.definitions):
            for key in (5, None, ("recall", 3), "recal@3", "recall", "recall@4"):
                assert key not in values
                assert values.get(key) is None

    def test_an_error_says_why(self, result):
        for values, key, message in (
            (result, "recall@4", "'recall@4' was not evaluated: there is recall@3, ndcg"),
            (result.definitions, "recall@4", "'recall@4' was not evaluated"),
            (result.per_user, "recal@3", r"known metrics, such as \['recall'.*'recal'"),
            (result.per_user, 5, r"needs to be a string or a list of strings \(got int\)"),
            (result.per_user, "coverage@3", "'coverage@3' was not evaluated: there is recall@3, "),
        ):
            with pytest.raises(KeyError, match=message):
                values[key]

    def test_none_of_them_can_be_changed(self, result):
        for values in (result, result.per_user, result.definitions):
            with pytest.raises(TypeError, match="does not support item assignment"):
                values["recall@3"] = 0


METRICS_OF_FRAMES = ["recall@3", "ndcg@5", "r_precision", "coverage@5"]
LISTS_OF_FRAMES = torch.tensor([[2, 0, 1], [1, -1, 2], [0, 0, 2], [-1, -1, -1]])
TRUTH_OF_FRAMES = torch.tensor([[0, 0, 1, 2, 3], [1, 2, 2, 2, 0]])


@pytest.fixture
def task():
    """Some users have no truth, some have seen nearly everything, and some are not evaluated."""
    task = random_task(60, 12, truth_share=0.15, seen_share=0.6)
    users = torch.arange(0, 60, 3)
    return random_task(60, 12, truth_share=0.15, seen_share=0.6, users=users, seen=task.seen)


@pytest.fixture
def scores(task):
    return random_scores(task, 1)


@pytest.fixture
def result_of_frames(task, scores):
    return evaluate(scores, task, METRICS_OF_FRAMES, keep_items=True)


@pytest.fixture
def ranked_of_frames():
    return RankedEdges.from_topk(LISTS_OF_FRAMES, TRUTH_OF_FRAMES)


def rankings(task, scores):
    """The candidates of every evaluated user, best first, and the set of those that are true."""
    seen, truth = (
        {tuple(edge) for edge in edges.t().tolist()} for edges in (task.seen, task.truth)
    )
    found = {}
    for user in task.users.tolist():
        items = [item for item in range(task.num_items) if (user, item) not in seen]
        items.sort(key=lambda item: -scores[user, item].item())
        found[user] = items, {item for item in items if (user, item) in truth}
    return found


def test_there_is_a_row_for_everybody_who_is_evaluated(task, scores, result_of_frames):
    frame = result_of_frames.to_pandas(per_user=True)
    assert list(frame) == ["user", "degree", "recall@3", "ndcg@5", "r_precision"]
    assert frame["user"].tolist() == task.users.tolist()
    rows = frame.set_index("user")
    for user, (items, relevant) in rankings(task, scores).items():
        assert rows["degree"][user] == len(relevant)
        found = len(relevant & set(items[:3]))
        recall = found / len(relevant) if relevant else math.nan
        assert rows["recall@3"][user] == pytest.approx(recall, nan_ok=True)
    assert frame["recall@3"].isna().any()


class TestLists:
    @pytest.mark.parametrize("k", [1, 5])
    def test_they_are_the_best_candidates(self, task, scores, result_of_frames, k):
        wanted = [
            (user, rank, item, item in relevant)
            for user, (items, relevant) in rankings(task, scores).items()
            for rank, item in enumerate(items[:k], start=1)
        ]
        frame = result_of_frames.top_k(k)
        assert list(frame) == ["user", "rank", "item", "is_relevant"]
        assert list(frame.itertuples(index=False, name=None)) == wanted
        assert frame["is_relevant"].any()

    def test_padding_and_repeated_items_keep_their_rank(self, ranked_of_frames):
        frame = EvaluationResult(ranked_of_frames, "recall@3").top_k(3)
        assert list(frame.itertuples(index=False, name=None)) == [
            (0, 1, 2, True),
            (0, 2, 0, False),
            (0, 3, 1, True),
            (1, 1, 1, False),
            (1, 3, 2, True),
            (2, 1, 0, False),
            (2, 3, 2, True),
        ]

    @pytest.mark.parametrize("ids", [(30, 10, 20, 40), (7, "seven", 7.5, ("7",))])
    def test_ids_may_be_of_any_type(self, ranked_of_frames, ids):
        named = replace(ranked_of_frames, user_ids=ids, item_ids=ids[::-1])
        result = EvaluationResult(named, "recall@3")
        frame = result.top_k(1, users=[ids[2], ids[0]])
        assert frame["user"].tolist() == [ids[2], ids[0]]
        assert frame["item"].tolist() == [ids[3], ids[1]]
        assert result.to_pandas(per_user=True)["user"].tolist() == list(ids)
        assert result.per_item("recall@3")["item"].tolist() == [ids[3], ids[2], ids[1]]

    @pytest.mark.parametrize("form", [list, torch.tensor, pd.Series, iter])
    def test_users_come_in_the_order_in_which_they_are_asked_for(self, result_of_frames, form):
        everybody = result_of_frames.top_k(2)
        frame = result_of_frames.top_k(2, users=form([9, 3]))
        wanted = pd.concat([everybody[everybody["user"] == user] for user in (9, 3)])
        assert list(frame.itertuples(index=False)) == list(wanted.itertuples(index=False))
        assert result_of_frames.top_k(2, users=form([])).empty

    def test_wrong_users_are_named(self, task, result_of_frames):
        with pytest.raises(ValueError, match=r"ids of evaluated users \(got 60, 'a'\)"):
            result_of_frames.top_k(2, users=[60, 3, "a"])
        for users in (3, "ann", torch.tensor(3), [[3, 6]]):
            with pytest.raises(TypeError, match=r"'users' needs to .* user ids"):
                result_of_frames.top_k(2, users=users)

    def test_what_was_not_kept_is_asked_for(self, task, scores, result_of_frames):
        with pytest.raises(ValueError, match=r"at most 5, .* unless .* 'keep_items=6' \(got 6\)"):
            result_of_frames.top_k(6)
        with pytest.raises(ValueError, match="'keep_items=True'"):
            evaluate(scores, task, "recall@3").top_k(2)


class TestItems:
    @pytest.mark.parametrize("metric", ["recall@3", "hit_rate@3", "r_precision"])
    def test_which_relevant_items_are_found(self, task, scores, result_of_frames, metric):
        degree, hits = [0] * task.num_items, [0] * task.num_items
        for items, relevant in rankings(task, scores).values():
            k = len(relevant) if metric == "r_precision" else 3
            for item in relevant:
                degree[item] += 1
                hits[item] += item in items[:k]
        seen = task.seen[1].tolist()
        frame = result_of_frames.per_item(metric)
        assert list(frame) == ["item", "degree", "hits", metric, "popularity"]
        assert list(frame.itertuples(index=False, name=None)) == [
            (item, degree[item], hits[item], hits[item] / degree[item], seen.count(item))
            for item in range(task.num_items)
            if degree[item]
        ]
        assert 0 < frame["hits"].sum() < frame["degree"].sum()

    def test_only_users_who_count(self, task, scores):
        metric = "r_precision(users=hit)"
        result = evaluate(scores, task, metric)
        counted = [
            (len(relevant & set(items[: len(relevant)])), len(relevant))
            for items, relevant in rankings(task, scores).values()
        ]
        assert any(degree and not hits for hits, degree in counted)
        frame = result.per_item(metric)
        assert frame["degree"].sum() == sum(degree for hits, degree in counted if hits)
        assert frame["hits"].sum() == sum(hits for hits, _ in counted)

    def test_popularity_is_there_if_it_is_known(self, ranked_of_frames):
        frame = EvaluationResult(ranked_of_frames, "recall@2").per_item("recall@1")
        assert list(frame.itertuples(index=False, name=None)) == [
            (0, 1, 0, 0.0),
            (1, 1, 0, 0.0),
            (2, 3, 1, 1 / 3),
        ]

    def test_metrics_that_do_not_say_where_to_find_an_item(self, result_of_frames):
        for metric in ("ndcg@5", "precision@5", "mrr@3", "coverage@5"):
            with pytest.raises(ValueError, match=f"'metric' needs to be 'recall@k', .*{metric}"):
                result_of_frames.per_item(metric)


def one_against(num_others):
    """Each of 50 users has one relevant item, the first."""
    truth = [[*range(50)], [0] * 50]
    return RankingTask(truth, num_users=50, num_items=num_others + 1)


@pytest.fixture
def task_of_tie_range():
    return random_task(40, 60, truth_share=0.1, seen_share=0.1)


class TestWarning:
    def test_the_line_that_is_blamed_is_the_callers(self):
        evaluator = Evaluator(one_against(9), "mrr")
        for call in (evaluator, lambda scores: evaluate(scores, one_against(9), "mrr")):
            with pytest.warns(UserWarning, match="order of ties") as warned:
                call(torch.ones(10))
            assert warned[0].filename == __file__

    @pytest.mark.parametrize("ties", ["mean", "worst", "random"])
    def test_no_word_if_ties_do_not_flatter(self, ties):
        scores = torch.ones(100)
        scores[-1] = 0
        result = evaluate(scores, one_against(99), "mrr", ties=ties)
        assert result.num_tied == 50
        assert result["mrr"] < 0.15

    def test_no_word_if_few_ties_move_a_mean_less_than_its_interval(self, task_of_tie_range):
        scores = torch.rand(40, 60, generator=torch.Generator().manual_seed(0))
        user, item = task_of_tie_range.truth[:, 0].tolist()
        scores[user, (item + 1) % 60] = scores[user, item]
        result = evaluate(scores, task_of_tie_range, ["mrr", "roc_auc"])
        assert result.num_tied >= 1
        assert "the same score as another candidate" in str(result)

    def test_no_word_if_no_metric_moves(self):
        evaluate(torch.ones(10), one_against(9), "recall@10")


def test_a_metric_of_all_ranks_needs_a_whole_ranking_for_its_range():
    task = RankingTask(torch.tensor([[0], [0]]), num_users=1, num_items=4)
    result = EvaluationResult(rank(torch.zeros(4), task, k=2), ["roc_auc"])
    assert result["roc_auc"] == 1
    with pytest.raises(ValueError, match="rank of every"):
        result.tie_range("roc_auc")


#: What MLflow says a name may be made of.
VALID = re.compile(r"[A-Za-z0-9_\-. /]+")


def all_spellings():
    """Every metric with each value of its parameters, with and without a cut-off."""
    for name in metrics.names():
        definition = metrics.definition(name)
        for k in {20 if definition.has_cut_off else None, 20 if definition.needs_cut_off else None}:
            arguments = [
                ((parameter.name, value),)
                for parameter in definition.parameters.values()
                for value in values_of(parameter, k)
            ]
            for chosen in [(), *arguments]:
                yield metrics.Metric(name, k, chosen)


def spelled(names, sep):
    """The names of metrics as a result spells them."""
    return list(EvaluationResult.to_dict(dict.fromkeys(map(str, names), 0.0), sep))


@pytest.mark.parametrize("sep", ["_", "-", "."])
def test_every_metric_has_a_valid_name_of_its_own(sep):
    asked = list(dict.fromkeys(all_spellings()))
    names = spelled(asked, sep)
    assert all(VALID.fullmatch(name) for name in names)
    assert len(set(names)) == len(asked) > 60


def test_two_metrics_never_share_a_name():
    with pytest.raises(ValueError, match="got '_', which makes 'recall_20' of 'recall_20' and of"):
        spelled(["mrr", "recall@20", "recall_20"], "_")
    assert spelled(["recall@20", "recall_20"], "-") == ["recall-20", "recall_20"]


def test_values_stay_with_their_names():
    result = evaluate(GOOD_SCORES, TASK, ["recall@1", "mean_rank"])
    assert result.to_dict() == result.to_dict("@") == dict(result)
    values = {"recall_1": result["recall@1"], "mean_rank": result["mean_rank"]}
    assert result.to_dict("_") == values
    with pytest.raises(ValueError, match=r"'sep' needs to be one of \['@', '_', '-', '\.'\]"):
        result.to_dict("/")
