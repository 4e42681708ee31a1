"""The paragraph that says what was measured."""

from itertools import pairwise
from pathlib import Path
from typing import Annotated, Literal

import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st

from pyg_recmetrics import (
    Catalogue,
    EvaluationResult,
    Evaluator,
    RankedEdges,
    RankingTask,
    Runs,
    compare,
    evaluate,
    metrics,
    plot,
    rank,
)
from pyg_recmetrics.metrics import registry
from pyg_recmetrics.ranked_edges import catalogue_of, evaluated_mask, select_users
from pyg_recmetrics.results.counts import EffectiveNumber, UserCounts
from tests.support.cases.mixed_users import TRUTH, task_of_mixed_users
from tests.support.cases.strategies import cases


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


def queries(**options):
    generator = torch.Generator().manual_seed(0)
    source, relation = (torch.randint(6, (80,), generator=generator) for _ in range(2))
    item = torch.randint(9, (80,), generator=generator)
    task = RankingTask.from_queries((source, relation), item, num_items=9, **options)
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
    task, scores = queries(person=0)
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
    task, scores = queries(person=0)
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


FEW = "effective observations on average"


def ranked_of(case, chances):
    """The ranking of a case, where everybody was observed by chance."""
    catalogue = Catalogue(case.num_items, propensity=torch.tensor(chances, dtype=torch.double))
    assume(any(case.truths[::2]))
    task = case.task(users=torch.arange(0, case.num_users, 2))
    return rank(case.score_matrix, task, k=1).with_catalogue(catalogue)


def number_of(ranked, clip=None):
    item = ranked.edge_label_index[1]
    weight = catalogue_of(ranked).inverse_propensity(item, "given", 2.0, clip)
    return EffectiveNumber.of(ranked, weight)


def naive_number(case, chances):
    """The numbers of all evaluated users and of everybody together, in plain Python."""

    def number(weights):
        return sum(weights) ** 2 / sum(weight**2 for weight in weights)

    weights = [[1 / chances[item] for item in truth] for truth in case.truths[::2] if truth]
    per_user = [number(each) for each in weights]
    return sum(per_user) / len(per_user), number([weight for each in weights for weight in each])


def task_of(num_observed, num_users=4, num_items=12):
    """A task whose users have so many relevant items each."""
    user = torch.arange(num_users).repeat_interleave(num_observed)
    item = torch.arange(num_observed).repeat(num_users)
    return RankingTask(torch.stack([user, item]), num_users=num_users, num_items=num_items)


SCORES = torch.arange(12.0)
SAME = torch.full((12,), 0.5)
SAME_ITEMS = Catalogue(12, propensity=SAME)


@pytest.mark.usefixtures("expect_lost_truth")
class TestEffectiveNumber:
    chances = st.lists(st.sampled_from([1e-100, 1e-3, 0.1, 0.5, 1.0]), min_size=9, max_size=9)

    @given(case=cases(), chances=chances, clip=st.sampled_from([None, 0.01, 0.3, 1.0]))
    def test_it_equals_naive_loops(self, case, chances, clip):
        number = number_of(ranked_of(case, chances[: case.num_items]), clip)
        clipped = [max(chance, clip or 0) for chance in chances]
        assert number == pytest.approx(naive_number(case, clipped), rel=1e-9)

    @given(case=cases(), chances=chances, clips=st.tuples(*[st.floats(1e-9, 1)] * 2))
    def test_the_more_is_clipped_the_larger_it_is_up_to_the_number_of_edges(
        self, case, chances, clips
    ):
        ranked = ranked_of(case, chances[: case.num_items])
        numbers = [number_of(ranked, clip) for clip in (None, *sorted(clips), 1.0)]
        degree = ranked.degree[evaluated_mask(ranked) & (ranked.degree > 0)]
        for part, most in ((0, float(degree.double().mean())), (1, int(degree.sum()))):
            values = [number[part] for number in numbers]
            assert values[0] >= 1 - 1e-9
            assert all(low <= high * (1 + 1e-9) for low, high in pairwise(values))
            assert values[-1] == pytest.approx(most)


class TestNotes:
    def test_a_line_for_each_way_to_weigh(self):
        names = [
            "recall@3",
            "recall(average=micro,propensity=given)@3",
            "recall(average=micro,propensity=given)@5",
            "recall(average=micro,propensity=given,clip=0.5)@3",
        ]
        # Weights of 10, 2 and 2: 196 / 108 for each of four users, and four times that in all.
        propensity = torch.full((12,), 0.5)
        propensity[0] = 0.1
        items = Catalogue(12, propensity=propensity)
        result = evaluate(SCORES, task_of(3), names, catalogue=items)
        of_given = "effective number of observations with propensity=given"
        assert result.table().notes[-2:] == (
            f"{of_given}: 1.81 per user on average, 7 in total",
            f"{of_given},clip=0.5: 3.00 per user on average, 12 in total",
        )
        for form in (str(result), result.to_markdown(), result.to_latex()):
            assert "1.81 per user on average, 7 in total" in form

    def test_none_without_propensities_and_without_truth(self):
        names = ["recall@3", "recall(average=micro,propensity=given)@3"]
        assert "observations" not in str(evaluate(SCORES, task_of(3), "recall@3"))
        nobody = RankedEdges.from_topk(torch.tensor([[0, 1, 2]]), torch.empty(2, 0).long())
        nobody = nobody.with_catalogue(Catalogue(12, propensity=SAME))
        assert "observations" not in str(EvaluationResult(nobody, names))

    def test_only_users_who_are_evaluated_count(self):
        truth = torch.tensor([[0, 0, 1, 1, 1, 1], [0, 1, 2, 3, 4, 5]])
        task = RankingTask(truth, num_users=3, num_items=12, users=torch.tensor([1, 2]))
        name = "recall(average=micro,propensity=given)@3"
        assert (
            evaluate(SCORES, task, name, catalogue=SAME_ITEMS)
            .table()
            .notes[-1]
            .endswith("4.00 per user on average, 4 in total")
        )

    def test_on_any_device(self, device):
        names = [f"recall(average=micro,propensity=given{clip})@3" for clip in ("", ",clip=0.3")]
        items = Catalogue(12, propensity=torch.linspace(0.1, 1, 12))
        of_cpu = evaluate(SCORES, task_of(3), names, catalogue=items)
        task, items = task_of(3).to(device), items.to(device)
        result = evaluate(SCORES.to(device), task, names, catalogue=items)
        assert result.table().notes[-2:] == of_cpu.table().notes[-2:]
        assert dict(result) == pytest.approx(dict(of_cpu))

    def test_a_loaded_result_says_the_same(self, tmp_path):
        name = "recall(average=micro,propensity=given,clip=0.2)@3"
        result = evaluate(SCORES, task_of(3), name, catalogue=SAME_ITEMS)
        result.save(tmp_path / "result")
        assert str(EvaluationResult.load(tmp_path / "result")) == str(result)

    def test_those_by_popularity(self):
        # Item 0 was seen by three, and the others by nobody: weights of one, and of 4 ^ 1.5.
        user = torch.arange(4, 7)
        seen = torch.stack([user, torch.zeros_like(user)])
        task = RankingTask(task_of(2).truth, num_users=7, num_items=12, seen=seen)
        with pytest.warns(UserWarning, match=FEW):
            result = evaluate(SCORES, task, "recall(propensity=popularity)@3")
        each = (1 + 8) ** 2 / (1 + 64)
        assert f"with propensity=popularity: {each:.2f} per user" in str(result)


class TestWarning:
    def test_of_few_observations_per_user(self):
        name = "recall(propensity=given)@3"
        with pytest.warns(UserWarning, match=FEW) as warned:
            evaluate(SCORES, task_of(2), name, catalogue=SAME_ITEMS)
        assert [str(warning.message) for warning in warned] == [
            "recall(propensity=given)@3 may name the wrong winner: the estimate of a user rests on "
            "2.00 effective observations on average, and is biased towards what is often observed "
            "if they are fewer than 5. Use 'average=micro', such as "
            "'recall(average=micro,propensity=given)@3'"
        ]

    def test_the_line_that_is_blamed_is_the_callers(self):
        name = "recall(propensity=given)@3"
        evaluator = Evaluator(task_of(2), name, catalogue=SAME_ITEMS)
        for call in (evaluator, lambda x: evaluate(x, task_of(2), name, catalogue=SAME_ITEMS)):
            with pytest.warns(UserWarning, match=FEW) as warned:
                call(SCORES)
            assert [warning.filename for warning in warned] == [__file__]

    def test_once_for_all_metrics(self):
        names = [f"recall(propensity=given)@{k}" for k in range(1, 6)]
        names += ["recall(average=micro,propensity=given)@3", "recall@3"]
        with pytest.warns(UserWarning, match=r"@4 and 1 more may name the wrong") as warned:
            evaluate(SCORES, task_of(2), names, catalogue=SAME_ITEMS)
        assert len(warned) == 1

    @pytest.mark.parametrize(
        ("spelling", "instead"),
        [
            (
                "recall(weighted=True,propensity=given,clip=0.3)@4",
                "recall(average=micro,weighted=True,propensity=given,clip=0.3)@4",
            ),
            ("dcg(gain=binary,propensity=given)@4", "recall(average=micro,propensity=given)@4"),
            ("roc_auc(propensity=given)", "recall(average=micro,propensity=given)@20"),
            (
                "recall(propensity=popularity,gamma=1.5)@4",
                "recall(average=micro,propensity=popularity,gamma=1.5)@4",
            ),
        ],
    )
    def test_what_to_use_has_the_same_propensities(self, spelling, instead):
        seen = torch.tensor([[0, 1], [11, 11]])
        task = RankingTask(task_of(2).truth, num_users=4, num_items=12, seen=seen)
        with pytest.warns(UserWarning, match=FEW) as warned:
            evaluate(SCORES, task, spelling, catalogue=SAME_ITEMS)
        assert str(warned[0].message).endswith(f"such as '{instead}'")
        assert str(metrics.parse(instead)) == instead

    def test_five_are_enough(self):
        names = ["recall(propensity=given)@3", "dcg(propensity=given)@3"]
        for chance in (0.1, 0.3, 0.5, 0.7):  # whose sums are not exact
            evaluate(SCORES, task_of(5), names, catalogue=Catalogue(12, propensity=[chance] * 12))
        # Weights of 2, 2, 2, 2 and 1: 81 / 17.
        items = Catalogue(12, propensity=SAME.index_fill(0, torch.tensor(4), 1))
        with pytest.warns(UserWarning, match=r"rests on 4\.76 effective"):
            evaluate(SCORES, task_of(5), names, catalogue=items)

    def test_no_word_of_a_micro_average(self):
        name = "recall(average=micro,propensity=given)@3"
        result = evaluate(SCORES, task_of(1), name, catalogue=SAME_ITEMS)
        assert "1.00 per user on average, 4 in total" in str(result)

    def test_no_word_of_a_metric_with_a_propensity_of_its_own(self, monkeypatch):
        monkeypatch.setattr(registry, "_DEFINITIONS", dict(registry._DEFINITIONS))
        words = Annotated[Literal["none", "mine"], {"none": "", "mine": "as I see it"}]

        @metrics.register()
        def my_recall(ranked, k: int, propensity: words = "none"):
            return ranked.hits(k) / ranked.degree

        assert "observations" not in str(
            evaluate(SCORES, task_of(1), "my_recall(propensity=mine)@3")
        )


def simulate(num_observed, seed, num_users=3000, num_items=300):
    """What is relevant, what of it is observed by chance, and the scores of two recommenders.

    One in ten items is of the kind that a user likes. Twenty items are liked by others, too, and
    are observed most often. One recommender knows tastes, and the other what is observed often.
    """
    generator = torch.Generator().manual_seed(seed)
    place = torch.randperm(num_items, generator=generator) + 1.0
    kind = torch.randint(10, (num_users, 1), generator=generator)
    is_liked = kind == torch.arange(num_items) % 10
    shape = num_users, num_items
    chance_of_relevance = torch.where(is_liked, 0.5, 0.04) + 0.3 * (place <= 20)
    is_relevant = torch.rand(shape, generator=generator) < chance_of_relevance
    chance = place**-0.6
    for _ in range(20):  # until as many are observed as wanted, although no chance exceeds one
        chance = (chance * num_observed * num_users / (is_relevant * chance).sum()).clamp(max=1)
    is_observed = is_relevant & (torch.rand(shape, generator=generator) < chance)
    taste = is_liked + torch.rand(shape, generator=generator)
    complete, observed = (
        RankingTask(truth.nonzero().t(), num_users=num_users, num_items=num_items)
        for truth in (is_relevant, is_observed)
    )
    return complete, observed, chance, {"taste": taste, "popular": -place}


@pytest.mark.parametrize("seed", range(3))
class TestSimulation:
    """Tests of estimates against a truth that is known, as it never is of real data."""

    macro, micro = "recall(propensity=given)@20", "recall(average=micro,propensity=given)@20"

    def estimates(self, observed, chance, scores, name):
        items = Catalogue(observed.num_items, propensity=chance)
        return {
            recommender: evaluate(score, observed, name, catalogue=items)[name]
            for recommender, score in scores.items()
        }

    def test_the_mean_over_users_names_the_wrong_winner_of_two_observations_each(self, seed):
        complete, observed, chance, scores = simulate(2, seed)
        assert observed.truth.size(1) / 3000 == pytest.approx(2, abs=0.1)
        truth = {name: evaluate(score, complete, "recall@20") for name, score in scores.items()}
        assert truth["taste"]["recall@20"] > truth["popular"]["recall@20"] + 0.05
        with pytest.warns(UserWarning, match=r"wrong winner: .* rests on 1\.\d\d effective"):
            estimates = self.estimates(observed, chance, scores, self.macro)
        assert estimates["taste"] < estimates["popular"] - 0.1

    @pytest.mark.parametrize("num_observed", [2, 10])
    def test_the_micro_average_names_the_right_one(self, seed, num_observed):
        complete, observed, chance, scores = simulate(num_observed, seed)
        estimates = self.estimates(observed, chance, scores, self.micro)
        for name, score in scores.items():
            truth = evaluate(score, complete, "recall(average=micro)@20")
            assert estimates[name] == pytest.approx(truth["recall(average=micro)@20"], abs=0.025)
        assert estimates["taste"] > estimates["popular"] + 0.05

    def test_the_mean_over_users_names_the_right_one_of_ten_observations_each(self, seed):
        _, observed, chance, scores = simulate(10, seed)
        assert observed.truth.size(1) / 3000 == pytest.approx(10, abs=0.2)
        estimates = self.estimates(observed, chance, scores, self.macro)
        assert estimates["taste"] > estimates["popular"] + 0.02


@pytest.mark.usefixtures("expect_few_observations")
def test_the_documentation_has_the_numbers_of_a_simulation():
    complete, observed, chance, scores = simulate(2, seed=0)
    items = Catalogue(observed.num_items, propensity=chance)
    names = ["recall@20", TestSimulation.macro, TestSimulation.micro]
    page = (Path(__file__).parents[2] / "docs" / "metrics.md").read_text()
    for score, words in (
        (scores["taste"], "who knows what users like"),
        (scores["popular"], "who knows what is observed often"),
    ):
        row = page.partition(f"| {words} |")[2].partition(" |\n")[0]
        truth = evaluate(score, complete, "recall@20")["recall@20"]
        wanted = [truth, *evaluate(score, observed, names, catalogue=items).values()]
        assert [float(cell) for cell in row.split("|")] == pytest.approx(wanted, abs=0.0051)


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
    nothing_left = [user for user in users if not case.rankings[user]]
    assert counts.num_without_candidates == len(nothing_left)
    few = [user for user in with_truth if len(case.rankings[user]) < (max_k or 0)]
    assert counts.num_with_few_candidates == len(few)
    assert counts.num_with_list == sum(bool(case.rankings[user]) for user in users)


def test_what_is_not_known_is_not_counted(ranked):
    task = RankingTask(TRUTH_OF_USER_COUNTS, num_users=3, num_items=3)
    counts = UserCounts.of(ranked, 3, 0, "skip")
    assert counts.num_with_few_candidates is counts.num_without_candidates is None
    without_lists = rank(torch.zeros(3), task, k=3)
    assert UserCounts.of(without_lists, 3, 0, "skip").num_with_list is None


def test_users_without_truth_are_an_error_only_if_they_are_evaluated(ranked):
    with pytest.raises(ValueError, match=r"'error' \(got 1 without\)"):
        UserCounts.of(select_users(ranked, torch.tensor([True, False, True])), 3, 0, "error")
    counts = UserCounts.of(select_users(ranked, torch.tensor([True, True, False])), 3, 1, "error")
    assert (counts.num_evaluated, counts.num_without_truth) == (2, 0)
