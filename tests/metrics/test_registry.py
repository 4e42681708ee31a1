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
from pyg_recmetrics.metrics.registry import parameter_of


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
        assert metrics.definition(name).summary.endswith(".")


def first_hit(ranked, k):
    return ranked.hits(k)


def function_named(name):
    """Another function of that name."""

    def function(ranked, k):
        return ranked.hits(k) * 0

    function.__name__ = function.__qualname__ = name
    return function


class TestNames:
    @pytest.mark.parametrize(
        ("name", "aliases", "taken", "owner"),
        [
            ("recall", (), "recall", "recall"),
            ("coverage", (), "coverage", "coverage"),
            ("hr", (), "hr", "hit_rate"),
            ("item_coverage", (), "item_coverage", "coverage"),
            ("new", ("other", "p"), "p", "precision"),
            ("new", ("recall",), "recall", "recall"),
        ],
    )
    @pytest.mark.parametrize(
        "register", [metrics.register, lambda **more: metrics.register_aggregate(len, **more)]
    )
    def test_those_that_are_taken_are_refused(
        self, definitions, register, name, aliases, taken, owner
    ):
        before = dict(definitions)
        message = rf"new \(got '{taken}', which means '{owner}', a metric of 'pyg_recmetrics\."
        with pytest.raises(ValueError, match=message):
            register(aliases=aliases)(function_named(name))
        assert definitions == before

    def test_a_cell_of_a_notebook_can_be_run_again(self, definitions):
        cell = (
            "@metrics.register(aliases=('fh', 'first'))\n"
            "def first_hit(ranked, k):\n"
            "    return {worth} * ranked.hits(k).clamp(max=1)\n"
        )
        notebook = {"metrics": metrics, "__name__": "__main__"}
        ranked = RankedEdges.from_topk(torch.tensor([[1, 0]]), torch.tensor([[0], [0]]))
        for worth in (1.0, 0.5):
            exec(cell.format(worth=worth), notebook)
            assert metrics.parse("First@2")(ranked).tolist() == [worth]
        assert definitions["first_hit"].function is notebook["first_hit"]
        assert metrics.aliases()["fh"] == "first_hit"
        for other in ({"metrics": metrics, "__name__": "another"}, None):
            with pytest.raises(ValueError, match=r"got 'first_hit'.* a metric of '__main__'"):
                exec(cell.format(worth=1), other) if other else metrics.register()(first_hit)

    def test_all_lead_to_one_metric_in_any_case(self):
        found = [a for name in metrics.names() for a in metrics.definition(name).aliases]
        assert len({*found, *metrics.names()}) == len(found) + len(metrics.names())
        for other, name in (metrics.aliases() | {name: name for name in metrics.names()}).items():
            for spelled in (other, other.upper(), other.title(), other.replace("_", "-")):
                assert metrics.definition(spelled).name == name
        assert len(found) > 20

    def test_one_that_was_registered_wins_over_other_cases(self, definitions):
        for name, other in (("NDCG", "ndcg"), ("HR", "hit_rate")):
            made = metrics.register()(function_named(name))
            assert metrics.definition(name).function is made
            assert str(metrics.parse(f"{name}@2")) == f"{name}@2"
            assert metrics.definition(name.lower()).name == other
        assert metrics.definition("nDCG").name == "ndcg"

    @pytest.mark.parametrize(
        ("error", "options"),
        [
            (TypeError, {"aliases": "hit"}),
            (TypeError, {"aliases": ["first"]}),
            (TypeError, {"aliases": (1,)}),
            (ValueError, {"aliases": ("First",)}),
            (ValueError, {"aliases": ("first-hit",)}),
            (ValueError, {"aliases": ("",)}),
            (TypeError, {"needs": "items"}),
            (TypeError, {"range": 1.0}),
            (TypeError, {"range": first_hit}),
            (ValueError, {"range": (1.0, 0.0)}),
            (TypeError, {"higher_is_better": None}),
        ],
    )
    def test_wrong_descriptions_are_named(self, error, options):
        for register in (
            metrics.register,
            lambda **given: metrics.register_aggregate(len, **given),
        ):
            with pytest.raises(error, match=f"'{next(iter(options))}' needs to"):
                register(**options)


@pytest.mark.parametrize(
    "hint",
    [
        Annotated[Literal["a", "b"], {"a": "first"}],
        Annotated[str, {}],
        Annotated[str, "words"],
        Annotated[float, "words", range(1, 5)],
        Annotated[int, "words", (1, 5)],
        Annotated[float, "words", (1, 5)],
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
        at_most: Annotated[float, "at most {}"] | None = None,
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
        metric = metrics.parse("scaled_hits(times=3,at_most=0.75)@2")
        assert str(metric) == "scaled_hits(times=3,at_most=0.75)@2"
        assert metric.describe() == "scaled_hits@2 (times 0.5, 3 times over, at most 0.75)"
        assert metric(self.ranked).tolist() == [0.75]
        assert scaled_hits(self.ranked, 2, times=3).tolist() == [1.5]

    def test_their_classes_take_them(self, scaled_hits):
        metric = modules.ScaledHits(k=2, by=0.25, negated=True)
        metric.update(torch.tensor([[1, 0]]), torch.tensor([[0], [0]]))
        assert metric.compute() == -0.25
        assert repr(metric) == "ScaledHits(k=2, by=0.25, negated=True)"
        with pytest.raises(ValueError, match="'by' needs to be a number between 0 and 1"):
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


RANKED = rank(torch.zeros(9), RankingTask([[0], [1]], num_users=1, num_items=9), k=4)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: metrics.recall(RANKED, k=5), ValueError, r"'k' .* at most 4, .*\(got 5\)"),
        (lambda: metrics.ndcg(RANKED, 2, ideal_k=5), ValueError, "'ideal_k' .* at most 4, "),
        (lambda: metrics.ndcg(RANKED, 2, ideal_k=1), ValueError, "'ideal_k' .* at least k=2"),
        (lambda: metrics.mrr(RANKED), ValueError, "'k' needs to be given"),
        (lambda: metrics.recall(RANKED, k=1.5), ValueError, "'k' needs to be a positive integer"),
        (lambda: metrics.recall(RANKED, None), ValueError, "'k' needs to be a positive integer"),
        (lambda: metrics.recall(torch.ones(1, 1), k=1), TypeError, "'ranked' needs to be 'Ranked"),
        (lambda: metrics.ndcg(RANKED, 1, gain="cubic"), ValueError, "one of .*'exp.*'cubic'"),
        (lambda: metrics.recall(RANKED), TypeError, "missing a required argument: 'k'"),
        (lambda: metrics.recall(RANKED, 2, k=2), TypeError, "multiple values for argument 'k'"),
        (lambda: metrics.f1(RANKED, ranked=RANKED, k=2), TypeError, "multiple values"),
        (lambda: metrics.f1(RANKED, 2, 3), TypeError, "too many positional arguments"),
        (lambda: metrics.f1(RANKED, 2, gain="a"), TypeError, "unexpected keyword argument 'gain'"),
        (lambda: metrics.register()(lambda k: k), TypeError, "needs to take 'ranked' first"),
    ],
)
def test_arguments_of_calls_are_checked(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_arguments_may_come_in_any_way():
    for ranked, k in ((RANKED, 4), (RANKED, torch.tensor(4)), (RANKED, np.int64(4))):
        assert metrics.recall(ranked, k).tolist() == [1]
        assert metrics.recall(k=k, ranked=ranked).tolist() == [1]


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
        ("percentage", 101, ValueError, r"'x' needs to be in range\(1, 101\) \(got 101\)"),
        ("fraction", 0.0, ValueError, r"'x' needs to be a number between 0 and 1 \(got 0.0\)"),
        ("fraction", 1, ValueError, "needs to be a number between 0 and 1"),
        ("fraction", float("nan"), ValueError, "got nan"),
        ("fraction", "half", ValueError, "got 'half'"),
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
    words = {"b": "more", "a": "", "c": "of another metric"}
    assert list(parameter("a", Annotated[Literal["a", "b"], words]).words) == ["a", "b"]
    assert list(KINDS["flag"].words) == [False, True]
    for kind in ("cut_off", "integer", "percentage", "fraction"):
        assert KINDS[kind].words == {}
