"""Several processes evaluate together, and each has the result of all."""

import pytest
import torch
import torch.distributed as dist

from pyg_recmetrics import Catalogue, RankedEdges, distributed, evaluate, metrics, modules
from tests.support.machines import processes
from tests.support.machines.other_process import run_python
from tests.support.tools.examples import EXAMPLES

pytestmark = pytest.mark.skipif(
    not (dist.is_available() and dist.is_gloo_available()), reason="needs torch.distributed's gloo"
)


@pytest.fixture(scope="module")
def seen(tmp_path_factory):
    """What each process has seen."""
    folder = tmp_path_factory.mktemp("processes")
    done = run_python("-m", processes.__name__, folder, OMP_NUM_THREADS="1")
    # Gloo of PyTorch 2.8 says which processes it has connected.
    told = [line for line in done.stdout.splitlines() if not line.startswith("[Gloo]")]
    assert told == ["0"] * processes.SIZE, done.stderr
    names = [f"{process}.pt" for process in range(processes.SIZE)]
    return [torch.load(folder / name, weights_only=False) for name in names]


def assert_same(one, other):
    torch.testing.assert_close(one, other, rtol=0, atol=0, equal_nan=True)


@pytest.mark.usefixtures("expect_ties")
def test_every_process_has_the_results_of_a_single_one(seen):
    wanted = processes.results(evaluate)
    for process in seen:
        assert process["results"].keys() == wanted.keys()
        for name, (text, per_user) in wanted.items():
            assert process["results"][name][0] == text, name
            assert_same(process["results"][name][1], per_user)


@pytest.mark.usefixtures("expect_ties")
def test_a_process_can_evaluate_by_itself(seen):
    assert seen[1]["alone"] == dict(evaluate(processes.scores(), processes.small_task(), "map@5"))


def test_what_cannot_be_shared_is_an_error_in_all_processes(seen):
    for process in seen:
        assert process["few users"].startswith("'num_parts' needs to be at most")
        assert process["margin"].startswith("'margin' needs to be None")


def test_a_group_and_a_task_are_needed():
    with pytest.raises(ValueError, match="needs a process group"):
        distributed.evaluate(processes.scores(), processes.small_task())
    with pytest.raises(TypeError, match="'task' needs to be a 'RankingTask'"):
        distributed.evaluate(processes.scores(), processes.small_task().truth)


def test_metric_classes_are_merged_by_torchmetrics(seen):
    pytest.importorskip("torchmetrics")
    parts = [modules.Recall(k=1) for _ in seen]
    for number, metric in enumerate(parts[:-1]):
        lists = torch.arange(number + 1).unsqueeze(1)
        metric.update(lists, torch.zeros(2, 1, dtype=torch.long))
    total, count = (sum(metric.state[part] for metric in parts) for part in ("sum", "count"))
    for number, process in enumerate(seen):
        mean, own_afterwards = process["synchronised"]
        torch.testing.assert_close(mean, (total / count).float())
        assert_same(own_afterwards, parts[number].state["count"])


def test_metrics_of_all_users_together_merge_before_they_are_computed(seen):
    pytest.importorskip("torchmetrics")
    lists = torch.cat([processes.lists_of(process) for process in range(len(seen))])
    ranked = RankedEdges.from_topk(lists, torch.zeros(2, 1, dtype=torch.long))
    ranked = ranked.with_catalogue(Catalogue(processes.NUM_ITEMS))
    wanted = [
        metrics.parse(f"{name}@2")(ranked).float()
        for name in ("coverage", "gini", "entropy", "personalization")
    ]
    for process in seen:
        torch.testing.assert_close(process["synchronised over all"], wanted)


def test_curves_merge_before_they_are_computed(seen):
    pytest.importorskip("torchmetrics")
    parts = [processes.pairs_of(process) for process in range(len(seen))]
    preds, target, indexes = (torch.cat(part) for part in zip(*parts, strict=True))
    ranked = RankedEdges.from_pairs(preds, target, indexes)  # whose queries all processes share
    for process in seen:
        for curve, max_k in zip(process["synchronised curves"], (3, None), strict=True):
            wanted = metrics.precision_recall_curve(ranked, max_k)
            for value, expected in zip(curve, wanted, strict=True):
                torch.testing.assert_close(value, expected.to(value.dtype))


@pytest.mark.slow
def test_the_example_under_torchrun():
    command = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    done = run_python(*command, EXAMPLES / "distributed.py", OMP_NUM_THREADS="1")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("users evaluated") == 1
    assert "2 processes" in done.stdout
    assert "the same numbers" in done.stdout
