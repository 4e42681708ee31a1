"""race(): which recommender is better, with as few users as it takes."""

import pytest
import torch

from pyg_recmetrics import Margin, RankingTask, conventions, evaluate, race
from tests.test_margins import NUM_ITEMS, NUM_USERS, TASK, make_scores

BASE = make_scores(1)
#: A little of the truth makes scores better.
TRUTH = torch.zeros(NUM_USERS, NUM_ITEMS).index_put(tuple(TASK.truth), torch.ones(()))


def with_truth(share, seed=1):
    return make_scores(seed) + share * TRUTH


def with_noise(size):
    return BASE + size * make_scores(9)


@pytest.fixture(scope="module")
def raced():
    return race(
        {"poor": BASE, "good": with_truth(1.0), "same": with_noise(0.001), "best": with_truth(1.5)},
        TASK,
        "ndcg@5",
        equivalence=0.01,
    )


class TestVerdicts:
    def test_the_best_wins_and_losers_are_dropped(self, raced):
        assert raced.best == ("best",)
        assert raced.winner == "best"
        became = {each.name: each for each in raced.entrants}
        assert became["best"].worse_than is None
        for name in ("poor", "same", "good"):
            assert became[name].worse_than in ("good", "best")
            assert became[name].num_users <= became["best"].num_users < NUM_USERS
            assert became[name].seconds > 0

    def test_bounds_hold_the_difference_of_all_users(self, raced):
        full = {
            name: evaluate(scores, TASK, "ndcg@5")["ndcg@5"]
            for name, scores in {
                "poor": BASE,
                "good": with_truth(1.0),
                "same": with_noise(0.001),
                "best": with_truth(1.5),
            }.items()
        }
        assert len(raced) == 6
        for pair in raced:
            assert pair.low <= full[pair.a] - full[pair.b] <= pair.high
            assert pair.low <= pair.difference <= pair.high
            if pair.verdict in ("better", "worse"):
                assert (pair.verdict == "better") == (full[pair.a] > full[pair.b])
        for each in raced.entrants:
            assert each.mean == pytest.approx(full[each.name], abs=0.08)

    def test_what_hardly_differs_is_equivalent(self):
        result = race({"a": BASE, "b": with_noise(0.001)}, TASK, "ndcg@5", equivalence=0.01)
        (pair,) = result
        assert pair.verdict == "equivalent"
        assert -0.01 < pair.low < pair.high < 0.01
        assert pair.num_users < NUM_USERS / 4
        assert result.winner is None
        assert result.best == ("a", "b")

    def test_everything_is_known_once_all_are_ranked(self):
        a, b = with_truth(0.0), with_truth(0.004)
        result = race({"a": a, "b": b}, TASK, "ndcg@5", equivalence=1e-9)
        (pair,) = result
        full = [evaluate(scores, TASK, "ndcg@5")["ndcg@5"] for scores in (a, b)]
        assert pair.num_users == NUM_USERS
        assert pair.difference == pytest.approx(full[0] - full[1])
        assert pair.low == pair.high == pair.difference
        assert pair.verdict == "worse"

    def test_the_same_is_equivalent_at_last(self):
        (pair,) = race({"a": BASE, "b": BASE.clone()}, TASK, "ndcg@5", equivalence=1e-6)
        assert (pair.verdict, pair.difference) == ("equivalent", 0)

    def test_lower_may_be_better(self):
        result = race({"poor": BASE, "good": with_truth(1.5)}, TASK, "fall_out@5", equivalence=0.01)
        assert result.winner == "good"
        assert result.pair("good", "poor").verdict == "better"
        assert result.pair("good", "poor").difference < 0

    def test_there_may_be_a_largest_number_of_users(self):
        result = race(
            {"a": BASE, "b": make_scores(2)},
            TASK,
            "ndcg@5",
            equivalence=Margin(1e-4, max_users=300),
        )
        (pair,) = result
        assert (pair.verdict, pair.num_users) == ("undecided", 300)
        assert [look[0].num_users for look in result.looks] == [256, 300]

    def test_users_without_truth_narrow_the_bounds(self):
        task = RankingTask(
            TASK.truth[:, TASK.truth[0] < 3000], num_users=NUM_USERS, num_items=NUM_ITEMS
        )
        found = {}
        for action in ("skip", "neg"):
            result = race(
                {"a": BASE, "b": with_truth(1.0)},
                task,
                "ndcg@5",
                equivalence=0.001,
                empty_target_action=action,
            )
            full = [
                evaluate(each, task, "ndcg@5", empty_target_action=action)["ndcg@5"]
                for each in (BASE, with_truth(1.0))
            ]
            (found[action],) = result
            assert found[action].low <= full[0] - full[1] <= found[action].high
            assert result.entrants[0].mean == pytest.approx(full[0], abs=0.05)
            assert f"about all {NUM_USERS if action == 'neg' else 3000:,} users" in str(result)
        assert found["neg"].difference == pytest.approx(found["skip"].difference / 2)

    def test_users_are_those_of_the_seed_and_recommenders_may_have_any_form(self):
        user, item = torch.randn(NUM_USERS, 6), torch.randn(NUM_ITEMS, 6)
        forms = {
            "table": user @ item.t(),
            "embeddings": (user, item),
            "lists": (user @ item.t()).argsort(descending=True)[:, :-1],
        }
        result = race(forms, TASK, "recall@5", equivalence=Margin(0.01, seed=4))
        assert {pair.verdict for pair in result} == {"equivalent"}
        assert len({each.mean for each in result.entrants}) == 1
        again = race(forms, TASK, "recall@5", equivalence=Margin(0.01, seed=5))
        assert again.entrants[0].mean != result.entrants[0].mean


def ranked_at(rank, num_items=12):
    """Scores that put the first item at a rank for each user."""
    scores = -torch.arange(num_items, dtype=torch.double).repeat(len(rank), 1)
    scores[:, 0] = 0.5 - rank
    return scores


def race_of_equals(num_users, seed, equivalence=0.01):
    """A race of three with the same ranks, which go to users in different orders."""
    generator = torch.Generator().manual_seed(seed)
    rank = torch.randint(1, 12, (num_users,), generator=generator)
    task = RankingTask(
        torch.stack([torch.arange(num_users), torch.zeros_like(rank)]),
        num_users=num_users,
        num_items=12,
    )
    order = {name: torch.randperm(num_users, generator=generator) for name in "abc"}
    recommenders = {name: ranked_at(rank[order[name]]) for name in order}
    return race(recommenders, task, "mrr", equivalence=equivalence)


class TestEquals:
    def test_rounding_makes_no_winner(self):
        for seed in range(40):
            result = race_of_equals(3, seed)
            assert result.best == ("a", "b", "c")
            assert {pair.verdict for pair in result} == {"equivalent"}

    def test_they_may_be_dropped_by_chance_and_never_once_all_are_ranked(self):
        for seed in range(30):
            for pair in race_of_equals(300, seed):
                assert pair.verdict in ("equivalent", "undecided") or pair.num_users < 300

    def test_they_are_equivalent_even_if_next_to_nothing_matters(self):
        pairs = [pair for seed in range(10) for pair in race_of_equals(9, seed, 1e-300)]
        assert {pair.verdict for pair in pairs} == {"equivalent"}

    def test_a_small_difference_is_one(self):
        task = RankingTask(torch.tensor([[0, 1, 2], [0, 0, 0]]), num_users=3, num_items=200_000)
        rank = torch.tensor([3, 1, 199_999])
        recommenders = {"a": ranked_at(rank, 200_000), "b": ranked_at(rank - 1, 200_000)}
        recommenders["b"][:2] = recommenders["a"][:2]
        (pair,) = race(recommenders, task, "mrr", equivalence=1e-6)
        assert pair.verdict == "worse"
        assert pair.difference == pytest.approx((1 / 199_999 - 1 / 199_998) / 3)


class TestWords:
    def test_queries_are_not_called_users(self):
        query = TASK.truth[0]
        task = RankingTask.from_queries((query // 2, query % 2), TASK.truth[1], num_items=NUM_ITEMS)
        result = race({"a": BASE, "b": with_truth(1.0)}, task, "ndcg@5", equivalence=0.01)
        assert f"about all {NUM_USERS:,} queries" in " ".join(str(result.table()).split())
        assert "users" not in str(result.table())


class TestRefusals:
    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({"equivalence": 0}, r"'equivalence' needs to be a positive number \(got 0\)"),
            ({"recommenders": {"a": BASE}}, r"'recommenders' needs to hold two or more"),
            ({"metric": "coverage@5"}, "a margin or a race needs means of bounded values"),
            ({"metric": ["ndcg@5", "mrr"]}, r"'metric' needs to be one metric \(got \['ndcg@5'"),
            ({"metric": "dcg@5"}, "a margin or a race needs means of bounded values"),
            ({"equivalence": Margin({"mrr": 0.1})}, "a margin needs to name metrics that are"),
            ({"convention": conventions.get("recometrics")}, "a race needs to know before"),
        ],
    )
    def test_odd_arguments(self, changes, message):
        arguments = {
            "recommenders": {"a": BASE, "b": BASE},
            "data": TASK,
            "metric": "ndcg@5",
            "equivalence": 0.01,
        }
        with pytest.raises(ValueError, match=message):
            race(**arguments | changes)

    def test_other_types(self):
        with pytest.raises(TypeError, match="'recommenders' needs to be recommenders by name"):
            race([BASE, BASE], TASK, "ndcg@5", equivalence=0.01)
        with pytest.raises(TypeError, match="'equivalence' needs to be a number or a 'Margin'"):
            race({"a": BASE, "b": BASE}, TASK, "ndcg@5", equivalence="2%")

    @pytest.mark.parametrize(
        "name",
        ["margin", "metrics", "patience", "monitor", "keep_items", "level"],
    )
    def test_what_has_no_meaning_in_a_race_is_told_before_it_starts(self, name):
        def fail(users):
            raise AssertionError("nothing is to be ranked")

        message = rf"^race\(\) got an unexpected keyword argument '{name}'$"
        with pytest.raises(TypeError, match=message):
            race({"a": fail, "b": fail}, TASK, "ndcg@5", equivalence=0.01, **{name: 1})

    @pytest.mark.parametrize(
        ("wrong", "error", "message"),
        [
            (BASE[:, :3], ValueError, "^b: 'recommender' needs to hold scores"),
            (torch.full_like(BASE, torch.nan), ValueError, "^b: 'recommender' needs to give"),
            (lambda users: BASE[users, :3], ValueError, r"^b: 'recommender\(\)' needs to hold"),
            (lambda users: BASE[users] @ BASE, RuntimeError, "^b: mat1 and mat2 shapes"),
            (None, TypeError, "^b: 'recommender' needs to be one of these"),
        ],
    )
    def test_an_error_names_the_recommender(self, wrong, error, message):
        with pytest.raises(error, match=message):
            race({"a": BASE, "b": wrong}, TASK, "ndcg@5", equivalence=0.01)

    def test_an_error_names_the_recommender_that_says_how_many_users_there_are(self):
        with pytest.raises(TypeError, match=r"^a: 'recommender' needs to be"):
            race({"a": (BASE, "items"), "b": BASE}, TASK.truth, "mrr", equivalence=0.01)


@pytest.mark.slow
def test_verdicts_are_hardly_ever_wrong():
    """Of races of six in 100 orders, 5 may have a wrong verdict, and three standard errors."""
    scores = {f"{size:g}": with_noise(size) for size in (0.001, 0.1, 0.3, 0.6, 1.0)}
    scores["base"] = BASE
    full = {name: evaluate(each, TASK, "ndcg@5")["ndcg@5"] for name, each in scores.items()}
    num_wrong = 0
    for seed in range(100):
        result = race(scores, TASK, "ndcg@5", equivalence=Margin(0.01, seed=seed))
        true = [full[pair.a] - full[pair.b] for pair in result]
        num_wrong += any(
            not pair.low <= x <= pair.high for pair, x in zip(result, true, strict=True)
        )
        assert max(full, key=full.get) in result.best or num_wrong
    assert num_wrong <= 11
