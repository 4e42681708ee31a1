"""Convention and Population: which metric a name stands for, and who is evaluated."""

import dataclasses
import json
import math
from dataclasses import replace

import pytest
import torch

from pyg_recmetrics import RankingTask, conventions, evaluate
from tests.support.cases.mixed_users import SEEN, TRUTH, task_of_mixed_users


class TestEvaluate:
    def test_results_are_known_by_the_names_that_were_asked_for(self):
        score = torch.rand(4, generator=torch.Generator().manual_seed(0))
        result = evaluate(score, task_of_mixed_users(), ["map@2", "mrr@1"], convention="trec_eval")
        assert list(result) == ["map@2", "mrr@1"]
        assert [str(metric) for metric in result.definitions.values()] == [
            "map(normalizer=R)@2",
            "mrr",
        ]
        exact = evaluate(score, task_of_mixed_users(), ["map(normalizer=R)@2", "mrr"])
        assert list(result.values()) == list(exact.values())
        assert str(result).endswith("convention trec_eval")

    def test_what_is_spelled_out_has_precedence(self):
        rectools = conventions.get("rectools")
        assert str(rectools.resolve("map(normalizer=k)@5")) == "map(normalizer=k)@5"
        assert str(rectools.resolve("ndcg(ideal=relevant)@5")) == (
            "ndcg(gain=binary,ideal=relevant)@5"
        )


@pytest.mark.usefixtures("expect_ties")
class TestPopulation:
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
        result = evaluate(self.scores, task_of_mixed_users(), metric, convention=convention)
        users = (~result.per_user[metric].isnan()).nonzero().flatten().tolist()
        return users, result.user_counts.num_left_out, result.user_counts.num_without_truth

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

    @pytest.mark.filterwarnings("ignore:.*holds every item once")
    def test_lists_have_no_scores_to_be_equal(self):
        convention = conventions.Convention(
            "mine", "me", None, population=conventions.Population(constant_scores=False)
        )
        lists = self.scores.argsort(dim=1, descending=True)
        result = evaluate(lists, task_of_mixed_users(), "mrr@2", convention=convention)
        assert result.user_counts.num_evaluated == 4

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

    @pytest.mark.parametrize(
        ("rules", "value"),
        [
            ({"min_pos_test": 3}, "got 3"),
            ({"min_items_pool": 5}, "got 5"),
            ({"consider_cold_start": False}, "got False"),
            ({"min_pos_test": 2, "min_items_pool": 4, "consider_cold_start": True}, "got 2"),
        ],
    )
    def test_an_option_that_leaves_nobody_is_named(self, rules, value):
        task = RankingTask(TRUTH, num_users=5, num_items=4, seen=SEEN[:, :0])
        if rules.get("min_items_pool") == 4:
            task = task_of_mixed_users()
        constant = torch.ones(5, 4)
        constant[4] = torch.rand(4)
        option = next(iter(rules))
        convention = conventions.Convention(
            "mine", "me", None, population=conventions.Population(**rules)
        )
        with pytest.raises(ValueError, match=rf"^'{option}' of the population .*\({value}, which"):
            evaluate(constant, task, "mrr@2", convention=convention)

    def test_nobody_with_scores_that_differ_leaves_what_is_undefined(self):
        task = RankingTask([[0, 1], [0, 2]], num_users=2, num_items=3)
        with pytest.warns(UserWarning, match="'constant_scores' of the population leaves no user"):
            result = evaluate(torch.zeros(3), task, "recall@1", convention="recometrics")
        assert math.isnan(result["recall@1"])
        assert result.per_user["recall@1"].isnan().all()
        assert (result.user_counts.num_evaluated, result.user_counts.num_left_out) == (0, 2)

    def test_a_preset_that_leaves_nobody_says_so(self):
        task = RankingTask(torch.tensor([[0], [0]]), num_users=1, num_items=1)
        with pytest.raises(ValueError, match=r"^'min_items_pool' .*\(got 2, which"):
            evaluate(torch.rand(1), task, "mrr@2", convention="recometrics")

    def test_users_who_have_seen_nothing_where_seen_items_are_not_left_out(self):
        task = RankingTask(TRUTH, num_users=5, num_items=4, seen=SEEN, exclude_seen=False)
        population = conventions.Population(consider_cold_start=False)
        convention = conventions.Convention("mine", "me", None, population=population)
        result = evaluate(self.scores, task, "mrr@2", convention=convention)
        assert (result.user_counts.num_evaluated, result.user_counts.num_left_out) == (2, 3)

    def test_wrong_rules_are_named(self):
        with pytest.raises(ValueError, match="'min_pos_test' needs to be a positive integer"):
            conventions.Population(min_pos_test=0)
        with pytest.raises(ValueError, match="'min_items_pool' needs to be a positive integer"):
            conventions.Population(min_items_pool=-1)
        with pytest.raises(ValueError, match=r"\['count', 'undefined'\] \(got 'skip'\)"):
            conventions.Population(few_candidates="skip")


@pytest.mark.parametrize("name", list(conventions.CONVENTIONS))
class TestValue:
    def test_it_can_be_hashed_and_compared(self, name):
        convention = conventions.get(name)
        same = replace(convention)
        assert same is not convention
        assert same == convention
        assert hash(same) == hash(convention)
        assert len({convention, same, *conventions.CONVENTIONS.values()}) == len(
            conventions.CONVENTIONS
        )
        assert replace(convention, note="changed") != convention

    def test_it_is_the_same_as_a_dictionary_and_through_json(self, name):
        convention = conventions.get(name)
        fields = convention.to_dict()
        assert set(fields) == {field.name for field in dataclasses.fields(convention)}
        population = {field.name for field in dataclasses.fields(conventions.Population)}
        assert set(fields["population"]) == population
        assert conventions.Convention.from_dict(fields) == convention
        read = conventions.Convention.from_dict(json.loads(json.dumps(fields)))
        assert read == convention
        assert hash(read) == hash(convention)


def test_no_field_of_a_convention_is_lost():
    convention = conventions.Convention(
        "mine",
        "a paper",
        {"map": {"normalizer": "k"}, "mrr": {}},
        without_cut_off=("mrr",),
        other_names={"hit_rate": "recall"},
        empty_target_action="pos",
        population=conventions.Population(
            min_pos_test=2,
            min_items_pool=3,
            consider_cold_start=False,
            constant_scores=False,
            few_candidates="undefined",
        ),
        ties="mean",
        note="a note",
    )
    for owner in (convention, convention.population):
        for field in dataclasses.fields(owner):
            # A field that has its default could be lost without being missed.
            assert getattr(owner, field.name) != default_of(field), field.name
    fields = json.loads(json.dumps(convention.to_dict()))
    assert conventions.Convention.from_dict(fields) == convention


def default_of(field):
    has_factory = field.default_factory is not dataclasses.MISSING
    return field.default_factory() if has_factory else field.default


class TestFrozen:
    def test_arguments_cannot_be_changed_for_everybody(self):
        rectools = conventions.get("rectools")
        with pytest.raises(TypeError, match="does not support item assignment"):
            rectools.metrics["ndcg"]["gain"] = "linear"
        with pytest.raises(TypeError, match="does not support item assignment"):
            rectools.metrics["ndcg"] = {}
        with pytest.raises(TypeError, match="does not support item assignment"):
            rectools.other_names["ndcg"] = "dcg"
        with pytest.raises(dataclasses.FrozenInstanceError):
            rectools.metrics = None
        assert str(rectools.resolve("ndcg@5")) == "ndcg(gain=binary,ideal=k)@5"

    def test_no_convention_can_be_added_or_replaced(self):
        with pytest.raises(TypeError, match="does not support item assignment"):
            conventions.CONVENTIONS["x"] = conventions.get("ranx")
        with pytest.raises(TypeError, match="support item deletion"):
            del conventions.CONVENTIONS["ranx"]

    def test_what_it_is_made_of_is_copied(self):
        metrics_of_mine = {"ndcg": {"gain": "binary"}}
        convention = conventions.Convention("mine", "me", metrics_of_mine)
        metrics_of_mine["ndcg"]["gain"] = "exponential"
        metrics_of_mine["recall"] = {}
        assert convention.metrics == {"ndcg": {"gain": "binary"}}


def test_a_name_instead_of_a_tuple_of_names_is_refused():
    with pytest.raises(TypeError, match="'without_cut_off' needs to be a tuple of names"):
        conventions.Convention("mine", "a paper", {"mrr": {}}, without_cut_off="mrr")


def test_names_may_be_spelled_in_other_ways():
    convention = conventions.Convention(
        "mine",
        "a paper",
        {"NDCG": {"gain": "binary"}, "RR": {}},
        without_cut_off=["rr"],
        other_names={"R-Precision": "P"},
    )
    assert convention.metrics == {"ndcg": {"gain": "binary"}, "mrr": {}}
    assert convention.without_cut_off == ("mrr",)
    assert convention.other_names == {"r_precision": "precision"}
    assert str(convention.resolve("Recip-Rank@3")) == "mrr"
    assert str(convention.resolve("ndcg@3")) == "ndcg(gain=binary)@3"


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"metrics": {"no": {}}}, "'metrics' needs to name known metrics"),
        ({"metrics": {"mrr": {}, "rr": {}}}, r"each metric once \(got \['mrr', 'rr'\]\)"),
        ({"metrics": {}, "without_cut_off": ["no"]}, "needs to name known metrics"),
        ({"metrics": {}, "other_names": {"no": "mrr"}}, "needs to name known metrics"),
        ({"metrics": {"ndcg": {"gain": "no"}}}, "'gain' needs to be one of"),
        ({"metrics": {}, "empty_target_action": "no"}, "'empty_target_action' needs to be one of"),
    ],
)
def test_wrong_fields_are_named(fields, message):
    with pytest.raises(ValueError, match=message):
        conventions.Convention("mine", "a paper", **fields)
