"""The registry of metrics."""

from functools import partial
from typing import Annotated, Literal

import numpy as np
import pytest
import torch

from pyg_recmetrics import (
    Catalogue,
    EvaluationResult,
    Evaluator,
    RankedEdges,
    RankingTask,
    conventions,
    metrics,
    modules,
    rank,
)


def test_names_are_those_of_public_functions():
    for name in metrics.names():
        assert getattr(metrics, name).__name__ == name
        assert name in metrics.__all__
        defined = metrics.definition(name)
        assert defined.summary.endswith(".")
        assert ("lower is better" in defined.summary) != defined.higher_is_better


def first_hit(ranked, k):
    return ranked.hits(k)


def function_named(name):
    """Another function of that name."""

    def function(ranked, k):
        return ranked.hits(k) * 0

    function.__name__ = function.__qualname__ = name
    return function


class TestNames:
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
            assert str(modules.FirstHit(k=2)) == "FirstHit(k=2)"
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


@pytest.fixture
def scaled_hits(definitions):
    """A metric with a parameter of every kind that has words."""

    @metrics.register(range=(-torch.inf, torch.inf))
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
        assert metrics.parse("scaled_hits(at_most=0.25)@2")(self.ranked).tolist() == [0.25]
        assert metrics.parse("scaled_hits(Negated=FALSE)@2").all_arguments["negated"] is False
        assert scaled_hits(self.ranked, 2, np.float64(0.25)).tolist() == [0.25]
        by_default = metrics.parse("scaled_hits@2").describe()
        assert by_default == "scaled_hits@2 (times 0.5, 1 times over)"

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


TASK = RankingTask([[0], [1]], num_users=1, num_items=9)
RANKED, FULL = rank(torch.zeros(9), TASK, k=4), rank(torch.arange(9.0), TASK, full=True)
LISTS = RankedEdges.from_topk(torch.tensor([[0, 1]]), torch.tensor([[0], [1]]), torch.tensor([5]))
NO_CANDIDATE = rank(
    torch.arange(9.0),
    RankingTask([[0, 0], [1, 2]], num_users=1, num_items=9, candidates=[[0], [1]]),
    full=True,
)


def function_of(hint):
    """A function with a parameter of that annotation."""

    def mine(ranked, k: int, x: hint = "a"):
        return ranked.hits(k)

    return mine


def described(**options):
    return lambda: metrics.register(**options)


#: What is called, and what is wrong about it.
ERRORS = [
    (lambda: metrics.recall(RANKED, k=5), ValueError, r"'k' .* at most 4, .*\(got 5\)"),
    (lambda: metrics.ndcg(RANKED, 2, ideal_k=1), ValueError, "'ideal_k' .* at least k=2"),
    (lambda: metrics.ndcg(FULL, ideal="k"), ValueError, "'ideal' can only be 'k' if 'k' is given"),
    (lambda: metrics.mrr(RANKED), ValueError, "'k' needs to be given"),
    (lambda: metrics.recall(torch.ones(1, 1), k=1), TypeError, "'ranked' needs to be 'Ranked"),
    (lambda: metrics.recall(RANKED), TypeError, "missing a required argument: 'k'"),
    (lambda: metrics.f1(RANKED, 2, gain="a"), TypeError, "takes no 'gain'"),
    (lambda: metrics.pr_auc(LISTS), ValueError, r"scores or embeddings \(got only lists\)"),
    (
        lambda: metrics.mean_rank(NO_CANDIDATE),
        ValueError,
        r"missing='drop'\) .* \(got 1 edge without a rank\)",
    ),
    (lambda: metrics.fall_out(LISTS, 1), ValueError, r"number of candidates \(got only lists"),
    (lambda: metrics.coverage(LISTS, 1), ValueError, "'coverage@1' needs the number of items: "),
    (
        lambda: metrics.gini(RANKED.with_catalogue(Catalogue(9)), 1),
        ValueError,
        "lists .*: evaluate with 'keep_items",
    ),
    (lambda: Evaluator(TASK, "diversity@2"), ValueError, "'diversity@2' needs the category of"),
    (lambda: metrics.err(LISTS), ValueError, r"at least the largest weight, 5 \(got 4\)"),
    (lambda: metrics.rbp(FULL, p=1.0), ValueError, r"'p' needs to be .* between 0 and 1 \(got 1"),
    (lambda: metrics.tail_share(FULL, 1, head=101), ValueError, r"'head' .* range\(1, 101\)"),
    (lambda: metrics.register()(lambda k: k), TypeError, "needs to take 'ranked' first"),
    (described(aliases="hit"), TypeError, "'aliases' needs to be a tuple of strings"),
    (described(aliases=("first-hit",)), ValueError, "'aliases' needs to hold names in lower"),
    (described(range=(1.0, 0.0)), ValueError, "'range' needs to be in ascending order"),
    (
        lambda: metrics.register_aggregate(len, aliases=("p",))(function_named("new")),
        ValueError,
        r"new \(got 'p', which means 'precision', a metric of 'pyg_recmetrics\.",
    ),
    (lambda: metrics.register()(function_named("hr")), ValueError, "got 'hr', which means 'hit_ra"),
    *(
        (lambda hint=hint: metrics.register()(function_of(hint)), TypeError, "'x' of 'mine' needs")
        for hint in (
            Annotated[Literal["a", "b"], {"a": "first"}],
            Annotated[int, "words", (1, 5)],
            Literal["a", "b"],
        )
    ),
    (lambda: metrics.register()(lambda ranked, x: x), TypeError, "'x' of .* needs a default"),
    (lambda: metrics.register()(lambda ranked, x=1: x), TypeError, r"'x' .*\(got no annotation\)"),
    *(
        (lambda spelling=spelling: metrics.parse(spelling), ValueError, message)
        for spelling, message in {
            "ndgc@20": r"known metrics, such as \['ndcg'\] \(got 'ndgc'",
            "recall": "'recall' needs a cut-off, as in 'recall@20'",
            "r_precision@5": "'r_precision' has no cut-off",
            "recall@20@30": "name@k",
            "ndcg(base=2)@10": r"'ndcg' has the arguments \['gain', .*\(got 'base'\)",
            "ndcg(exponential)@10": "'name=value'",
            "ndcg(ideal_k=x)@10": r"'ideal_k' needs to be a positive integer \(got 'x'\)",
            "map(normalizer=recall)@10": r"\['min', 'R', 'k', 'hits'\] \(got 'recall'\)",
        }.items()
    ),
]


@pytest.mark.parametrize(("call", "error", "message"), ERRORS)
def test_what_is_wrong_is_said_and_registers_nothing(call, error, message):
    before = metrics.names()
    with pytest.raises(error, match=message):
        call()
    assert metrics.names() == before


#: What a function of one's own may return, by what is wrong with it.
RETURNED = {
    "a tensor of shape": lambda ranked: ranked.rank.double(),
    r"on cpu \(got a tensor of shape \[2\] on meta": lambda ranked: torch.ones(2, device="meta"),
    r"\(got list\)": lambda ranked: [1.0, 1.0],
    r"numbers \(got booleans\)": lambda ranked: ranked.hits(2) > 0,
    r"'range' of 'new' .* from 0 to 1 \(got 2\)": lambda ranked: ranked.hits(2).double(),
}


@pytest.mark.parametrize("message", RETURNED)
def test_a_metric_of_ones_own_returns_what_it_declares(definitions, message):
    def new(ranked):
        return RETURNED[message](ranked)

    ranked = RankedEdges.from_topk(torch.tensor([[1, 0]] * 2), torch.tensor([[0, 0, 1], [0, 1, 0]]))
    of_all = metrics.register_aggregate(lambda *_: torch.full((), 2.0), needs=())(lambda x: x)
    for call, wanted in ((metrics.register()(new), message), (partial(of_all, k=1), "'range' of")):
        with pytest.raises(ValueError, match=wanted):
            call(ranked)


def test_arguments_may_come_in_any_way():
    for ranked, k in ((RANKED, 4), (RANKED, torch.tensor(4)), (RANKED, np.int64(4))):
        assert metrics.recall(ranked, k).tolist() == [1]
        assert metrics.recall(k=k, ranked=ranked).tolist() == [1]


@pytest.mark.parametrize("name", metrics.names())
def test_docstrings_say_what_a_reader_needs(name):
    text = getattr(metrics, name).__doc__
    for section in (".. math::", "Args:", "Returns:", "NaN", "Source:", "Example:"):
        assert section in text, f"{name} lacks {section}"
