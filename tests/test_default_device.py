"""A default device other than that of the data changes nothing, here one that holds no numbers."""

import ast
from pathlib import Path

import pytest
import torch

from pyg_recmetrics import (
    Catalogue,
    RankingTask,
    Runs,
    compare,
    datasets,
    evaluate,
    merge,
    modules,
    transforms,
)

SPLITS = [
    transforms.PerUserSplit(num_val=0.1, num_test=0.2),
    transforms.PerUserSplit(num_test=0.2, users=transforms.SeparatedUsers(max_users=5)),
    transforms.TemporalSplit(num_val=0.1, num_test=0.2),
    transforms.LeaveLastOut(),
]


def data():
    return datasets.synthetic_interactions(num_users=60, num_items=50)


@pytest.mark.parametrize("split", SPLITS, ids=repr)
def test_splits_and_samples_are_the_same(split):
    def edges():
        test = split(data())[-1]
        sampled = transforms.SampledCandidates(num_negatives=5)(test)
        return [value for store in sampled.stores for value in store.values()]

    wanted = edges()
    with torch.device("meta"):
        found = edges()
    for one, other in zip(found, wanted, strict=True):
        assert one.equal(other) if isinstance(one, torch.Tensor) else one == other


def test_results_and_their_intervals_are_the_same():
    def numbers():
        task = RankingTask.from_data(SPLITS[0](data())[-1])
        generator = torch.Generator("cpu").manual_seed(0)
        scores = torch.rand(2, task.num_users, task.num_items, generator=generator, device="cpu")
        one, other = (evaluate(values, task, ["recall@5", "roc_auc"]) for values in scores)
        comparison = compare({"a": one, "b": other})
        interval = one.confidence_interval("recall@5")
        return one.to_dict(), interval, str(comparison)

    wanted = numbers()
    with torch.device("meta"):
        assert numbers() == wanted


@pytest.mark.parametrize("candidates", [[0, 2, 3], [[1, 0, 0], [0, 3, 2]]])
def test_tasks_and_catalogues_are_the_same(candidates):
    seen, truth = torch.tensor([[0, 1, 2], [0, 1, 1]]), torch.tensor([[0, 0, 1], [2, 3, 0]])
    given = torch.tensor(candidates)
    category = torch.tensor([0, 5, 5, 1])

    def numbers():
        task = RankingTask(truth, num_users=3, num_items=4, seen=seen, candidates=given)
        task = task.select_users(torch.tensor([0, 1], device="cpu"))
        catalogue = Catalogue(
            4, seen=seen, item_category=category, item_embedding=category[:, None] / 2
        )
        fields = (task.truth, task.users, task.num_candidates, task.excluded)
        return [x.tolist() for x in (*fields, catalogue.popularity, catalogue.item_category)]

    wanted = numbers()
    with torch.device("meta"):
        assert numbers() == wanted


#: What makes a tensor of nothing, on the default device unless it is told another.
FACTORIES = {
    *("arange", "empty", "eye", "full", "linspace", "logspace", "ones", "rand", "randint", "randn"),
    *("randperm", "tensor", "zeros", "as_tensor"),
}


def test_whatever_makes_a_tensor_says_where():
    silent = []
    for path in sorted((Path(__file__).parents[1] / "pyg_recmetrics").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
                continue
            is_torch = isinstance(node.func.value, ast.Name) and node.func.value.id == "torch"
            given = {keyword.arg for keyword in node.keywords}
            if is_torch and node.func.attr in FACTORIES and "device" not in given:
                silent.append(f"{path.name}:{node.lineno}: torch.{node.func.attr}")
    assert not silent


def test_merged_parts_and_classes_are_the_same():
    truth, scores = torch.tensor([[0, 1, 2], [2, 0, 1]]), torch.rand(3, 4)
    lists = scores.argsort(dim=1)

    def numbers():
        task = RankingTask(truth, num_users=3, num_items=4)
        found = []
        for per, name in (("user", "recall@2"), ("edge", "mrr")):
            parts = [evaluate(scores, task.part(x, 2), name, per=per) for x in range(2)]
            found.append(dict(merge(parts)))
        runs = Runs(
            [evaluate(scores, task, "recall@2"), evaluate(scores.flip(1), task, "recall@2")]
        )
        found += [runs.tie_range("recall@2"), dict(evaluate(lists[:, :3], task, "recall@2"))]
        for metric in (
            modules.NDCG(k=3),
            modules.Coverage(k=2, catalogue=Catalogue(4)),
            modules.RPrecision(),
        ):
            metric.update(lists, truth)
            found.append(float(metric.compute()))
        curve = modules.PrecisionRecallCurve(max_k=2)
        curve.update(scores[0], lists[0] > 1, torch.zeros_like(lists[0]))
        found.append([values.tolist() for values in curve.compute()])
        return found

    wanted = numbers()
    with torch.device("meta"):
        assert numbers() == wanted
