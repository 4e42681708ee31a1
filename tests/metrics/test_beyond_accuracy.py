"""Metrics of lists and of the catalogue, against naive loops, and the laws they obey."""

import json
import math
import random

import pandas as pd
import pytest
import torch
from hypothesis import assume, given, strategies as st

from pyg_recmetrics import (
    Catalogue,
    EvaluationResult,
    RankedEdges,
    RankingTask,
    evaluate,
    merge,
    metrics,
    rank,
)
from pyg_recmetrics.__main__ import main
from tests.support.cases.strategies import cases
from tests.support.references import naive, world
from tests.support.tools.laws import CUT_OFFS, metrics_of_lists

pytestmark = pytest.mark.usefixtures("expect_lost_truth")


def rank_lists(case, **options):
    task = case.task(**options)
    return rank(case.score_matrix, task, k=20, keep_items=True).with_catalogue(case.catalogue)


def expected(case, rankings, metric):
    arguments = dict(metric.arguments)
    return naive.value(
        metric.name, rankings, case.truths, case.naive_catalogue, k=metric.k, **arguments
    )


def test_every_metric_has_a_naive_twin():
    for name in metrics.names():
        assert callable(getattr(naive if metrics.definition(name).needs else world, name)), name


@given(case=cases(max_users=20), k=st.sampled_from(CUT_OFFS))
def test_metrics_of_a_ranked_score_matrix_equal_naive_loops(case, k):
    assume(case.seen)
    ranked = rank_lists(case)
    for metric in metrics_of_lists(k):
        loop = expected(case, case.rankings, metric)
        assert metric(ranked).tolist() == pytest.approx(loop, nan_ok=True, abs=1e-12), metric


@given(case=cases(max_users=20), k=st.sampled_from(CUT_OFFS), data=st.data())
def test_metrics_of_given_lists_with_gaps_and_repetitions_equal_naive_loops(case, k, data):
    assume(case.seen)
    entry = st.integers(-1, case.num_items - 1)
    rows = st.lists(entry, min_size=4, max_size=4)
    lists = data.draw(st.lists(rows, min_size=case.num_users, max_size=case.num_users))
    truth = [(u, item) for u, items in enumerate(case.truths) for item in items]
    ranked = RankedEdges.from_topk(torch.tensor(lists), torch.tensor(truth).t())
    ranked = ranked.with_catalogue(case.catalogue)
    # A gap and a repetition take up a position, but are no item. Only serendipity looks at
    # positions.
    cut = [list(dict.fromkeys(item for item in row[:k] if item >= 0)) for row in lists]
    for metric in metrics_of_lists(k):
        if metric.name != "serendipity":
            loop = expected(case, cut, metric)
            assert metric(ranked).tolist() == pytest.approx(loop, nan_ok=True, abs=1e-12), metric


@given(case=cases(max_users=15), size=st.integers(1, 20))
def test_the_size_of_chunks_changes_nothing(case, size):
    assume(case.seen)
    ranked = rank_lists(case)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(metrics.beyond_accuracy, "_NUM_SUMS_AT_ONCE", size)
        in_chunks = {metric: metric(ranked) for metric in metrics_of_lists(3)}
    for metric, value in in_chunks.items():
        assert torch.equal(value.nan_to_num(-1), metric(ranked).nan_to_num(-1)), metric


@pytest.mark.parametrize(("most_popular", "share"), [(159, 0.0), (160, 1.0)])
def test_the_head_begins_at_exactly_so_many_percent_of_all_seen_edges(most_popular, share):
    item = (torch.arange(200) >= most_popular).long()
    catalogue = Catalogue(2, seen=torch.stack([torch.arange(200), item]))
    ranked = RankedEdges.from_topk([[1]], [[0], [1]]).with_catalogue(catalogue)
    assert metrics.tail_share(ranked, k=1, head=80).tolist() == [share]


def test_nobody_has_a_list():
    category = torch.tensor([10**15, 7, 10**15])  # may have large numbers
    catalogue = Catalogue(3, item_category=category, item_embedding=torch.eye(3))
    truth = torch.zeros(2, 1, dtype=torch.long)
    full, empty = (
        RankedEdges.from_topk(torch.tensor(lists), truth).with_catalogue(catalogue)
        for lists in ([[0, 1], [1, 2]], [[-1, -1], [-1, -1]])
    )
    nobody = RankedEdges.from_topk(torch.empty(0, 3).long(), truth[:, :0])
    assert metrics.diversity(full, 2).tolist() == [1, 1]
    assert float(metrics.coverage(empty, 2)) == 0
    for name in ("gini", "entropy", "personalization"):
        assert math.isnan(metrics.definition(name).function(empty, 2))
    for over in ("category", "embedding"):
        assert metrics.diversity(empty, 2, over=over).isnan().all()
        assert metrics.diversity(nobody.with_catalogue(catalogue), 2, over=over).shape == (0,)


class TestEvaluate:
    # User 3 has no truth, user 2 has seen nothing.
    truth = torch.tensor([[0, 0, 1, 2], [1, 2, 2, 0]])
    seen = torch.tensor([[0, 1, 3, 3], [0, 0, 1, 0]])
    scores = torch.tensor([[4.0, 3, 2, 1], [1, 2, 3, 4], [1, 4, 2, 3], [1, 3, 2, 4]])
    names = ("coverage@2", "recall@2", "popularity@2", "personalization@1", "mrr@3")

    def task(self, **options):
        return RankingTask(self.truth, num_users=4, num_items=4, seen=self.seen, **options)

    def test_users_without_truth_count_whatever_is_said_of_them(self):
        # Lists: [1, 2], [3, 2], [1, 3], [3, 2]; seen: item 0 three times, item 1 once.
        for action in ("skip", "neg", "pos"):
            result = evaluate(self.scores, self.task(), self.names, empty_target_action=action)
            assert result.per_user["popularity@2"].tolist() == [0.5, 0, 0.5, 0]
            assert (result["popularity@2"], result["coverage@2"]) == (0.25, 0.75)
            assert result["personalization@1"] == pytest.approx(4 / 6)
        assert list(result) == list(self.names)
        recipe = " ".join(result.recipe().split())
        assert (
            "all 3 users with ground truth (1 without count as one), and for coverage@2, "
            "popularity@2, personalization@1 all 4 users with a list."
        ) in recipe

    def test_users_who_are_not_evaluated_do_not_count(self):
        task = self.task(users=torch.tensor([0, 2]))
        result = evaluate(self.scores, task, self.names)
        assert (result["popularity@2"], result["coverage@2"]) == (0.5, 0.75)
        assert result["personalization@1"] == pytest.approx(0, abs=1e-12)
        everybody = rank(self.scores, self.task(), k=3, keep_items=True)
        same = EvaluationResult(everybody, self.names, task=task)
        assert same.to_dict() == result.to_dict()

    def test_lists_are_kept_as_wide_as_needed(self):
        def width(names, **options):
            lists = evaluate(self.scores, self.task(), names, **options).ranked.lists
            return None if lists is None else lists.width

        assert width("recall@3") is None
        assert width(["recall@3", "coverage@2"]) == 2
        assert width(["roc_auc", "coverage@1", "tail_share(head=50)@2"]) == 2
        assert width(["recall@3", "coverage@2"], keep_items=True) == 3
        assert width("coverage@20") == 4


@pytest.mark.parametrize("scale", [1e160, 1e-160, 1e300, 5e-324])
def test_embeddings_of_any_size_have_an_angle(scale):
    task = RankingTask([[0], [0]], num_users=1, num_items=3)
    for other, wanted in (([1.0, 1.0], 0), ([1.0, -1.0], 1), ([-1.0, -1.0], 2)):
        embedding = torch.tensor([[1.0, 1.0], other, [0.0, 0.0]], dtype=torch.double) * scale
        scores = torch.tensor([3.0, 2.0, 1.0])
        items = Catalogue(3, item_embedding=embedding)
        result = evaluate(scores, task, "diversity(over=embedding)@2", catalogue=items)
        assert result["diversity(over=embedding)@2"] == pytest.approx(wanted, abs=1e-12)


#: Items, of which the last three are neither in training nor relevant, and their features.
NUM_ITEMS, STRANGERS = 8, [97, 98, 99]
CATEGORIES = {item: {item % 3} if item < NUM_ITEMS else set() for item in [*range(8), *STRANGERS]}


def draw_lists(seed):
    """Who has seen what, what is relevant to whom, and lists in which strangers may stand."""
    draw = random.Random(seed)
    seen = [set(draw.sample(range(NUM_ITEMS), 3)) for _ in range(6)]
    left = [sorted({*CATEGORIES} - own) for own in seen]
    truth = [draw.sample([item for item in own if item < NUM_ITEMS], 2) for own in left]
    return seen, truth, [draw.sample(own, draw.randint(1, len(own))) for own in left]


def edges_of(items_of_users):
    return [(user, item) for user, items in enumerate(items_of_users) for item in items]


def values_by_door(task, lists, chosen, catalogue):
    """The values of metrics of lists by id, through each way in and out."""
    rows = [(u, item, place) for u, own in enumerate(lists) for place, item in enumerate(own, 1)]
    frame = pd.DataFrame(rows, columns=["user_id", "item_id", "rank"])
    parts = [task.part(index, 2) for index in range(2)]
    scored = frame.assign(score=-frame["rank"]).drop(columns="rank")
    for form in (dict(enumerate(lists)), frame, scored):
        yield dict(evaluate(form, task, chosen, catalogue=catalogue))
        yield dict(merge([evaluate(form, x, chosen, catalogue=catalogue) for x in parts]))
        ranked = rank(form, task, k=3, keep_items=True).with_catalogue(catalogue)
        yield {str(metric): float(metric(ranked).nanmean()) for metric in chosen}


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("items", [None, [*CATEGORIES]])
@pytest.mark.filterwarnings("ignore:.*are no candidates|.*gives too few|.*nothing could be learned")
def test_strangers_count_the_same_as_items_that_nobody_has_seen(
    items, seed, tmp_path, monkeypatch, capsys
):
    """Only the number of all items differs, on which coverage, Gini and serendipity depend."""
    seen, truth, lists = draw_lists(seed)
    train, test = (pd.DataFrame(edges_of(x), columns=["user_id", "item_id"]) for x in (seen, truth))
    known = [*CATEGORIES] if items else sorted({*train.item_id, *test.item_id})
    number = {item: known.index(item) if item in known else item for item in CATEGORIES}
    features = torch.tensor([[float(x in CATEGORIES[item]) for x in range(3)] for item in known])
    loop = naive.Catalogue(
        len(known),
        [{number[item] for item in own} for own in seen],
        {number[item]: CATEGORIES[item] for item in CATEGORIES},
        {number[item]: [float(x in CATEGORIES[item]) for x in range(3)] for item in CATEGORIES},
    )
    listed, relevant = ([[number[x] for x in own] for own in all_] for all_ in (lists, truth))
    chosen = metrics_of_lists(3)
    wanted = {}
    for metric in chosen:
        value = naive.value(
            metric.name, listed, [set(x) for x in relevant], loop, k=3, **dict(metric.arguments)
        )
        wanted[str(metric)] = float(torch.tensor(value, dtype=torch.float64).nanmean())
    task = RankingTask.from_frames(train=train, test=test, items=items)
    history = torch.tensor(edges_of(loop.seen)).t()
    catalogue = Catalogue(len(known), seen=history, item_category=features, item_embedding=features)
    for found in values_by_door(task, lists, chosen, catalogue):
        assert found == pytest.approx(wanted, nan_ok=True, abs=1e-12)

    monkeypatch.chdir(tmp_path)
    rows = [
        (user, item, -place) for user, own in enumerate(lists) for place, item in enumerate(own)
    ]
    pd.DataFrame(rows, columns=["user_id", "item_id", "score"]).to_csv("lists.csv", index=False)
    train.to_csv("train.csv", index=False)
    test.to_csv("test.csv", index=False)
    pd.Series(known).to_csv("items", index=False, header=False)
    without_features = [str(m) for m in chosen if not any("item_" in need for need in m.needs)]
    line = "evaluate --train train.csv --test test.csv --lists lists.csv --json"
    line += " --item-ids items" if items else ""
    assert main([*line.split(), "--metrics", *without_features]) == 0
    found = json.loads(capsys.readouterr().out)["metrics"]
    for name in without_features:
        assert found[name]["mean"] == pytest.approx(wanted[name], nan_ok=True, abs=1e-12)
