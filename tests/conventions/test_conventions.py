"""Conventions, populations, and what a result says of them."""

import pytest
import torch

from pyg_recmetrics import RankedEdges, RankingTask, conventions, evaluate, metrics

TRUTH = torch.tensor([[0, 0, 1, 2, 3], [2, 3, 0, 1, 1]])
SEEN = torch.tensor([[0, 1, 1, 1], [0, 1, 2, 3]])


def make_task():
    return RankingTask(TRUTH, num_users=5, num_items=4, seen=SEEN)


class TestTable:
    def test_the_numbers_of_all_libraries_on_the_toy(self):
        rows = {line.split()[0]: line.split()[1:] for line in str(conventions.table()).splitlines()}
        assert set(conventions.CONVENTIONS) < set(rows)
        assert {row[4] for row in rows.values() if len(row) > 4} >= {
            ".3333",
            ".4449",
            ".5169",
            ".5400",
        }
        assert rows["rectools"][2] == ".5556*"
        assert rows["trec_eval"] == [
            ".3333", ".4667", ".1333", ".2778", ".4449", ".5667", ".6667"
        ]  # fmt: skip

    def test_another_cut_off(self):
        assert "ndcg@10" in str(conventions.table(k=10))
        with pytest.raises(ValueError, match="'k' needs to be a positive integer"):
            conventions.table(k=0)

    def test_numbers_that_no_convention_has_can_be_produced_too(self):
        lists = torch.arange(10).repeat(4, 1)
        truth = [(0, 0), (0, 2), (0, 5), (0, 7), (0, 8), (1, 1), (2, 4), (2, 5)]
        ranked = RankedEdges.from_topk(lists, torch.tensor(truth).t())
        for spelled, value in {
            "map(normalizer=k)@3": 0.2407,
            "map(normalizer=hits)@3": 0.4444,
            "r_precision(users=hit)": 0.4,
            "ndcg(ideal=retrieved,ideal_k=10)@3": 0.4449,
            "mrr": 0.5667,
        }.items():
            found = metrics.parse(spelled)(ranked).nanmean()
            assert float(found) == pytest.approx(value, abs=5e-5), spelled


class TestEvaluate:
    def test_results_are_known_by_the_names_that_were_asked_for(self):
        score = torch.rand(4, generator=torch.Generator().manual_seed(0))
        result = evaluate(score, make_task(), ["map@2", "mrr@1"], convention="trec_eval")
        assert list(result) == ["map@2", "mrr@1"]
        assert [str(metric) for metric in result.definitions.values()] == [
            "map(normalizer=R)@2",
            "mrr",
        ]
        exact = evaluate(score, make_task(), ["map(normalizer=R)@2", "mrr"])
        assert list(result.values()) == list(exact.values())
        assert str(result).endswith("convention trec_eval")

    def test_what_is_spelled_out_has_precedence(self):
        rectools = conventions.get("rectools")
        assert str(rectools.resolve("map(normalizer=k)@5")) == "map(normalizer=k)@5"
        assert str(rectools.resolve("ndcg(ideal=relevant)@5")) == (
            "ndcg(gain=binary,ideal=relevant)@5"
        )

    def test_users_without_truth_count_as_the_convention_has_it_or_as_is_said(self):
        score = torch.tensor([0.1, 0.2, 0.3, 0.4])
        for convention, action, factor in (
            ("standard", None, 1),
            ("ranx", None, 4 / 5),
            ("ranx", "skip", 1),
            ("standard", "neg", 4 / 5),
        ):
            result = evaluate(
                score,
                make_task(),
                "recall@2",
                convention=convention,
                empty_target_action=action,
            )
            expected = evaluate(score, make_task(), "recall@2")["recall@2"] * factor
            assert result["recall@2"] == pytest.approx(expected)

    def test_the_ngcf_ndcg_depends_on_the_largest_cut_off(self):
        scores = torch.arange(40, 0, -1).float()
        truth = torch.tensor([[0, 0, 0], [0, 2, 8]])
        task = RankingTask(truth, num_users=1, num_items=40)
        alone = evaluate(scores, task, "ndcg@3", convention="ngcf")
        among = evaluate(scores, task, ["ndcg@3", "ndcg@10"], convention="ngcf")
        assert alone["ndcg@3"] > among["ndcg@3"]
        assert str(among.definitions["ndcg@3"]) == (
            "ndcg(gain=binary,ideal=retrieved,ideal_k=10)@3"
        )

    @pytest.mark.parametrize(
        ("convention", "metric", "message"),
        [
            ("trec", "recall@5", r"one of \['standard', .*\] \(got 'trec'\)"),
            ("implicit", "recall@5", r"metrics of the convention 'implicit', .*got 'recall@5'"),
            ("rectools", "r_precision", "what it calls 'r_precision' is 'truncated_precision'"),
        ],
    )
    def test_what_is_not_offered_is_named(self, convention, metric, message):
        with pytest.raises(ValueError, match=message):
            evaluate(torch.rand(4), make_task(), metric, convention=convention)

    def test_every_convention_evaluates_what_it_offers(self):
        score = torch.rand(4, generator=torch.Generator().manual_seed(0))
        for convention in conventions.CONVENTIONS.values():
            names = convention.metrics or metrics.names()
            asked = [
                f"{name}@2" if metrics.definition(name).has_cut_off else name for name in names
            ]
            category, embedding = torch.arange(4), torch.eye(4)
            result = evaluate(
                score,
                make_task(),
                asked,
                convention=convention,
                item_category=category,
                item_embedding=embedding,
            )
            assert len(result) == len(asked)
            assert convention.name in result.recipe()
            assert convention.source


class TestPopulation:
    # User 0 has three candidates, user 1 one, users 2 to 4 four and have seen nothing; user 4 has
    # no truth.
    scores = torch.tensor(
        [
            [0.1, 0.2, 0.3, 0.4],
            [0.4, 0.3, 0.2, 0.1],
            [1.0, 1.0, 1.0, 1.0],
            [0.1, 0.1, 0.1, 0.2],
            [1.0, 2.0, 3.0, 4.0],
        ]
    )

    def evaluated(self, metric="mrr@2", **rules):
        convention = conventions.Convention(
            "mine", "me", None, population=conventions.Population(**rules)
        )
        result = evaluate(self.scores, make_task(), metric, convention=convention)
        users = (~result.per_user[metric].isnan()).nonzero().flatten().tolist()
        return users, result.num_left_out, result.num_without_truth

    def test_everybody(self):
        assert self.evaluated() == ([0, 1, 2, 3], 0, 1)

    def test_a_least_number_of_relevant_items(self):
        assert self.evaluated(min_pos_test=2) == ([0], 4, 0)

    def test_a_least_number_of_candidates(self):
        assert self.evaluated(min_items_pool=2) == ([0, 2, 3], 1, 1)

    def test_users_who_have_seen_nothing(self):
        assert self.evaluated(consider_cold_start=False) == ([0, 1], 3, 0)

    def test_users_with_equal_scores(self):
        # A single candidate is as constant as it gets.
        assert self.evaluated(constant_scores=False) == ([0, 3], 2, 1)

    def test_lists_have_no_scores_to_be_equal(self):
        convention = conventions.Convention(
            "mine", "me", None, population=conventions.Population(constant_scores=False)
        )
        lists = self.scores.argsort(dim=1, descending=True)
        result = evaluate(lists, make_task(), "mrr@2", convention=convention)
        assert result.num_evaluated == 4

    @pytest.mark.parametrize(
        ("metric", "users"),
        [
            ("recall@3", [2, 3]),
            ("mrr@3", [0, 2, 3]),
            ("recall@1", [0, 2, 3]),
            ("mrr@1", [0, 1, 2, 3]),
            ("mrr@4", [2, 3]),
        ],
    )
    def test_users_with_few_candidates(self, metric, users):
        assert self.evaluated(metric, few_candidates="undefined")[0] == users

    def test_wrong_rules_are_named(self):
        with pytest.raises(ValueError, match="'min_pos_test' needs to be a positive integer"):
            conventions.Population(min_pos_test=0)
        with pytest.raises(ValueError, match="'min_items_pool' needs to be a positive integer"):
            conventions.Population(min_items_pool=-1)
        with pytest.raises(ValueError, match=r"\['count', 'undefined'\] \(got 'skip'\)"):
            conventions.Population(few_candidates="skip")


def test_the_recipe_says_all_that_a_reader_needs():
    result = evaluate(torch.rand(4), make_task(), ["ndcg@2", "map@2"], convention="recometrics")
    recipe = " ".join(result.recipe().split())
    for part in (
        "ndcg@2 (linear gain, discount 1 / log2(rank + 1), ideal over all relevant items)",
        "map@2 (divided by R)",
        "at least 2 candidates",
        "scores that are not all equal",
        "4 seen edges",
        "all 4 items",
        "equal scores rank the lower item id first",
        "convention 'recometrics' (recometrics 0.1.6)",
    ):
        assert part in recipe
    task = RankingTask(TRUTH, num_users=5, num_items=4, candidates=torch.arange(4))
    assert "4 of 4 items;" in evaluate(torch.rand(4), task, "mrr@2").recipe()
    task = RankingTask(TRUTH, num_users=5, num_items=4, candidates=TRUTH)
    assert "each user's own candidates" in evaluate(torch.rand(4), task, "mrr@2").recipe()
