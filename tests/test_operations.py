"""Calls ask no more of torch than the table in `pyproject.toml` says, which no noise can move."""

from functools import partial
from pathlib import Path

import pytest
import tomllib
import torch
from torch_geometric.nn import LightGCN

from pyg_recmetrics import Evaluator, RankingTask, evaluate, metrics, rank
from pyg_recmetrics.kernels.exact import ranks
from tests.support.tools.operations import executed_lines, num_operations

ROOT = Path(__file__).resolve().parents[1]
TABLE = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["operations"]

#: So many users, items, relevant pairs and seen pairs.
SIZES = [(100, 100, 500, 1000), (943, 1682, 9430, 90000)]
FORMS = ["embeddings", "a matrix of scores"]


def world(num_users, num_items, num_relevant, num_seen, device="cpu"):
    """A task, and embeddings."""
    generator = torch.Generator().manual_seed(0)
    pair = torch.randperm(num_users * num_items, generator=generator)[: num_relevant + num_seen]
    edges = torch.stack([pair // num_items, pair % num_items]).to(device)
    truth, seen = edges.split([num_relevant, num_seen], dim=1)
    task = RankingTask(truth, num_users=num_users, num_items=num_items, seen=seen)
    tables = (torch.randn(size, 64, generator=generator) for size in (num_users, num_items))
    return task, tuple(table.to(device) for table in tables)


def recommender_of(tables, form):
    return tables if form == FORMS[0] else tables[0] @ tables[1].t()


def calls(size, form, device="cpu"):
    """What is called: an evaluator that knows its task, and `evaluate` with a new one."""
    task, tables = world(*size, device)
    recommender = recommender_of(tables, form)
    evaluator = Evaluator(task, ["precision@20", "recall@20"])
    evaluator(recommender)
    evaluate(recommender, task)  # what the process finds out once
    new, _ = world(*size, device)
    yield "call", lambda: evaluator(recommender)["recall@20"]
    yield "evaluate", partial(evaluate, recommender, new)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("size", SIZES, ids=str)
def test_calls_ask_little_of_torch(size, form):
    found = {name: num_operations(call) for name, call in calls(size, form)}
    assert {name: min(number, TABLE[name][0]) for name, number in found.items()} == found


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("size", SIZES, ids=str)
def test_calls_hardly_wait_for_a_device(device, waits, size, form):
    if device.type == "cpu":
        pytest.skip("a CPU waits for nothing")
    found = {name: waits(call) for name, call in calls(size, form, device)}
    assert {name: min(number, TABLE[name][1]) for name, number in found.items()} == found


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("of_call", ["operations", "waits"])
@pytest.mark.parametrize("num_items", [1000, 5000])
def test_one_more_chunk_asks_little(monkeypatch, device, waits, form, of_call, num_items):
    if device.type == "cpu" and (of_call == "waits" or num_items > 4096):
        pytest.skip("a CPU waits for nothing, and searches among many items")
    # A card counts in one step, whose place torch takes here.
    monkeypatch.setattr(ranks, "NUM_COMPARISONS", 2**30)
    count = num_operations if of_call == "operations" else waits
    task, tables = world(600, num_items, 3000, 6000, device)
    recommender, found = recommender_of(tables, form), []
    for batch_size in (300, 200):
        call = partial(rank, recommender, task, k=20, batch_size=batch_size)
        call()
        found.append(count(call))
    assert found[1] - found[0] <= TABLE["chunk"][of_call == "waits"]


def test_one_more_metric_asks_little():
    task, tables = world(*SIZES[0])
    names = [name for name in metrics.names() if is_of_ranks(metrics.definition(name))]
    given = ["precision@20", "recall@20"]
    found = {name: num_operations(measured(task, tables, [*given, name])) for name in names}
    alone = num_operations(measured(task, tables, given))
    more = {name: number - alone for name, number in found.items()}
    assert {"ndcg", "mrr", "map", "r_precision"} <= more.keys()
    allowed = {name: TABLE["metrics"].get(name, TABLE["metric"]) for name in names}
    assert {name: min(number, allowed[name]) for name, number in more.items()} == more


def is_of_ranks(definition):
    return not definition.needs and not definition.needs_all_ranks


def measured(task, tables, spelled):
    spelled = [
        f"{name}@20" if "@" not in name and metrics.definition(name).has_cut_off else name
        for name in spelled
    ]
    evaluator = Evaluator(task, spelled)
    evaluator(tables)
    return partial(evaluator, tables)


def test_evaluating_a_model_executes_few_lines():
    task, _ = world(*SIZES[0])
    model = LightGCN(num_nodes=200, embedding_dim=64, num_layers=2)
    shift = torch.tensor([[0], [task.num_users]])
    seen = task.seen + shift
    call = partial(
        evaluate,
        model,
        task.truth + shift,
        "r_precision",
        edge_index=torch.cat([seen, seen.flip(0)], dim=1),
        num_users=task.num_users,
    )
    call()
    lines = executed_lines(call)
    found = [len(lines), len({file for file, _ in lines})]
    assert [min(ends) for ends in zip(found, TABLE["lines"], strict=True)] == found
