"""The registry of metrics."""

import json
from typing import Annotated, Literal

import numpy as np
import pytest
import torch

from pyg_recmetrics import (
    EvaluationResult,
    RankedEdges,
    RankingTask,
    conventions,
    metrics,
    modules,
    rank,
)
from pyg_recmetrics.metrics import registry
from pyg_recmetrics.metrics.registry import HalfOpen, parameter_of


@pytest.fixture
def definitions(monkeypatch):
    """The registry as a copy, so that what a test registers is forgotten."""
    copied = dict(registry._DEFINITIONS)
    monkeypatch.setattr(registry, "_DEFINITIONS", copied)
    return copied


def test_names_are_those_of_public_functions():
    for name in metrics.names():
        assert getattr(metrics, name).__name__ == name
        assert name in metrics.__all__
        assert metrics.definition(name).docstring.summary.endswith(".")


class TestNamesAreTaken:
    def test_another_function_of_a_known_name_is_refused(self, definitions):
        before = dict(definitions)

        def recall(ranked, k):
            return ranked.hits(k) * 0

        message = r"'recall' is already registered by 'pyg_recmetrics\.metrics\.accuracy'"
        with pytest.raises(ValueError, match=message):
            metrics.register()(recall)
        assert definitions == before
        assert metrics.definition("recall").function is metrics.recall

    def test_so_is_a_metric_of_all_users_together(self, definitions):
        before = dict(definitions)

        def coverage(state):
            return state.sum()

        def state(ranked, k):
            return ranked.hits(k)

        with pytest.raises(ValueError, match=r"'coverage' is already registered by .*beyond_acc"):
            metrics.register_aggregate(state)(coverage)
        assert definitions == before
        assert metrics.definition("coverage").function is metrics.coverage

    def test_a_function_of_the_same_module_but_another_place_is_another_one(self, definitions):
        def define():
            @metrics.register()
            def first_hit(ranked, k):
                return ranked.hits(k)

            return first_hit

        first = define()

        def first_hit(ranked, k):
            return ranked.hits(k) * 2

        with pytest.raises(ValueError, match="'first_hit' is already registered"):
            metrics.register()(first_hit)
        assert definitions["first_hit"].function is first

    def test_a_cell_of_a_notebook_can_be_run_again(self, definitions):
        cell = (
            "@metrics.register()\n"
            "def first_hit(ranked, k):\n"
            "    return {worth} * ranked.hits(k).clamp(max=1)\n"
        )
        notebook = {"metrics": metrics, "__name__": "__main__"}
        ranked = RankedEdges.from_topk(torch.tensor([[1, 0]]), torch.tensor([[0], [0]]))
        for worth in (1.0, 0.5):
            exec(cell.format(worth=worth), notebook)
            assert metrics.parse("first_hit@2")(ranked).tolist() == [worth]
        assert definitions["first_hit"].function is notebook["first_hit"]
        with pytest.raises(ValueError, match="'first_hit' is already registered by '__main__'"):
            exec(cell.format(worth=1), {"metrics": metrics, "__name__": "another_notebook"})


class TestAliases:
    def test_each_leads_to_its_metric(self):
        for name in metrics.names():
            for alias in metrics.definition(name).aliases:
                assert metrics.aliases()[alias] == name
                assert metrics.definition(alias) is metrics.definition(name)
                assert metrics.definition(alias.upper().replace("_", "-")).name == name
        assert len(metrics.aliases()) > 20

    def test_none_is_a_name_or_an_alias_of_two_metrics(self):
        aliases = [a for name in metrics.names() for a in metrics.definition(name).aliases]
        assert len(set(aliases)) == len(aliases)
        assert not set(aliases) & set(metrics.names())

    def test_names_do_not_depend_on_case_or_dashes(self):
        for name in metrics.names():
            for spelled in (name.upper(), name.title(), name.replace("_", "-")):
                assert metrics.definition(spelled).name == name

    def test_a_name_that_is_an_alias_is_refused(self, definitions):
        before = dict(definitions)

        def hr(ranked, k):
            return ranked.hits(k)

        message = r"'hr' is already registered as an alias of 'hit_rate', a metric of 'pyg_rec"
        with pytest.raises(ValueError, match=message):
            metrics.register()(hr)

        def item_coverage(state):
            return state.sum()

        with pytest.raises(ValueError, match="'item_coverage' is already registered as an alias"):
            metrics.register_aggregate(lambda ranked, k: ranked.hits(k))(item_coverage)
        assert definitions == before

    @pytest.mark.parametrize(("alias", "owner"), [("p", "precision"), ("recall", "recall")])
    def test_an_alias_that_is_taken_is_refused(self, definitions, alias, owner):
        before = dict(definitions)

        def first_hit(ranked, k):
            return ranked.hits(k)

        message = rf"'aliases' needs .* not taken \(got '{alias}', which means '{owner}', a metric"
        with pytest.raises(ValueError, match=message):
            metrics.register(aliases=("first", alias))(first_hit)
        assert definitions == before

    @pytest.mark.parametrize(
        ("aliases", "error"),
        [
            ("hit", TypeError),
            (["first"], TypeError),
            ((1,), TypeError),
            (("First",), ValueError),
            (("first-hit",), ValueError),
            (("",), ValueError),
        ],
    )
    def test_wrong_aliases_are_named(self, aliases, error):
        with pytest.raises(error, match="'aliases' needs to"):
            metrics.register(aliases=aliases)
        with pytest.raises(error, match="'aliases' needs to"):
            metrics.register_aggregate(len, aliases=aliases)

    def test_a_metric_of_ones_own_has_them_too(self, definitions):
        def define():
            @metrics.register(aliases=("first", "fh"))
            def first_hit(ranked, k: int):
                return ranked.hits(k)

            return first_hit

        define()
        define()  # as by a cell of a notebook that runs again
        assert str(metrics.parse("First@3")) == "first_hit@3"
        assert metrics.aliases()["fh"] == "first_hit"

    def test_a_name_that_was_registered_wins_over_other_cases(self, definitions):
        @metrics.register()
        def NDCG(ranked, k: int):  # noqa: N802
            return ranked.hits(k)

        @metrics.register()
        def HR(ranked, k: int):  # noqa: N802
            return ranked.hits(k)

        assert metrics.definition("NDCG").function is NDCG
        assert metrics.definition("HR").function is HR
        assert metrics.parse("NDCG@2") != metrics.parse("ndcg@2")
        assert str(metrics.parse("NDCG@2")) == "NDCG@2"
        assert metrics.definition("ndcg").function is metrics.ndcg
        assert metrics.definition("nDCG").name == "ndcg"
        assert metrics.definition("hr").name == metrics.definition("Hr").name == "hit_rate"


@pytest.mark.parametrize(
    "hint",
    [
        Annotated[Literal["a", "b"], {"a": "first"}],
        Annotated[str, {}],
        Annotated[str, "words"],
        Annotated[float, "words", range(1, 5)],
        Annotated[int, "words", (1, 5)],
        Literal["a", "b"],
        str,
        float,
        bool,
    ],
)
def test_values_need_words_that_say_what_they_mean(definitions, hint):
    def first_hit(ranked, k, *, gain="a"):
        return ranked.hits(k)

    first_hit.__annotations__["gain"] = hint
    with pytest.raises(TypeError, match="'gain' of 'first_hit' needs words for every choice"):
        metrics.register()(first_hit)
    assert "first_hit" not in definitions


@pytest.fixture
def scaled_hits(definitions):
    """A metric with a parameter of every kind that has words."""

    @metrics.register(range=(0.0, torch.inf))
    def scaled_hits(
        ranked,
        k: int,
        by: Annotated[float, "times {}"] = 0.5,
        times: Annotated[int, "{} times over"] = 1,
        negated: Annotated[bool, "with the sign turned"] = False,
        depth: int | None = None,
        at_most: Annotated[float, "at most {}", HalfOpen(0, 1), "times"] | None = None,
    ):
        assert type(k) is type(times) is int
        assert type(by) is float
        assert type(negated) is bool
        scaled = ranked.hits(k) * by * times
        scaled = scaled if at_most is None else scaled.clamp(max=at_most)
        return scaled * (-1 if negated else 1)

    return scaled_hits


class TestKindsOfParameters:
    ranked = RankedEdges.from_topk(torch.tensor([[1, 0]]), torch.tensor([[0], [0]]))

    def test_they_are_read_printed_and_passed_on(self, scaled_hits):
        metric = metrics.parse("scaled_hits(negated=true, by=.25, times=3, depth=7)@2")
        assert str(metric) == "scaled_hits(by=0.25,times=3,negated=True,depth=7)@2"
        assert metrics.parse(str(metric)) == metric
        assert hash(metrics.parse(str(metric))) == hash(metric)
        assert metric.describe() == (
            "scaled_hits@2 (times 0.25, 3 times over, with the sign turned, depth 7)"
        )
        assert metric.depth == 7
        assert metric(self.ranked).tolist() == [-0.75]
        assert scaled_hits(self.ranked, 2, negated=True).tolist() == [-0.5]
        by_default = metrics.parse("scaled_hits@2").describe()
        assert by_default == "scaled_hits@2 (times 0.5, 1 times over)"

    def test_a_number_need_not_be_given(self, scaled_hits):
        metric = metrics.parse("scaled_hits(times=3,at_most=1)@2")
        assert str(metric) == "scaled_hits(times=3,at_most=1.0)@2"
        assert metric.describe() == "scaled_hits@2 (times 0.5, 3 times over, at most 1.0)"
        assert metric(self.ranked).tolist() == [1]
        assert scaled_hits(self.ranked, 2, times=3).tolist() == [1.5]

    def test_one_that_refines_another_needs_it(self, scaled_hits):
        message = r"'at_most' needs a 'times' to go with it \(got 1 with at_most=0.5\)"
        for arguments in ({"at_most": 0.5}, {"at_most": 0.5, "times": 1}):
            with pytest.raises(ValueError, match=message):
                scaled_hits(self.ranked, 2, **arguments)
            with pytest.raises(ValueError, match=message):
                metrics.Metric("scaled_hits", 2, tuple(arguments.items()))

    def test_they_are_checked(self, scaled_hits):
        for arguments, error, message in (
            ({"by": 1.0}, ValueError, r"'by' needs to be in \(0, 1\) \(got 1.0\)"),
            ({"at_most": 1.1}, ValueError, r"'at_most' needs to be in \(0, 1\] \(got 1.1\)"),
            ({"at_most": 0.0}, ValueError, r"'at_most' needs to be in \(0, 1\] \(got 0.0\)"),
            ({"times": 0.5}, ValueError, "'times' needs to be a positive integer"),
            ({"negated": 1}, TypeError, "'negated' needs to be a boolean"),
        ):
            with pytest.raises(error, match=message):
                scaled_hits(self.ranked, 2, **arguments)
            with pytest.raises(error, match=message):
                metrics.Metric("scaled_hits", 2, tuple(arguments.items()))

    def test_their_classes_take_them(self, scaled_hits):
        metric = modules.ScaledHits(k=2, by=0.25, negated=True)
        metric.update(torch.tensor([[1, 0]]), torch.tensor([[0], [0]]))
        assert metric.compute() == -0.25
        assert repr(metric) == "ScaledHits(k=2, by=0.25, negated=True)"
        with pytest.raises(ValueError, match="'by' needs to be in"):
            modules.ScaledHits(k=2, by=2.0)

    def test_results_are_saved_with_them(self, scaled_hits, tmp_path):
        names = ["scaled_hits(by=0.1,negated=True)@2", "scaled_hits@1"]
        arguments = {"scaled_hits": {"times": 3, "by": 0.7}}
        convention = conventions.Convention("mine", "me", arguments)
        result = EvaluationResult(self.ranked, names, convention=convention)
        result.save(tmp_path / "result")
        loaded = EvaluationResult.load(tmp_path / "result")
        assert dict(loaded) == dict(result) == {names[0]: 3 * -0.1, names[1]: 0}
        assert loaded.convention == convention


def test_a_cut_off_below_what_was_ranked_is_an_error():
    task = RankingTask(torch.tensor([[0], [1]]), num_users=1, num_items=9)
    ranked = rank(torch.zeros(9), task, k=4)
    assert metrics.recall(ranked, k=4).tolist() == [1]
    with pytest.raises(ValueError, match=r"'k' needs to be at most 4, .*\(got 5\)"):
        metrics.recall(ranked, k=5)


@pytest.mark.parametrize("k", [0, -3, 1.5, True, "3"])
def test_a_cut_off_that_is_no_positive_integer_is_an_error(k):
    ranked = RankedEdges.from_topk(torch.tensor([[0]]), torch.tensor([[0], [0]]))
    with pytest.raises(ValueError, match="'k' needs to be a positive integer"):
        metrics.recall(ranked, k=k)


def test_other_arguments_are_checked():
    ranked = RankedEdges.from_topk(torch.tensor([[0]]), torch.tensor([[0], [0]]))
    with pytest.raises(TypeError, match="'ranked' needs to be 'RankedEdges'"):
        metrics.recall(torch.tensor([[0]]), k=1)
    with pytest.raises(ValueError, match=r"'gain' needs to be one of .*'exponential'.*'cubic'"):
        metrics.ndcg(ranked, 1, gain="cubic")


@pytest.mark.parametrize("name", metrics.names())
def test_docstrings_say_what_a_reader_needs(name):
    text = getattr(metrics, name).__doc__
    for section in (".. math::", "Args:", "Returns:", "NaN", "Source:", "Example:"):
        assert section in text, f"{name} lacks {section}"


def parameter(default, hint):
    return parameter_of("x", default, hint, "first_hit")


KINDS = {
    "choice": parameter("a", Annotated[Literal["a", "Two-b"], {"a": "first", "Two-b": "second"}]),
    "cut_off": parameter(3, int),
    "optional": parameter(None, int | None),
    "integer": parameter(3, Annotated[int, "{} in all"]),
    "percentage": parameter(80, Annotated[int, "{} percent", range(1, 101)]),
    "fraction": parameter(0.8, Annotated[float, "as likely as {}"]),
    "real": parameter(2.0, Annotated[float, "to the power of {}", (-1, 10)]),
    "flag": parameter(False, Annotated[bool, "it holds"]),
}


@pytest.mark.parametrize(
    ("kind", "text", "value", "words"),
    [
        ("choice", "a", "a", "first"),
        ("choice", "A", "a", "first"),
        ("choice", "two_B", "Two-b", "second"),
        ("cut_off", "17", 17, "x 17"),
        ("integer", "17", 17, "17 in all"),
        ("percentage", "100", 100, "100 percent"),
        ("fraction", "0.80", 0.8, "as likely as 0.8"),
        ("fraction", "1e-5", 1e-05, "as likely as 1e-05"),
        ("real", "-0.5", -0.5, "to the power of -0.5"),
        ("flag", "TRUE", True, "it holds"),
        ("flag", "False", False, ""),
    ],
)
def test_values_are_read_and_said(kind, text, value, words):
    parameter = KINDS[kind]
    read = parameter.check(parameter.read(text))
    assert (type(read), read) == (type(value), value)
    assert parameter.read(str(read)) == read
    assert parameter.describe(read) == words
    assert parameter.check(json.loads(json.dumps(read))) is read or read == value


@pytest.mark.parametrize(
    ("kind", "value", "error", "message"),
    [
        ("choice", "c", ValueError, r"'x' needs to be one of \['a', 'Two-b'\] \(got 'c'\)"),
        ("choice", "A", ValueError, "got 'A'"),  # only a spelling may be in upper case
        ("choice", None, ValueError, "got None"),
        ("cut_off", 0, ValueError, "'x' needs to be a positive integer"),
        ("cut_off", "many", ValueError, "got 'many'"),
        ("cut_off", None, ValueError, "got None"),
        ("cut_off", True, ValueError, "got True"),
        ("integer", 1.5, ValueError, "'x' needs to be a positive integer"),
        ("integer", None, ValueError, "got None"),
        ("percentage", 101, ValueError, r"'x' needs to be an integer from 1 to 100 \(got 101\)"),
        ("fraction", 0.0, ValueError, r"'x' needs to be in \(0, 1\) \(got 0.0\)"),
        ("fraction", 1, ValueError, r"needs to be in \(0, 1\)"),
        ("fraction", float("nan"), ValueError, "'x' needs to be a finite number"),
        ("fraction", "half", ValueError, "got 'half'"),
        ("real", 10, ValueError, r"'x' needs to be in \(-1, 10\) \(got 10\)"),
        ("real", "two", ValueError, "got 'two'"),
        ("flag", 1, TypeError, r"'x' needs to be a boolean \(got 1\)"),
        ("flag", "yes", TypeError, "got 'yes'"),
        ("flag", None, TypeError, "got None"),
    ],
)
def test_other_values_are_named(kind, value, error, message):
    with pytest.raises(error, match=message):
        KINDS[kind].check(value)


def test_only_an_optional_cut_off_can_be_left_open():
    assert KINDS["optional"].check(None) is None
    assert KINDS["optional"].check(5) == 5


def test_a_number_is_passed_on_as_pythons_own():
    assert type(KINDS["fraction"].check(np.float64(0.5))) is float


def test_all_values_are_known_where_they_are_few():
    assert list(KINDS["choice"].words) == ["a", "Two-b"]
    assert list(KINDS["flag"].words) == [False, True]
    assert list(parameter(True, Annotated[bool, "it holds"]).words) == [True, False]
    assert not any(KINDS[kind].words for kind in ("cut_off", "integer", "percentage", "real"))


def test_some_words_of_a_choice_need_more():
    words, needed = {"a": "", "b": "more"}, {"b": "seen"}
    assert parameter("a", Annotated[Literal["a", "b"], words, needed]).needed == needed
    assert KINDS["choice"].needed == KINDS["real"].needed == {}
