"""Neither the device of data nor a default device, here one without numbers, changes a thing."""

import ast
from pathlib import Path

import torch

from pyg_recmetrics import (
    Catalogue,
    EvaluationResult,
    RankedEdges,
    RankingTask,
    Runs,
    compare,
    datasets,
    evaluate,
    merge,
    modules,
    transforms,
)
from tests.support.cases.random_tasks import random_scores, random_task

SPLITS = [
    transforms.PerUserSplit(num_val=0.1, num_test=0.2),
    transforms.PerUserSplit(num_test=0.2, users=transforms.SeparatedUsers(max_users=5)),
    transforms.TemporalSplit(num_val=0.1, num_test=0.2),
    transforms.LeaveLastOut(),
]

SEEN, TRUTH = torch.tensor([[0, 1, 2], [0, 1, 1]]), torch.tensor([[0, 1, 2], [2, 0, 3]])
SCORES = torch.rand(2, 60, 50, generator=torch.Generator().manual_seed(0))
CATEGORY = torch.tensor([0, 5, 5, 1])
USERS = torch.tensor([0, 1])
CANDIDATES = [torch.tensor([0, 2, 3]), torch.tensor([[1, 0, 0], [0, 3, 2]])]


def split_and_sampled():
    data = datasets.synthetic_interactions(num_users=60, num_items=50)
    for split in SPLITS:
        test = split(data)[-1]
        sampled = transforms.SampledCandidates(num_negatives=5)(test)
        yield [value for store in sampled.stores for value in store.values()]
    task = RankingTask.from_data(test)
    one, other = (evaluate(scores, task, ["recall@5", "roc_auc"]) for scores in SCORES)
    yield dict(one), one.confidence_interval("recall@5"), str(compare({"a": one, "b": other}))


def tasks_and_catalogues():
    for candidates in CANDIDATES:
        task = RankingTask(TRUTH, num_users=3, num_items=4, seen=SEEN, candidates=candidates)
        task = task.select_users(USERS)
        yield [task.truth, task.users, task.num_candidates, task.excluded]
    catalogue = Catalogue(
        4, seen=SEEN, item_category=CATEGORY, item_embedding=CATEGORY[:, None] / 2
    )
    yield [catalogue.popularity, catalogue.item_category]


def merged_parts_and_classes():
    scores = SCORES[0, :3, :4]
    lists, task = scores.argsort(dim=1), RankingTask(TRUTH, num_users=3, num_items=4)
    for per, name in (("user", "recall@2"), ("edge", "mrr")):
        yield dict(merge([evaluate(scores, task.part(x, 2), name, per=per) for x in range(2)]))
    runs = Runs([evaluate(each, task, "recall@2") for each in (scores, scores.flip(1))])
    yield runs.tie_range("recall@2"), dict(evaluate(lists[:, :3], task, "recall@2"))
    coverage = modules.Coverage(k=2, catalogue=Catalogue(4))
    for metric in (modules.NDCG(k=3), coverage, modules.RPrecision()):
        metric.update(lists, TRUTH)
        yield float(metric.compute())
    curve = modules.PrecisionRecallCurve(max_k=2)
    curve.update(scores[0], lists[0] > 1, torch.zeros_like(lists[0]))
    yield [*curve.compute()]


def trec_files(folder):
    for name, text in (("run", "u Q0 a 1 1 t\nu Q0 b 1 0 t\n"), ("qrels", "u 0 b 1\n")):
        (folder / name).write_text(text)
    ranked = RankedEdges.from_trec(folder / "run", folder / "qrels")
    yield [ranked.rank, ranked.lists.length(1), ranked.lists.to_matrix()]


def in_words(values):
    return [
        each.tolist() if isinstance(each, torch.Tensor) else repr(each)
        for value in values
        for each in (value if isinstance(value, list) else [value])
    ]


def test_everything_is_the_same(tmp_path):
    def everything():
        yield from split_and_sampled()
        yield from tasks_and_catalogues()
        yield from merged_parts_and_classes()
        yield from trec_files(tmp_path)

    wanted = in_words(everything())
    with torch.device("meta"):
        assert in_words(everything()) == wanted


def said_of_results(device, folder):
    """What tables, frames, groups, comparisons and files say of what is on a device."""
    task = random_task(80, 12, truth_share=0.2, seen_share=0.2)
    scores, names = random_scores(task, 1, skill=0.2), ["recall@2", "ndcg@3", "coverage@2"]
    result = evaluate(scores.to(device), task.to(device), names, keep_items=True)
    result.save(folder / "result")
    loaded = EvaluationResult.load(folder / "result")
    other = evaluate(random_scores(task, 2), task, names)  # which stays where it is
    for each in (result, loaded):
        yield [str(each), str(each.by([0, 1] * 40)), str(compare({"a": each, "b": other}))]
        frames = each.to_pandas(per_user=True), each.top_k(3), each.per_item("recall@3")
        yield [frame.to_csv(float_format="%.9f") for frame in frames]
    yield [each.device.type for each in (loaded.ranked.rank, loaded.task.truth)]


def test_results_on_any_device_say_the_same(device, tmp_path):
    assert [*said_of_results(device, tmp_path)] == [*said_of_results("cpu", tmp_path)]


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
