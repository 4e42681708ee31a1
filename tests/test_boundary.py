"""The boundary of the package: what odd arguments are told, in one table.

An odd argument is never accepted in silence, and never reaches torch: its error names the argument
and what it needs to be. Each row is a callable, the arguments that make it odd, and the error.
"""

import re

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from pyg_recmetrics import (
    Catalogue,
    EvaluationResult,
    Evaluator,
    PairScorer,
    RankedEdges,
    RankingTask,
    compare,
    conventions,
    datasets,
    evaluate,
    metrics,
    modules,
    rank,
)

TRUTH = torch.tensor([[0, 1, 2], [2, 0, 1]])
SCORES = torch.tensor([[0.1, 0.9, 0.5, 0.2], [0.7, 0.2, 0.3, 0.1], [0.4, 0.3, 0.2, 0.1]])
LISTS = torch.tensor([[2, 0, 1], [1, 0, 3], [3, 1, 2]])
TASK = RankingTask(TRUTH, num_users=3, num_items=4)
CATALOGUE = Catalogue(4, seen=TRUTH, item_embedding=torch.eye(4), item_category=torch.arange(4))
RANKED = rank(SCORES, TASK, full=True, keep_items=True).with_catalogue(CATALOGUE)
RESULT = EvaluationResult(RANKED, "recall@2", task=TASK)
DATA = Data(
    num_nodes=5,
    edge_index=torch.tensor([[0, 2, 1, 3], [2, 0, 3, 1]]),
    edge_label_index=torch.tensor([[0, 1], [3, 4]]),
)


def large_ids(largest):
    return torch.tensor([[0, 1, 2], [largest, 0, 1]])


def table():
    """Rows of a callable, its arguments, the type of the error, and a part of its message."""
    yield from of_integers()
    yield from of_booleans()
    yield from of_tensors()
    yield from of_words()
    yield from of_metrics()
    yield from of_options()


def of_integers():
    large = "needs to be less than 2**53"
    for k in (2**53, 10**400):
        yield metrics.Metric, ("f1", k), ValueError, large
        yield metrics.parse, (f"recall@{k}",), ValueError, large
        yield metrics.parse, (f"ndcg(ideal_k={k})@5",), ValueError, "'ideal_k' needs to be"
        yield metrics.curve, (RANKED, "recall", k), ValueError, large
        yield metrics.precision_recall_curve, (RANKED, k), ValueError, large
        yield metrics.recall_at_fixed_precision, (RANKED, 0.5, k), ValueError, large
        yield modules.PrecisionRecallCurve, (k,), ValueError, large
        yield modules.Recall, (k,), ValueError, large
        yield rank, {"recommender": SCORES, "data": TASK, "k": k}, ValueError, large
        yield Catalogue, (k,), ValueError, large
        yield evaluate, {**EVALUATION, "batch_size": k}, ValueError, large
    for size in (0, -1, 2.0):
        for name in ("k", "batch_size"):
            message = f"'{name}' needs to be a positive integer"
            yield rank, {"recommender": SCORES, "data": TASK, name: size}, ValueError, message
        for name in ("num_users", "num_items"):
            message = f"'{name}' needs to be a positive integer"
            yield datasets.synthetic_interactions, {name: size}, ValueError, message
    few = {"num_items": 10, "mean_degree": 6}
    yield datasets.synthetic_interactions, few, ValueError, "'mean_degree' needs to be in [3, "
    yield metrics.parse, ("recall@" + "9" * 5000,), ValueError, "name@k"
    yield metrics.parse, (f"ndcg(ideal_k={'9' * 5000})@5",), ValueError, "'ideal_k' needs to be"
    for name in metrics.names():
        if metrics.definition(name).has_cut_off:
            message = "'k' needs to be a positive integer (got '2')"
            yield getattr(metrics, name), (RANKED, "2"), ValueError, message
        if metrics.definition(name).needs_cut_off:
            message = "'k' needs to be a positive integer (got None)"
            yield getattr(metrics, name), (RANKED, None), ValueError, message
    yield datasets.synthetic_interactions, {"seed": -1}, ValueError, "'seed' needs to be"
    yield evaluate, {**EVALUATION, "seed": -1}, ValueError, "'seed' needs to be"
    yield EvaluationResult, {**RESULT_OF, "num_left_out": -1}, ValueError, "'num_left_out' needs"
    yield conventions.Population, {"min_pos_test": 2**63}, ValueError, large


def of_booleans():
    for value in ("no", 0, None, torch.tensor(True), np.bool_(True)):
        for call, arguments, name in (
            (rank, {"recommender": SCORES, "data": TASK}, "full"),
            (rank, {"recommender": SCORES, "data": TASK}, "progress"),
            (evaluate, EVALUATION, "progress"),
            (RankingTask.from_data, {"data": DATA, "num_users": 2}, "exclude_seen"),
            (metrics.precision_recall_curve, {"ranked": RANKED}, "adaptive_k"),
            (metrics.recall_at_fixed_precision, {"ranked": RANKED}, "adaptive_k"),
            (modules.PrecisionRecallCurve, {}, "adaptive_k"),
            (modules.Recall, {"k": 2}, "weighted"),
            (metrics.register, {}, "needs_all_ranks"),
            (metrics.register, {}, "higher_is_better"),
            (metrics.register, {}, "needs_truth"),
            (metrics.register, {}, "depends_on_order"),
            (metrics.register, {}, "depends_on_weight"),
            (metrics.register_aggregate, {"state": len}, "higher_is_better"),
            (conventions.Population, {}, "consider_cold_start"),
        ):
            yield call, {**arguments, name: value}, TypeError, f"'{name}' needs to be a boolean"
    for value in (None, 0, 1.5, "no"):
        yield evaluate, {**EVALUATION, "keep_items": value}, ValueError, "'keep_items' needs to be"


def of_tensors():
    weight, float8 = torch.ones(3), torch.ones(3).to(torch.float8_e5m2)
    dense, real = "needs to be a dense tensor", "needs to hold real numbers"
    floating = "needs to hold floating-point numbers of 16 to 64 bits"
    pairs = "needs the number of users times that of items to be less than 2**63"
    of_task = {"truth": TRUTH, "num_users": 3, "num_items": 4}
    nested = torch.nested.nested_tensor([TRUTH[0], TRUTH[1]], layout=torch.jagged)
    for name in ("truth", "seen", "candidates"):
        yield RankingTask, {**of_task, name: nested}, ValueError, f"'{name}' {dense}"
        cube = torch.ones(2, 2, 2).to_sparse()
        yield RankingTask, {**of_task, name: cube}, ValueError, f"'{name}' needs to be a matrix"
        strings = [["a", "b"], ["c", "d"]]
        yield RankingTask, {**of_task, name: strings}, ValueError, f"'{name}' needs to hold numbers"
    yield RankingTask, {**of_task, "weight": weight.to_sparse()}, ValueError, dense
    rated = {**of_task, "truth": torch.eye(3, 4).to_sparse(), "weight": weight}
    yield RankingTask, rated, ValueError, "'weight' needs to be None if 'truth' is a matrix"
    yield Catalogue, {"num_items": 4, "seen": nested}, ValueError, f"'seen' {dense}"
    yield Catalogue, {"num_items": 2**40, "seen": TRUTH + 2**40}, ValueError, pairs
    for name, value, message in (
        ("seen", [[0], [3]], "'seen' needs to hold item ids in [0, 3) (got 3)"),
        ("seen", [[2**62], [2]], "less than 2**63 (got 4611686018427387905 users and 3 items)"),
        ("item_embedding", torch.ones(2, 3), "shape [num_items=3, num_features]"),
        ("item_embedding", torch.ones(3, 2).long(), "'item_embedding' needs to hold floating"),
        ("item_embedding", torch.full((3, 2), torch.nan), "finite numbers (got 6"),
        ("item_category", torch.ones(4).long(), "[num_items=3] or"),
        ("item_category", torch.ones(3), "'item_category' needs to hold integers"),
        ("item_category", [0, -1, 2], "zero or more (got -1)"),
        ("item_category", torch.full((3, 2), torch.inf), "finite numbers (got 6"),
    ):
        yield Catalogue, {"num_items": 3, name: value}, ValueError, message
    from_topk = RankedEdges.from_topk
    yield from_topk, (LISTS.to_sparse(), TRUTH), ValueError, f"'pred_index_mat' {dense}"
    yield from_topk, (LISTS, nested), ValueError, f"'edge_label_index' {dense}"
    yield from_topk, (LISTS, TRUTH * 1.0), ValueError, "'edge_label_index' needs to hold integers"
    yield from_topk, (LISTS, TRUTH, weight * 1j), ValueError, f"'edge_label_weight' {real}"
    yield from_topk, (LISTS, large_ids(2**63 - 1)), ValueError, pairs
    yield from_topk, (LISTS, TRUTH, weight[:2]), ValueError, "'edge_label_weight' needs to"
    yield from_topk, (LISTS / 1, TRUTH), ValueError, "'pred_index_mat' needs to hold integers"
    yield from_topk, (LISTS[0], TRUTH), ValueError, "'pred_index_mat' needs to have shape [num"
    yield from_topk, (LISTS - 2, TRUTH), ValueError, "item ids, or -1 for none (got -2)"
    yield from_topk, (LISTS[:2], TRUTH), ValueError, "user ids in [0, 2) (got 2)"
    yield from_topk, (LISTS, TRUTH - torch.tensor([[0], [1]])), ValueError, "item ids"
    yield (
        from_topk,
        (LISTS, ()),
        ValueError,
        "'edge_label_index' needs to have shape [2, num_edges]",
    )
    one = "'edge_label_index' needs to hold parts of one shape"
    yield from_topk, (LISTS, (TRUTH[0], TRUTH[1, :2])), ValueError, f"{one} (got [[3], [2]])"
    yield from_topk, (LISTS, (TRUTH[0], None)), TypeError, "'edge_label_index' needs to be a tensor"
    from_negatives, zeros = RankedEdges.from_negatives, torch.zeros
    yield from_negatives, (zeros(2, 1), zeros(3)), ValueError, "shape [num_positives]"
    yield from_negatives, (zeros(0), zeros(3)), ValueError, "num_positives > 0 (got [0])"
    for negative in (zeros(3, 4), zeros(0), zeros(2, 0)):
        yield from_negatives, (zeros(2), negative), ValueError, "'negative' needs to have shape"
    yield from_negatives, (zeros(2), zeros(3).double()), ValueError, "dtype of 'positive'"
    yield from_negatives, (zeros(2).long(), zeros(3)), ValueError, "'positive' needs to hold float"
    yield from_negatives, (zeros(1) / 0, zeros(3)), ValueError, "'positive' needs to hold finite"
    yield from_negatives, (zeros(1), 1 / zeros(1)), ValueError, "'negative' needs to hold finite"
    from_pairs, preds = RankedEdges.from_pairs, torch.rand(3)
    yield from_pairs, (float8, TRUTH[0], TRUTH[0]), ValueError, f"'preds' {floating}"
    yield from_pairs, (preds.to_sparse(), TRUTH[0], TRUTH[0]), ValueError, f"'preds' {dense}"
    yield from_pairs, (preds, preds * 1j, TRUTH[0]), ValueError, f"'target' {real}"
    yield from_pairs, (preds, TRUTH[0, :2]), ValueError, "as many elements as 'preds', 3 (got 2"
    yield from_pairs, (preds, TRUTH[0], preds), ValueError, "'indexes' needs to hold integers"
    yield from_pairs, (preds * torch.nan, TRUTH[0], TRUTH[0]), ValueError, "'preds' needs to hold"
    yield from_pairs, (preds, "100", TRUTH[0]), TypeError, "'target' needs to be a tensor"
    ignoring = {"preds": preds, "target": TRUTH[0], "ignore_index": -(2**70)}
    yield from_pairs, ignoring, ValueError, "'ignore_index' needs to be less than 2**53"
    yield PairScorer, (3,), TypeError, "'function' needs to be a function"
    yield PairScorer, (print, 0), ValueError, "'batch_size' needs to be a positive integer"
    yield rank, (SCORES.to(torch.float8_e4m3fn), TASK), ValueError, f"'recommender' {floating}"
    yield rank, (SCORES.to_sparse(), TASK), ValueError, f"'recommender' {dense}"
    yield rank, (SCORES * 1j, TASK), ValueError, "(got torch.complex64)"
    update = modules.NDCG(k=2).update
    yield update, (LISTS.to_sparse(), TRUTH), ValueError, f"'pred_index_mat' {dense}"
    yield update, (LISTS, TRUTH, weight * 1j), ValueError, f"'edge_label_weight' {real}"


def of_words():
    for word in (np.array(["a", "b"]), "", 1):
        for call, arguments, name in (
            (evaluate, EVALUATION, "convention"),
            (evaluate, EVALUATION, "empty_target_action"),
            (EvaluationResult, RESULT_OF, "empty_target_action"),
            (compare, {"results": {"a": RESULT, "b": RESULT}}, "baseline"),
            (rank, {"recommender": SCORES, "data": TASK}, "ties"),
            (rank, {"recommender": SCORES, "data": TASK}, "algorithm"),
            (metrics.precision, {"ranked": RANKED, "k": 2}, "normalizer"),
            (metrics.roc_auc, {"ranked": RANKED}, "ties"),
            (metrics.precision_recall_curve, {"ranked": RANKED}, "aggregation"),
            (modules.PrecisionRecallCurve, {}, "aggregation"),
            (modules.PrecisionRecallCurve, {}, "empty_target_action"),
            (modules.NDCG, {"k": 2}, "gain"),
            (modules.NDCG, {"k": 2}, "empty_target_action"),
        ):
            yield call, {**arguments, name: word}, ValueError, f"'{name}' needs to be one of"


def of_metrics():
    for wanted in (None, SCORES):
        message = "'metrics' needs to be a string or a list of strings"
        yield evaluate, {**EVALUATION, "metrics": wanted}, TypeError, message
        yield Evaluator, {"data": TASK, "metrics": wanted}, TypeError, message
        yield EvaluationResult, {**RESULT_OF, "metrics": wanted}, TypeError, message
        for call in (metrics.definition, metrics.Metric):
            yield call, (wanted,), TypeError, message
        yield metrics.curve, (RANKED, wanted, 2), TypeError, "'metric' needs to be a string"
        yield EvaluationResult, (wanted, "mrr"), TypeError, "'ranked' needs to be 'RankedEdges'"
        yield metrics.precision_recall_curve, (wanted,), TypeError, "'ranked' needs to be"
    unknown, made = "'{}' needs to name known metrics", {"data": TASK, "metrics": "recall@2"}
    yield Evaluator, made | {"margin": {"ndgc@2": 0.1}}, ValueError, unknown.format("margin")
    yield Evaluator, made | {"monitor": "ndgc@2"}, ValueError, unknown.format("monitor")
    result = EvaluationResult(**RESULT_OF)
    for call in (result.mean, result.values_of, result.tie_range, result.per_item):
        yield call, ("ndgc@2",), ValueError, unknown.format("metric")
    yield result.curve, ("ndgc", 2), ValueError, unknown.format("metric")
    wanted = ["recall@2", SCORES]
    yield evaluate, {**EVALUATION, "metrics": wanted}, TypeError, message
    yield evaluate, {**EVALUATION, "metrics": []}, ValueError, "at least one metric"
    yield evaluate, {**EVALUATION, "metrics": ""}, ValueError, "needs to be spelled"
    twice = "'ndcg' needs each argument once"
    yield metrics.parse, ("ndcg(gain=linear,gain=binary)@5",), ValueError, twice
    gains = (("gain", "linear"), ("gain", "binary"))
    yield metrics.Metric, ("ndcg", 5, gains), ValueError, twice
    for arguments in (None, "gain", [("gain",)], SCORES):
        yield metrics.Metric, ("ndcg", 5, arguments), TypeError, "'arguments' needs to hold pairs"
    yield rank, (SCORES, {"user": SCORES}), TypeError, "'data' needs to be one part"
    yield rank, {"recommender": SCORES, "data": TASK, "k": 2, "full": True}, ValueError, "'k' and"
    yield EvaluationResult, {**RESULT_OF, "task": DATA}, TypeError, "'task' needs to be a 'Ranking"
    yield metrics.register, {"needs": "items"}, TypeError, "'needs' needs to be a tuple"
    message = "'catalogue' needs to be a 'Catalogue'"
    for metric in (modules.Coverage, modules.Novelty):
        yield metric, {"k": 2, "catalogue": SCORES}, TypeError, message
    message = "'catalogue' needs to hold the items of the task, 4 (got num_items=5)"
    yield evaluate, {**EVALUATION, "catalogue": Catalogue(5)}, ValueError, message
    with_population = conventions.get("standard").with_population
    yield with_population, ({"min_pos_test": 2},), TypeError, "'population' needs to be a 'Popu"
    message = "'num_users' says how to read a graph"
    yield evaluate, {**EVALUATION, "num_users": 4}, ValueError, message
    bare = Catalogue(4)
    yield modules.Novelty, {"k": 2, "catalogue": bare}, ValueError, "needs what users have seen"


def of_options():
    """An evaluator says what is wrong when it is made, and not after the first epoch."""
    made = {"data": TASK, "metrics": "recall@2"}
    message = "'{}' needs to be a positive integer (got 'no')"
    for name in ("batch_size", "keep_items", "patience"):
        yield Evaluator, {**made, name: "no"}, ValueError, message.format(name)
    yield Evaluator, {**made, "progress": "no"}, TypeError, "'progress' needs to be a boolean"
    message = "'empty_target_action' needs to be one of"
    yield Evaluator, {**made, "empty_target_action": "no"}, ValueError, message


EVALUATION = {"recommender": SCORES, "data": TASK, "metrics": "recall@2"}
RESULT_OF = {"ranked": RANKED, "metrics": "recall@2"}


@pytest.mark.parametrize(
    ("call", "arguments", "error", "message"),
    [pytest.param(*row, id=f"{number}-{row[3][:40]}") for number, row in enumerate(table())],
)
@pytest.mark.usefixtures("definitions")
def test_an_odd_argument_is_named(call, arguments, error, message):
    with pytest.raises(error, match=re.escape(message)):
        call(**arguments) if isinstance(arguments, dict) else call(*arguments)


def test_large_ids_take_no_memory():
    """Ids that are hashes, say, need no renumbering where lists are all there is."""
    lists = LISTS.masked_fill(LISTS == 2, 10**12)
    ranked = RankedEdges.from_topk(lists, large_ids(10**12), torch.ones(3))
    assert metrics.recall(ranked, 1).tolist() == [1, 0, 0]
    result = EvaluationResult(ranked, "recall@1")
    assert compare({"a": result, "b": result})[0].difference == 0


def test_the_largest_numbers_that_are_allowed_are_taken():
    assert metrics.Metric("f1", 2**53 - 1).k == 2**53 - 1
    ranked = RankedEdges.from_topk(LISTS[:1], torch.tensor([[0], [2**63 - 2]]))
    assert ranked.degree.tolist() == [1]


@pytest.mark.parametrize(
    ("items", "is_shifted"),
    [([2, 5], True), ([2, 6], True), ([1, 5], False), ([2, 7], False), ([-1, 5], False)],
)
def test_ids_that_are_shifted_by_the_number_of_users_are_told(items, is_shifted):
    with pytest.raises(ValueError, match=r"item ids in \[0, 5\) \(got -?[0-9]\)") as raised:
        RankingTask([[0, 1], items], num_users=2, num_items=5)
    assert ("subtract 'num_users' (2)" in str(raised.value)) == is_shifted


def test_an_argument_that_is_left_open_is_no_argument():
    left_open = metrics.Metric("ndcg", 5, (("ideal_k", None),))
    assert left_open == metrics.parse("ndcg@5")
    assert str(modules.NDCG(k=5, ideal_k=None).metric) == "ndcg@5"
